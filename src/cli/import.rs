//! Placeholder.

use super::context::Context;
use super::exit::{CliError, Exit};

/// Adds the nodes of a file.
#[derive(Debug, clap::Args)]
pub struct ImportArgs {}

/// Runs the verb.
pub fn run(_context: &Context, _args: ImportArgs) -> Result<Exit, CliError> {
    Ok(Exit::Done)
}
