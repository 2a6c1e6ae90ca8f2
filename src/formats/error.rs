//! What can be wrong with a file, each with the place where it stands.

use std::fmt;

use thiserror::Error;

use super::{INPUT_BYTES_MAX, NODES_MAX, jsonl};
use crate::error::NameError;

/// The part of a file that a message is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line, counted from 1; blank lines count.
    Line(usize),
    /// A task of a trace, by its id.
    Task(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}"),
            Place::Task(id) => write!(f, "task \"{id}\""),
        }
    }
}

/// Why an input is not a graph. Nothing was changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FormatError {
    /// It could not be read.
    #[error("cannot read the input: {0}")]
    Read(#[from] std::io::Error),
    /// It is longer than any graph that a table can hold.
    #[error("the input is longer than {} MiB, more than any table can hold; nothing was imported", INPUT_BYTES_MAX >> 20)]
    InputTooLong,
    /// A line is longer than any node needs.
    #[error(
        "line {line} is longer than {} bytes, more than any node needs; is this JSON Lines, one node a line?",
        jsonl::LINE_BYTES_MAX
    )]
    LineTooLong {
        /// The line.
        line: usize,
    },
    /// More nodes than a table has slots.
    #[error("{at}: this is one node more than the {NODES_MAX} that a table holds; split the graph")]
    TooManyNodes {
        /// The first node too many.
        at: Place,
    },
    /// The bytes are not text.
    #[error("line {line} is not UTF-8 (byte {byte} of the line); save the file as UTF-8")]
    NotUtf8 {
        /// The line.
        line: usize,
        /// The first bad byte, counted from 1.
        byte: usize,
    },
    /// The text is not JSON, or not the JSON that is wanted.
    #[error("line {line}, column {column}: {what}")]
    Json {
        /// The line.
        line: usize,
        /// The column, counted in bytes from 1.
        column: usize,
        /// What is wrong.
        what: String,
    },
    /// A field holds something that it cannot hold.
    #[error("{at}: `{field}` {what}")]
    Field {
        /// Where.
        at: Place,
        /// Which field.
        field: &'static str,
        /// What it must be.
        what: String,
    },
    /// A text that no node can have.
    #[error("{at}: {source}")]
    Name {
        /// Where.
        at: Place,
        /// Which rule is broken.
        source: NameError,
    },
    /// A node without an identity.
    #[error("{at}: a node needs a `name` (or an `id`), or importing twice would make it twice")]
    Nameless {
        /// Where.
        at: Place,
    },
    /// The same node stands twice.
    #[error("{at}: \"{node}\" stands at {first} already; one node is one entry")]
    Duplicate {
        /// The second time.
        at: Place,
        /// The first time.
        first: Place,
        /// The node.
        node: String,
    },
    /// It refers to a node that is nowhere.
    #[error(
        "{at}: `{field}` names \"{node}\", which is neither in this input nor in the table; add it or correct the name"
    )]
    UnknownNode {
        /// Where.
        at: Place,
        /// `needs`, `parent`, `parents` or `children`.
        field: &'static str,
        /// What it names.
        node: String,
    },
    /// It refers to itself.
    #[error("{at}: `{field}` names the node itself; a node cannot wait for or belong under itself")]
    SelfReference {
        /// Where.
        at: Place,
        /// `needs`, `parent`, `parents` or `children`.
        field: &'static str,
    },
    /// A trace of another version of the format.
    #[error("this trace is WfFormat {found}; only 1.5 is read")]
    OtherVersion {
        /// What `schemaVersion` says.
        found: String,
    },
}

impl FormatError {
    /// Stable code, as printed in `{"error": ...}`.
    pub fn code(&self) -> &'static str {
        match self {
            FormatError::Read(_) => "io",
            FormatError::InputTooLong | FormatError::LineTooLong { .. } => "too_long",
            FormatError::TooManyNodes { .. } => "too_many_nodes",
            FormatError::Name { source, .. } => source.code(),
            FormatError::Duplicate { .. } => "duplicate",
            FormatError::UnknownNode { .. } => "no_such_node",
            FormatError::SelfReference { .. } => "self_link",
            FormatError::OtherVersion { .. } => "other_version",
            _ => "bad_input",
        }
    }

    /// The line that it is about, counted from 1, where it is about one.
    pub fn line(&self) -> Option<usize> {
        match self {
            FormatError::LineTooLong { line }
            | FormatError::NotUtf8 { line, .. }
            | FormatError::Json { line, .. }
            | FormatError::TooManyNodes { at: Place::Line(line) }
            | FormatError::Field { at: Place::Line(line), .. }
            | FormatError::Name { at: Place::Line(line), .. }
            | FormatError::Nameless { at: Place::Line(line) }
            | FormatError::Duplicate { at: Place::Line(line), .. }
            | FormatError::UnknownNode { at: Place::Line(line), .. }
            | FormatError::SelfReference { at: Place::Line(line), .. } => Some(*line),
            _ => None,
        }
    }

    /// A JSON error as ours: the parser's own words without its position, which counts from the start of one line.
    pub(super) fn json(error: &serde_json::Error, line_offset: usize, hint: &str) -> FormatError {
        let position = format!(" at line {} column {}", error.line(), error.column());
        let said = error.to_string();
        let what = said.strip_suffix(position.as_str()).unwrap_or(&said);
        FormatError::Json {
            line: error.line().max(1) + line_offset,
            column: error.column(),
            what: format!("{what}{hint}"),
        }
    }
}
