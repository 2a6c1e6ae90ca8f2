//! Graphs as files: what `import`, `run` and `export` read and write, and what else is written for other programs.
//!
//! | file | holds |
//! |---|---|
//! | `jsonl` | JSON Lines, read and written |
//! | `wfformat` | WfFormat, read |
//! | `load` | a graph that was read goes into a table |
//! | `dot`, `mermaid` | drawings, written |
//! | `picture` | what a drawing shows, whatever language it is written in |
//! | `prometheus` | counts for collectors, written |
//! | `visible` | text without anything that a terminal obeys |
//!
//! A reader turns a whole file into a [`Graph`] before anything touches a table, so a file that is wrong anywhere
//! changes nothing. Every complaint names the line or the task it is about.

pub mod dot;
mod error;
pub mod jsonl;
mod load;
pub mod mermaid;
mod picture;
#[cfg(feature = "cli")]
pub mod prometheus;
mod visible;
pub mod wfformat;

use std::io::BufRead;

use ahash::AHashMap;

pub use error::{FormatError, Place};
pub use load::{LoadError, Loaded};
pub use visible::is_unsafe;

use crate::id::NodeId;
use crate::node::NodeSpec;

/// The most nodes that one file may hold: a table has no more slots than this.
pub const NODES_MAX: usize = 4_096;

/// The longest input. A full table with every text at its limit and every byte of it escaped stays well below this.
pub const INPUT_BYTES_MAX: u64 = 256 << 20;

/// How a graph is written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// JSON Lines: one node a line.
    #[default]
    Jsonl,
    /// A workflow trace in WfCommons WfFormat 1.5.
    Wfformat,
}

/// Where something stands in the input, and what it asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The line or the task.
    pub at: Place,
    /// The node's id.
    pub id: NodeId,
    /// The name, or the id of a node without one.
    pub label: String,
    /// What is to be created or updated.
    pub spec: NodeSpec,
    /// The nodes that it refers to, each as it was written.
    written: Vec<(NodeId, String)>,
}

/// A graph that was read and checked as far as a file can be without a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    entries: Vec<Entry>,
    index: AHashMap<NodeId, usize>,
    notes: Vec<String>,
}

impl Graph {
    /// Reads a whole input.
    ///
    /// # Errors
    /// [`FormatError`] for the first thing that is wrong, with the place where it stands.
    pub fn read(format: Format, input: &mut dyn BufRead) -> Result<Graph, FormatError> {
        match format {
            Format::Jsonl => jsonl::read(input),
            Format::Wfformat => wfformat::read(input),
        }
    }

    /// The nodes, in the order of the input.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What a person should know about the input although it is no error.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether the input itself holds this node.
    pub fn contains(&self, id: NodeId) -> bool {
        self.index.contains_key(&id)
    }

    /// Adds a node; a second one with the same id is an error, because one of the two would be lost.
    fn push(&mut self, entry: Entry) -> Result<(), FormatError> {
        if let Some(first) = self.index.get(&entry.id).and_then(|&i| self.entries.get(i)) {
            return Err(FormatError::Duplicate { at: entry.at, first: first.at.clone(), node: entry.label });
        }
        if self.entries.len() == NODES_MAX {
            return Err(FormatError::TooManyNodes { at: entry.at });
        }
        self.index.insert(entry.id, self.entries.len());
        self.entries.push(entry);
        Ok(())
    }
}
