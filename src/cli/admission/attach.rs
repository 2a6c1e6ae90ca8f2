//! `attach` and `started`: a new credential, and the note that the command is about to run.

use serde::Serialize;
use tenure::admission::AdmId;

use super::desk::Desk;
use super::refusal::refused;
use super::render::{self, View};
use super::request::Named;
use super::submit::Answered;
use super::token::TokenArg;
use crate::cli::exit::{CliError, Exit};
use crate::cli::render::time;

/// Makes a new credential for an open admission of this machine; the ones before it are cut
#[derive(Debug, clap::Args)]
pub struct AttachArgs {
    /// The admission, by its id or its request
    #[arg(value_name = "ADMISSION|REQUEST[/N]")]
    admission: Named,
}

/// Notes that the command of an admission is about to run
///
/// Once: whoever asks second is told that it has been started.
#[derive(Debug, clap::Args)]
pub struct StartedArgs {
    /// The admission
    #[arg(value_name = "ADMISSION")]
    admission: AdmId,

    #[command(flatten)]
    token: TokenArg,
}

#[derive(Serialize)]
struct Attached<'a> {
    #[serde(flatten)]
    answered: Answered<'a>,
    attach_number: Option<u64>,
}

/// Runs `attach`.
pub fn attach(desk: &Desk<'_>, args: AttachArgs) -> Result<Exit, CliError> {
    desk.must_issue()?;
    let machine = desk.identity()?.machine;
    let answer =
        desk.ledger.attach(&args.admission.id(desk.ledger.as_ref())?, &desk.subject, &machine).map_err(refused)?;
    let attach_number = answer.credential.as_ref().map(|credential| credential.attach_number);
    desk.changed(&Attached { answered: Answered::whole(&answer), attach_number }, || match &answer.credential {
        Some(credential) => format!("{}\ngood until {}\n", credential.token, time(credential.deadline_ms)),
        None => render::line(&answer.record),
    })
}

/// Runs `started`.
pub fn started(desk: &Desk<'_>, args: StartedArgs) -> Result<Exit, CliError> {
    let machine = desk.identity()?.machine;
    let token = args.token.read()?;
    let record = desk.ledger.mark_started(&args.admission, &token, &desk.subject, &machine).map_err(refused)?;
    desk.changed(&View::plain(&record), || render::line(&record))
}
