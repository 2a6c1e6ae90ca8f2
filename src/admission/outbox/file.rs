//! The bytes of one file: a line that says what it is, a line of JSON, and the input as it was given.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::OutboxError;
use crate::admission::facts::{Entrance, Work};
use crate::admission::names::{AdmId, Attempt, Digest, Generation, MachineRef, RequestId, SurfaceKey};
use crate::admission::private;
use crate::admission::record::AttemptKey;

/// Longest input that is kept, in bytes.
pub const INPUT_BYTES_MAX: u64 = 16 << 20;

/// Longest header, in bytes.
pub const HEADER_BYTES_MAX: u64 = 1 << 20;

/// The first line. Another form of what follows would have another number.
const FIRST_LINE: &[u8] = b"tenure outbox 1\n";

/// What is said about an input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The request.
    pub request: RequestId,
    /// Which attempt of it.
    pub attempt: Attempt,
    /// For which surface.
    pub surface: SurfaceKey,
    /// What is asked for, as one number.
    pub digest: Digest,
    /// Which way it goes in.
    pub entrance: Entrance,
    /// For which open admission, when it is more input for one.
    pub admission: Option<AdmId>,
    /// The command.
    pub command: Vec<String>,
    /// The work it belongs to.
    pub work: Option<Work>,
    /// The machine that was pinned.
    pub machine: Option<MachineRef>,
    /// The placement that was looked at.
    pub generation: Option<Generation>,
    /// Whether it may take the place of another one that waits.
    pub replace: bool,
    /// The attempt that it follows.
    pub after: Option<AttemptKey>,
    /// When it was kept, milliseconds since 1970.
    pub created_ms: u64,
    /// How long the input is.
    pub input_bytes: u64,
    /// What was answered last.
    pub last: Option<LastAnswer>,
}

impl Header {
    /// Request and attempt.
    pub fn key(&self) -> AttemptKey {
        AttemptKey { request: self.request.clone(), attempt: self.attempt }
    }
}

/// What the ledger said, as far as anything was heard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastAnswer {
    /// When, milliseconds since 1970.
    pub at_ms: u64,
    /// Its code; `accepted` when it was taken.
    pub code: String,
    /// In words.
    pub message: String,
    /// The admission.
    pub admission: Option<AdmId>,
}

/// The whole file.
pub(super) fn to_bytes(header: &Header, input: &[u8]) -> Result<Vec<u8>, OutboxError> {
    let (bytes, limit) = (input.len() as u64, INPUT_BYTES_MAX);
    if bytes > limit {
        return Err(OutboxError::InputTooLong { bytes, limit });
    }
    // Names and texts only; there is nothing in it that JSON cannot say.
    let line = serde_json::to_vec(header).unwrap_or_default();
    let (bytes, limit) = (line.len() as u64, HEADER_BYTES_MAX);
    if bytes > limit {
        return Err(OutboxError::HeaderTooLong { bytes, limit });
    }
    Ok([FIRST_LINE, &line, b"\n", input].concat())
}

/// Reads a file; `None` when there is none.
pub(super) fn read(path: &Path) -> Result<Option<(Header, Vec<u8>)>, OutboxError> {
    let most = FIRST_LINE.len() as u64 + HEADER_BYTES_MAX + 1 + INPUT_BYTES_MAX;
    let Some(bytes) = private::read(path, most)? else { return Ok(None) };
    let not = |why: String| OutboxError::NotAnEntry { path: path.to_owned(), why };
    let rest = bytes.strip_prefix(FIRST_LINE).ok_or_else(|| not("its first line is another one".to_owned()))?;
    let end = rest.iter().position(|byte| *byte == b'\n').ok_or_else(|| not("it was cut".to_owned()))?;
    let (line, input) = rest.split_at(end);
    let header: Header = serde_json::from_slice(line).map_err(|e| not(e.to_string()))?;
    let input = input.get(1..).unwrap_or_default();
    if input.len() as u64 != header.input_bytes {
        return Err(not(format!("it holds {} bytes of input and should hold {}", input.len(), header.input_bytes)));
    }
    Ok(Some((header, input.to_vec())))
}
