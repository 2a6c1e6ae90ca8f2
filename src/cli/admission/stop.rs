//! `stop`: asks an open admission to end. Its machine ends it and records that.

use super::desk::Desk;
use super::refusal::refused;
use super::render::View;
use super::request::Named;
use crate::cli::exit::{CliError, Exit};

/// Asks an open admission to stop; it stays open until its machine has ended it
#[derive(Debug, clap::Args)]
pub struct StopArgs {
    /// The admission, by its id or its request
    #[arg(value_name = "ADMISSION|REQUEST[/N]")]
    admission: Named,

    /// Why, in words; the command can read it
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

/// Runs the verb.
pub fn run(desk: &Desk<'_>, args: StopArgs) -> Result<Exit, CliError> {
    let admission = args.admission.id(desk.ledger.as_ref())?;
    let record = desk.ledger.stop(&admission, &desk.subject, &args.reason).map_err(refused)?;
    desk.changed(&View::now(&record, desk.ledger.as_ref()), || {
        format!("{} {} {} is asked to stop\n", record.admission, record.key(), record.surface)
    })
}
