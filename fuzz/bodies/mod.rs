//! What each fuzz target does with its bytes: an ordinary function that panics when something is wrong.
//!
//! The targets of cargo-fuzz call them (`fuzz_targets/`), and so do the tests of the repository (`tests/corpus.rs`), with the
//! files of `corpus/` and with mutations of them. `arguments` is for the tests alone: it needs the program's `src/cli` as `crate::cli`,
//! and with that every dependency of the program.

pub mod graphs;
pub mod snapshot;
pub mod table;
mod verbs;

use std::time::{Duration, Instant};

/// No verb may take longer, whatever the bytes; on a machine that does other things as well.
const TAKES_MAX: Duration = Duration::from_secs(20);

/// What a target does with some bytes.
pub type Body = fn(&[u8]);

/// The targets by name, but for `arguments`.
pub const TARGETS: [(&str, Body); 4] =
    [("table", table::run), ("snapshot", snapshot::run), ("jsonl", graphs::jsonl), ("wfformat", graphs::wfformat)];

/// Does something that must come to an end.
fn within<T>(what: &str, act: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = act();
    assert!(began.elapsed() < TAKES_MAX, "{what} took {:?}", began.elapsed());
    result
}

/// A directory in memory where there is one.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory")
}
