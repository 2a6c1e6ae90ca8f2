//! What `run` and `work` do around the work itself: signals, progress, snapshots.

use crossbeam::channel;
use tenure::Table;
use tenure::run::{self, Keeper, Report, RunError, RunOptions};

use super::launcher;
use super::progress::Progress;
use super::signals::Signals;
use crate::cli::context::Context;
use crate::cli::exit::{CliError, Exit};
use crate::cli::{snapshot, surfaces};

/// The time in which a process works on a table.
pub struct Shift {
    table: Table,
    signals: Signals,
    keeper: Option<Keeper>,
}

impl Shift {
    /// Begins it: from here on Ctrl-C and its kin are heard.
    pub fn begin(table: &Table, snapshot_every_ms: Option<u64>) -> Result<Shift, CliError> {
        let signals = Signals::install()?;
        let keeper = snapshot::keeper(table, snapshot_every_ms)?;
        Ok(Shift { table: table.clone(), signals, keeper })
    }

    /// Works to the end, showing what happens, and takes a snapshot then.
    pub fn work(self, context: &Context, options: RunOptions) -> Result<Report, CliError> {
        let options = RunOptions {
            output_to_stderr: context.json,
            launcher: Some(launcher::launcher()),
            gatekeeper: surfaces::gatekeeper(context),
            ..options
        };
        let (events, told) = channel::unbounded();
        let progress = Progress::start(&self.table, told, context.json)?;
        let ended = run::run(&self.table, &options, self.signals.interrupts(), &events);
        drop(events);
        progress.finish();
        context.out.mark_changed();
        drop(self.keeper);
        let report = ended.map_err(fault)?;
        snapshot::at_the_end(&self.table);
        Ok(report)
    }
}

fn fault(error: RunError) -> CliError {
    match error {
        RunError::Refused(refusal) => CliError::Refused(refusal),
        other => CliError::problem(Exit::Refused, "run", other.to_string()),
    }
}
