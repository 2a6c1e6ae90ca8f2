//! `cancel`: takes a request back before it has started.

use tenure::admission::AttemptKey;

use super::desk::Desk;
use super::refusal::refused;
use super::render::{self, View};
use crate::cli::exit::{CliError, Exit};

/// Takes a request back before it has started; after that, `stop` it
#[derive(Debug, clap::Args)]
pub struct CancelArgs {
    /// The request, and which attempt of it
    #[arg(value_name = "REQUEST[/N]")]
    request: AttemptKey,
}

/// Runs the verb.
pub fn run(desk: &Desk<'_>, args: CancelArgs) -> Result<Exit, CliError> {
    let record = desk.ledger.cancel(&args.request, &desk.subject).map_err(refused)?;
    desk.changed(&View::plain(&record), || render::line(&record))
}
