//! `outbox`: what is kept on this machine until it is taken. Nothing in it is sent by itself.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use tenure::admission::digest::Content;
use tenure::admission::outbox::{Entry, State};
use tenure::admission::{Attempt, AttemptKey, Entrance, RequestId};

use super::append::Appended;
use super::desk::{Desk, Need, wall_ms};
use super::refusal::outbox_error;
use super::render;
use super::request::read_input;
use super::run::Job;
use super::send;
use super::start;
use super::submit::Answered;
use crate::cli::escape;
use crate::cli::exit::{CliError, Exit};
use crate::cli::report;

/// How long a command that is started from the outbox may take to end.
const GRACE: Duration = Duration::from_secs(10);

/// What a list shows unless it is to show all.
const NOT_TAKEN: [State; 3] = [State::Tmp, State::New, State::Refused];

/// The outbox: inputs that were not taken yet, or refused, and those that were taken
#[derive(Debug, clap::Subcommand)]
pub enum OutboxVerb {
    /// Lists what is in it, with the last answer
    List {
        /// Also what was taken
        #[arg(long)]
        all: bool,
    },
    /// Sends one once more; what starts a command here runs it
    Send {
        /// REQUEST[/N], or the name of a file as `list` shows it
        #[arg(value_name = "WHICH", required_unless_present = "all")]
        which: Option<String>,
        /// All that were never answered, except those that would run a command here
        #[arg(long, conflicts_with = "which")]
        all: bool,
    },
    /// Keeps another input in place of one, under a new request id; nothing is sent
    Edit {
        /// REQUEST[/N], or the name of a file
        #[arg(value_name = "WHICH")]
        which: String,
        /// The new id: another content is another request
        #[arg(long, value_name = "ID")]
        request: RequestId,
        /// A file with the new input; - is standard input
        #[arg(long, value_name = "FILE")]
        input: PathBuf,
    },
    /// Throws one away
    Drop {
        /// REQUEST[/N], or the name of a file
        #[arg(value_name = "WHICH", required_unless_present = "sent")]
        which: Option<String>,
        /// All that were taken
        #[arg(long, conflicts_with = "which")]
        sent: bool,
    },
}

impl OutboxVerb {
    /// Only sending has to do with the ledger.
    pub const fn need(&self) -> Need {
        if matches!(self, OutboxVerb::Send { .. }) { Need::Keys } else { Need::Nothing }
    }
}

#[derive(Serialize)]
struct Strange {
    state: &'static str,
    path: String,
    message: String,
}

/// Runs the verb.
pub fn run(desk: &Desk<'_>, verb: OutboxVerb) -> Result<Exit, CliError> {
    match verb {
        OutboxVerb::List { all } => list(desk, all),
        OutboxVerb::Send { which: Some(which), .. } => send_one(desk, find(desk, &which)?),
        OutboxVerb::Send { which: None, .. } => send_all(desk),
        OutboxVerb::Edit { which, request, input } => edit(desk, &which, request, &input),
        OutboxVerb::Drop { which: Some(which), .. } => {
            let entry = find(desk, &which)?;
            desk.outbox.drop_entry(&entry).map_err(outbox_error)?;
            desk.changed(&entry, || format!("{} was thrown away\n", entry.name))
        }
        OutboxVerb::Drop { which: None, .. } => drop_sent(desk),
    }
}

fn list(desk: &Desk<'_>, all: bool) -> Result<Exit, CliError> {
    let states: &[State] = if all { &State::ALL } else { &NOT_TAKEN };
    let listing = desk.outbox.list(states).map_err(outbox_error)?;
    let strange = listing.strange.iter().map(|(path, error)| Strange {
        state: "strange",
        path: path.display().to_string(),
        message: error.to_string(),
    });
    let strange: Vec<Strange> = strange.collect();
    if desk.context.json {
        desk.context.out.json_lines(&listing.entries)?;
        desk.context.out.json_lines(&strange)?;
        return Ok(Exit::Done);
    }
    let now_ms = wall_ms();
    let rows = listing.entries.iter().map(|entry| {
        let header = &entry.header;
        let last = header.last.as_ref().map(|last| last.code.clone());
        vec![
            entry.name.clone(),
            entry.state.name().to_owned(),
            header.surface.to_string(),
            header.entrance.to_string(),
            header.input_bytes.to_string(),
            render::ago(now_ms, header.created_ms),
            last.unwrap_or_else(|| "not sent".to_owned()),
        ]
    });
    let mut text =
        render::table(&["FILE", "STATE", "SURFACE", "ENTRANCE", "BYTES", "AGE", "LAST ANSWER"], rows.collect());
    for file in &strange {
        text.push_str(&format!("strange: {}\n", escape::message(&file.message)));
    }
    desk.context.out.block(&text)?;
    Ok(Exit::Done)
}

/// The entry that a text names. What is not settled comes first.
fn find(desk: &Desk<'_>, which: &str) -> Result<Entry, CliError> {
    let entries = desk.outbox.list(&State::ALL).map_err(outbox_error)?.entries;
    let key = which.parse::<AttemptKey>().ok();
    let order = |state: State| match state {
        State::New => 0,
        State::Refused => 1,
        State::Tmp => 2,
        State::Sent => 3,
    };
    let mut found: Vec<Entry> =
        entries.into_iter().filter(|entry| entry.name == which || Some(entry.key()) == key).collect();
    found.sort_by_key(|entry| (entry.name != which, order(entry.state)));
    let first = found.first().map(|entry| (entry.name != which, entry.state));
    let alike = found.iter().filter(|entry| Some((entry.name != which, entry.state)) == first).count();
    if alike > 1 {
        let names: Vec<&str> = found.iter().map(|entry| entry.name.as_str()).collect();
        let message = format!("several contents are kept as {which}: {}", names.join(", "));
        return Err(CliError::usage("ambiguous", message).with_hint("give the name of the file"));
    }
    found.into_iter().next().ok_or_else(|| {
        let message = format!("there is no {} in the outbox", escape::message(which));
        CliError::problem(Exit::NoSuchNode, "not_found", message).with_hint("`tenure adm outbox list --all` shows all")
    })
}

fn send_one(desk: &Desk<'_>, entry: Entry) -> Result<Exit, CliError> {
    match (entry.header.entrance, entry.header.admission) {
        (Entrance::Append, Some(admission)) => {
            let taken = send::send_append(desk, entry, admission)?;
            desk.changed(&Appended::of(&taken), || format!("{} input {}\n", taken.admission, taken.number))
        }
        (Entrance::Local, _) => {
            desk.must_issue()?;
            let (command, input) = (entry.header.command.clone(), desk.outbox.input(&entry).map_err(outbox_error)?);
            let answer = send::send(desk, entry)?;
            start::start(desk, answer, &Job { command: &command, input: &input, grace: GRACE })
        }
        _ => {
            let answer = send::send(desk, entry)?;
            desk.changed(&Answered::receipt(&answer), || render::line(&answer.record))
        }
    }
}

/// Sends all that wait for an answer; the end is that of the first that was not taken.
fn send_all(desk: &Desk<'_>) -> Result<Exit, CliError> {
    let mut entries = desk.outbox.list(&[State::Tmp, State::New]).map_err(outbox_error)?.entries;
    entries.retain(|entry| entry.header.entrance != Entrance::Local);
    if entries.is_empty() {
        return Ok(Exit::NothingReady);
    }
    let mut end = Exit::Done;
    for entry in entries {
        let sent = send_one(desk, entry).unwrap_or_else(|error| report::error(error, desk.context.json));
        if end == Exit::Done {
            end = sent;
        }
    }
    Ok(end)
}

fn edit(desk: &Desk<'_>, which: &str, request: RequestId, input: &PathBuf) -> Result<Exit, CliError> {
    let entry = find(desk, which)?;
    let bytes = read_input(input)?;
    let header = &entry.header;
    let digest = Content {
        surface: &header.surface,
        work: header.work.as_ref().map(|work| work.as_str()),
        command: &header.command,
        input: &bytes,
        pinned: header.machine.as_ref(),
    }
    .digest();
    let edited = desk.outbox.edited(&entry, request, digest, wall_ms(), &bytes).map_err(outbox_error)?;
    let key = AttemptKey { request: edited.header.request.clone(), attempt: Attempt::FIRST };
    desk.changed(&edited, || format!("kept as {key}; `tenure adm outbox send {key}` sends it\n"))
}

fn drop_sent(desk: &Desk<'_>) -> Result<Exit, CliError> {
    let entries = desk.outbox.list(&[State::Sent]).map_err(outbox_error)?.entries;
    for entry in &entries {
        desk.outbox.drop_entry(entry).map_err(outbox_error)?;
    }
    desk.changed(&serde_json::json!({ "dropped": entries.len() }), || format!("{} thrown away\n", entries.len()))
}
