//! The ledger of admissions: every verb, whatever database is behind it.
//!
//! Each verb is one transaction that is on disk before it answers. What is decided and why is in `rules`.

use std::time::Duration;

use serde::Serialize;

use super::credential::Credential;
use super::facts::Subject;
use super::names::{AdmId, Generation, MachineId, MachineLabel, SurfaceKey};
use super::record::{
    AttemptKey, Destination, Input, LegacyOwner, MachineView, Phase, Placement, Record, Refused, SurfaceView,
};
use super::refusal::Refusal;
use super::request::{Append, By, Closing, History, Placing, Request};

/// Older than this and never executed, a row expires when its own machine next picks up: more than half a day (A42).
pub const EXPIRES_AFTER_MS: u64 = 43_200_000;

/// The ledger. All methods take `&self` and may be called from several threads.
pub trait Ledger: Send + Sync {
    // What is started, and by whom.

    /// Asks for an admission (`Local`), or leaves a row for its destination (`Queue`). Sent again, the same request gets
    /// the same admission and, on the destination through `Local`, a new credential.
    fn submit(&self, request: &Request) -> Result<Answer, Refusal>;

    /// For the destination: first what it has open, then at most one of the rows that wait for it, as an admission.
    /// Rows older than half a day are expired.
    fn pickup(&self, machine: &MachineId) -> Result<Pickup, Refusal>;

    /// The same as a look: nothing is admitted, expired or refused.
    fn pickup_list(&self, machine: &MachineId) -> Result<Pickup, Refusal>;

    /// Waits until something may have been left for this machine, at most this long. True: look again.
    fn wait_for_work(&self, machine: &MachineId, at_most: Duration) -> Result<bool, Refusal>;

    /// A new credential for an open admission, for its destination only; the ones before it are cut.
    fn attach(&self, admission: &AdmId, subject: &Subject, caller: &MachineId) -> Result<Answer, Refusal>;

    /// Records that the command is about to run. Once: only the first caller with a good credential gets `Ok`; the same
    /// credential again gets the same answer. The token is checked in full, also its deadline and the placement, and that
    /// it is for this admission.
    fn mark_started(
        &self,
        admission: &AdmId,
        token: &str,
        subject: &Subject,
        caller: &MachineId,
    ) -> Result<Record, Refusal>;

    /// Checks a credential and changes nothing: signature, deadline, open, machine, generation, number.
    fn check(&self, token: &str, caller: &MachineId) -> Result<Record, Refusal>;

    /// Gives more input to an open admission.
    fn append(&self, append: &Append) -> Result<Input, Refusal>;

    /// The inputs of an admission with numbers above `after`; `None` for all.
    fn inputs(&self, admission: &AdmId, after: Option<u64>) -> Result<Vec<Input>, Refusal>;

    // How it ends.

    /// Closes an admission. The same closing again gets the same record.
    fn close(&self, admission: &AdmId, by: &By, closing: &Closing) -> Result<Record, Refusal>;

    /// Takes a request back before it has started.
    fn cancel(&self, key: &AttemptKey, subject: &Subject) -> Result<Record, Refusal>;

    /// Asks an open admission to stop. It stays open until its destination closes it.
    fn stop(&self, admission: &AdmId, subject: &Subject, reason: &str) -> Result<Record, Refusal>;

    /// Cuts the credential. The owner stays (A62).
    fn revoke(&self, admission: &AdmId, subject: &Subject) -> Result<Record, Refusal>;

    /// Frees the surface of an admission whose end nobody can tell. The credential is cut with it.
    fn release(&self, admission: &AdmId, who: &Subject, reason: &str) -> Result<Record, Refusal> {
        let by = By::Operator { who: who.clone(), reason: reason.to_owned() };
        let closing = Closing { kind: super::record::Kind::Released, exit_code: None, reason: Some(reason.to_owned()) };
        self.close(admission, &by, &closing)
    }

    // Surfaces, places, machines.

    /// Adds a surface; adding it again adds what it is declared to share a place with. The answer warns of keys that
    /// look like the same place.
    fn surface_add(&self, surface: &SurfaceKey, shares: &[SurfaceKey]) -> Result<SurfaceAdded, Refusal>;

    /// All surfaces, by key.
    fn surfaces(&self) -> Result<Vec<SurfaceView>, Refusal>;

    /// One surface.
    fn surface(&self, surface: &SurfaceKey) -> Result<SurfaceView, Refusal>;

    /// Says where a surface is on a machine. Said again with the same words it changes nothing; anything else is a new
    /// generation, under which everything that was admitted before is stopping.
    fn place(&self, placing: &Placing) -> Result<Placed, Refusal>;

    /// Says that a surface is no longer on a machine. Nothing is deleted.
    fn place_gone(&self, surface: &SurfaceKey, machine: &MachineId) -> Result<Placed, Refusal>;

    /// Gives a machine a label, or takes it away. Its admissions stay as they are (A9).
    fn machine_label(&self, machine: &MachineId, label: Option<&MachineLabel>) -> Result<MachineView, Refusal>;

    /// The machines that the ledger has seen.
    fn machines(&self) -> Result<Vec<MachineView>, Refusal>;

    /// Deletes the row of a machine, and nothing else (A58). False: there was none.
    fn machine_forget(&self, machine: &MachineId) -> Result<bool, Refusal>;

    // The legacy path.

    /// Takes a surface by the legacy path.
    fn legacy_take(&self, surface: &SurfaceKey, who: &Subject) -> Result<LegacyOwner, Refusal>;

    /// Gives it back.
    fn legacy_drop(&self, surface: &SurfaceKey, who: &Subject) -> Result<(), Refusal>;

    // Reading.

    /// One admission by its id.
    fn show(&self, admission: &AdmId) -> Result<Record, Refusal>;

    /// One admission by request and attempt.
    fn find(&self, key: &AttemptKey) -> Result<Record, Refusal>;

    /// Admissions, the oldest first.
    fn history(&self, which: &History) -> Result<Vec<Record>, Refusal>;

    /// What was refused, the latest first (A57).
    fn refusals(&self, surface: Option<&SurfaceKey>) -> Result<Vec<Refused>, Refusal>;

    /// Whether an open admission should end: it was asked to stop, or its placement has changed.
    fn stopping(&self, admission: &AdmId) -> Result<Option<Stop>, Refusal>;

    /// Everything that contradicts the rules; empty when all is well.
    fn fsck(&self) -> Result<Vec<Fault>, Refusal>;

    /// Makes the ledger, or brings it up to this version's schema. Never done by a read.
    fn migrate(&self) -> Result<Migrated, Refusal>;

    /// The ledger's clock: milliseconds since 1970. Deadlines are on it.
    fn now_ms(&self) -> Result<u64, Refusal>;

    /// Where the ledger is, without any password.
    fn at(&self) -> String;
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The admission or the waiting row.
    pub record: Record,
    /// Whether this request wrote it. False: it was there.
    pub created: bool,
    /// For the destination of an open admission.
    pub credential: Option<Credential>,
    /// Whether the next attempt of the same request is allowed.
    pub next_attempt: bool,
}

impl Answer {
    /// Its id.
    pub fn admission(&self) -> AdmId {
        self.record.admission
    }

    /// Where it stands.
    pub fn phase(&self) -> Phase {
        self.record.phase
    }

    /// Where it goes.
    pub fn destination(&self) -> &Destination {
        &self.record.destination
    }
}

/// What a machine finds when it picks up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pickup {
    /// What it has open; `attach` goes on with one (A48).
    pub open: Vec<Record>,
    /// Those of `open` that should end.
    pub stopping: Vec<AdmId>,
    /// The row that has just become an admission, with its credential.
    pub admitted: Option<Answer>,
    /// Rows that still wait, the oldest first, with what keeps each.
    pub waiting: Vec<Waiting>,
    /// Rows that have just expired.
    pub expired: Vec<Record>,
    /// Rows that have just been closed because their placement has changed.
    pub refused: Vec<Record>,
}

/// A row that waits, and why it was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The row.
    pub record: Record,
    /// A code such as `busy`, `denied`, `not_live`; `None`: nothing keeps it, another came first.
    pub kept_by: Option<String>,
    /// In words.
    pub why: Option<String>,
}

/// What `place` did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Placed {
    /// The placement as it is now.
    pub placement: Placement,
    /// Whether anything changed.
    pub changed: bool,
    /// Open admissions that are stopping now.
    pub stopping: Vec<Record>,
    /// Other keys at the same place, with which no sharing is declared (A8).
    pub warnings: Vec<Overlap>,
}

impl Placed {
    /// The generation now.
    pub fn generation(&self) -> Generation {
        self.placement.destination.generation
    }
}

/// What `surface add` did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurfaceAdded {
    /// The surface.
    pub surface: SurfaceView,
    /// Whether it is new.
    pub created: bool,
    /// Keys that look like the same place, with which no sharing is declared (A8).
    pub warnings: Vec<Overlap>,
}

/// Two keys that may stand for one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Overlap {
    /// The other key.
    pub surface: SurfaceKey,
    /// Why it looks like the same place.
    pub why: String,
}

/// Why an open admission should end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Somebody asked.
    Asked,
    /// Its placement has changed.
    Placement,
}

/// What `migrate` did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Migrated {
    /// The schema before; `None`: there was no ledger.
    pub from: Option<u64>,
    /// The schema now.
    pub to: u64,
}

/// Something in the ledger that contradicts the rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Which rule, as a short code.
    pub rule: &'static str,
    /// What was found.
    pub what: String,
}
