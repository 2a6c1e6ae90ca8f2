//! `reopen`, `archive`, `unarchive`: what can be done to a node that has ended.

use tenure::{NodeId, Refusal, Table};

use super::answer;
use super::context::Context;
use super::exit::{CliError, Exit};

/// Opens a node again that has ended, and prints its new generation
///
/// What waits for it and has not started waits again.
#[derive(Debug, clap::Args)]
pub struct ReopenArgs {
    /// Name or id
    node: String,
}

/// Hides a node that has ended from ordinary lists, and prints its generation
///
/// Archived nodes are the first to make room when the table is full.
#[derive(Debug, clap::Args)]
pub struct ArchiveArgs {
    /// Name or id
    node: String,
}

/// Shows an archived node again, and prints its generation
#[derive(Debug, clap::Args)]
pub struct UnarchiveArgs {
    /// Name or id
    node: String,
}

/// Runs `reopen`.
pub fn reopen(context: &Context, args: ReopenArgs) -> Result<Exit, CliError> {
    change(context, &args.node, Table::reopen)
}

/// Runs `archive`.
pub fn archive(context: &Context, args: ArchiveArgs) -> Result<Exit, CliError> {
    change(context, &args.node, Table::archive)
}

/// Runs `unarchive`.
pub fn unarchive(context: &Context, args: UnarchiveArgs) -> Result<Exit, CliError> {
    change(context, &args.node, Table::unarchive)
}

fn change(
    context: &Context,
    typed: &str,
    verb: impl Fn(&Table, NodeId) -> Result<u64, Refusal>,
) -> Result<Exit, CliError> {
    let node = context.node(typed)?;
    let table = context.open_to_change()?;
    let generation = verb(&table, node)?;
    answer::moved(context, &table, node, typed, generation)
}
