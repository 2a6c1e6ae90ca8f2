//! `run`: loads a graph and works on it with a number of workers.

mod launcher;
mod progress;
mod shift;
pub(super) mod signals;
mod summary;

use std::num::NonZero;

use tenure::run::{self, Interrupt, Report, RunOptions, WORKERS_MAX};

use super::args;
use super::context::Context;
use super::exit::{CliError, Exit};
use super::import::{self, FileArgs};
use super::snapshot;
pub use launcher::launched;
pub use shift::Shift;
use summary::still;

/// Loads a graph and runs the command of each node once everything that it needs is done
///
/// The workers take whatever the table holds, so several `run` processes on one table finish each other's graphs, and a
/// file whose nodes are there already starts nothing twice. A command is run by `/bin/sh -c` in the directory where
/// `tenure run` was started, in a session of its own, with no input; its output goes where that of `tenure run`
/// goes, unchanged. It finds TENURE_NODE, TENURE_GEN, TENURE_HOLDER and TENURE_DIR in its environment. Exit 0 makes the
/// node done, anything else failed. A node without a command is done as soon as it is its turn.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "After a failure nothing new is started and what runs is allowed to end, as with make: the first \
failure often makes the rest pointless, and is then the last thing on the screen. With --keep-going everything that \
does not depend on the failed node is still done, as with make -k.

Ctrl-C takes no new node, passes the signal on to the commands and waits for them; a second one kills them. What is
unfinished is handed back, for this or another process to take.

When `tenure run` itself is killed (SIGKILL), its commands and all that they have started are killed before other
processes can do the nodes again. When it is stopped (SIGSTOP, Ctrl-Z), a command is killed shortly before the lease
runs out: a tenth of the lease, half a second at most. A claim that somebody takes away by force is noticed within a
third of the lease; the command is then sent SIGTERM, and SIGKILL 2 seconds later. What a command leaves running is let
be if it made the node done, and killed otherwise.

Exit codes: 0 only if every node of the table is done (archived ones are not counted), 1 otherwise, 130 after Ctrl-C,
143 after SIGTERM, 129 after SIGHUP.

Examples:
  tenure run build.jsonl -j 4
  tenure run trace.json --format wfformat --replay 0.01 -j 8"
)]
pub struct RunArgs {
    #[command(flatten)]
    file: FileArgs,

    /// Number of workers [default: one for each processor that may be used]
    #[arg(short = 'j', long, value_name = "N", value_parser = workers)]
    jobs: Option<usize>,

    /// Seconds until a claim may be taken away unless it is renewed, which is done every third of that [default: the
    /// table's]
    #[arg(long, value_name = "SECS", value_parser = args::lease_ms, allow_negative_numbers = true)]
    lease: Option<u64>,

    /// After a failure go on with everything that does not depend on it
    #[arg(short = 'k', long)]
    keep_going: bool,

    /// A node without a command sleeps its cost times this, instead of being done at once
    #[arg(long, value_name = "SCALE", value_parser = scale, allow_negative_numbers = true)]
    replay: Option<f64>,

    /// A role that the workers offer; may be given several times
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<String>,

    /// Take a snapshot of the table every so many seconds; one is taken at the end in any case
    #[arg(long, value_name = "SECS", value_parser = snapshot::every_ms, allow_negative_numbers = true)]
    snapshot_every: Option<u64>,
}

/// Runs the verb.
pub fn run(context: &Context, args: RunArgs) -> Result<Exit, CliError> {
    let (table, loaded) = args.file.load(context)?;
    // Not earlier: until something is claimed Ctrl-C may end the program at once, also while it reads a terminal.
    let shift = Shift::begin(&table, args.snapshot_every)?;
    let jobs = args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, NonZero::get));
    let options = RunOptions {
        holders: run::holder_names(jobs.min(WORKERS_MAX)),
        roles: args.roles,
        lease_ms: args.lease,
        keep_going: args.keep_going,
        replay: args.replay,
        ..RunOptions::default()
    };
    if !context.json {
        still(context.out.line(&import::in_words(&loaded)))?;
    }
    let report = shift.work(context, options)?;
    summary::tell(context, Some(loaded), &report)?;
    Ok(exit(&report))
}

/// How a run ends that went like this.
pub fn exit(report: &Report) -> Exit {
    match report.stopped_by {
        Some(Interrupt::Hangup) => Exit::Signal(1),
        Some(Interrupt::Int) => Exit::Signal(2),
        Some(Interrupt::Term) => Exit::Signal(15),
        None if report.all_done() => Exit::Done,
        None => Exit::Refused,
    }
}

/// Prints the summary of work on a table that somebody else fills.
pub fn tell(context: &Context, report: &Report) -> Result<(), CliError> {
    summary::tell(context, None, report)
}

/// Reads a number of workers.
pub fn workers(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if (1..=WORKERS_MAX).contains(&count) => Ok(count),
        _ => Err(format!("give a number of workers from 1 to {WORKERS_MAX}")),
    }
}

fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if scale.is_finite() && scale >= 0.0 => Ok(scale),
        _ => Err("give a number that is not negative, such as 0.01".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert_eq!(workers("1"), Ok(1));
        assert_eq!(workers("1024"), Ok(1024));
        for text in ["", "0", "-1", "1025", "1.5", "many"] {
            assert!(workers(text).is_err(), "{text:?}");
        }
        assert_eq!(scale("0"), Ok(0.0));
        for text in ["", "-0.1", "nan", "inf", "x"] {
            assert!(scale(text).is_err(), "{text:?}");
        }
    }
}
