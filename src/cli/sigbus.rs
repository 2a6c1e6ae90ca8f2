//! The one signal that a mapped file can send: SIGBUS, when somebody truncates the file under the map.
//!
//! Blocks are reserved when a table is made, so a full file system never causes it. What is left is a table file cut
//! short from outside. There is nothing to return to then; the program says so in one line and ends.

use rustix::stdio;
use signal_hook::consts::SIGBUS;
use signal_hook::low_level;

use super::exit::Exit;

const MESSAGE: &[u8] = b"tenure: the table file was truncated while it was mapped, and cannot be read any more; \
whether the last change was made is not known\n\
hint: remove the file, or name another directory with --dir, and start again with `tenure init`\n";

/// Installs the handler. When that fails the signal keeps its default effect, which also ends the program.
pub fn install() {
    // SAFETY: the action runs inside a signal handler, so it may only do what is async-signal-safe. It makes two system
    // calls, write(2) to the standing descriptor 2 and _exit(2), and reads two constants. It takes no lock, allocates
    // nothing, cannot panic, and does not return, so the faulting instruction is not run again.
    let installed = unsafe { low_level::register(SIGBUS, end) };
    // Not worth stopping for: without the handler the program works as before.
    drop(installed);
}

fn end() {
    let _ = rustix::io::write(stdio::stderr(), MESSAGE);
    low_level::exit(i32::from(Exit::TableUnusable.code()));
}
