//! Standard output, written so that nothing panics: a reader that has gone is a quiet end, anything else an error
//! that says whether the table was changed before.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use super::exit::CliError;

/// The program's answer to its caller.
#[derive(Debug, Default)]
pub struct Out {
    changed: AtomicBool,
}

impl Out {
    /// From here on a failed write must say that the table was changed.
    pub fn mark_changed(&self) {
        self.changed.store(true, Ordering::Relaxed);
    }

    /// Writes one line and flushes it. The text must be free of control characters (see `escape`).
    pub fn line(&self, text: &str) -> Result<(), CliError> {
        self.block(&format!("{text}\n"))
    }

    /// Writes the text as it is, in as few writes as the system allows, and flushes it.
    pub fn block(&self, text: &str) -> Result<(), CliError> {
        // The standard library takes a closed standard output for one that swallows all.
        if super::entry::has_no_output() {
            return Err(self.lost(rustix::io::Errno::BADF.into()));
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|source| self.lost(source))
    }

    /// Writes one JSON object on a line of its own.
    pub fn json<T: Serialize>(&self, value: &T) -> Result<(), CliError> {
        self.json_lines(std::slice::from_ref(value))
    }

    /// Writes one JSON object a line.
    pub fn json_lines<T: Serialize>(&self, values: &[T]) -> Result<(), CliError> {
        let mut text = String::new();
        for value in values {
            // JSON escapes U+0000 to U+001F itself; the rest of what a terminal might obey is left to us.
            let line = serde_json::to_string(value).map_err(|error| self.lost(error.into()))?;
            text.push_str(&super::escape::json(&line));
            text.push('\n');
        }
        self.block(&text)
    }

    fn lost(&self, source: io::Error) -> CliError {
        if source.kind() == io::ErrorKind::BrokenPipe {
            return CliError::ClosedPipe;
        }
        CliError::Output { source, changed: self.changed.load(Ordering::Relaxed) }
    }
}

/// Writes one line to standard error. A failure there is not reported: there is nowhere left to report it.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
