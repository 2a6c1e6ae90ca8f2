//! `run`: loads a graph and works on it with a number of workers.

mod progress;
pub(super) mod signals;

use std::num::NonZero;

use crossbeam::channel;
use serde::Serialize;
use tenure::formats::Loaded;
use tenure::run::{self, Interrupt, Report, RunError, RunOptions, WORKERS_MAX};

use super::args;
use super::context::Context;
use super::escape;
use super::exit::{CliError, Exit};
use super::import::{self, FileArgs};
use super::out;
use super::snapshot;
use progress::Progress;
use signals::Signals;

/// Loads a graph and runs the command of each node once everything that it needs is done
///
/// The workers take whatever the table holds, so several `run` processes on one table finish each other's graphs, and a
/// file whose nodes are there already starts nothing twice. A command is run by `/bin/sh -c` in the directory where
/// `tenure run` was started, in a process group of its own, with no input; its output goes where that of `tenure run`
/// goes, unchanged. It finds TENURE_NODE, TENURE_GEN, TENURE_HOLDER and TENURE_DIR in its environment. Exit 0 makes the
/// node done, anything else failed. A node without a command is done as soon as it is its turn.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "After a failure nothing new is started and what runs is allowed to end, as with make: the first \
failure often makes the rest pointless, and is then the last thing on the screen. With --keep-going everything that \
does not depend on the failed node is still done, as with make -k.

Ctrl-C takes no new node, passes the signal on to the commands and waits for them; a second one kills them. What is
unfinished is handed back, for this or another process to take.

When `tenure run` itself is killed (SIGKILL), its claims run out and other processes do the nodes again, but a command
that it had started goes on until it ends. Let what a command leaves behind bear TENURE_GEN, so that the later one
counts.

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

/// The summary as JSON: what the file changed, and how the run went.
#[derive(Serialize)]
struct Summary<'a> {
    #[serde(flatten)]
    loaded: Loaded,
    #[serde(flatten)]
    report: &'a Report,
}

/// Runs the verb.
pub fn run(context: &Context, args: RunArgs) -> Result<Exit, CliError> {
    let (table, loaded) = args.file.load(context)?;
    // Not earlier: until something is claimed Ctrl-C may end the program at once, also while it reads a terminal.
    let signals = Signals::install()?;
    let jobs = args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, NonZero::get));
    let options = RunOptions {
        holders: run::holder_names(jobs.min(WORKERS_MAX)),
        roles: args.roles,
        lease_ms: args.lease,
        keep_going: args.keep_going,
        replay: args.replay,
        output_to_stderr: context.json,
    };
    if !context.json {
        still(context.out.line(&import::in_words(&loaded)))?;
    }
    let keeper = snapshot::keeper(&table, args.snapshot_every)?;
    let (events, told) = channel::unbounded();
    let progress = Progress::start(&table, told, context.json)?;
    let ended = run::run(&table, &options, signals.interrupts(), &events);
    drop(events);
    progress.finish();
    context.out.mark_changed();
    drop(keeper);
    let report = ended.map_err(fault)?;
    snapshot::at_the_end(&table);
    still(tell(context, loaded, &report))?;
    Ok(match report.stopped_by {
        Some(Interrupt::Hangup) => Exit::Signal(1),
        Some(Interrupt::Int) => Exit::Signal(2),
        Some(Interrupt::Term) => Exit::Signal(15),
        None if report.all_done() => Exit::Done,
        None => Exit::Refused,
    })
}

/// A reader that has gone ends what is printed, not the run, and does not make it a success.
fn still(printed: Result<(), CliError>) -> Result<(), CliError> {
    match printed {
        Err(CliError::ClosedPipe) => Ok(()),
        other => other,
    }
}

fn fault(error: RunError) -> CliError {
    match error {
        RunError::Refused(refusal) => CliError::Refused(refusal),
        other => CliError::problem(Exit::Refused, "run", other.to_string()),
    }
}

/// Prints the summary.
fn tell(context: &Context, loaded: Loaded, report: &Report) -> Result<(), CliError> {
    if context.json {
        return context.out.json(&Summary { loaded, report });
    }
    context.out.line(&format!(
        "done {}, failed {}, blocked {}, cancelled {}, unfinished {}",
        report.done, report.failed, report.blocked, report.cancelled, report.unfinished
    ))?;
    context.out.line(&format!(
        "wall {:.3}s; no schedule beats {:.3}s (critical path {:.3}s, work {:.3}s over {} workers); workers {}% busy",
        report.wall_ms / 1e3,
        report.lower_bound_ms / 1e3,
        report.critical_path_ms / 1e3,
        report.work_ms / 1e3,
        report.workers,
        report.busy_percent
    ))?;
    if let Some(advice) = advice(report) {
        out::note(&format!("tenure: {}", escape::message(&advice)));
    }
    Ok(())
}

/// What to do next, when not everything is done.
fn advice(report: &Report) -> Option<String> {
    if report.stopped_by.is_some() {
        return Some(format!("stopped; {} nodes are left, and the same command goes on with them", report.unfinished));
    }
    if report.failed > 0 {
        return Some(
            "`tenure list --terminal` shows what failed and why; `tenure reopen NODE` lets it run again".into(),
        );
    }
    if report.unfinished > 0 {
        return Some(format!("{} nodes are left, for workers that offer their roles (--role)", report.unfinished));
    }
    if report.blocked + report.cancelled > 0 {
        return Some("nodes that wait for a cancelled one never start; `reopen` or `unlink` it".into());
    }
    None
}

fn workers(text: &str) -> Result<usize, String> {
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
