//! Why a verb of the ledger was refused, with stable codes, and what can be wrong with a ledger as a whole.

use std::path::PathBuf;

use thiserror::Error;

use super::names::{AdmId, BadName, MachineId, SurfaceKey};
use super::record::{AttemptKey, Kind, Phase, Record};

/// Why a verb was refused. Unless it says otherwise, nothing was written but the note of the refusal itself.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The input makes no sense; nothing was looked at.
    #[error("{what}")]
    Usage {
        /// What is wrong, and what to do instead.
        what: String,
    },
    /// A name that cannot be.
    #[error(transparent)]
    Name(#[from] BadName),
    /// There is no such thing.
    #[error("there is no {what}")]
    NotFound {
        /// What was looked for.
        what: String,
    },
    /// Another unfinished admission owns the surface.
    #[error("{surface} is owned by {} ({}) on {}; it is free when that is closed", owner.admission, owner.key(), owner.destination.machine)]
    Busy {
        /// The surface.
        surface: SurfaceKey,
        /// Its owner.
        owner: Box<Record>,
    },
    /// The same request and attempt came with other contents before.
    #[error("{key} was sent before with other contents{}; send these under a new request id", admission.map(|id| format!(" ({id})")).unwrap_or_default())]
    Conflict {
        /// Request and attempt.
        key: AttemptKey,
        /// The admission that has them.
        admission: Option<AdmId>,
    },
    /// The placement is not the one that was written on the admission.
    #[error("the placement of {surface} has changed{}: nothing more is started or given there{}; when it is closed, start anew at the new place",
        record.as_ref().map(|r| format!(" since {} was admitted at generation {}", r.admission, r.destination.generation)).unwrap_or_default(),
        if *stopping { ", and it is stopping" } else { "" })]
    PlacementChanged {
        /// The surface.
        surface: SurfaceKey,
        /// The admission, if there is one. When the refusal closed it (a start did), this is the closed one.
        record: Option<Box<Record>>,
        /// Whether it still runs and should end.
        stopping: bool,
    },
    /// There is nowhere to go.
    #[error("{surface} has no destination: {why}")]
    NoDestination {
        /// The surface.
        surface: SurfaceKey,
        /// Why, and what to do.
        why: String,
    },
    /// The policy said no.
    #[error("denied: {reason}")]
    Denied {
        /// Its reason.
        reason: String,
    },
    /// The attempt before this one is not closed.
    #[error("{} is {}, so there is no next attempt yet", record.key(), record.phase)]
    PreviousOpen {
        /// The earlier attempt.
        record: Box<Record>,
    },
    /// The attempt before this one ended in a way that allows no other.
    #[error("{} ended as {}, which allows no further attempt; send a new request id", record.key(), closing_of(record))]
    PreviousFinal {
        /// The earlier attempt.
        record: Box<Record>,
    },
    /// The attempt before this one is not known.
    #[error("{key} is not known here; attempts are made one after the other, from 1")]
    PreviousUnknown {
        /// The earlier attempt.
        key: AttemptKey,
    },
    /// It is finished; the record says how.
    #[error("{} is closed: {}{}", record.admission, closing_of(record), record.reason.as_ref().map(|r| format!(" ({r})")).unwrap_or_default())]
    Closed {
        /// The closed admission.
        record: Box<Record>,
    },
    /// It was taken back.
    #[error("{} was canceled; send a new request id", record.key())]
    Canceled {
        /// The canceled admission.
        record: Box<Record>,
    },
    /// The caller is not the machine that the admission names.
    #[error("{machine} is not the destination{}", destination.map(|d| format!(": {d} is")).unwrap_or_default())]
    NotDestination {
        /// Who asked.
        machine: MachineId,
        /// The destination.
        destination: Option<MachineId>,
    },
    /// It waited for more than half a day and was expired by its own machine.
    #[error("{} expired before anything ran; the next attempt may be sent", record.key())]
    Expired {
        /// The expired row.
        record: Box<Record>,
    },
    /// The credential is not good, or not any more.
    #[error("the credential {why}; `attach` gives a new one")]
    Credential {
        /// What is wrong with it.
        why: &'static str,
    },
    /// Another row waits for the same surface and destination.
    #[error("{} ({}) waits for the same destination; --if-waiting=replace puts this in its place", record.key(), record.admission)]
    WaitingExists {
        /// The waiting row.
        record: Box<Record>,
    },
    /// The legacy path owns the surface.
    #[error("{surface} is owned by {who} through the legacy path; it is free when that is dropped")]
    BusyLegacy {
        /// The surface.
        surface: SurfaceKey,
        /// Who owns it.
        who: String,
    },
    /// Closed before, and the surface has another owner by now; or not the caller's to drop.
    #[error("not the owner any more: {surface} is {}{}",
        owner.as_ref().map_or("not owned".to_owned(), |o| format!("owned by {o}")),
        record.as_ref().map(|r| format!("; {} is closed: {}", r.admission, closing_of(r))).unwrap_or_default())]
    NotOwner {
        /// The surface.
        surface: SurfaceKey,
        /// Its owner now: an admission, or a name of the legacy path.
        owner: Option<String>,
        /// The closed admission that somebody wanted to close.
        record: Option<Box<Record>>,
    },
    /// It has been started: it is stopped, not canceled, and not started again.
    #[error("{} has been started{}", record.admission, if *again { " already; it is not started again" } else { ": `stop` it" })]
    AlreadyStarted {
        /// The admission.
        record: Box<Record>,
        /// Whether a second start was asked for.
        again: bool,
    },
    /// Somebody asked it to stop; it takes no more input and is not started.
    #[error("{} is stopping: {}", record.admission, record.stop_reason.as_deref().unwrap_or("asked to"))]
    Stopping {
        /// The admission.
        record: Box<Record>,
    },
    /// It waits still and owns nothing.
    #[error("{} still waits for {} to pick it up", record.key(), record.destination.machine)]
    StillWaiting {
        /// The row.
        record: Box<Record>,
    },
    /// This way of closing does not fit the state of the admission.
    #[error("{} is {}: it cannot be closed as {kind}{}", record.admission, record.phase, hint(record.phase))]
    WrongClosing {
        /// The admission.
        record: Box<Record>,
        /// What was asked for.
        kind: Kind,
    },
    /// A number is at its end.
    #[error("the {what} of {surface} is used up; it is not wrapped round")]
    Exhausted {
        /// The surface.
        surface: SurfaceKey,
        /// Which number.
        what: &'static str,
    },
    /// The ledger contradicts itself. Nothing was changed.
    #[error("the ledger is damaged: {why}; `tenure admission fsck` lists what is wrong")]
    Damaged {
        /// What is wrong.
        why: String,
    },
    /// The ledger may or may not have taken it: the answer was lost. The same request sent again finds out.
    #[error("the answer is not known: {why}; send the same request again")]
    Unknown {
        /// What happened.
        why: String,
    },
    /// The ledger as a whole cannot be used. Nothing was changed.
    #[error(transparent)]
    Unusable(#[from] LedgerError),
}

fn closing_of(record: &Record) -> &'static str {
    record.closing.map_or("not closed", Kind::name)
}

const fn hint(phase: Phase) -> &'static str {
    match phase {
        Phase::Queued => "; `cancel` takes it back",
        Phase::Admitted => "; nothing ran yet, which is failed_before_start, or `cancel` it",
        Phase::Started => "; it ran, which is succeeded, failed or interrupted",
        Phase::Closed => "",
    }
}

impl Refusal {
    /// Stable code, as printed in `{"error": ...}`.
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::Usage { .. } => "usage",
            Refusal::Name(name) => name.code(),
            Refusal::NotFound { .. } => "not_found",
            Refusal::Busy { .. } => "busy",
            Refusal::Conflict { .. } => "conflict",
            Refusal::PlacementChanged { .. } => "placement_changed",
            Refusal::NoDestination { .. } => "no_destination",
            Refusal::Denied { .. } => "denied",
            Refusal::PreviousOpen { .. } => "previous_open",
            Refusal::PreviousFinal { .. } => "previous_final",
            Refusal::PreviousUnknown { .. } => "previous_unknown",
            Refusal::Closed { .. } => "closed",
            Refusal::Canceled { .. } => "canceled",
            Refusal::NotDestination { .. } => "not_destination",
            Refusal::Expired { .. } => "expired",
            Refusal::Credential { .. } => "credential_expired",
            Refusal::WaitingExists { .. } => "waiting_exists",
            Refusal::BusyLegacy { .. } => "busy_legacy",
            Refusal::NotOwner { .. } => "not_owner",
            Refusal::AlreadyStarted { .. } => "already_started",
            Refusal::Stopping { .. } => "stopping",
            Refusal::StillWaiting { .. } => "still_waiting",
            Refusal::WrongClosing { .. } => "wrong_closing",
            Refusal::Exhausted { .. } => "exhausted",
            Refusal::Damaged { .. } => "damaged",
            Refusal::Unknown { .. } => "unknown",
            Refusal::Unusable(ledger) => ledger.code(),
        }
    }

    /// The record that the refusal speaks of, if it names one.
    pub fn record(&self) -> Option<&Record> {
        match self {
            Refusal::Busy { owner: record, .. }
            | Refusal::PlacementChanged { record: Some(record), .. }
            | Refusal::PreviousOpen { record }
            | Refusal::PreviousFinal { record }
            | Refusal::NotOwner { record: Some(record), .. }
            | Refusal::Closed { record }
            | Refusal::Canceled { record }
            | Refusal::Expired { record }
            | Refusal::WaitingExists { record }
            | Refusal::AlreadyStarted { record, .. }
            | Refusal::Stopping { record }
            | Refusal::StillWaiting { record }
            | Refusal::WrongClosing { record, .. } => Some(record),
            _ => None,
        }
    }
}

/// What is wrong with a ledger as a whole. Whatever it is, the ledger is left as it was found.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// There is none, and the verb does not make one.
    #[error("there is no ledger in {at}; {make} makes one")]
    Absent {
        /// Where it was looked for.
        at: String,
        /// The verb that makes it.
        make: &'static str,
    },
    /// Written by a newer version.
    #[error("the ledger in {at} has schema {found}, and this version knows {known}; use the newer version of tenure")]
    Newer {
        /// Where it is.
        at: String,
        /// Its schema.
        found: u64,
        /// The newest that this build knows.
        known: u64,
    },
    /// Written by an older version, and only `migrate` changes it.
    #[error(
        "the ledger in {at} has schema {found}, and this version wants {known}; `tenure admission migrate` brings it up"
    )]
    Older {
        /// Where it is.
        at: String,
        /// Its schema.
        found: u64,
        /// The schema that this build writes.
        known: u64,
    },
    /// It is something else.
    #[error("{at} is not a ledger: {why}. It is left alone; name another with --ledger")]
    NotALedger {
        /// Where.
        at: String,
        /// Why not.
        why: String,
    },
    /// The file does not hold together.
    #[error("the ledger in {at} is damaged: {why}. It is left as it is; restore it from a copy")]
    Damaged {
        /// Where it is.
        at: String,
        /// What is wrong.
        why: String,
    },
    /// It can be read only.
    #[error("the ledger in {at} cannot be written: {why}")]
    ReadOnly {
        /// Where it is.
        at: String,
        /// Why.
        why: String,
    },
    /// No room to write.
    #[error("no room to write the ledger in {at}; nothing was changed")]
    NoSpace {
        /// Where it is.
        at: String,
    },
    /// The file or its directory belongs to somebody else.
    #[error("{path} belongs to user {owner}, not to you (user {me})")]
    NotOurs {
        /// The file or directory.
        path: PathBuf,
        /// Its owner's user id.
        owner: u32,
        /// The caller's user id.
        me: u32,
    },
    /// A symbolic link, a network file system or something else stands where the file or its directory should.
    #[error("{path} is {what}")]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is instead.
        what: String,
    },
    /// The server cannot be reached; nothing was sent.
    #[error("cannot reach the ledger at {at}: {why}")]
    Unreachable {
        /// Where, without any password.
        at: String,
        /// Why.
        why: String,
    },
    /// The address of the ledger makes no sense.
    #[error("{at} is not the address of a ledger: {why}")]
    Address {
        /// The address, without any password.
        at: String,
        /// What is wrong.
        why: String,
    },
    /// Others held the ledger for longer than the caller would wait.
    #[error("the ledger in {at} was held by others for {waited_ms} ms; nothing was changed, try again")]
    Held {
        /// Where it is.
        at: String,
        /// How long the caller waited.
        waited_ms: u64,
    },
    /// The operating system or the database refused.
    #[error("cannot {what} the ledger in {at}: {why}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// Where.
        at: String,
        /// The reason.
        why: String,
    },
}

impl LedgerError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            LedgerError::Absent { .. } => "ledger_absent",
            LedgerError::Newer { .. } => "ledger_newer",
            LedgerError::Older { .. } => "ledger_older",
            LedgerError::NotALedger { .. } => "not_a_ledger",
            LedgerError::Damaged { .. } => "ledger_damaged",
            LedgerError::ReadOnly { .. } => "ledger_read_only",
            LedgerError::NoSpace { .. } => "no_space",
            LedgerError::NotOurs { .. } => "not_ours",
            LedgerError::NotAFile { .. } => "not_a_file",
            LedgerError::Unreachable { .. } => "ledger_unreachable",
            LedgerError::Address { .. } => "bad_address",
            LedgerError::Held { .. } => "ledger_held",
            LedgerError::Io { .. } => "io",
        }
    }
}
