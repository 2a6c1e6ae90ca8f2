//! Why a snapshot was not written, read or restored.

use std::path::PathBuf;

use thiserror::Error;

use crate::error::{OpenError, Refusal};

/// Why a snapshot was not written, read or restored. The last good snapshot and the table are as they were.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// There is none.
    #[error("there is no snapshot at {path}; `tenure snapshot` writes one")]
    Absent {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The file is not one that this program writes.
    #[error("{path} is not a snapshot: {why}")]
    NotASnapshot {
        /// The file.
        path: PathBuf,
        /// What does not match.
        why: String,
    },
    /// It was written by a program that writes them differently.
    #[error("{path} is a snapshot of format {found}, this program reads format {known}; use the version that wrote it")]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// The format's number in the file.
        found: u32,
        /// The one that this program knows.
        known: u32,
    },
    /// It was a snapshot once and is not whole any more.
    #[error("the snapshot {path} is damaged: {why}; nothing of it is used, and the file is left as it is")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The file belongs to somebody else.
    #[error("{path} belongs to user {owner}, not to you (user {me})")]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// Its owner's user id.
        owner: u32,
        /// The caller's user id.
        me: u32,
    },
    /// A symbolic link or something else stands where the file should.
    #[error("{path} is {what}")]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// The table has nodes, and nobody said that they may go.
    #[error("the table has {nodes} nodes; restoring replaces all of them and takes every claim back (--force)")]
    NotEmpty {
        /// How many.
        nodes: u32,
    },
    /// Another process has been replacing the snapshot for longer than this one was willing to wait.
    #[error(
        "another process has held {path} for more than {waited_ms} ms; `fuser -v` names it. Nobody else waits for it"
    )]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// How long this process waited.
        waited_ms: u64,
    },
    /// The file system has no room.
    #[error("no room for a snapshot of {bytes} bytes in {dir}; the last one is still there")]
    NoSpace {
        /// The directory.
        dir: PathBuf,
        /// The size of the snapshot.
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
    /// The table refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The table could not be opened or made.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl SnapshotError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            SnapshotError::Absent { .. } => "no_snapshot",
            SnapshotError::NotASnapshot { .. } => "not_a_snapshot",
            SnapshotError::OtherVersion { .. } => "other_version",
            SnapshotError::Damaged { .. } => "damaged_snapshot",
            SnapshotError::NotOurs { .. } => "not_ours",
            SnapshotError::NotAFile { .. } => "not_a_file",
            SnapshotError::NotEmpty { .. } => "not_empty",
            SnapshotError::Locked { .. } => "locked",
            SnapshotError::NoSpace { .. } => "no_space",
            SnapshotError::Io { .. } => "io",
            SnapshotError::Refused(refusal) => refusal.code(),
            SnapshotError::Open(error) => error.code(),
        }
    }
}
