//! The worker loop: claim the next node, do its work, complete it, until nothing is left that could be done.
//!
//! `run` works on whatever the table holds, wherever it came from: the commands are stored in the table, and several
//! processes that share one finish each other's graphs. A process that dies loses nothing, because its claims are
//! leases; the others find them run out when they look for work. With a [`Launcher`] its commands die with it, before
//! anybody can take the node, see [`RunOptions::launcher`].
//!
//! Nothing here prints. What happens is told as [`Event`]s through a channel that never holds a worker up.

mod command;
mod gate;
mod idle;
mod keep;
mod launch;
mod report;
mod worker;

use std::ffi::OsString;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam::channel::{self, Receiver, Sender, select};
use rustix::process::Signal;
use thiserror::Error;

pub use gate::{GateAnswer, Gatekeeper, Start};
pub use keep::Keeper;
pub use launch::{Launcher, launch};
pub use report::Report;

use crate::error::Refusal;
use crate::id::NodeId;
use crate::verbs::Table;
use worker::{Hand, Tally};

/// The most workers of one process: each takes two threads and one holder name of the table.
pub const WORKERS_MAX: usize = 1_024;

/// What a process group that is to be ended gets between SIGTERM and SIGKILL.
pub const GRACE: Duration = Duration::from_secs(2);

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// One worker for each of these holder names, see [`holder_names`].
    pub holders: Vec<String>,
    /// Roles that the workers offer.
    pub roles: Vec<String>,
    /// Lease of their claims in milliseconds; `None` is the table's. It is renewed every third of it.
    pub lease_ms: Option<u64>,
    /// Go on with what does not depend on a failed node; otherwise nothing new is started after a failure.
    pub keep_going: bool,
    /// A node without a command takes its cost times this, asleep; `None` completes it at once.
    pub replay: Option<f64>,
    /// What commands write to standard output goes to standard error.
    pub output_to_stderr: bool,
    /// What is run for every node, a program with its arguments; `None` runs the node's own command.
    pub command: Option<Vec<OsString>>,
    /// Wait for more work when nothing is left to do, until an interrupt.
    pub stay: bool,
    /// End when so many nodes were taken.
    pub max_nodes: Option<u64>,
    /// What starts the commands. With one, claims stand and fall with the launcher's process, and a command and all that
    /// it has started is dead before its node can be taken by anybody else, also when this process is killed or stopped.
    ///
    /// Without one a command is a child of this process in a process group of its own, claims are leases and nothing
    /// else, and a command goes on when this process is killed.
    pub launcher: Option<Launcher>,
    /// Whom to ask about nodes that name a workspace surface; without one such nodes are left to others.
    pub gatekeeper: Option<Arc<dyn Gatekeeper>>,
}

/// `workers` holder names that no other process has, nor this one when it is started again under the same pid.
pub fn holder_names(workers: usize) -> Vec<String> {
    // The low bits of a version 7 UUID are random.
    let random = NodeId::fresh().0 as u32;
    let pid = std::process::id();
    (1..=workers).map(|worker| format!("run-{pid}-{random:08x}-{worker}")).collect()
}

/// A request from outside to stop. The first one is passed on to the commands, a second one kills them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interrupt {
    /// The terminal went away.
    Hangup,
    /// Ctrl-C.
    Int,
    /// Asked to end.
    Term,
}

impl Interrupt {
    fn signal(self) -> Signal {
        match self {
            Interrupt::Hangup => Signal::HUP,
            Interrupt::Int => Signal::INT,
            Interrupt::Term => Signal::TERM,
        }
    }
}

/// What happened to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its name, or its id when it has none.
    pub node: String,
    /// The generation of the claim.
    pub generation: u64,
    /// When it happened. Events of different workers can arrive in another order.
    pub at: Instant,
    /// What it was.
    pub what: Happening,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A worker of this process has claimed it and begins.
    Started,
    /// It is done.
    Done {
        /// How long it took.
        took: Duration,
    },
    /// It failed.
    Failed {
        /// How long it took.
        took: Duration,
        /// The exit code or signal.
        why: String,
    },
    /// The claim was lost while it was worked on; a command was killed. The node is somebody else's matter now.
    Lost {
        /// What the table said.
        why: String,
    },
    /// This attempt at it failed, and it is open for another.
    ToRetry {
        /// How long it took.
        took: Duration,
        /// The exit code or signal.
        why: String,
        /// How many attempts there were, this one included.
        attempts: u64,
    },
    /// It was handed back unfinished.
    Released {
        /// Why.
        why: String,
    },
}

/// Why a run could not go on. What it held is released, or runs out by itself.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The table refused what no other process can have caused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The system has no thread for a worker.
    #[error("cannot start a thread for a worker: {0}; ask for fewer workers")]
    Thread(io::Error),
    /// The launcher does not start.
    #[error("cannot start {program} as the launcher of commands: {why}; ask for fewer workers")]
    Launcher {
        /// The program.
        program: String,
        /// What the system said.
        why: io::Error,
    },
    /// A worker ended by a fault of this program.
    #[error("a worker ended unexpectedly; its claim runs out by itself")]
    Panicked,
}

/// What workers are told while they work. Each order includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    /// Take no new node.
    Drain,
    /// Take no new node, and pass the signal on to the command.
    Stop(Interrupt),
    /// Take no new node, and kill the command.
    Kill,
}

/// What the workers of a run share.
struct Hub {
    table: Table,
    workers: Vec<Sender<Order>>,
    /// How many nodes may still be taken.
    left: Mutex<u64>,
}

impl Hub {
    /// Leave to take one node.
    fn leave_to_take(&self) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let may = *left > 0;
        *left = left.saturating_sub(1);
        may
    }

    fn tell_all(&self, order: Order) {
        for worker in &self.workers {
            // A worker that has ended needs no order.
            let _ = worker.send(order);
        }
        // One of them may sleep in the kernel.
        self.table.wake_all();
    }
}

/// Works until every node has ended or is blocked, or cannot be done with these roles; then says how it went.
///
/// While other processes hold nodes it waits for them, since these nodes come back when their leases run out. With
/// [`RunOptions::stay`] it goes on waiting when all is over, for whoever adds more.
///
/// # Errors
/// [`RunError`]; nodes that failed are no error but in the report.
pub fn run(
    table: &Table,
    options: &RunOptions,
    interrupts: &Receiver<Interrupt>,
    events: &Sender<Event>,
) -> Result<Report, RunError> {
    let began = Instant::now();
    let (senders, orders): (Vec<_>, Vec<_>) = options.holders.iter().map(|_| channel::unbounded()).unzip();
    let hub = Hub { table: table.clone(), workers: senders, left: Mutex::new(options.max_nodes.unwrap_or(u64::MAX)) };
    let bell = idle::Bell::new();
    let mut workers = Vec::new();
    for holder in &options.holders {
        let worker = table.worker(holder)?.with_roles(&options.roles)?;
        let worker = worker.with_lease_ms(worker::lease_ms(table, options))?;
        workers.push(match options.gatekeeper.clone() {
            Some(gatekeeper) => worker.with_gate(Arc::new(move |surface: &str| gatekeeper.is_startable(surface))),
            None => worker,
        });
    }
    let ended = crossbeam::thread::scope(|scope| {
        let (tell_end, ends) = channel::unbounded();
        for (worker, orders) in workers.iter().zip(orders) {
            let hand = Hand::new(table, options, worker, orders, &hub, &bell, events.clone());
            let tell_end = tell_end.clone();
            let (watch, watched) = command::watcher();
            let started = scope.builder().spawn(move |_| watched.run()).and_then(|_| {
                scope.builder().spawn(move |_| {
                    // The coordinator listens until every worker has ended.
                    let _ = tell_end.send(hand.work(watch));
                })
            });
            if let Err(error) = started {
                hub.tell_all(Order::Drain);
                return Err(RunError::Thread(error));
            }
        }
        drop(tell_end);
        coordinate(&hub, &ends, interrupts)
    });
    let (tally, stopped_by) = ended.map_err(|_| RunError::Panicked)??;
    Ok(Report::of(table, tally, stopped_by, options.holders.len(), began.elapsed())?)
}

/// Passes on interrupts and gathers what the workers did, until the last one has ended.
fn coordinate(
    hub: &Hub,
    ends: &Receiver<Result<Tally, RunError>>,
    interrupts: &Receiver<Interrupt>,
) -> Result<(Tally, Option<Interrupt>), RunError> {
    let mut interrupts = interrupts.clone();
    let mut tally = Tally::default();
    let mut stopped_by = None;
    let mut fault = None;
    loop {
        select! {
            recv(ends) -> end => match end {
                Ok(Ok(one)) => tally.add(one),
                Ok(Err(error)) => {
                    hub.tell_all(Order::Drain);
                    fault.get_or_insert(error);
                }
                Err(_) => break,
            },
            recv(interrupts) -> interrupt => match interrupt {
                Ok(interrupt) => {
                    hub.tell_all(if stopped_by.is_none() { Order::Stop(interrupt) } else { Order::Kill });
                    stopped_by.get_or_insert(interrupt);
                }
                Err(_) => interrupts = channel::never(),
            },
        }
    }
    match fault {
        Some(error) => Err(error),
        None => Ok((tally, stopped_by)),
    }
}
