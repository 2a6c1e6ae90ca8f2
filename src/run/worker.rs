//! One worker: the loop from claim to completion.

use std::time::{Duration, Instant};

use crossbeam::channel::{self, Receiver, Sender, select};

use super::command::{Claimed, Running, Watch, failure};
use super::idle::{Bell, Idle};
use super::{Event, Happening, Hub, Order, RunError, RunOptions};
use crate::error::Refusal;
use crate::id::NodeId;
use crate::node::{Ended, NodeView, Outcome};
use crate::verbs::{Claim, Table, Worker};

/// How often a verb that others keep getting in the way of is tried again, one millisecond apart, before it counts
/// as refused. The verb itself has tried many times by then.
const CONTENDED_TRIES: u32 = 100;

/// What a worker has done.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// The nodes that were worked on, and how long.
    pub(super) took: Vec<(NodeId, Duration)>,
    pub(super) failed: usize,
    pub(super) lost: usize,
    pub(super) released: usize,
}

impl Tally {
    pub(super) fn add(&mut self, other: Tally) {
        self.took.extend(other.took);
        self.failed += other.failed;
        self.lost += other.lost;
        self.released += other.released;
    }
}

/// A claim, and what is to be known of its node.
struct Held<'w> {
    claim: Claim<'w>,
    id: NodeId,
    label: String,
}

/// How the work on a node ended.
enum End {
    Done,
    Failed(String),
    /// It was cut short and is to be handed back.
    Unfinished(String),
    /// The claim is gone.
    Lost(String),
}

/// How waiting for the end of the work ended.
enum Waited {
    Over,
    Interrupted,
    Lost(String),
}

/// One worker.
pub(super) struct Hand<'a> {
    table: &'a Table,
    options: &'a RunOptions,
    worker: &'a Worker,
    lease_ms: u64,
    orders: Receiver<Order>,
    hub: &'a Hub,
    bell: &'a Bell,
    events: Sender<Event>,
    /// The strongest order so far; with any order no new node is taken.
    order: Option<Order>,
    tally: Tally,
}

impl<'a> Hand<'a> {
    pub(super) fn new(
        table: &'a Table,
        options: &'a RunOptions,
        worker: &'a Worker,
        orders: Receiver<Order>,
        hub: &'a Hub,
        bell: &'a Bell,
        events: Sender<Event>,
    ) -> Hand<'a> {
        let lease_ms = lease_ms(table, options);
        Hand { table, options, worker, lease_ms, orders, hub, bell, events, order: None, tally: Tally::default() }
    }

    /// Takes nodes until nothing is left for it, or it is told to stop.
    pub(super) fn work(mut self, watch: Watch) -> Result<Tally, RunError> {
        let mut idle = Idle::new();
        loop {
            self.order = self.order.max(self.orders.try_iter().max());
            if self.order.is_some() {
                break;
            }
            match self.worker.claim_next() {
                Ok(claim) => {
                    idle.reset();
                    self.bell.ring();
                    self.carry_out(claim, &watch)?;
                    continue;
                }
                Err(Refusal::NothingReady) if idle.is_look_due() && self.is_over()? => {
                    // It is over for all: they are not to find out one by one at their next look.
                    self.hub.tell_all(Order::Drain);
                    break;
                }
                Err(Refusal::NothingReady | Refusal::Contended { .. }) => {}
                Err(other) => return Err(other.into()),
            }
            self.order = self.order.max(idle.wait(self.bell, &self.orders));
        }
        Ok(self.tally)
    }

    /// Whether nothing can become ready for this worker any more, whatever it waits for.
    fn is_over(&self) -> Result<bool, Refusal> {
        let before = self.table.counts()?;
        if before.claimed > 0 {
            return Ok(false);
        }
        if before.ready == 0 {
            return Ok(before.todo == 0);
        }
        // What is ready wants a role that is not offered here, unless it has only just become ready. If nobody works
        // on anything either, nothing changes by itself.
        let ready = self.table.ready()?;
        if ready.iter().any(|node| self.may_take(node)) {
            return Ok(false);
        }
        Ok(self.table.counts()? == before)
    }

    fn may_take(&self, node: &NodeView) -> bool {
        node.role.as_ref().is_none_or(|role| self.options.roles.contains(role))
    }

    /// Does the work of a claimed node and settles it.
    fn carry_out(&mut self, claim: Claim<'a>, watch: &Watch) -> Result<(), RunError> {
        let task = match claim.task() {
            Ok(task) => task,
            // Taken away before it was begun: nothing is to be told or undone.
            Err(refusal) => return lost(refusal).map(|_| ()),
        };
        let held = Held { id: task.id, label: task.label(), claim };
        self.tell(&held, Happening::Started);
        let began = Instant::now();
        let end = match (task.run.as_deref(), self.options.replay) {
            (Some(command), _) => self.run_command(&held, command, watch),
            (_, Some(scale)) => self.sleep(&held, task.cost, scale),
            (_, None) => End::Done,
        };
        let took = began.elapsed();
        self.tally.took.push((held.id, took));
        self.settle(&held, end, took)
    }

    /// Writes the end of the work to the table and tells of it.
    fn settle(&mut self, held: &Held<'_>, end: End, took: Duration) -> Result<(), RunError> {
        let happening = match end {
            End::Done => match insist(|| held.claim.complete(Outcome::Done)) {
                Ok(_) => Happening::Done { took },
                // Somebody made it wait for one more node while it was worked on. What was done does not count then.
                Err(why @ Refusal::NotReady { .. }) => release(held, why.to_string())?,
                Err(why) => lost(why)?,
            },
            End::Failed(why) => match insist(|| held.claim.complete_with(Outcome::Failed, &why)) {
                Ok(Ended::ToRetry { attempts, .. }) => {
                    Happening::Released { why: format!("{why}; attempt {attempts}, to be tried again") }
                }
                Ok(_) => Happening::Failed { took, why },
                Err(why) => lost(why)?,
            },
            End::Unfinished(why) => release(held, why)?,
            End::Lost(why) => Happening::Lost { why },
        };
        match &happening {
            Happening::Failed { .. } => {
                self.tally.failed += 1;
                if !self.options.keep_going {
                    self.hub.tell_all(Order::Drain);
                }
            }
            Happening::Lost { .. } => self.tally.lost += 1,
            Happening::Released { .. } => self.tally.released += 1,
            Happening::Started | Happening::Done { .. } => {}
        }
        self.tell(held, happening);
        Ok(())
    }

    /// Runs the node's command to its end, whichever that is.
    fn run_command(&mut self, held: &Held<'_>, command: &str, watch: &Watch) -> End {
        let claimed = Claimed {
            node: &held.label,
            generation: held.claim.generation(),
            holder: self.worker.holder(),
            dir: self.table.dir(),
        };
        let running = match Running::start(command, &claimed, self.options.output_to_stderr, watch) {
            Ok(running) => running,
            Err(error) => return End::Failed(format!("cannot start /bin/sh: {error}")),
        };
        let waited = self.hold(held, running.ended(), Some(&running));
        if let Waited::Lost(why) = waited {
            running.terminate();
            return End::Lost(why);
        }
        let status = match running.reap() {
            Ok(status) => status,
            Err(error) => return End::Failed(format!("cannot learn how it ended: {error}")),
        };
        match failure(&status) {
            None => End::Done,
            // Told to stop: that it did not finish is not its fault.
            Some(why) if self.order > Some(Order::Drain) => End::Unfinished(why),
            Some(why) => End::Failed(why),
        }
    }

    /// Takes the time that the node's cost stands for.
    fn sleep(&mut self, held: &Held<'_>, cost: u32, scale: f64) -> End {
        let time = Duration::try_from_secs_f64(f64::from(cost) / 1_000.0 * scale).unwrap_or(Duration::MAX);
        match self.hold(held, &channel::after(time), None) {
            Waited::Over => End::Done,
            Waited::Interrupted => End::Unfinished("interrupted".to_owned()),
            Waited::Lost(why) => End::Lost(why),
        }
    }

    /// Keeps the lease alive until the work is over, and obeys orders meanwhile.
    fn hold<T>(&mut self, held: &Held<'_>, over: &Receiver<T>, running: Option<&Running<'_>>) -> Waited {
        let interval = Duration::from_millis(self.lease_ms / 3).max(Duration::from_millis(1));
        let mut renew_at = Instant::now() + interval;
        let orders = self.orders.clone();
        loop {
            select! {
                recv(over) -> _ => return Waited::Over,
                recv(orders) -> order => {
                    self.order = self.order.max(order.ok());
                    match (order, running) {
                        (Ok(Order::Stop(interrupt)), Some(running)) => running.interrupt(interrupt),
                        (Ok(Order::Kill), Some(running)) => running.kill(),
                        (Ok(Order::Stop(_) | Order::Kill), None) => return Waited::Interrupted,
                        (Ok(Order::Drain) | Err(_), _) => {}
                    }
                }
                default(renew_at.saturating_duration_since(Instant::now())) => {
                    match held.claim.renew() {
                        Ok(_) => renew_at = Instant::now() + interval,
                        // Others are busy with the same words; the lease has two thirds left to try again.
                        Err(Refusal::Contended { .. }) => renew_at = Instant::now() + Duration::from_millis(1),
                        Err(why) => return Waited::Lost(why.to_string()),
                    }
                }
            }
        }
    }

    fn tell(&self, held: &Held<'_>, what: Happening) {
        let at = Instant::now();
        // Nobody listening is no reason to stop working.
        let _ = self.events.send(Event { node: held.label.clone(), generation: held.claim.generation(), what, at });
    }
}

/// The lease of this run's claims.
pub(super) fn lease_ms(table: &Table, options: &RunOptions) -> u64 {
    options.lease_ms.unwrap_or_else(|| table.default_lease_ms())
}

fn release(held: &Held<'_>, why: String) -> Result<Happening, RunError> {
    match insist(|| held.claim.release()) {
        Ok(_) => Ok(Happening::Released { why }),
        Err(refusal) => lost(refusal),
    }
}

/// What it means that the table refuses the end of a claim: mostly that the claim is somebody else's by now.
fn lost(refusal: Refusal) -> Result<Happening, RunError> {
    match refusal {
        Refusal::GenerationMismatch { .. }
        | Refusal::NotHolder { .. }
        | Refusal::NotHeld { .. }
        | Refusal::Held { .. }
        | Refusal::Ended { .. }
        | Refusal::NoSuchNode { .. } => Ok(Happening::Lost { why: refusal.to_string() }),
        other => Err(other.into()),
    }
}

/// Tries again while others are in the way.
fn insist<T>(mut verb: impl FnMut() -> Result<T, Refusal>) -> Result<T, Refusal> {
    let mut tries = 0;
    loop {
        match verb() {
            Err(Refusal::Contended { .. }) if tries < CONTENDED_TRIES => {
                tries += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
            other => return other,
        }
    }
}
