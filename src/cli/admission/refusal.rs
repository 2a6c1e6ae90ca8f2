//! Refusals of the ledger as ends of the program: exit code, JSON and what to do next.

use serde_json::{Map, Value, json};
use tenure::admission::open::OpenLedgerError;
use tenure::admission::outbox::OutboxError;
use tenure::admission::{KeyError, LedgerError, Refusal};

use super::render;
use crate::cli::exit::{CliError, Exit, Problem};

/// The exit code of a refusal: a promise to scripts.
pub fn exit_of(refusal: &Refusal) -> Exit {
    Exit::Number(match refusal {
        Refusal::Usage { .. } | Refusal::Name(_) | Refusal::WrongClosing { .. } => return Exit::Usage,
        Refusal::NotFound { .. } => return Exit::NoSuchNode,
        Refusal::Busy { .. } | Refusal::StillWaiting { .. } => 10,
        Refusal::Conflict { .. } => 11,
        Refusal::PlacementChanged { .. } | Refusal::Stopping { .. } => 12,
        Refusal::NoDestination { .. } => 13,
        Refusal::Denied { .. } => 14,
        Refusal::PreviousOpen { .. } => 15,
        Refusal::PreviousFinal { .. } => 16,
        Refusal::Closed { .. } => 17,
        Refusal::Canceled { .. } => 18,
        Refusal::NotDestination { .. } => 19,
        Refusal::Expired { .. } => 20,
        Refusal::Credential { .. } => 21,
        Refusal::WaitingExists { .. } => 22,
        Refusal::PreviousUnknown { .. } => 24,
        Refusal::BusyLegacy { .. } => 25,
        Refusal::NotOwner { .. } => 28,
        Refusal::AlreadyStarted { .. } => 29,
        Refusal::Damaged { .. } => 30,
        Refusal::Unknown { .. } => 75,
        Refusal::Unusable(ledger) => return exit_of_ledger(ledger),
        _ => return Exit::TableUnusable,
    })
}

fn exit_of_ledger(ledger: &LedgerError) -> Exit {
    match ledger {
        LedgerError::Address { .. } => Exit::Usage,
        LedgerError::Damaged { .. } | LedgerError::NotALedger { .. } => Exit::Number(30),
        LedgerError::Unreachable { .. } | LedgerError::Held { .. } => Exit::Number(75),
        _ => Exit::TableUnusable,
    }
}

/// Whether nothing was decided: the input stays where it is, to be sent again.
pub fn is_undecided(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::Unknown { .. } | Refusal::Damaged { .. } | Refusal::Unusable(_) | Refusal::Credential { .. }
    )
}

/// The refusal as an end of the program.
pub fn refused(refusal: Refusal) -> CliError {
    CliError::Problem(Problem {
        exit: exit_of(&refusal),
        code: refusal.code(),
        message: refusal.to_string(),
        hint: hint(&refusal),
        fields: fields(&refusal),
    })
}

fn fields(refusal: &Refusal) -> Map<String, Value> {
    let mut fields = Map::new();
    if let Some(record) = refusal.record() {
        let key = if matches!(refusal, Refusal::Busy { .. }) { "owner" } else { "record" };
        fields.insert("admission".to_owned(), json!(record.admission));
        fields.insert(key.to_owned(), json!(render::View::plain(record)));
        fields.insert("created".to_owned(), json!(false));
        fields.insert("next_attempt".to_owned(), json!(record.allows_next()));
    }
    match refusal {
        Refusal::Conflict { key, admission } => {
            fields.insert("request".to_owned(), json!(key.request));
            fields.insert("attempt".to_owned(), json!(key.attempt));
            fields.insert("admission".to_owned(), json!(admission));
        }
        Refusal::NotDestination { machine, destination } => {
            fields.insert("machine".to_owned(), json!(machine));
            fields.insert("destination".to_owned(), json!(destination));
        }
        Refusal::BusyLegacy { surface, who } => {
            fields.insert("surface".to_owned(), json!(surface));
            fields.insert("owner".to_owned(), json!(who));
        }
        Refusal::NotOwner { surface, owner, .. } => {
            fields.insert("surface".to_owned(), json!(surface));
            fields.insert("owner".to_owned(), json!(owner));
        }
        Refusal::NoDestination { surface, .. } | Refusal::PlacementChanged { surface, .. } => {
            fields.insert("surface".to_owned(), json!(surface));
        }
        Refusal::Denied { reason } => {
            fields.insert("reason".to_owned(), json!(reason));
        }
        _ => {}
    }
    fields
}

/// What to do next, where the message does not say it.
fn hint(refusal: &Refusal) -> Option<String> {
    let text = match refusal {
        Refusal::Busy { owner, .. } => {
            format!("`tenure adm show {}` says where it stands", owner.admission)
        }
        Refusal::Denied { .. } => "what was sent is kept: `tenure adm outbox list`".to_owned(),
        Refusal::Closed { record } if record.allows_next() => {
            format!("attempt {} is allowed", record.attempt.get().saturating_add(1))
        }
        Refusal::Closed { record } if record.successor.is_some() => {
            format!("{} took its place", record.successor.map(|id| id.to_string()).unwrap_or_default())
        }
        Refusal::PlacementChanged { record: Some(record), stopping: false, .. } if record.allows_next() => {
            format!(
                "attempt {} of {} is allowed at the new place",
                record.attempt.get().saturating_add(1),
                record.request
            )
        }
        Refusal::NotFound { .. } => "`tenure adm surface list` and `tenure adm history` show what there is".to_owned(),
        Refusal::StillWaiting { .. } => "its machine starts it with `tenure adm pickup --exec`".to_owned(),
        Refusal::Unusable(LedgerError::Held { .. }) => "--timeout SECONDS waits longer".to_owned(),
        _ => return None,
    };
    Some(text)
}

/// What is wrong with opening the ledger.
pub fn open_error(error: OpenLedgerError) -> CliError {
    match error {
        OpenLedgerError::Ledger(ledger) => refused(Refusal::Unusable(ledger)),
        OpenLedgerError::Key(key) => key_error(key),
        other => CliError::problem(Exit::TableUnusable, "no_issuer_key", other.to_string()),
    }
}

/// What is wrong with a key.
pub fn key_error(error: KeyError) -> CliError {
    CliError::problem(Exit::TableUnusable, error.code(), error.to_string())
}

/// What is wrong with the outbox.
pub fn outbox_error(error: OutboxError) -> CliError {
    let exit = match &error {
        OutboxError::InputTooLong { .. } | OutboxError::HeaderTooLong { .. } | OutboxError::SameRequest { .. } => {
            Exit::Usage
        }
        OutboxError::Gone { .. } => Exit::NoSuchNode,
        _ => Exit::TableUnusable,
    };
    CliError::problem(exit, error.code(), error.to_string())
}
