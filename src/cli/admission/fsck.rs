//! `fsck`: looks for anything in the ledger that contradicts the rules.

use super::desk::Desk;
use super::refusal::refused;
use crate::cli::escape;
use crate::cli::exit::{CliError, Exit};

/// Checks the ledger against the rules; changes nothing
#[derive(Debug, clap::Args)]
pub struct FsckArgs {}

/// Runs the verb.
pub fn run(desk: &Desk<'_>) -> Result<Exit, CliError> {
    let faults = desk.ledger.fsck().map_err(refused)?;
    let text = || match faults.as_slice() {
        [] => "the ledger keeps its rules\n".to_owned(),
        faults => faults.iter().map(|f| format!("{}: {}\n", f.rule, escape::message(&f.what))).collect(),
    };
    desk.list(&faults, text)?;
    Ok(if faults.is_empty() { Exit::Done } else { Exit::Number(30) })
}
