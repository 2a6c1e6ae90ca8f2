//! What the standard library's runtime does before `main` and the program still needs, since on a GNU system the C library
//! enters it directly: reading the process's own memory map to guard against a stack overflow costs a tenth of a verb.
//!
//! Not done: the message at a stack overflow, which ends the program by its signal alone.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, fcntl_getfd};
use rustix::stdio;
use signal_hook::consts::SIGPIPE;
use signal_hook::low_level;

/// Whether the program was started without a standard output.
static NO_OUTPUT: AtomicBool = AtomicBool::new(false);

/// Makes standard input, output and error safe to use. Called once, before any file is opened.
pub fn prepare() {
    // In ascending order: what is opened takes the lowest number that is free, which is the closed one. A table that were
    // opened under the number of standard output would be overwritten with the answer.
    for (number, standard) in [stdio::stdin(), stdio::stdout(), stdio::stderr()].into_iter().enumerate() {
        if fcntl_getfd(standard) == Err(Errno::BADF) {
            NO_OUTPUT.fetch_or(number == 1, Ordering::Relaxed);
            let stands_in = rustix::fs::open(c"/dev/null", OFlags::RDWR, Mode::empty());
            // It stays open for as long as the program runs.
            stands_in.map_or_else(|_| low_level::abort(), std::mem::forget);
        }
    }
    // SAFETY: the action runs inside a signal handler and does nothing. With it a write to a reader that has gone fails
    // instead of ending the program, and what the program starts gets the default effect back.
    let ignored = unsafe { low_level::register(SIGPIPE, || {}) };
    // Not worth stopping for: without it the program ends without a word where it would have ended quietly.
    drop(ignored);
}

/// Whether there is nobody whom an answer could reach: standard output was closed when the program began.
pub fn has_no_output() -> bool {
    NO_OUTPUT.load(Ordering::Relaxed)
}
