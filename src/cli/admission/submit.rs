//! `submit`: leaves a row for the destination, which is written on it now and never moved.

use serde::Serialize;
use tenure::admission::{Answer, Entrance, MachineRef};

use super::desk::Desk;
use super::render::{self, View};
use super::request::{AskArgs, Asked};
use super::send::keep_and_send;
use crate::cli::exit::{CliError, Exit};

/// What to do when another row waits for the same destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum IfWaiting {
    /// Refuse
    Fail,
    /// Take its place
    Replace,
}

/// Leaves a start for the machine where the surface is; `pickup` there runs it
#[derive(Debug, clap::Args)]
pub struct SubmitArgs {
    #[command(flatten)]
    ask: AskArgs,

    /// What to do when another start waits for the same surface and machine
    #[arg(long, value_enum, default_value = "fail")]
    if_waiting: IfWaiting,

    /// The command that `pickup --exec` runs there
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// An answer to a request, for scripts.
#[derive(Serialize)]
pub struct Answered<'a> {
    #[serde(flatten)]
    view: View<'a>,
    created: bool,
    /// Only where the answer is the credential's only way to its user.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
}

impl<'a> Answered<'a> {
    /// Without the credential.
    pub fn receipt(answer: &'a Answer) -> Answered<'a> {
        Answered { view: View::plain(&answer.record), created: answer.created, token: None }
    }

    /// With it.
    pub fn whole(answer: &'a Answer) -> Answered<'a> {
        let token = answer.credential.as_ref().map(|credential| credential.token.as_str());
        Answered { token, ..Answered::receipt(answer) }
    }
}

impl SubmitArgs {
    /// What is to be sent.
    pub fn asked(self, pinned: Option<MachineRef>) -> Result<Asked, CliError> {
        let replace = self.if_waiting == IfWaiting::Replace;
        self.ask.header(Entrance::Queue, self.command, pinned, replace)
    }
}

/// Runs the verb.
pub fn run(desk: &Desk<'_>, args: SubmitArgs) -> Result<Exit, CliError> {
    let (header, input) = args.asked(desk.machine.clone())?;
    let answer = keep_and_send(desk, header, &input)?;
    desk.changed(&Answered::receipt(&answer), || render::line(&answer.record))
}
