//! Placeholder.

use super::context::Context;
use super::exit::{CliError, Exit};

/// Runs a graph.
#[derive(Debug, clap::Args)]
pub struct RunArgs {}

/// Runs the verb.
pub fn run(_context: &Context, _args: RunArgs) -> Result<Exit, CliError> {
    Ok(Exit::Done)
}
