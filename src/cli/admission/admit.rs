//! `admit`: the admission without the command, for a program that runs its own.

use tenure::admission::{Entrance, Phase, Refusal};

use super::desk::Desk;
use super::refusal::refused;
use super::render;
use super::request::{AskArgs, Asked};
use super::send::keep_and_send_for_here;
use super::submit::Answered;
use crate::cli::exit::{CliError, Exit};

/// Asks for an admission on this machine and prints it with its credential
///
/// For a program that starts its own work: `started` before the work begins, `attach` before the credential runs out,
/// `close` when it has ended. The credential is a secret; keep it off command lines.
#[derive(Debug, clap::Args)]
pub struct AdmitArgs {
    #[command(flatten)]
    ask: AskArgs,

    /// What the program will run; it only counts for telling requests apart
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl AdmitArgs {
    /// What is to be sent.
    pub fn asked(self) -> Result<Asked, CliError> {
        self.ask.header(Entrance::Local, self.command, None, false)
    }
}

/// Runs the verb.
pub fn run(desk: &Desk<'_>, args: AdmitArgs) -> Result<Exit, CliError> {
    let (header, input) = args.asked()?;
    let answer = keep_and_send_for_here(desk, header, &input)?;
    if answer.phase() == Phase::Closed {
        return Err(refused(Refusal::Closed { record: Box::new(answer.record) }));
    }
    desk.changed(&Answered::whole(&answer), || {
        let token = answer.credential.as_ref().map(|credential| format!("{}\n", credential.token));
        render::line(&answer.record) + &token.unwrap_or_default()
    })
}
