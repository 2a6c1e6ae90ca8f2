//! `stop`: asks an open admission to end. Its machine ends it and records that.

use tenure::admission::AdmId;

use super::desk::Desk;
use super::refusal::refused;
use super::render::View;
use crate::cli::exit::{CliError, Exit};

/// Asks an open admission to stop; it stays open until its machine has ended it
#[derive(Debug, clap::Args)]
pub struct StopArgs {
    /// The admission
    #[arg(value_name = "ADMISSION")]
    admission: AdmId,

    /// Why, in words; the command can read it
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

/// Runs the verb.
pub fn run(desk: &Desk<'_>, args: StopArgs) -> Result<Exit, CliError> {
    let record = desk.ledger.stop(&args.admission, &desk.subject, &args.reason).map_err(refused)?;
    desk.changed(&View::now(&record, desk.ledger.as_ref()), || {
        format!("{} {} {} is asked to stop\n", record.admission, record.key(), record.surface)
    })
}
