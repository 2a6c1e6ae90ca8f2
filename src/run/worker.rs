//! One worker: the loop from claim to completion.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use crossbeam::channel::{self, Receiver, Sender, select};

use super::command::{Claimed, Running, Told, Watch, failure, shell};
use super::gate::{GateAnswer, Start, fresh_request};
use super::idle::{Bell, Idle, Woken};
use super::launch::Launched;
use super::{Event, GRACE, Happening, Hub, Order, RunError, RunOptions};
use crate::clock;
use crate::error::Refusal;
use crate::id::NodeId;
use crate::node::{ClaimOptions, Ended, NodeView, Outcome, Task};
use crate::verbs::{Claim, Table, Worker};

/// How often a verb that others keep getting in the way of is tried again, one millisecond apart, before it counts
/// as refused. The verb itself has tried many times by then.
const CONTENDED_TRIES: u32 = 100;

/// The longest time, in milliseconds, between the end of a command whose lease was not renewed and the end of that lease:
/// a tenth of the lease if that is less. By then everything that it has started is gone.
const AHEAD_MS_MAX: u64 = 500;

/// How long a worker whose name holds a claim waits until it asks again.
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// How long a worker whose start was refused keeps the node: others that see its surface free would be refused as well.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// What a worker has done.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// The nodes that were worked on, and how long.
    pub(super) took: Vec<(NodeId, Duration)>,
    pub(super) failed: usize,
    pub(super) lost: usize,
    pub(super) to_retry: usize,
    pub(super) released: usize,
}

impl Tally {
    pub(super) fn add(&mut self, other: Tally) {
        self.took.extend(other.took);
        self.failed += other.failed;
        self.lost += other.lost;
        self.to_retry += other.to_retry;
        self.released += other.released;
    }
}

/// A claim, and what is to be known of its node.
struct Held<'w> {
    claim: Claim<'w>,
    id: NodeId,
    label: String,
    /// The surface that it names, and the request under which to start there.
    surface: Option<(String, String)>,
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
enum Waited<T> {
    Over(Option<T>),
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
    /// The process for the next command; the next claim names it.
    launched: Option<Launched>,
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
        let (order, launched, tally) = (None, None, Tally::default());
        Hand { table, options, worker, lease_ms, orders, hub, bell, events, order, launched, tally }
    }

    /// Takes nodes until nothing is left for it, or it is told to stop.
    pub(super) fn work(mut self, watch: Watch) -> Result<Tally, RunError> {
        while self.order.is_none() && self.hub.leave_to_take() {
            let Some(claim) = self.next()? else { break };
            self.bell.ring();
            self.carry_out(claim, &watch)?;
            self.listen();
        }
        Ok(self.tally)
    }

    fn listen(&mut self) {
        self.order = self.order.max(self.orders.try_iter().max());
    }

    /// The next node; `None` when there is nothing left for it, or it was told to stop.
    fn next(&mut self) -> Result<Option<Claim<'a>>, RunError> {
        let mut idle = Idle::new();
        let worker = self.worker;
        let began = Instant::now();
        loop {
            self.listen();
            if self.order.is_some() {
                return Ok(None);
            }
            let options = self.claim_options()?;
            let mut claim = worker.claim_next_with(&options);
            if matches!(claim, Err(Refusal::NothingReady | Refusal::Contended { .. })) {
                if matches!(claim, Err(Refusal::NothingReady)) && idle.is_look_due() && self.is_over()? {
                    // It is over for all: they are not to find out one by one at their next look.
                    self.hub.tell_all(Order::Drain);
                    return Ok(None);
                }
                let orders = self.orders.clone();
                let sleep = |longest: Duration| {
                    let longest_ms = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX);
                    worker.wait_claim_next_unless(&options, Some(longest_ms), || !orders.is_empty())
                };
                claim = match idle.wait(self.bell, &self.orders, sleep) {
                    Woken::Slept(claim) => claim,
                    Woken::Told(order) => {
                        self.order = self.order.max(Some(order));
                        continue;
                    }
                    Woken::Look => continue,
                };
            }
            match claim {
                Ok(claim) => return self.unless_ordered(claim),
                Err(Refusal::NothingReady | Refusal::Contended { .. }) => {}
                // Started again after it was killed: its launcher is about to end what it had begun then.
                Err(Refusal::Busy { .. }) if began.elapsed() < GRACE => std::thread::sleep(BUSY_PAUSE),
                Err(other) => return Err(other.into()),
            }
        }
    }

    /// The claim, unless an order came while it slept for it: then it goes back before anything was begun.
    fn unless_ordered(&mut self, claim: Claim<'a>) -> Result<Option<Claim<'a>>, RunError> {
        self.listen();
        if self.order.is_none() {
            return Ok(Some(claim));
        }
        match insist(|| claim.release()) {
            Ok(_) => Ok(None),
            Err(refusal) => lost(refusal).map(|_| None),
        }
    }

    /// How to claim: in the name of the launcher that would start the command. One that has been killed is replaced.
    fn claim_options(&mut self) -> Result<ClaimOptions, RunError> {
        let Some(launcher) = &self.options.launcher else { return Ok(ClaimOptions::default()) };
        if let Some(launched) = &mut self.launched
            && launched.is_alive()
        {
            return Ok(ClaimOptions { pid: Some(launched.pid()), ..ClaimOptions::default() });
        }
        let program = launcher.program.display().to_string();
        let launched = Launched::start(launcher, self.options.output_to_stderr)
            .map_err(|why| RunError::Launcher { program, why })?;
        let pid = launched.pid();
        self.launched = Some(launched);
        Ok(ClaimOptions { pid: Some(pid), ..ClaimOptions::default() })
    }

    /// Whether nothing can become ready for this worker any more, whatever it waits for.
    fn is_over(&self) -> Result<bool, Refusal> {
        if self.options.stay {
            return Ok(false);
        }
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
        let fits = node.role.as_ref().is_none_or(|role| self.options.roles.contains(role));
        let gatekeeper = self.options.gatekeeper.as_ref();
        fits && node.surface.as_ref().is_none_or(|surface| gatekeeper.is_some_and(|gate| gate.is_startable(surface)))
    }

    /// Does the work of a claimed node and settles it.
    fn carry_out(&mut self, claim: Claim<'a>, watch: &Watch) -> Result<(), RunError> {
        let task = match claim.task() {
            Ok(task) => task,
            // Taken away before it was begun: nothing is to be told or undone.
            Err(refusal) => return lost(refusal).map(|_| ()),
        };
        let surface = task.surface.clone().map(|surface| (surface, fresh_request(task.id, claim.generation())));
        let held = Held { id: task.id, label: task.label(), surface, claim };
        self.tell(&held, Happening::Started);
        let began = Instant::now();
        let (end, running) = match (self.command_of(&task), self.options.replay) {
            (Some(command), _) => self.run_command(&held, command, watch),
            (_, Some(scale)) => (self.sleep(&held, task.cost, scale), None),
            (_, None) => (End::Done, None),
        };
        let took = began.elapsed();
        self.tally.took.push((held.id, took));
        self.settle(&held, end, running, took)
    }

    /// What is to be run for a node.
    fn command_of(&self, task: &Task) -> Option<Vec<OsString>> {
        self.options.command.clone().or_else(|| task.run.as_deref().map(shell))
    }

    /// Writes the end of the work to the table and tells of it. What a command has left running stays only when its node
    /// is done: otherwise it is gone before anybody can begin anew.
    fn settle(
        &mut self,
        held: &Held<'_>,
        end: End,
        mut running: Option<Running<'_>>,
        took: Duration,
    ) -> Result<(), RunError> {
        let mut end_all = || running.as_mut().map(Running::end_all);
        let happening = match end {
            End::Done => match insist(|| held.claim.complete(Outcome::Done)) {
                Ok(_) => {
                    if let Some(running) = running.take() {
                        running.leave();
                    }
                    Happening::Done { took }
                }
                // Somebody made it wait for one more node while it was worked on. What was done does not count then.
                Err(why @ Refusal::NotReady { .. }) => {
                    end_all();
                    release(held, why.to_string())?
                }
                Err(why) => lost(why)?,
            },
            End::Failed(why) => {
                end_all();
                match insist(|| held.claim.complete_with(Outcome::Failed, &why)) {
                    Ok(Ended::ToRetry { attempts, .. }) => Happening::ToRetry { took, why, attempts },
                    Ok(_) => Happening::Failed { took, why },
                    Err(why) => lost(why)?,
                }
            }
            End::Unfinished(why) => {
                end_all();
                release(held, why)?
            }
            End::Lost(why) => Happening::Lost { why },
        };
        // What is left of a lost one.
        running.as_mut().map(Running::end_all);
        match &happening {
            Happening::Failed { .. } => {
                self.tally.failed += 1;
                if !self.options.keep_going {
                    self.hub.tell_all(Order::Drain);
                }
            }
            Happening::Lost { .. } => self.tally.lost += 1,
            Happening::ToRetry { .. } => self.tally.to_retry += 1,
            Happening::Released { .. } => self.tally.released += 1,
            Happening::Started | Happening::Done { .. } => {}
        }
        self.tell(held, happening);
        Ok(())
    }

    /// Runs the node's command to its end, whichever that is.
    fn run_command<'w>(
        &mut self,
        held: &Held<'_>,
        command: Vec<OsString>,
        watch: &'w Watch,
    ) -> (End, Option<Running<'w>>) {
        let start = start_of(held);
        let command = match (&start, &self.options.gatekeeper) {
            (None, _) => command,
            (Some(start), Some(gatekeeper)) => gatekeeper.under_admission(start, command),
            // It named none when it was chosen.
            (Some(_), None) => return (End::Unfinished("it names a surface, and nobody here can ask".into()), None),
        };
        let claimed = Claimed {
            node: &held.label,
            generation: held.claim.generation(),
            holder: self.worker.holder(),
            dir: self.table.dir(),
        };
        let program = command.first().cloned().unwrap_or_default();
        let launched = self.launched.take();
        let is_launched = launched.is_some();
        // How much of the lease is left is known only of one that begins now.
        let until_ms = match insist(|| self.renewed(held)) {
            Ok(until_ms) => until_ms,
            Err(why) => return (End::Lost(why.to_string()), None),
        };
        let to_stderr = self.options.output_to_stderr;
        let running = match Running::start(command, &claimed, launched, until_ms, to_stderr, watch) {
            Ok(running) => running,
            Err(error) if is_launched => {
                return (End::Unfinished(format!("its launcher does not hear: {error}")), None);
            }
            Err(error) => return (End::Failed(format!("cannot start {}: {error}", program.display())), None),
        };
        let end = match self.hold(held, running.told(), Some(&running)) {
            Waited::Lost(why) => {
                running.terminate();
                End::Lost(why)
            }
            Waited::Interrupted => End::Unfinished("interrupted".to_owned()),
            Waited::Over(told) => self.if_admitted(start, self.end_of(told.unwrap_or(Told::Gone))),
        };
        (end, Some(running))
    }

    /// A command that failed before it was admitted did not fail: it was never there.
    fn if_admitted(&self, start: Option<Start<'_>>, end: End) -> End {
        let (Some(start), Some(gatekeeper), End::Failed(_)) = (start, &self.options.gatekeeper, &end) else {
            return end;
        };
        match gatekeeper.answer(&start) {
            GateAnswer::Admitted => end,
            GateAnswer::NotNow { why } => {
                std::thread::sleep(REFUSED_PAUSE);
                End::Unfinished(format!("not admitted: {why}"))
            }
            GateAnswer::Refused { why } => End::Failed(format!("not admitted: {why}")),
        }
    }

    /// What the end of a command means for its node.
    fn end_of(&self, told: Told) -> End {
        match told {
            Told::Exited { code, signal } => match failure(code, signal) {
                None => End::Done,
                // Told to stop: that it did not finish is not its fault.
                Some(why) if self.order > Some(Order::Drain) => End::Unfinished(why),
                Some(why) => End::Failed(why),
            },
            Told::NotStarted { why } => End::Failed(format!("cannot start it: {why}")),
            Told::OutOfTime => {
                End::Unfinished("killed, because the lease ran out while this process was stopped or too slow".into())
            }
            Told::Clear | Told::Gone => End::Unfinished("its launcher was killed".to_owned()),
        }
    }

    /// Renews the lease. Answers when a command must have ended unless it is renewed once more, on the lease clock.
    fn renewed(&self, held: &Held<'_>) -> Result<u64, Refusal> {
        // The lease counts from now or later.
        let now_ms = clock::lease_now_ms();
        let lease_ms = held.claim.renew()?;
        Ok(now_ms + lease_ms - (lease_ms / 10).min(AHEAD_MS_MAX))
    }

    /// Takes the time that the node's cost stands for.
    fn sleep(&mut self, held: &Held<'_>, cost: u32, scale: f64) -> End {
        let time = Duration::try_from_secs_f64(f64::from(cost) / 1_000.0 * scale).unwrap_or(Duration::MAX);
        match self.hold(held, &channel::after(time), None) {
            Waited::Over(_) => End::Done,
            Waited::Interrupted => End::Unfinished("interrupted".to_owned()),
            Waited::Lost(why) => End::Lost(why),
        }
    }

    /// Keeps the lease alive until the work is over, and obeys orders meanwhile.
    fn hold<T>(&mut self, held: &Held<'_>, over: &Receiver<T>, running: Option<&Running<'_>>) -> Waited<T> {
        let interval = Duration::from_millis(self.lease_ms / 3).max(Duration::from_millis(1));
        let mut renew_at = Instant::now() + interval;
        let orders = self.orders.clone();
        loop {
            select! {
                recv(over) -> over => return Waited::Over(over.ok()),
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
                    match self.renewed(held) {
                        Ok(until_ms) => {
                            renew_at = Instant::now() + interval;
                            if let Some(running) = running {
                                running.put_off(until_ms);
                            }
                        }
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

/// The start that a held node asks for, if it names a surface.
fn start_of<'h>(held: &'h Held<'_>) -> Option<Start<'h>> {
    let (node, generation) = (held.id, held.claim.generation());
    held.surface.as_ref().map(|(surface, request)| Start { surface, node, generation, request })
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
