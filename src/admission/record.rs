//! What the ledger keeps: admissions, placements, surfaces, refusals.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::facts::{Entrance, Subject, Work, named};
use super::names::{
    AdmId, Attempt, BadName, Digest, Fault, Generation, MachineId, MachineLabel, Place, RequestId, SurfaceKey,
};

/// Where an admission stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// A row that waits for its destination; it holds nothing.
    Queued,
    /// It owns the surface; nothing has run yet.
    Admitted,
    /// It owns the surface and its command has been started.
    Started,
    /// Finished; history.
    Closed,
}

named!(Phase, "phase": Phase::Queued => "queued", Phase::Admitted => "admitted", Phase::Started => "started",
    Phase::Closed => "closed");

impl Phase {
    /// Whether an admission in this phase owns its surface.
    pub const fn is_open(self) -> bool {
        matches!(self, Phase::Admitted | Phase::Started)
    }
}

/// The ways in which an admission ends. "Unknown" is not one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It ran and did what it should.
    Succeeded,
    /// It ran and did not; files may be half changed.
    Failed,
    /// Nothing ran.
    FailedBeforeStart,
    /// It was stopped while it ran.
    Interrupted,
    /// A person freed the surface; how it ended is not known.
    Released,
    /// The submitter took it back before it started.
    Canceled,
    /// Nothing ran for more than half a day, as its own machine noted when it next came.
    Expired,
    /// A newer waiting row took its place.
    Superseded,
}

named!(Kind, "kind of closing": Kind::Succeeded => "succeeded", Kind::Failed => "failed",
    Kind::FailedBeforeStart => "failed_before_start", Kind::Interrupted => "interrupted", Kind::Released => "released",
    Kind::Canceled => "canceled", Kind::Expired => "expired", Kind::Superseded => "superseded");

impl Kind {
    /// Whether the next attempt of the same request may be made (A23).
    pub const fn allows_next(self) -> bool {
        matches!(self, Kind::FailedBeforeStart | Kind::Interrupted | Kind::Released | Kind::Expired)
    }
}

/// Where a start goes. Written once and never changed (A26, A28).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Destination {
    /// The machine.
    pub machine: MachineId,
    /// The place on it.
    pub place: Place,
    /// The generation of that placement.
    pub generation: Generation,
}

/// One admission, or a row that waits to become one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its id.
    pub admission: AdmId,
    /// The request it came from.
    pub request: RequestId,
    /// Which attempt of it.
    pub attempt: Attempt,
    /// What was asked for.
    pub digest: Digest,
    /// The surface.
    pub surface: SurfaceKey,
    /// Where it goes.
    #[serde(flatten)]
    pub destination: Destination,
    /// The work that the placement belonged to when this was written.
    pub work: Option<Work>,
    /// Where it stands.
    pub phase: Phase,
    /// Which way it came in.
    pub entrance: Entrance,
    /// Who sent it.
    pub subject: Subject,
    /// The earlier attempt that it follows, as the submitter said.
    pub after: Option<AttemptKey>,
    /// What to run, for a row that another machine runs.
    pub command: Vec<String>,
    /// When the row was written; milliseconds since 1970 on the ledger's clock, as all times here.
    pub created_ms: u64,
    /// When it became the owner of the surface.
    pub admitted_ms: Option<u64>,
    /// When its command was started.
    pub started_ms: Option<u64>,
    /// When it ended.
    pub closed_ms: Option<u64>,
    /// How often a credential was made or cut; only the one with this number is good. 0: none was made.
    pub attach_number: u64,
    /// The number of the credential that the start was recorded with.
    pub started_attach: Option<u64>,
    /// Until when the newest credential is good; `None` when there is none, or when it was cut.
    pub deadline_ms: Option<u64>,
    /// Policy epoch of the newest credential, 16 hex digits.
    pub policy_epoch: Option<String>,
    /// When somebody asked it to stop.
    pub stop_ms: Option<u64>,
    /// Who asked, and why.
    pub stop_reason: Option<String>,
    /// How it ended.
    pub closing: Option<Kind>,
    /// Who closed it.
    pub closed_by: Option<String>,
    /// Why, in words.
    pub reason: Option<String>,
    /// The exit code of its command.
    pub exit_code: Option<i32>,
    /// The row that took its place.
    pub successor: Option<AdmId>,
    /// The row whose place it took.
    pub supersedes: Option<AdmId>,
}

impl Record {
    /// Whether it owns its surface.
    pub const fn is_open(&self) -> bool {
        self.phase.is_open()
    }

    /// Open, and no credential is good any more: nobody can tell whether it still runs. Derived, never stored.
    pub fn is_uncertain(&self, now_ms: u64) -> bool {
        self.is_open() && self.deadline_ms.is_none_or(|deadline| now_ms > deadline)
    }

    /// Whether the same request may be sent again as the next attempt.
    pub fn allows_next(&self) -> bool {
        self.closing.is_some_and(Kind::allows_next)
    }

    /// Request and attempt.
    pub fn key(&self) -> AttemptKey {
        AttemptKey { request: self.request.clone(), attempt: self.attempt }
    }
}

/// A request and which attempt of it. Written `deploy-41/2`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AttemptKey {
    /// The request.
    pub request: RequestId,
    /// Which attempt.
    pub attempt: Attempt,
}

impl fmt::Display for AttemptKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.request, self.attempt)
    }
}

impl FromStr for AttemptKey {
    type Err = BadName;

    /// `REQUEST/N`, or `REQUEST` alone for its first attempt.
    fn from_str(text: &str) -> Result<AttemptKey, BadName> {
        match text.rsplit_once('/') {
            Some((request, attempt)) => Ok(AttemptKey { request: request.parse()?, attempt: attempt.parse()? }),
            None if text.is_empty() => Err(BadName::new("request id", Fault::Empty)),
            None => Ok(AttemptKey { request: text.parse()?, attempt: Attempt::FIRST }),
        }
    }
}

/// Where a surface is on one machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The surface.
    pub surface: SurfaceKey,
    /// The machine, the place and the generation.
    #[serde(flatten)]
    pub destination: Destination,
    /// What the place is kept on, where somebody said so.
    pub storage: Option<String>,
    /// The work it belongs to.
    pub work: Option<Work>,
    /// False: it is gone from there. Nothing is started in it.
    pub live: bool,
    /// When that was last said.
    pub changed_ms: u64,
}

/// A surface and all that stands on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurfaceView {
    /// Its key.
    pub surface: SurfaceKey,
    /// When it was added.
    pub created_ms: u64,
    /// Its unfinished admission.
    pub owner: Option<Record>,
    /// Rows that wait for it, the oldest first.
    pub waiting: Vec<Record>,
    /// Where it is.
    pub placements: Vec<Placement>,
    /// Who owns it by the legacy path.
    pub legacy: Option<LegacyOwner>,
    /// The keys with which it is declared to share a place.
    pub shares: Vec<SurfaceKey>,
}

/// Who owns a surface by the legacy path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegacyOwner {
    /// Who.
    pub who: Subject,
    /// Since when.
    pub since_ms: u64,
}

/// A machine as the ledger knows it. Nothing hangs off it: deleting it deletes no admission (A58).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineView {
    /// Which.
    pub machine: MachineId,
    /// What people call it.
    pub label: Option<MachineLabel>,
    /// When it last came to pick up.
    pub seen_ms: Option<u64>,
}

/// A refusal as its issuer keeps it (A57).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The request that was refused.
    pub request: RequestId,
    /// Which attempt.
    pub attempt: Attempt,
    /// For which surface.
    pub surface: SurfaceKey,
    /// The code.
    pub code: String,
    /// The reason, in words.
    pub reason: String,
    /// Who asked.
    pub subject: Subject,
    /// When it was first refused in this way.
    pub first_ms: u64,
    /// When last.
    pub at_ms: u64,
    /// How often.
    pub times: u64,
}

/// Input accepted for an open admission, or sent along with a queued one (`number` 0).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// For which admission.
    pub admission: AdmId,
    /// 0 is what came with the request, 1 and on what was appended.
    pub number: u64,
    /// Under which request it was sent.
    pub request: RequestId,
    /// And attempt.
    pub attempt: Attempt,
    /// Its digest.
    pub digest: Digest,
    /// Who sent it.
    pub subject: Subject,
    /// When it was accepted.
    pub at_ms: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}
