//! What can go wrong with the outbox. Whatever it is, no input is lost by it.

use std::path::PathBuf;

use thiserror::Error;

use crate::admission::names::RequestId;
use crate::admission::private::PrivateError;

/// Why something could not be done in the outbox.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OutboxError {
    /// A file or a directory.
    #[error(transparent)]
    File(#[from] PrivateError),
    /// The input is too long.
    #[error("the input is {bytes} bytes long; the limit is {limit}, and nothing is cut")]
    InputTooLong {
        /// Its length.
        bytes: u64,
        /// The longest that is kept.
        limit: u64,
    },
    /// What is said about the input is too long.
    #[error("surface, command and the rest come to {bytes} bytes; the limit is {limit}")]
    HeaderTooLong {
        /// Their length.
        bytes: u64,
        /// The longest that is kept.
        limit: u64,
    },
    /// It is no file of the outbox, or one that was cut.
    #[error("{path} is no file of the outbox: {why}; it is left as it is")]
    NotAnEntry {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Its name is not the one that its header gives it.
    #[error("{path} should be called {expected}; it is left as it is")]
    Misnamed {
        /// The file.
        path: PathBuf,
        /// The name by its header.
        expected: String,
    },
    /// It has gone meanwhile.
    #[error("{path} has gone; somebody else has sent or dropped it")]
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// Another content is another request.
    #[error("another content is another request: give it an id other than {request}")]
    SameRequest {
        /// The id.
        request: RequestId,
    },
}

impl OutboxError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            OutboxError::File(file) => file.code(),
            OutboxError::InputTooLong { .. } | OutboxError::HeaderTooLong { .. } => "too_long",
            OutboxError::NotAnEntry { .. } | OutboxError::Misnamed { .. } => "not_an_entry",
            OutboxError::Gone { .. } => "gone",
            OutboxError::SameRequest { .. } => "same_request",
        }
    }
}
