//! The rules, pure: facts in, decision and writes out. Nothing here reads a clock, a file or a database; both stores call
//! it inside their transaction and do what it says.
//!
//! A rule never stores half a thing: it answers with everything there is to write, or with a refusal whose writes are only
//! the note of it (and, for a start at a place that has changed, the closing of the admission).

mod append;
mod attach;
mod close;
mod fsck;
mod pickup;
mod place;
mod submit;
#[cfg(all(test, not(tenure_loom)))]
mod table;
#[cfg(all(test, not(tenure_loom)))]
mod trial;

use super::credential::Grant;
use super::facts::{Decision, Facts, Occasion, Subject};
use super::ledger::{EXPIRES_AFTER_MS, Stop};
use super::names::{Generation, MachineId, SurfaceKey};
use super::record::{AttemptKey, Input, Kind, LegacyOwner, Phase, Placement, Record, Refused};
use super::refusal::Refusal;

pub(super) use append::append;
pub(super) use attach::{attach, check, start};
pub(super) use close::{Closer, close, revoke, stop};
pub(super) use fsck::{Everything, fsck};
pub(super) use pickup::{Picked, expire_admitted, pickup};
pub(super) use place::{Neighbour, gone, legacy_drop, legacy_take, no_surface, overlaps, place};
pub(super) use submit::{Standing, submit};

/// A surface and all that stands on it, as read behind the lock of its row.
#[derive(Clone, Debug, Default)]
pub(super) struct Ground {
    /// The row of the surface, if it was added.
    pub surface: Option<SurfaceRow>,
    /// The unfinished admission.
    pub owner: Option<Record>,
    /// Rows that wait, the oldest first.
    pub waiting: Vec<Record>,
    /// Where the surface is.
    pub placements: Vec<Placement>,
}

/// The row of a surface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SurfaceRow {
    /// Its key.
    pub key: SurfaceKey,
    /// When it was added.
    pub created_ms: u64,
    /// The newest generation given to a placement of it; 0 before the first.
    pub generation: u64,
    /// Its owner by the legacy path.
    pub legacy: Option<LegacyOwner>,
}

/// What holds for every verb alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene<'a> {
    /// The ledger's wall clock.
    pub now_ms: u64,
    /// The policy's epoch, read inside the transaction.
    pub epoch: u64,
    /// What the policy answered before the transaction, and to which question.
    pub permit: Option<&'a Permit>,
    /// How long a credential is good.
    pub credential_ms: u64,
}

/// An answer of the policy with its question.
#[derive(Clone, Debug)]
pub(super) struct Permit {
    /// What was asked.
    pub facts: Facts,
    /// What was answered.
    pub decision: Decision,
}

/// One thing to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Write {
    /// A new row.
    Insert(Box<Record>),
    /// The row as it is now. Request, digest, surface and destination are never among what is written again (A28).
    Update(Box<Record>),
    /// A note of a refusal, kept by the issuer (A57).
    Note(Box<Refused>),
    /// Input accepted.
    Input(Box<Input>),
    /// A placement as it is now; its generation is the surface's newest.
    Place(Box<Placement>),
    /// The owner of a surface by the legacy path.
    Legacy(SurfaceKey, Option<LegacyOwner>),
    /// Tell the machine that something waits for it.
    Wake(MachineId),
}

/// An answer and what has to be written for it to be true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ruled<T> {
    /// The answer.
    pub answer: T,
    /// The writes, in order.
    pub writes: Vec<Write>,
}

impl<T> Ruled<T> {
    fn new(answer: T, writes: impl Into<Vec<Write>>) -> Ruled<T> {
        Ruled { answer, writes: writes.into() }
    }
}

/// Why a rule gives no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// The policy must be asked this first, outside the transaction.
    Ask(Box<Facts>),
    /// Refused. The writes are to be committed all the same.
    Refused {
        /// The refusal.
        refusal: Refusal,
        /// What to write down about it.
        writes: Vec<Write>,
    },
}

impl From<Refusal> for Halt {
    fn from(refusal: Refusal) -> Halt {
        Halt::Refused { refusal, writes: Vec::new() }
    }
}

pub(super) type Ruling<T> = Result<Ruled<T>, Halt>;

/// Whose request a refusal is noted under.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub key: &'a AttemptKey,
    pub surface: &'a SurfaceKey,
    pub subject: &'a Subject,
}

impl Asked<'_> {
    /// The note of a refusal.
    fn note(&self, refusal: &Refusal, now_ms: u64) -> Write {
        Write::Note(Box::new(Refused {
            request: self.key.request.clone(),
            attempt: self.key.attempt,
            surface: self.surface.clone(),
            code: refusal.code().to_owned(),
            reason: refusal.to_string(),
            subject: self.subject.clone(),
            first_ms: now_ms,
            at_ms: now_ms,
            times: 1,
        }))
    }

    /// The ruling with a note of its refusal, if it is one.
    fn noted<T>(&self, ruling: Ruling<T>, now_ms: u64) -> Ruling<T> {
        ruling.map_err(|halt| match halt {
            Halt::Refused { refusal, mut writes } => {
                if !matches!(refusal, Refusal::Usage { .. }) {
                    writes.push(self.note(&refusal, now_ms));
                }
                Halt::Refused { refusal, writes }
            }
            ask @ Halt::Ask(_) => ask,
        })
    }
}

impl Scene<'_> {
    /// The epoch under which the policy allows this; it must have been asked exactly this, and not have changed since.
    fn allowed(&self, facts: Facts) -> Result<u64, Halt> {
        match self.permit {
            Some(permit) if permit.facts == facts && permit.decision.epoch == self.epoch => {
                match &permit.decision.denied {
                    None => Ok(self.epoch),
                    Some(reason) => Err(Refusal::Denied { reason: reason.clone() }.into()),
                }
            }
            _ => Err(Halt::Ask(Box::new(facts))),
        }
    }

    /// Gives the admission a new credential; all before it are cut by the number.
    fn grant(&self, record: &mut Record, epoch: u64) -> Grant {
        let deadline_ms = self.now_ms.saturating_add(self.credential_ms);
        record.attach_number = record.attach_number.saturating_add(1);
        record.deadline_ms = Some(deadline_ms);
        record.policy_epoch = Some(format!("{epoch:016x}"));
        Grant {
            admission: record.admission,
            machine: record.destination.machine,
            generation: record.destination.generation,
            attach_number: record.attach_number,
            policy_epoch: epoch,
            issued_ms: self.now_ms,
            deadline_ms,
        }
    }
}

/// What a policy is asked about an admission that exists.
fn facts_of(record: &Record, subject: &Subject, occasion: Occasion) -> Facts {
    Facts {
        subject: subject.clone(),
        surface: record.surface.clone(),
        machine: record.destination.machine,
        place: record.destination.place.clone(),
        generation: record.destination.generation,
        work: record.work.clone(),
        entrance: record.entrance,
        occasion,
    }
}

impl Ground {
    /// Whether the placement written on the record is still the one there (A27, A29).
    fn stands(&self, record: &Record) -> bool {
        let there = self.placements.iter().find(|p| p.destination.machine == record.destination.machine);
        there.is_some_and(|p| p.live && p.destination.generation == record.destination.generation)
    }

    /// Refuses when somebody owns the surface.
    fn free(&self, surface: &SurfaceKey) -> Result<(), Refusal> {
        if let Some(owner) = &self.owner {
            return Err(Refusal::Busy { surface: surface.clone(), owner: Box::new(owner.clone()) });
        }
        match self.surface.as_ref().and_then(|row| row.legacy.as_ref()) {
            Some(legacy) => Err(Refusal::BusyLegacy { surface: surface.clone(), who: legacy.who.to_string() }),
            None => Ok(()),
        }
    }
}

/// Older than half a day. A clock that was set back makes nothing old.
const fn is_old(since_ms: u64, now_ms: u64) -> bool {
    now_ms.saturating_sub(since_ms) > EXPIRES_AFTER_MS
}

/// Why an open admission should end, if it should. Derived whenever it is asked, so nothing is lost when whoever changes a
/// placement dies half-way.
pub(super) fn stopping(record: &Record, ground: &Ground) -> Option<Stop> {
    if !record.is_open() {
        return None;
    }
    if !ground.stands(record) {
        return Some(Stop::Placement);
    }
    record.stop_ms.map(|_| Stop::Asked)
}

fn moved(record: &Record) -> Refusal {
    Refusal::PlacementChanged {
        surface: record.surface.clone(),
        record: Some(Box::new(record.clone())),
        stopping: record.phase == Phase::Started,
    }
}

/// The record as closed.
fn closed(record: &Record, kind: Kind, by: &str, reason: Option<String>, now_ms: u64) -> Record {
    let mut record = record.clone();
    record.phase = Phase::Closed;
    record.closing = Some(kind);
    record.closed_by = Some(by.to_owned());
    record.closed_ms = Some(now_ms);
    record.reason = reason;
    record
}

/// The refusal for whoever finds it closed.
fn is_closed(record: &Record) -> Refusal {
    Refusal::Closed { record: Box::new(record.clone()) }
}

/// The generation after this one.
fn next_generation(row: &SurfaceRow) -> Result<Generation, Refusal> {
    let next = row.generation.checked_add(1).and_then(|n| Generation::try_from(n).ok());
    next.ok_or_else(|| Refusal::Exhausted { surface: row.key.clone(), what: "generation" })
}
