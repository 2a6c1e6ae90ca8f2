//! `start`: asks for the admission, runs the command under it, and records how it ended.

use std::time::Duration;

use tenure::admission::{Answer, Entrance, Phase, Refusal};

use super::desk::Desk;
use super::refusal::refused;
use super::render;
use super::request::{AskArgs, Asked};
use super::run::{Job, execute};
use super::send::keep_and_send_for_here;
use crate::cli::args;
use crate::cli::exit::{CliError, Exit};
use crate::cli::out;

const AFTER_HELP: &str = "\
The command runs in the place of the surface, with its input on standard input, and finds in its environment:
  TENURE_ADMISSION, TENURE_REQUEST, TENURE_ATTEMPT, TENURE_SURFACE,
  TENURE_GENERATION, TENURE_PLACE
  TENURE_INPUT       the file with its input
  TENURE_INPUTS      a directory where what is appended appears, 000001 and on,
                     each whole
  TENURE_CREDENTIAL  a file with the credential that is good now; it is replaced
                     before it runs out
  TENURE_STOP        a file that appears when it should end, with the reason; a
                     SIGTERM to its process group comes with it, and a SIGKILL
                     when --grace is over

`start` ends with the exit code of the command, or 128 and the number of the signal that ended it. When nothing was
started it ends with the code of the refusal. The first line on standard error is the admission. With --json, standard
output is one object about the end, and what the command prints goes to standard error.";

/// Starts a command on this machine under an admission, and records how it ended
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct StartArgs {
    #[command(flatten)]
    ask: AskArgs,

    #[command(flatten)]
    grace: GraceArg,

    /// The command
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// How long a command may take to end.
#[derive(Debug, clap::Args)]
pub struct GraceArg {
    /// Seconds between the signal to end and the kill
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = args::wait_ms)]
    grace: u64,
}

impl GraceArg {
    pub fn duration(&self) -> Duration {
        Duration::from_millis(self.grace)
    }
}

impl StartArgs {
    /// What is to be sent.
    pub fn asked(self) -> Result<Asked, CliError> {
        self.ask.header(Entrance::Local, self.command, None, false)
    }
}

/// Runs the verb.
pub fn run(desk: &Desk<'_>, args: StartArgs) -> Result<Exit, CliError> {
    let (grace, command) = (args.grace.duration(), args.command.clone());
    let (header, input) = args.asked()?;
    let answer = keep_and_send_for_here(desk, header, &input)?;
    start(desk, answer, &Job { command: &command, input: &input, grace })
}

/// Runs the command of an admission that was just answered.
pub fn start(desk: &Desk<'_>, answer: Answer, job: &Job<'_>) -> Result<Exit, CliError> {
    if answer.phase() == Phase::Closed {
        return Err(refused(Refusal::Closed { record: Box::new(answer.record) }));
    }
    if !desk.context.json {
        out::note(render::line(&answer.record).trim_end());
    }
    let machine = desk.identity()?.machine;
    execute(desk, machine, answer, job).map(|done| done.exit)
}
