//! Sending: into the outbox first, then to the ledger, then the entry goes where the answer says (A54, A56).

use tenure::admission::outbox::{Entry, Header, LastAnswer, OutboxError, State};
use tenure::admission::{AdmId, Answer, Append, Entrance, Home, IfWaiting, Input, Outbox, Refusal, Request};

use super::desk::{Desk, wall_ms};
use super::refusal::{is_undecided, outbox_error, refused};
use super::request::Asked;
use crate::cli::exit::CliError;

/// Keeps the input and sends it.
pub fn keep_and_send(desk: &Desk<'_>, header: Header, input: &[u8]) -> Result<Answer, CliError> {
    let entry = desk.outbox.put(header, input).map_err(outbox_error)?;
    send(desk, entry)
}

/// The same for what runs here, which needs a credential.
pub fn keep_and_send_for_here(desk: &Desk<'_>, header: Header, input: &[u8]) -> Result<Answer, CliError> {
    if let Err(error) = desk.must_issue() {
        return Err(keep_unsent(&desk.home, (header, input.to_vec()), error));
    }
    keep_and_send(desk, header, input)
}

/// Keeps what cannot even be sent from here as it is, with the reason; the answer is the trouble, which says so.
pub fn keep_unsent(home: &Home, (header, input): Asked, error: CliError) -> CliError {
    let outbox = Outbox::new(home.outbox());
    let Ok(entry) = outbox.put(header, &input) else { return error };
    let (state, key) = (entry.state, entry.key());
    // The input is there; the note is for whoever lists it.
    let _ = outbox.answered(entry, state, last_of(error.code(), error.message()));
    let kept = format!("the input is kept: `tenure adm outbox send {key}` sends it again");
    let hint = error.hint().map_or_else(|| kept.clone(), |hint| format!("{hint}; {kept}"));
    error.with_field("outbox", key.to_string()).with_hint(hint)
}

/// Sends an entry that asks for an admission.
pub fn send(desk: &Desk<'_>, entry: Entry) -> Result<Answer, CliError> {
    let entry = again(desk, entry)?;
    let answered = request(desk, &entry).and_then(|request| desk.ledger.submit(&request).map_err(Trouble::from));
    settle(desk, entry, answered, |answer| (answer.admission(), format!("{}", answer.phase())))
}

/// Sends an entry that is more input for an open admission.
pub fn send_append(desk: &Desk<'_>, entry: Entry, admission: AdmId) -> Result<Input, CliError> {
    let entry = again(desk, entry)?;
    let input = desk.outbox.input(&entry).map_err(outbox_error)?;
    let append = Append {
        admission,
        request: entry.header.request.clone(),
        attempt: entry.header.attempt,
        digest: entry.header.digest,
        subject: desk.subject.clone(),
        input,
    };
    let answered = desk.ledger.append(&append).map_err(Trouble::from);
    settle(desk, entry, answered, |input| (input.admission, format!("input {}", input.number)))
}

/// What was refused and is sent once more goes back to where it is sent from; what was taken stays with what was taken.
fn again(desk: &Desk<'_>, entry: Entry) -> Result<Entry, CliError> {
    match entry.state {
        State::Refused | State::Tmp => desk.outbox.adopt(entry).map_err(outbox_error),
        State::New | State::Sent => Ok(entry),
    }
}

/// Why nothing was taken.
enum Trouble {
    Refused(Box<Refusal>),
    /// Something on this side.
    Here(CliError),
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Trouble {
        Trouble::Refused(Box::new(refusal))
    }
}

fn request(desk: &Desk<'_>, entry: &Entry) -> Result<Request, Trouble> {
    let header = &entry.header;
    let local = header.entrance == Entrance::Local;
    let here = |error| Trouble::Here(error);
    let caller = if local { desk.identity() } else { desk.sender() }.map_err(here)?.machine;
    let machine = header.machine.as_ref().map(|machine| desk.machine_id(machine)).transpose().map_err(here)?;
    let input = match header.entrance {
        Entrance::Local => None,
        _ => Some(desk.outbox.input(entry).map_err(|error| Trouble::Here(outbox_error(error)))?),
    };
    Ok(Request {
        request: header.request.clone(),
        attempt: header.attempt,
        digest: header.digest,
        surface: header.surface.clone(),
        machine,
        generation: header.generation,
        entrance: header.entrance,
        if_waiting: if header.replace { IfWaiting::Replace } else { IfWaiting::Fail },
        after: header.after.clone(),
        subject: desk.subject.clone(),
        caller,
        command: header.command.clone(),
        input,
    })
}

/// Notes the answer. That it cannot be noted changes nothing about the answer: the entry stays, and a resend finds out.
fn settle<T>(
    desk: &Desk<'_>,
    entry: Entry,
    answered: Result<T, Trouble>,
    taken: impl FnOnce(&T) -> (AdmId, String),
) -> Result<T, CliError> {
    let (was_sent, key) = (entry.state == State::Sent, entry.key());
    let (state, last) = match &answered {
        Ok(answer) => {
            let (admission, message) = taken(answer);
            let code = "accepted".to_owned();
            (State::Sent, LastAnswer { at_ms: wall_ms(), code, message, admission: Some(admission) })
        }
        Err(Trouble::Refused(refusal)) => {
            let stays = is_undecided(refusal) || was_sent;
            let state = if stays { entry.state } else { State::Refused };
            (state, last_of(refusal.code(), refusal.to_string()))
        }
        Err(Trouble::Here(error)) => (entry.state, last_of(error.code(), error.message())),
    };
    match desk.outbox.answered(entry, state, last) {
        // Somebody else sent the same thing and was faster with the note.
        Ok(_) | Err(OutboxError::Gone { .. }) => {}
        Err(error) => crate::cli::out::note(&format!(
            "tenure: the answer could not be noted in the outbox: {}",
            crate::cli::escape::message(&error.to_string())
        )),
    }
    answered.map_err(|trouble| match trouble {
        Trouble::Refused(refusal) => {
            let conflict = matches!(*refusal, Refusal::Conflict { .. });
            let error = refused(*refusal).with_field("outbox", key.to_string());
            match error.hint() {
                Some(_) => error,
                None if conflict => error.with_hint("the input is kept: `tenure adm outbox list`"),
                None => error.with_hint(format!("the input is kept: `tenure adm outbox send {key}` sends it again")),
            }
        }
        Trouble::Here(error) => error,
    })
}

fn last_of(code: &str, message: String) -> LastAnswer {
    LastAnswer { at_ms: wall_ms(), code: code.to_owned(), message, admission: None }
}
