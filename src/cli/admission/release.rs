//! `revoke` cuts a credential and `release` frees a surface: two things, kept apart (A62).

use std::io::IsTerminal;

use super::desk::Desk;
use super::refusal::refused;
use super::render::{self, View};
use super::request::Named;
use crate::cli::exit::{CliError, Exit};

/// Cuts the credential of an open admission; the surface stays owned
#[derive(Debug, clap::Args)]
pub struct RevokeArgs {
    /// The admission, by its id or its request
    #[arg(value_name = "ADMISSION|REQUEST[/N]")]
    admission: Named,
}

/// Frees the surface of an admission whose end nobody can tell
///
/// Only after you have looked: what it started may still run on its machine, and from now on something else may start in
/// the same place. The record says that the outcome is unknown, who released it and why.
#[derive(Debug, clap::Args)]
pub struct ReleaseArgs {
    /// The admission, by its id or its request
    #[arg(value_name = "ADMISSION|REQUEST[/N]")]
    admission: Named,

    /// Why; it is all that will be known
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// Yes, I have made sure that nothing of it runs any more
    #[arg(long)]
    yes: bool,
}

/// Runs `revoke`.
pub fn revoke(desk: &Desk<'_>, args: RevokeArgs) -> Result<Exit, CliError> {
    let admission = args.admission.id(desk.ledger.as_ref())?;
    let record = desk.ledger.revoke(&admission, &desk.subject).map_err(refused)?;
    let text = || format!("{}: its credential is cut\n", render::line(&record).trim_end());
    desk.changed(&View::now(&record, desk.ledger.as_ref()), text)
}

/// Runs `release`.
pub fn release(desk: &Desk<'_>, args: ReleaseArgs) -> Result<Exit, CliError> {
    let admission = args.admission.id(desk.ledger.as_ref())?;
    if !args.yes {
        let record = desk.ledger.show(&admission).map_err(refused)?;
        if !desk.context.json && std::io::stdout().is_terminal() {
            desk.context.out.block(&render::record(&View::now(&record, desk.ledger.as_ref())))?;
        }
        let message = format!(
            "{} may still run on {} in {}; nothing was changed",
            record.admission, record.destination.machine, record.destination.place
        );
        return Err(CliError::usage("not_confirmed", message)
            .with_hint("look there first; `release ... --yes` then frees the surface"));
    }
    let record = desk.ledger.release(&admission, &desk.subject, &args.reason).map_err(refused)?;
    desk.changed(&View::plain(&record), || render::line(&record))
}
