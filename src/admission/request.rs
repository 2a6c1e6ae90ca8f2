//! What callers send: one struct for each verb that has more than two arguments.

use super::facts::{Entrance, Subject, Work};
use super::names::{AdmId, Attempt, Digest, Generation, MachineId, Place, RequestId, SurfaceKey};
use super::record::{AttemptKey, Kind};

/// Most bytes of input that the ledger carries for another machine.
pub const INPUT_BYTES_MAX: usize = 4 << 20;

/// Longest reason, in bytes.
pub const REASON_BYTES_MAX: usize = 4096;

/// Longest name of a storage, in bytes.
pub const STORAGE_BYTES_MAX: usize = 256;

/// What to do when another row waits for the same surface and destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfWaiting {
    /// Refuse.
    #[default]
    Fail,
    /// Take its place; both records say so.
    Replace,
}

/// A request to start, or to wait for a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The submitter's name for it: the idempotency key.
    pub request: RequestId,
    /// Which attempt of it.
    pub attempt: Attempt,
    /// What is asked for; the same request and attempt with another digest is a conflict.
    pub digest: Digest,
    /// The surface.
    pub surface: SurfaceKey,
    /// The machine that the submitter pinned. `None`: the caller's for `Local`, the only live one for `Queue`.
    pub machine: Option<MachineId>,
    /// The placement that the submitter looked at, if it must still be that one.
    pub generation: Option<Generation>,
    /// `Local` admits at once, `Queue` leaves a row for the destination. `Append` is refused here: see [`Append`].
    pub entrance: Entrance,
    /// What to do about another waiting row.
    pub if_waiting: IfWaiting,
    /// An earlier attempt of some request that this one follows; only a link.
    pub after: Option<AttemptKey>,
    /// Who sends it.
    pub subject: Subject,
    /// The machine it is sent from.
    pub caller: MachineId,
    /// What to run, for a row that waits.
    pub command: Vec<String>,
    /// The input, for a row that waits. `None` for `Local`: there the input stays where it is.
    pub input: Option<Vec<u8>>,
}

/// More input for an open admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// To which.
    pub admission: AdmId,
    /// The submitter's name for this input, out of the same names as those of starts.
    pub request: RequestId,
    /// Which attempt of it.
    pub attempt: Attempt,
    /// Its digest.
    pub digest: Digest,
    /// Who sends it.
    pub subject: Subject,
    /// The input.
    pub input: Vec<u8>,
}

/// Who closes an admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// The machine it runs on, by its newest credential. The deadline and the placement are not asked about: what has
    /// ended may be recorded late.
    Destination {
        /// The token.
        token: String,
        /// The machine that presents it.
        caller: MachineId,
    },
    /// Who sent it; cancels only.
    Submitter(Subject),
    /// A person who frees the surface without knowing how it ended.
    Operator {
        /// Who.
        who: Subject,
        /// Why.
        reason: String,
    },
}

/// How it is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closing {
    /// The kind.
    pub kind: Kind,
    /// The exit code of the command, where there was one.
    pub exit_code: Option<i32>,
    /// In words.
    pub reason: Option<String>,
}

/// Where a surface is, as somebody says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placing {
    /// The surface.
    pub surface: SurfaceKey,
    /// The machine.
    pub machine: MachineId,
    /// The place on it.
    pub place: Place,
    /// What the place is kept on.
    pub storage: Option<String>,
    /// The work it belongs to.
    pub work: Option<Work>,
}

/// Which records to list. Everything that is `Some` must fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Of this surface.
    pub surface: Option<SurfaceKey>,
    /// Of this request.
    pub request: Option<RequestId>,
    /// With this destination.
    pub machine: Option<MachineId>,
    /// Written at or after this time.
    pub since_ms: Option<u64>,
    /// Only those that are open while no credential is good.
    pub uncertain: bool,
    /// Only those that are not closed.
    pub unfinished: bool,
    /// At most so many, the newest. `None`: all.
    pub limit: Option<u32>,
}
