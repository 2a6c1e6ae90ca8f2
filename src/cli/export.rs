//! Placeholder.

use super::context::Context;
use super::exit::{CliError, Exit};

/// Writes the graph out.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {}

/// Runs the verb.
pub fn run(_context: &Context, _args: ExportArgs) -> Result<Exit, CliError> {
    Ok(Exit::Done)
}
