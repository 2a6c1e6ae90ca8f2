//! Snapshots: the whole table as one file, for the next boot.
//!
//! A snapshot is a copy that nobody maps and nobody changes: it is written whole under a temporary name, synced, and
//! renamed over the last one. What is in it is a cut that could have existed (see `verbs::cut`).
//!
//! | file | what |
//! |---|---|
//! | `bytes` | the content as checksummed bytes, and back; pure |
//! | `file` | reading, writing, putting in place |
//! | `lock` | the one advisory lock, around the rename alone |
//! | `error` | why not |

pub(crate) mod bytes;
mod error;
pub(crate) mod file;
mod lock;

use std::path::Path;

pub use error::SnapshotError;

use crate::id::NodeId;
use crate::node::{OnFailure, Status};

/// When a snapshot's cut was made, and of which table. Times in nanoseconds are on the kernel's monotonic clock, which
/// begins anew with every boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Moment {
    /// The boot id, as two words.
    pub boot: (u64, u64),
    /// Wall clock of the table's creation, milliseconds since 1970.
    pub table_created_at_ms: u64,
    /// The number of the version of the graph.
    pub version: u64,
    /// When reading the table began.
    pub began_ns: u64,
    /// When it had been read.
    pub ended_ns: u64,
    /// Wall clock of the cut, milliseconds since 1970; for display only.
    pub taken_at_ms: u64,
}

/// A node as a snapshot keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SavedNode {
    /// 128-bit id.
    pub id: NodeId,
    /// Its place in the table; edges and parents refer to nodes by it.
    pub slot: u16,
    /// Its generation at the cut.
    pub generation: u64,
    /// What it was at the cut.
    pub status: Status,
    /// Hidden from ordinary lists.
    pub archived: bool,
    /// Who held it, when it was claimed.
    pub holder: Option<String>,
    /// Its name; empty is none, as for the other texts.
    pub name: String,
    /// Word for people and filters.
    pub kind: String,
    /// Role that a worker must offer.
    pub role: String,
    /// Free text: what it ended with, if it ended with any.
    pub summary: String,
    /// Shell command.
    pub run: String,
    /// Workspace surface; empty is none.
    pub surface: String,
    /// Estimated milliseconds of work.
    pub cost: u32,
    /// Slot of the node it belongs under.
    pub parent: Option<u16>,
    /// The most attempts; 0: no limit.
    pub max_attempts: u16,
    /// Milliseconds that it is left alone after an attempt.
    pub retry_delay_ms: u32,
    /// Number of the group that it belongs to; 0: none.
    pub group: u8,
    /// The generation that its attempts are counted from: two generations are one attempt.
    pub attempts_from: u64,
    /// Creation number: ties in the order of work go to the lowest.
    pub born: u64,
    /// Wall clock, milliseconds since 1970, as are the next two.
    pub created_at_ms: u64,
    /// Last change of its fields or edges.
    pub updated_at_ms: u64,
    /// When it ended, if it has.
    pub finished_at_ms: Option<u64>,
}

/// A dependency as a snapshot keeps it. Ordered as the table orders them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct SavedEdge {
    /// Slot of the node that waits.
    pub child: u16,
    /// Slot of the node that it waits for.
    pub parent: u16,
    /// What the child does when the parent fails.
    pub on_failure: OnFailure,
}

/// A group as a snapshot keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SavedGroup {
    /// What nodes refer to it by, 1 to 255.
    pub number: u8,
    /// How many of its nodes may be claimed at once.
    pub limit: u32,
    /// Its name.
    pub name: String,
}

/// A snapshot, read whole and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Which table, and when.
    pub taken: Moment,
    /// Lease of claims that name none, in milliseconds.
    pub lease_ms: u64,
    /// Whether completions must name a generation.
    pub require_fence: bool,
    /// New nodes begin at no lower generation.
    pub floor: u64,
    /// By number, ascending.
    pub groups: Vec<SavedGroup>,
    /// By slot, ascending.
    pub nodes: Vec<SavedNode>,
    /// By child, then by parent.
    pub edges: Vec<SavedEdge>,
}

impl Snapshot {
    /// Reads a snapshot and checks every byte of it. The file is copied, never mapped, and never written.
    ///
    /// # Errors
    /// [`SnapshotError`] when there is none, or when it is not whole.
    pub fn read(path: impl AsRef<Path>) -> Result<Snapshot, SnapshotError> {
        file::read(path.as_ref(), file::Whose::Anybodys)
    }
}
