//! Snapshots beside a run: one at every interval, for the day the machine goes down.

use std::io;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam::channel::{self, RecvTimeoutError, Sender};

use crate::verbs::{SNAPSHOT_PATIENCE, Table};
use crate::{SnapshotError, Snapshotted};

/// Takes a snapshot at every interval, until it is dropped.
#[derive(Debug)]
pub struct Keeper {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Begins; the first snapshot is taken when `every` has passed. `tell` hears how each one went. The run goes on
    /// whatever becomes of them.
    ///
    /// # Errors
    /// When the system has no thread for it.
    pub fn start(
        table: &Table,
        every: Duration,
        tell: impl Fn(Result<Snapshotted, SnapshotError>) + Send + 'static,
    ) -> io::Result<Keeper> {
        let table = table.clone();
        let (stop, stopped) = channel::bounded(0);
        let thread = thread::Builder::new().name("snapshots".into()).spawn(move || {
            // Whoever replaces the snapshot takes milliseconds: one that takes longer may be stopped, and the next
            // interval comes anyway.
            let patience = SNAPSHOT_PATIENCE.min(every);
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                tell(table.snapshot(patience, || ()));
            }
        })?;
        Ok(Keeper { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It does not panic; if it did, the run would be none the worse for it.
            let _ = thread.join();
        }
    }
}
