//! The checker: everything that must hold of a table or a snapshot, looked at without writing a byte.
//!
//! It reads the words themselves and trusts none of them, so it lists all that is wrong and not only what a verb would
//! meet first. A table may be in use meanwhile. Two kinds of look make sure that nothing is reported that was only on its
//! way:
//!
//! * A version of the graph is copied whole (its stamp says so) and never changes after it was published: what is wrong
//!   in the copy is wrong.
//! * What a node's word says together with other words is read between two looks at the word, and where the version
//!   matters at the root. Neither ever comes back to an old value, so what was read in between was so at one moment.
//!
//! | file | what is looked at |
//! |---|---|
//! | `header` | the header, the root, what processes have marked as theirs |
//! | `raw` | a version copied as it stands |
//! | `version` | whether a copied version is a graph, and everything that is kept beside it follows from it |
//! | `texts` | names and records that a version refers to |
//! | `words` | the words of nodes and holders, each read with those that it must agree with |
//! | `snapshot` | snapshot files |
//!
//! Not faults, since the rules allow them: a claimed or done node with an unfinished dependency (it was linked or
//! reopened later), a group with more claims than its limit (it was lowered; a note says so), marks of dead processes
//! (whoever needs the place takes it), hints of any kind, chains that are out of date (`waiting_below` orders the work and
//! decides nothing).

mod code;
mod header;
mod raw;
mod snapshot;
mod texts;
mod version;
mod words;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

pub use code::Code;

use crate::error::OpenError;
use crate::location::Location;
use crate::region::Region;
use crate::snapshot::SnapshotError;
use crate::verbs::Table;

/// How many findings of one code are listed; the others are counted.
pub const LISTED_MAX: usize = 100;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// Which rule is broken.
    pub code: Code,
    /// What it is about: `header`, `node build`, `holder 7`.
    pub about: String,
    /// What is wrong.
    pub message: String,
}

/// What was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A table file.
    Table,
    /// A snapshot file.
    Snapshot,
}

/// How much there was to look at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Nodes.
    pub nodes: u32,
    /// Dependency edges.
    pub edges: u32,
    /// Holder names.
    pub holders: u32,
    /// Groups.
    pub groups: u32,
    /// Claimed nodes.
    pub claims: u32,
    /// Text blocks that something refers to.
    pub text_blocks: u32,
    /// Text blocks and version buffers that a living process has in hand.
    pub reserved: u32,
    /// The same, of processes that are gone: anybody may take them.
    pub left_over: u32,
    /// Things that changed so fast that they could not be judged.
    pub unjudged: u32,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The file.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// Whether nothing is wrong.
    pub sound: bool,
    /// What is wrong, at most [`LISTED_MAX`] of each code.
    pub findings: Vec<Finding>,
    /// Findings that are not listed, because there were so many of their code.
    pub more: u64,
    /// What is unusual and allowed.
    pub notes: Vec<String>,
    /// How much there was to look at.
    pub counts: Counts,
}

/// Why nothing could be checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// It is no table that this build can look into.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It is no snapshot that could be read.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

/// What has been found so far.
struct Found {
    report: Report,
    by_code: BTreeMap<Code, usize>,
}

impl Found {
    fn new(path: &Path, kind: Kind) -> Found {
        let report = Report {
            path: path.to_owned(),
            kind,
            sound: true,
            findings: Vec::new(),
            more: 0,
            notes: Vec::new(),
            counts: Counts::default(),
        };
        Found { report, by_code: BTreeMap::new() }
    }

    fn add(&mut self, code: Code, about: impl Into<String>, message: impl Into<String>) {
        self.report.sound = false;
        let count = self.by_code.entry(code).or_default();
        *count += 1;
        if *count > LISTED_MAX {
            self.report.more += 1;
        } else {
            self.report.findings.push(Finding { code, about: about.into(), message: message.into() });
        }
    }

    fn note(&mut self, note: impl Into<String>) {
        self.report.notes.push(note.into());
    }
}

/// Checks a file, which may be a table or a snapshot; its first bytes say which.
///
/// # Errors
/// [`CheckError`] when it cannot be read, or is neither.
pub fn file(path: impl AsRef<Path>) -> Result<Report, CheckError> {
    let path = path.as_ref();
    if snapshot::looks_like_one(path) {
        return Ok(snapshot::check(path)?);
    }
    let region = Region::open_to_look(path)?;
    Ok(header::check_table(&region, path))
}

/// Checks this boot's table in a directory.
///
/// # Errors
/// [`CheckError::Open`] when there is none, or none that this build can look into.
pub fn table(at: impl Into<Location>) -> Result<Report, CheckError> {
    let at = at.into();
    let path = Region::path_of(&at)?;
    if !path.exists() {
        // Says what is there instead, if anything is.
        Table::open(at.clone())?;
    }
    let region = Region::open_to_look(&path)?;
    Ok(header::check_table(&region, &path))
}

#[cfg(all(test, not(tenure_crash)))]
mod tests;
