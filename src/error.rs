//! What can go wrong, one enum per family, each variant with a stable code.
//!
//! The codes are what scripts match on; the messages are for people and may change.

use std::path::PathBuf;

use thiserror::Error;

use crate::id::NodeId;
use crate::node::{Seen, Status};

/// A name, kind, role, holder or text that no node can have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NameError {
    /// It is empty.
    #[error("the {field} is empty")]
    Empty {
        /// Which field.
        field: &'static str,
    },
    /// It is longer than the field allows.
    #[error("the {field} is {bytes} bytes long; the limit is {limit}, and nothing is cut")]
    TooLong {
        /// Which field.
        field: &'static str,
        /// Its length.
        bytes: usize,
        /// The longest it may be.
        limit: usize,
    },
    /// It contains a NUL.
    #[error("the {field} contains a NUL character")]
    Nul {
        /// Which field.
        field: &'static str,
    },
    /// It could be mistaken for an id.
    #[error("the {field} is 32 lowercase hex digits, which is how ids are written; choose another")]
    LooksLikeAnId {
        /// Which field.
        field: &'static str,
    },
    /// A group's limit that cannot be.
    #[error("a limit of {limit} cannot be; it must be 1 to {most}")]
    Limit {
        /// What was asked for.
        limit: u32,
        /// The highest.
        most: u32,
    },
    /// A lease that is zero or longer than the table can keep.
    #[error("a lease of {lease_ms} ms cannot be kept; it must be 1 to {limit_ms} ms")]
    Lease {
        /// What was asked for.
        lease_ms: u64,
        /// The longest lease.
        limit_ms: u64,
    },
}

impl NameError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            NameError::TooLong { .. } => "too_long",
            NameError::Lease { .. } => "bad_lease",
            NameError::Limit { .. } => "bad_limit",
            _ => "bad_name",
        }
    }
}

/// The mapping holds a value that no version of this program writes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the table is damaged: {what}")]
pub struct Damaged {
    /// Which value, and why it cannot be.
    pub what: &'static str,
}

/// Why a table could not be opened or made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no table there.
    #[error("there is no table in {dir}; `tenure init` makes one")]
    Absent {
        /// Where it was looked for.
        dir: PathBuf,
    },
    /// The only table there was made before the last reboot.
    #[error(
        "the table in {dir} is from before the last reboot; `tenure init` makes a new one, from its snapshot if there is one"
    )]
    Stale {
        /// Where it was looked for.
        dir: PathBuf,
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
    /// A symbolic link or something else stands where the file or directory should.
    #[error("{path} is {what}")]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// Mapping is not coherent on a network file system.
    #[error(
        "{dir} is on {kind}, where memory shared between processes is not kept coherent; use a local directory (--dir or TENURE_DIR)"
    )]
    NetworkFileSystem {
        /// The directory.
        dir: PathBuf,
        /// Name of the file system.
        kind: &'static str,
    },
    /// The file is not a table of this program.
    #[error("{path} is not a table: {why}")]
    NotATable {
        /// The file.
        path: PathBuf,
        /// What does not match.
        why: String,
    },
    /// The file was made by a build with another layout.
    #[error(
        "{path} was made by another version: {why}. It is left alone; use the version that made it, or another directory"
    )]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// What does not match.
        why: String,
    },
    /// The file matches but cannot be what it says it is.
    #[error("{path} is damaged: {why}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The file system has no room for the table.
    #[error("no room for a table of {bytes} bytes in {dir}")]
    NoSpace {
        /// The directory.
        dir: PathBuf,
        /// The size of the table.
        bytes: u64,
    },
    /// The operating system refused.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// To which path.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}

impl OpenError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            OpenError::Absent { .. } => "absent",
            OpenError::Stale { .. } => "stale",
            OpenError::NotOurs { .. } => "not_ours",
            OpenError::NotAFile { .. } => "not_a_file",
            OpenError::NetworkFileSystem { .. } => "network_file_system",
            OpenError::NotATable { .. } => "not_a_table",
            OpenError::OtherVersion { .. } => "other_version",
            OpenError::Damaged { .. } => "damaged",
            OpenError::NoSpace { .. } => "no_space",
            OpenError::Io { .. } => "io",
        }
    }
}

/// Why a verb on an open table was refused. Nothing was changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No node has this id.
    #[error("no node {node}")]
    NoSuchNode {
        /// The id or name that was asked for.
        node: String,
    },
    /// No group has this name.
    #[error("there is no group {group}; `tenure group {group} --limit N` makes it")]
    NoSuchGroup {
        /// The name.
        group: String,
    },
    /// The text cannot be stored.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A node's id does not follow from its name.
    #[error("the id {id} is not the id of the name {name:?}; give one of the two")]
    NameMismatch {
        /// The id given.
        id: NodeId,
        /// The name given.
        name: String,
    },
    /// The same node stands twice in one import.
    #[error("{node} stands twice in the same import")]
    Duplicate {
        /// The node.
        node: String,
    },
    /// A node cannot wait for or belong under itself.
    #[error("{node} cannot wait for or belong under itself")]
    SelfLink {
        /// The node.
        node: String,
    },
    /// The edge would close a loop.
    #[error("that would close a loop: {}", path.join(" -> "))]
    Cycle {
        /// The nodes along the loop, first and last the same; `a -> b` means b waits for a or belongs under it.
        path: Vec<String>,
    },
    /// A terminal node is not changed.
    #[error("{node} is {}; a node that has ended is not changed (`reopen` it first)", status.name())]
    Ended {
        /// The node.
        node: String,
        /// How it ended.
        status: Seen,
        /// Its generation.
        generation: u64,
    },
    /// Only a terminal node can be reopened, archived or unarchived.
    #[error("{node} has not ended: it is {}", status.name())]
    NotEnded {
        /// The node.
        node: String,
        /// What it is.
        status: Seen,
    },
    /// The node is not ready.
    #[error("{node} is {}: it waits for {}", status.name(), waits_for.join(", "))]
    NotReady {
        /// The node.
        node: String,
        /// `todo` or `blocked`.
        status: Seen,
        /// The dependencies that are not done (at most eight are named).
        waits_for: Vec<String>,
    },
    /// A failed dependency skips the node.
    #[error("{node} is skipped because {by} failed or was cancelled; `reopen` that one to bring it back")]
    Skipped {
        /// The node.
        node: String,
        /// The dependency.
        by: String,
    },
    /// The node was handed back after an attempt that was lost or failed, and is left alone for a while.
    #[error("{node} is left alone for another {} ms after its last attempt", left_ms)]
    NotBefore {
        /// The node.
        node: String,
        /// Milliseconds until it can be claimed.
        left_ms: u64,
    },
    /// As many nodes of the group are claimed as may be at once.
    #[error("{node} waits for its group {group}: {limit} of {limit} seats are taken")]
    GroupFull {
        /// The node.
        node: String,
        /// Its group.
        group: String,
        /// Seats.
        limit: u32,
    },
    /// Somebody else holds the node.
    #[error("{node} is held by {holder} at generation {generation}")]
    Held {
        /// The node.
        node: String,
        /// Who holds it.
        holder: String,
        /// Its generation.
        generation: u64,
    },
    /// The holder has a live claim already.
    #[error(
        "{holder} already holds {node} at generation {generation}; complete or release it, or ask again with --resume"
    )]
    Busy {
        /// Who asked.
        holder: String,
        /// What it holds.
        node: String,
        /// At which generation.
        generation: u64,
    },
    /// The fence does not match: the world moved on underneath the caller.
    #[error("generation mismatch: {node} is at generation {found}, not {expected}{}", held_by.as_ref().map(|h| format!("; {h} holds it now")).unwrap_or_default())]
    GenerationMismatch {
        /// The node.
        node: String,
        /// What the caller presented.
        expected: u64,
        /// What the node has.
        found: u64,
        /// Who holds it now, if anybody.
        held_by: Option<String>,
    },
    /// The caller does not hold the node.
    #[error("{holder} does not hold {node}: {}", match held_by { Some(h) => format!("{h} does, at generation {generation}"), None => format!("it is {} at generation {generation}", status.name()) })]
    NotHolder {
        /// The node.
        node: String,
        /// Who asked.
        holder: String,
        /// Who holds it, if anybody.
        held_by: Option<String>,
        /// What the node is.
        status: Seen,
        /// Its generation.
        generation: u64,
    },
    /// Nobody holds the node.
    #[error("nobody holds {node}: it is {} at generation {generation}", status.name())]
    NotHeld {
        /// The node.
        node: String,
        /// What the node is.
        status: Seen,
        /// Its generation.
        generation: u64,
    },
    /// The table wants a fence with every completion.
    #[error("this table was made with --require-fence: name the generation (--gen) of {node}")]
    FenceRequired {
        /// The node.
        node: String,
    },
    /// No node is ready for this worker.
    #[error("nothing is ready")]
    NothingReady,
    /// Every slot holds a node that cannot be pruned.
    #[error("the table is full: {live} of {capacity} nodes are live or still needed, and none can be pruned")]
    Full {
        /// Nodes that have not ended.
        live: u32,
        /// Node slots.
        capacity: u32,
    },
    /// The table has no room for what was to be added besides nodes.
    #[error("the table has no room for more {what} (limit {limit})")]
    NoRoom {
        /// Edges, text, holders, versions.
        what: &'static str,
        /// How many fit.
        limit: u64,
    },
    /// A counter is at its end; it does not wrap.
    #[error("{node} has used up its {what}; it is not wrapped round")]
    Exhausted {
        /// The node.
        node: String,
        /// Which counter.
        what: &'static str,
    },
    /// The process was forked after it opened the table.
    #[error("this process was forked after it opened the table; open the table again in the child")]
    Forked,
    /// Others kept changing the same words for far longer than chance allows.
    #[error("gave up after {tries} tries: others kept changing the same words; try again")]
    Contended {
        /// How often it was tried.
        tries: u32,
    },
    /// The mapping holds a value that cannot be.
    #[error(transparent)]
    Damaged(#[from] Damaged),
}

impl Refusal {
    /// Stable code, as printed in `{"error": ...}`.
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::NoSuchNode { .. } => "no_such_node",
            Refusal::NoSuchGroup { .. } => "no_such_group",
            Refusal::Name(name) => name.code(),
            Refusal::NameMismatch { .. } => "bad_name",
            Refusal::Duplicate { .. } => "duplicate",
            Refusal::SelfLink { .. } => "self_link",
            Refusal::Cycle { .. } => "cycle",
            Refusal::Ended { .. } => "ended",
            Refusal::NotEnded { .. } => "not_ended",
            Refusal::NotReady { .. } => "not_ready",
            Refusal::Skipped { .. } => "skipped",
            Refusal::NotBefore { .. } => "not_before",
            Refusal::GroupFull { .. } => "group_full",
            Refusal::Held { .. } => "held",
            Refusal::Busy { .. } => "busy",
            Refusal::GenerationMismatch { .. } => "generation_mismatch",
            Refusal::NotHolder { .. } => "not_holder",
            Refusal::NotHeld { .. } => "not_held",
            Refusal::FenceRequired { .. } => "fence_required",
            Refusal::NothingReady => "nothing_ready",
            Refusal::Full { .. } => "full",
            Refusal::NoRoom { .. } => "no_room",
            Refusal::Exhausted { .. } => "exhausted",
            Refusal::Forked => "forked",
            Refusal::Contended { .. } => "contended",
            Refusal::Damaged(_) => "damaged",
        }
    }
}

impl Status {
    /// What a reader sees of a node that has ended or is held; an open one needs its dependencies.
    pub(crate) fn seen(self, open_as: Seen) -> Seen {
        match self {
            Status::Open => open_as,
            Status::Claimed => Seen::Claimed,
            Status::Done => Seen::Done,
            Status::Failed => Seen::Failed,
            Status::Cancelled => Seen::Cancelled,
        }
    }
}
