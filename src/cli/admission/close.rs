//! `close`: records how it ended, which is what frees the surface.

use tenure::admission::{AdmId, By, Closing, Kind};

use super::desk::Desk;
use super::refusal::refused;
use super::render::{self, View};
use super::token::TokenArg;
use crate::cli::exit::{CliError, Exit};

/// The ways in which the machine that ran it may close.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum KindArg {
    /// It ran and did what it should
    Succeeded,
    /// It ran and did not; files may be half changed, so there is no next attempt
    Failed,
    /// It was stopped while it ran; the next attempt is allowed
    Interrupted,
    /// Nothing ran; the next attempt is allowed
    #[value(name = "failed-before-start", alias = "failed_before_start")]
    FailedBeforeStart,
}

/// Records how an admission ended; the surface is free from then on
///
/// There is no kind for an end that nobody knows: such an admission stays, until a person releases it.
#[derive(Debug, clap::Args)]
pub struct CloseArgs {
    /// The admission
    #[arg(value_name = "ADMISSION")]
    admission: AdmId,

    #[command(flatten)]
    token: TokenArg,

    /// How it ended
    #[arg(long, value_enum)]
    kind: KindArg,

    /// The exit code of its command
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    exit: Option<i32>,

    /// Why, in words
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Runs the verb.
pub fn run(desk: &Desk<'_>, args: CloseArgs) -> Result<Exit, CliError> {
    let kind = match args.kind {
        KindArg::Succeeded => Kind::Succeeded,
        KindArg::Failed => Kind::Failed,
        KindArg::Interrupted => Kind::Interrupted,
        KindArg::FailedBeforeStart => Kind::FailedBeforeStart,
    };
    let by = By::Destination { token: args.token.read()?, caller: desk.identity()?.machine };
    let closing = Closing { kind, exit_code: args.exit, reason: args.reason };
    let record = desk.ledger.close(&args.admission, &by, &closing).map_err(refused)?;
    desk.changed(&View::plain(&record), || render::line(&record))
}
