//! How an admission ends, and what may be done to it by those it does not run with: stop, cut the credential, release.
//!
//! Cutting the credential and freeing the surface are two operations (A62). Nothing closes an admission because it is old,
//! and there is no closing called unknown (A60).

use super::attach::{belongs, is_newest};
use super::*;
use crate::admission::request::{Closing, REASON_BYTES_MAX};

/// Who closes it, with the token already read.
#[derive(Clone, Debug)]
pub(in crate::admission) enum Closer<'a> {
    Destination { grant: Grant, caller: &'a MachineId },
    Submitter(&'a Subject),
    Operator(&'a Subject),
}

pub(in crate::admission) fn close(
    record: &Record,
    by: &Closer<'_>,
    closing: &Closing,
    ground: &Ground,
    scene: &Scene<'_>,
) -> Ruling<Record> {
    fits_the_closer(by, closing)?;
    if let Closer::Destination { grant, caller } = by {
        belongs(record, grant, caller)?;
    }
    if record.phase == Phase::Closed {
        return closed_before(record, by, closing, ground);
    }
    let ended = |by: &str| closed(record, closing.kind, by, closing.reason.clone(), scene.now_ms);
    let mut record_now = match by {
        Closer::Destination { grant, caller } => {
            if !may_end_at_a_changed_place(record, grant, ground) {
                is_newest(record, grant)?;
            }
            fits_the_phase(record, closing.kind)?;
            ended(&format!("machine {caller}"))
        }
        Closer::Submitter(subject) => {
            if **subject != record.subject {
                let reason = format!("only {} may cancel what they sent; `release` frees the surface", record.subject);
                return Err(Refusal::Denied { reason }.into());
            }
            if record.phase == Phase::Started {
                return Err(Refusal::AlreadyStarted { record: Box::new(record.clone()), again: false }.into());
            }
            ended(subject.as_str())
        }
        Closer::Operator(who) => {
            fits_the_phase(record, closing.kind)?;
            scene.allowed(facts_of(record, who, Occasion::Operate))?;
            let mut released = ended(who.as_str());
            released.attach_number = released.attach_number.saturating_add(1);
            released.deadline_ms = None;
            released
        }
    };
    record_now.exit_code = closing.exit_code;
    let write = Write::Update(Box::new(record_now.clone()));
    Ok(Ruled::new(record_now, [write]))
}

/// A resend cuts the credential of whoever runs the command, who then attaches for a newer one. At a place that has changed
/// nobody can attach, and the one that has started it is still the one that knows how it ended; unless it was cut on purpose.
fn may_end_at_a_changed_place(record: &Record, grant: &Grant, ground: &Ground) -> bool {
    let started_it = record.started_attach.is_some_and(|number| grant.attach_number >= number);
    started_it && record.deadline_ms.is_some() && !ground.stands(record)
}

/// Which kinds each of them may use at all.
fn fits_the_closer(by: &Closer<'_>, closing: &Closing) -> Result<(), Refusal> {
    let kind = closing.kind;
    let fits = match by {
        Closer::Destination { .. } => {
            matches!(kind, Kind::Succeeded | Kind::Failed | Kind::Interrupted | Kind::FailedBeforeStart)
        }
        Closer::Submitter(_) => kind == Kind::Canceled,
        Closer::Operator(_) => kind == Kind::Released,
    };
    if !fits {
        let what = match kind {
            Kind::Canceled => "`cancel` takes a request back",
            Kind::Released => "`release` frees a surface",
            Kind::Expired | Kind::Superseded => "only the ledger itself closes this way",
            _ => "only the machine it runs on closes this way, with its credential",
        };
        return Err(Refusal::Usage { what: format!("{kind}: {what}") });
    }
    let reason = closing.reason.as_deref().unwrap_or_default();
    if kind == Kind::Released && reason.trim().is_empty() {
        return Err(Refusal::Usage { what: "a release needs a reason: it is all that will be known".to_owned() });
    }
    reason_fits(reason)
}

fn reason_fits(reason: &str) -> Result<(), Refusal> {
    if reason.contains('\0') {
        return Err(Refusal::Usage { what: "the reason contains a NUL character".to_owned() });
    }
    if reason.len() <= REASON_BYTES_MAX {
        return Ok(());
    }
    let what =
        format!("the reason is {} bytes long; the limit is {REASON_BYTES_MAX}, and nothing is cut", reason.len());
    Err(Refusal::Usage { what })
}

/// Ran or did not run: the kind must say the same as the phase.
fn fits_the_phase(record: &Record, kind: Kind) -> Result<(), Refusal> {
    let fits = match record.phase {
        Phase::Admitted => matches!(kind, Kind::FailedBeforeStart | Kind::Released),
        Phase::Started => matches!(kind, Kind::Succeeded | Kind::Failed | Kind::Interrupted | Kind::Released),
        Phase::Queued | Phase::Closed => false,
    };
    if fits { Ok(()) } else { Err(Refusal::WrongClosing { record: Box::new(record.clone()), kind }) }
}

/// The first closing stands. Said again it is answered again; said otherwise it is refused. A destination that closes what
/// has another owner by now is late, whatever it says: it is told that first (race 28).
fn closed_before(record: &Record, by: &Closer<'_>, closing: &Closing, ground: &Ground) -> Ruling<Record> {
    let owner = ground.owner.as_ref().map(|owner| owner.admission.to_string());
    let legacy = ground.surface.as_ref().and_then(|row| row.legacy.as_ref()).map(|legacy| legacy.who.to_string());
    match (by, owner.or(legacy)) {
        (Closer::Destination { .. }, Some(owner)) => {
            let (surface, record) = (record.surface.clone(), Some(Box::new(record.clone())));
            Err(Refusal::NotOwner { surface, owner: Some(owner), record }.into())
        }
        _ if record.closing == Some(closing.kind) => Ok(Ruled::new(record.clone(), [])),
        _ => Err(is_closed(record).into()),
    }
}

/// Asks it to stop. It takes no more input from then on, and its destination closes it.
pub(in crate::admission) fn stop(
    record: &Record,
    subject: &Subject,
    reason: &str,
    scene: &Scene<'_>,
) -> Ruling<Record> {
    reason_fits(reason)?;
    is_open(record)?;
    if record.stop_ms.is_some() {
        return Ok(Ruled::new(record.clone(), []));
    }
    submitter_or_operator(record, subject, scene)?;
    let mut record = record.clone();
    record.stop_ms = Some(scene.now_ms);
    let why = if reason.is_empty() { "no reason given" } else { reason };
    record.stop_reason = Some(format!("{subject}: {why}"));
    let write = Write::Update(Box::new(record.clone()));
    Ok(Ruled::new(record, [write]))
}

/// Cuts the credential and leaves the owner.
pub(in crate::admission) fn revoke(record: &Record, subject: &Subject, scene: &Scene<'_>) -> Ruling<Record> {
    is_open(record)?;
    submitter_or_operator(record, subject, scene)?;
    let mut record = record.clone();
    record.attach_number = record.attach_number.saturating_add(1);
    record.deadline_ms = None;
    let write = Write::Update(Box::new(record.clone()));
    Ok(Ruled::new(record, [write]))
}

fn is_open(record: &Record) -> Result<(), Refusal> {
    match record.phase {
        Phase::Closed => Err(is_closed(record)),
        Phase::Queued => Err(Refusal::StillWaiting { record: Box::new(record.clone()) }),
        Phase::Admitted | Phase::Started => Ok(()),
    }
}

/// Whoever sent it may do this; anybody else needs the policy's word.
fn submitter_or_operator(record: &Record, subject: &Subject, scene: &Scene<'_>) -> Result<(), Halt> {
    if *subject == record.subject {
        return Ok(());
    }
    scene.allowed(facts_of(record, subject, Occasion::Operate)).map(|_| ())
}
