//! What is shown while a run is on: a bar on a terminal, else a line at the start and the end of each node.
//!
//! It is drawn by a thread of its own, so a terminal or pipe that does not take the text holds no worker up.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam::channel::{Receiver, RecvTimeoutError};
use indicatif::{ProgressBar, ProgressStyle};
use tenure::Table;
use tenure::run::{Event, Happening};

use crate::cli::escape;
use crate::cli::exit::{CliError, Exit};

/// How often the bar is brought up to date with what other processes do.
const REFRESH: Duration = Duration::from_millis(200);

/// How many of the running nodes the bar names.
const NODES_NAMED: usize = 4;

/// The thread that shows it.
pub(super) struct Progress(JoinHandle<()>);

impl Progress {
    /// Shows the events until their last sender is dropped. Plain lines go to standard output, or with `--json`, which
    /// leaves that to the summary, to standard error.
    pub(super) fn start(table: &Table, events: Receiver<Event>, json: bool) -> Result<Progress, CliError> {
        let table = table.clone();
        let show = move || match (io::stderr().is_terminal(), json) {
            (true, _) => bar(&table, &events),
            (false, true) => lines(&events, &mut io::stderr()),
            (false, false) => lines(&events, &mut io::stdout()),
        };
        let thread = std::thread::Builder::new().spawn(show);
        thread
            .map(Progress)
            .map_err(|error| CliError::problem(Exit::Refused, "run", format!("cannot start a thread: {error}")))
    }

    /// Waits until everything is shown.
    pub(super) fn finish(self) {
        // A fault in what is shown is no fault of the run.
        let _ = self.0.join();
    }
}

/// One line for each event. When nobody reads them any more the run goes on without.
fn lines(events: &Receiver<Event>, out: &mut dyn Write) {
    let mut open = true;
    for event in events {
        if open {
            open = writeln!(out, "{}", line(&event)).and_then(|()| out.flush()).is_ok();
        }
    }
}

/// The event in words.
fn line(event: &Event) -> String {
    let node = escape::cell(&event.node);
    match &event.what {
        Happening::Started => format!("start {node} gen={}", event.generation),
        Happening::Done { took } => format!("done {node} {:.2}s", took.as_secs_f64()),
        Happening::Failed { took, why } => format!("failed {node} {} {:.2}s", escape::message(why), took.as_secs_f64()),
        Happening::Lost { why } => format!("lost {node} gen={}: {}", event.generation, escape::message(why)),
        Happening::ToRetry { took, why, attempts } => {
            let why = escape::message(why);
            format!(
                "retry {node} {why} {:.2}s: attempt {attempts} failed, the node is open for another",
                took.as_secs_f64()
            )
        }
        Happening::Released { why } => format!("released {node} gen={}: {}", event.generation, escape::message(why)),
    }
}

/// A bar over all nodes of the table, with the nodes that run here; what went wrong stays above it.
fn bar(table: &Table, events: &Receiver<Event>) {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} [{bar:30}] {pos}/{len} {wide_msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    let mut running = BTreeSet::new();
    loop {
        let event = match events.recv_timeout(REFRESH) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        // A burst of events is taken in one go; the table is counted once for all of them.
        for event in event.into_iter().chain(events.try_iter()) {
            match event.what {
                Happening::Started => running.insert(event.node),
                Happening::Done { .. } => running.remove(&event.node),
                _ => {
                    bar.println(line(&event));
                    running.remove(&event.node)
                }
            };
        }
        if let Ok(counts) = table.counts() {
            let ended = counts.done + counts.failed + counts.cancelled;
            bar.set_length(u64::from(ended + counts.ready + counts.todo + counts.blocked + counts.claimed));
            bar.set_position(u64::from(ended));
        }
        bar.set_message(named(&running));
    }
    bar.finish_and_clear();
}

fn named(running: &BTreeSet<String>) -> String {
    let mut names: Vec<String> = running.iter().take(NODES_NAMED).map(|node| escape::cell(node)).collect();
    if running.len() > NODES_NAMED {
        names.push(format!("and {} more", running.len() - NODES_NAMED));
    }
    names.join(", ")
}
