//! `migrate`: makes the ledger, or brings it up to this version.

use super::desk::Desk;
use super::refusal::refused;
use crate::cli::escape;
use crate::cli::exit::{CliError, Exit};

/// Makes the ledger, or brings it up to the schema of this version; on PostgreSQL, makes the issuer's keys too
#[derive(Debug, clap::Args)]
pub struct MigrateArgs {}

/// Runs the verb.
pub fn run(desk: &Desk<'_>) -> Result<Exit, CliError> {
    let done = desk.ledger.migrate().map_err(refused)?;
    let at = escape::message(&desk.ledger.at());
    desk.changed(&done, || match done.from {
        None => format!("made the ledger in {at} (schema {})\n", done.to),
        Some(from) if from == done.to => format!("the ledger in {at} has schema {from} already\n"),
        Some(from) => format!("brought the ledger in {at} from schema {from} to {}\n", done.to),
    })
}
