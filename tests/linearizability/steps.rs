//! A history as the steps that have an instant of their own.
//!
//! Most verbs are one step. What has run out is taken back node by node: `reclaim` is one look for each node, `claim` looks at
//! the node that it wants and `claim-next` at every node, before they do what they are called for.
//!
//! Every call goes by what it read on the clock when it began. So a call that is slow looks with an old time, and two things
//! follow for which there is no order of calls, only of looks:
//!
//! * Whoever meets a lease that another has closed finishes that one's reclaim, whatever its own clock says.
//! * Until a claim has returned, its lease may have been started for it by another, with the other's time.

use crate::history::{Answer, Call, Event, NODES, Names};
use crate::threads::LEASE_MS;

/// How late `claim-next` may notice that a lease has run out, in milliseconds.
const SCAN_LATE_MS: u64 = 500;

/// What a look at a node must have taken back: the holder and the node's generation afterwards.
pub type Took = Option<(String, u64)>;

pub enum Act {
    /// What the verb is called for.
    Verb,
    /// A look whether the claim of a node has run out. `told`: what of it is in the answer.
    Look { node: u8, told: Option<Took>, late_ms: u64 },
}

pub struct Step {
    pub event: usize,
    pub act: Act,
    /// The steps that come before it, a bit each.
    pub after: u64,
}

/// What goes on beside a call.
struct Around {
    /// Another claim.
    claim: bool,
    /// Another call that looks for leases that have run out.
    look: bool,
    /// The latest time that such a call goes by, this one included.
    latest_look_ms: u64,
    /// The earliest and the latest time that any call goes by.
    first_ms: u64,
    last_ms: u64,
    /// The lengths of lease that the call, if it claims, may get from whoever makes or starts its claim.
    shortest_ms: u64,
    longest_ms: u64,
}

pub struct History<'a> {
    pub events: &'a [Event],
    pub names: &'a Names,
    pub steps: Vec<Step>,
    /// By call.
    around: Vec<Around>,
}

/// Who gave a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    pub event: usize,
    /// The claim that it is about; the same call, if it was not renewed since.
    pub claim: usize,
}

impl<'a> History<'a> {
    pub fn new(events: &'a [Event], names: &'a Names) -> History<'a> {
        let around = (0..events.len()).map(|i| Around::of(events, i)).collect();
        let mut steps = Vec::new();
        for (event, one) in events.iter().enumerate() {
            add_steps(&mut steps, event, one, names);
        }
        History { events, names, steps, around }
    }

    pub fn answer(&self, step: &Step) -> Option<&Answer> {
        self.events[step.event].ended.as_ref().map(|(_, answer)| answer)
    }

    pub fn end(&self, step: usize) -> u64 {
        end(&self.events[self.steps[step].event])
    }

    pub fn began(&self, step: usize) -> u64 {
        self.events[self.steps[step].event].began
    }

    /// Whether another claim was on its way at the same time.
    pub fn is_contended(&self, event: usize) -> bool {
        self.around[event].claim
    }

    /// Whether another call looked for leases that have run out.
    pub fn is_looked_beside(&self, event: usize) -> bool {
        self.around[event].look
    }

    /// Whether times matter: without a clock that moves no lease runs out.
    pub fn has_times(&self) -> bool {
        self.events.windows(2).any(|two| two[0].now_ms != two[1].now_ms)
    }

    fn is_beside(&self, one: usize, other: usize) -> bool {
        overlap(&self.events[one], &self.events[other])
    }

    /// Whether `event` can have taken back a claim whose lease runs until `deadline_ms`.
    pub fn may_take(&self, event: usize, deadline_ms: u64, grant: Grant) -> bool {
        // Somebody with an old time may have started the lease, until the claimer does.
        let is_starting = grant.event == grant.claim && self.is_beside(event, grant.claim);
        let started_for_it = self.around[grant.claim].first_ms + self.around[grant.claim].shortest_ms;
        let earliest = if is_starting { deadline_ms.min(started_for_it) } else { deadline_ms };
        self.around[event].latest_look_ms >= earliest
    }

    /// Whether it must have, if it looked; `late_ms`: it need not look at once.
    pub fn must_take(&self, event: usize, deadline_ms: u64, grant: Grant, late_ms: u64) -> bool {
        let mut until = deadline_ms;
        if self.is_beside(grant.event, grant.claim) {
            // The longest of the leases that were given while the claim was made is the one that stays.
            until = until.max(self.around[grant.claim].last_ms + self.around[grant.claim].longest_ms);
        }
        if late_ms > 0 {
            // A look that went on while the lease was given may have put off the next one from its own time.
            until = until.max(self.around[grant.event].last_ms);
        }
        // Until the claimer has started it, a look may be what starts it.
        let is_starting = grant.event == grant.claim && self.is_beside(event, grant.claim);
        self.events[event].now_ms >= until + late_ms && !is_starting
    }

    /// The times that a call, and whoever helps it or is helped by it, may have gone by.
    pub fn times(&self, event: usize) -> (u64, u64) {
        (self.around[event].first_ms, self.around[event].last_ms)
    }

    /// The lengths of lease that others who make this claim may have noted for it.
    pub fn lengths_of_helpers(&self, event: usize) -> Vec<u64> {
        let helpers = (0..self.events.len()).filter(|&other| other != event && self.is_beside(event, other));
        helpers.filter_map(|other| self.events[other].call.lease_ms()).collect()
    }

    /// Whether another claim was on its way at the same time that makes this one's if it finds it half made: one under the
    /// same name, or of a node in the same group.
    pub fn has_helper(&self, event: usize) -> bool {
        let holder = self.events[event].call.claimer();
        let helps = |other: &Event| other.call.claimer() == holder || self.names.limit().is_some();
        let claims = (0..self.events.len()).filter(|&other| other != event && self.events[other].call.is_claim());
        claims.into_iter().any(|other| helps(&self.events[other]) && self.is_beside(event, other))
    }
}

impl Around {
    fn of(events: &[Event], i: usize) -> Around {
        let beside = || events.iter().enumerate().filter(|&(j, other)| j != i && overlap(&events[i], other));
        let times = || beside().map(|(_, other)| other.now_ms).chain([events[i].now_ms]);
        let own_ms = events[i].call.lease_ms().unwrap_or(LEASE_MS);
        let of_others = || beside().map(|(_, other)| other.call.lease_ms().unwrap_or(LEASE_MS)).chain([own_ms]);
        let looks = || beside().filter(|(_, other)| other.call.looks());
        Around {
            claim: beside().any(|(_, other)| other.call.is_claim()),
            look: looks().next().is_some(),
            latest_look_ms: looks().map(|(_, other)| other.now_ms).fold(events[i].now_ms, u64::max),
            first_ms: times().min().unwrap_or(0),
            last_ms: times().max().unwrap_or(0),
            shortest_ms: of_others().min().unwrap_or(own_ms),
            longest_ms: of_others().max().unwrap_or(own_ms),
        }
    }
}

fn add_steps(steps: &mut Vec<Step>, event: usize, one: &Event, names: &Names) {
    let answer = one.ended.as_ref().map(|(_, answer)| answer);
    let look = |node, told, late_ms| Step { event, act: Act::Look { node, told, late_ms }, after: 0 };
    let first = steps.len();
    match &one.call {
        Call::Advance => return,
        Call::Reclaim => {
            let took = |node: u8| match answer {
                Some(Answer::Took(taken)) => {
                    let one = taken.iter().find(|one| one.0 == names.node(node));
                    Some(one.map(|(_, holder, generation)| (holder.clone(), *generation)))
                }
                _ => None,
            };
            return steps.extend((0..NODES).map(|node| look(node, took(node), 0)));
        }
        Call::Claim { node, .. } => steps.push(look(*node, None, 0)),
        Call::Next { .. } => steps.extend((0..NODES).map(|node| look(node, None, SCAN_LATE_MS))),
        _ => {}
    }
    let after = (first..steps.len()).fold(0, |mask, step| mask | 1 << step);
    steps.push(Step { event, act: Act::Verb, after });
}

fn end(event: &Event) -> u64 {
    event.ended.as_ref().map_or(u64::MAX, |(ended, _)| *ended)
}

fn overlap(a: &Event, b: &Event) -> bool {
    a.began <= end(b) && b.began <= end(a)
}
