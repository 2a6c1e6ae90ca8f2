//! Calls and answers, as they are made, written down and compared.

use serde::{Deserialize, Serialize};
use tenure::{ClaimOptions, Completion, Ended, NodeId, NodeSpec, Outcome, Refusal, Table};

use crate::clock::{Clock, MOVES};
use crate::model::{Got, No};
use crate::threads::LEASE_MS;

/// Nodes of one history. Their names carry its number, so that many histories share a table.
pub const NODES: u8 = 3;
pub const HOLDERS: u8 = 3;
/// Where the clock stands still, a delay that is over after every history is.
const DELAY_MS: u32 = if MOVES { 500 } else { 3_600_000 };

/// One call. Nodes and holders by their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    Claim {
        node: u8,
        holder: u8,
        generation: Option<u64>,
        resume: bool,
        /// Which length of its own the lease has; 0 is none.
        length: u8,
    },
    Next {
        holder: u8,
        length: u8,
    },
    Renew {
        node: u8,
        holder: u8,
        generation: Option<u64>,
        long: bool,
    },
    Reclaim,
    /// Moves the clock.
    Advance,
    Release {
        node: u8,
        holder: u8,
        generation: Option<u64>,
    },
    Force {
        node: u8,
    },
    Complete {
        node: u8,
        outcome: u8,
        holder: Option<u8>,
        generation: Option<u64>,
        summary: Option<u8>,
    },
    Reopen {
        node: u8,
    },
    Archive {
        node: u8,
        to: bool,
    },
    Link {
        parent: u8,
        child: u8,
    },
    Unlink {
        parent: u8,
        child: u8,
    },
    /// How many nodes of the group may be claimed at once.
    Limit {
        limit: u8,
    },
    Upsert {
        node: u8,
        summary: u8,
    },
    Get {
        node: u8,
    },
}

/// An answer without times and without the words of messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// A claim.
    Got {
        node: String,
        generation: u64,
        resumed: bool,
    },
    /// A generation.
    At(u64),
    /// Whether something changed, or from whom a claim was taken.
    Did(String),
    Taken {
        holder: String,
        generation: u64,
    },
    /// What a reclaim took back: node, holder, generation.
    Took(Vec<(String, String, u64)>),
    ToRetry {
        generation: u64,
        attempts: u64,
    },
    Row {
        status: String,
        generation: u64,
        holder: Option<String>,
        summary: Option<String>,
        archived: bool,
        attempts: u64,
        needs: Vec<String>,
    },
    No {
        code: String,
        node: Option<String>,
        holder: Option<String>,
        generation: Option<u64>,
        status: Option<String>,
    },
}

impl Answer {
    /// The same, if it says that a node is ready, of one that is left alone.
    pub fn of_left_alone(&self) -> Option<Answer> {
        let mut other = self.clone();
        let status = match &mut other {
            Answer::Row { status, .. } | Answer::No { status: Some(status), .. } => status,
            _ => return None,
        };
        (status == "ready").then(|| *status = "todo".to_owned())?;
        Some(other)
    }

    pub fn refused(no: &No) -> Answer {
        let status = no.status.map(|status| status.name().to_owned());
        let No { code, node, holder, generation, .. } = no.clone();
        Answer::No { code: code.into(), node, holder, generation, status }
    }

    pub fn got(got: Got) -> Answer {
        Answer::Got { node: got.name.unwrap_or_default(), generation: got.generation, resumed: got.resumed }
    }
}

/// A call with its times on the monotonic clock, in nanoseconds, and the time of the lease clock that it goes by. Without an
/// answer: its process was killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub call: Call,
    pub now_ms: u64,
    pub began: u64,
    pub ended: Option<(u64, Answer)>,
}

/// The names in one history.
#[derive(Clone, Debug)]
pub struct Names {
    pub history: u64,
}

impl Names {
    pub fn node(&self, node: u8) -> String {
        format!("n{node}-{}", self.history)
    }

    pub fn holder(&self, holder: u8) -> String {
        format!("w{holder}-{}", self.history)
    }

    pub fn id(&self, node: u8) -> NodeId {
        NodeId::of_name(&self.node(node))
    }

    /// Seats of the group in this history, at its beginning. One history in four has no group.
    pub fn limit(&self) -> Option<u32> {
        [None, Some(2), Some(1), Some(1)][(self.history % 4) as usize]
    }

    fn is_in_group(&self, node: u8) -> bool {
        self.limit().is_some() && (node < 2 || self.history % 4 != 2)
    }

    /// The most attempts; 0 is no limit.
    fn max_attempts(&self, node: u8) -> u16 {
        let (some, all) = (self.history % 4 == 2 && node == 2, self.history % 4 == 3);
        if some || all { 2 } else { 0 }
    }

    /// How long a node is left alone after its first attempt: a step of the clock, or two after the second one. One node in two.
    fn retry_delay_ms(&self, node: u8) -> u32 {
        if (self.history / 4 + u64::from(node)).is_multiple_of(2) { DELAY_MS } else { 0 }
    }
}

pub fn outcome(number: u8) -> Outcome {
    [Outcome::Done, Outcome::Failed, Outcome::Cancelled][usize::from(number % 3)]
}

impl Call {
    /// Under whose name it claims a node.
    pub fn claimer(&self) -> Option<u8> {
        match self {
            Call::Claim { holder, .. } | Call::Next { holder, .. } => Some(*holder),
            _ => None,
        }
    }

    /// How long the lease of a claim runs.
    pub fn lease_ms(&self) -> Option<u64> {
        match self {
            Call::Claim { length, .. } | Call::Next { length, .. } => Some(own_lease(*length).unwrap_or(LEASE_MS)),
            _ => None,
        }
    }

    pub fn is_claim(&self) -> bool {
        self.claimer().is_some()
    }

    /// The node whose status is in its answer.
    pub fn node(&self) -> Option<u8> {
        match self {
            Call::Claim { node, .. }
            | Call::Renew { node, .. }
            | Call::Release { node, .. }
            | Call::Force { node }
            | Call::Complete { node, .. }
            | Call::Reopen { node }
            | Call::Archive { node, .. }
            | Call::Upsert { node, .. }
            | Call::Get { node } => Some(*node),
            Call::Link { child, .. } | Call::Unlink { child, .. } => Some(*child),
            Call::Next { .. } | Call::Reclaim | Call::Advance | Call::Limit { .. } => None,
        }
    }

    /// Whether it looks for leases that have run out.
    pub fn looks(&self) -> bool {
        self.is_claim() || matches!(self, Call::Reclaim | Call::Renew { .. })
    }

    /// Makes the call on a table.
    pub fn make(&self, table: &Table, clock: &Clock, names: &Names) -> Answer {
        self.try_make(table, clock, names).unwrap_or_else(|refusal| Answer::refused(&No::from(&refusal)))
    }

    fn try_make(&self, t: &Table, clock: &Clock, names: &Names) -> Result<Answer, Refusal> {
        let id = |node: &u8| names.id(*node);
        Ok(match self {
            Call::Claim { node, holder, generation, resume, length } => {
                let worker = t.worker(&names.holder(*holder))?;
                let claim = worker.claim_with(id(node), &options(*generation, *resume, *length))?;
                // Not what the table says by now: the claim may be over.
                Answer::Got { node: name_of(&claim, names), generation: claim.generation(), resumed: claim.resumed() }
            }
            Call::Next { holder, length } => {
                let worker = t.worker(&names.holder(*holder))?;
                let claim = worker.claim_next_with(&options(None, false, *length))?;
                Answer::Got { node: name_of(&claim, names), generation: claim.generation(), resumed: claim.resumed() }
            }
            Call::Renew { node, holder, generation, long } => {
                let granted = t.renew(id(node), &names.holder(*holder), *generation, lease(*long))?;
                Answer::At(granted.generation)
            }
            Call::Reclaim => {
                let took = t.reclaim(None)?.into_iter();
                Answer::Took(took.map(|one| (one.name.unwrap_or_default(), one.holder, one.generation)).collect())
            }
            Call::Advance => {
                clock.advance();
                Answer::Did("on".into())
            }
            Call::Release { node, holder, generation } => {
                Answer::At(t.release(id(node), &names.holder(*holder), *generation)?)
            }
            Call::Force { node } => {
                let taken = t.release_forced(id(node), None)?;
                Answer::Taken { holder: taken.holder, generation: taken.generation }
            }
            Call::Complete { node, outcome: how, holder, generation, summary } => {
                told(t.complete(id(node), &completion(names, *how, *holder, *generation, *summary))?)
            }
            Call::Reopen { node } => Answer::At(t.reopen(id(node))?),
            Call::Archive { node, to: true } => Answer::At(t.archive(id(node))?),
            Call::Archive { node, to: false } => Answer::At(t.unarchive(id(node))?),
            Call::Link { parent, child } => Answer::Did(t.link(id(parent), id(child))?.to_string()),
            Call::Unlink { parent, child } => Answer::Did(t.unlink(id(parent), id(child))?.to_string()),
            Call::Limit { limit } => Answer::Did(t.set_group(&group(names), u32::from(*limit))?.to_string()),
            Call::Upsert { node, summary } => {
                Answer::Did(format!("{:?}", t.upsert(&spec(names, *node, *summary), true)?.1))
            }
            Call::Get { node } => {
                let view = t.get(id(node))?;
                let mut needs = view.depends_on;
                needs.sort();
                let status = view.status.name().to_owned();
                let (generation, holder, summary, archived) =
                    (view.generation, view.holder, view.summary, view.archived);
                Answer::Row { status, generation, holder, summary, archived, attempts: view.attempts, needs }
            }
        })
    }
}

fn name_of(claim: &tenure::Claim<'_>, names: &Names) -> String {
    let known = (0..NODES).find(|&node| names.id(node) == claim.id());
    known.map_or_else(|| claim.id().to_string(), |node| names.node(node))
}

/// The length that a claim asks for: one that a single step of the clock ends, or one that three do not.
fn own_lease(length: u8) -> Option<u64> {
    [None, Some(LEASE_MS / 2), Some(2 * LEASE_MS)][usize::from(length % 3)]
}

pub fn options(generation: Option<u64>, resume: bool, length: u8) -> ClaimOptions {
    ClaimOptions { generation, resume, lease_ms: own_lease(length), ..ClaimOptions::default() }
}

/// The length that a renewal asks for.
pub fn lease(long: bool) -> Option<u64> {
    long.then_some(2 * LEASE_MS)
}

pub fn told(ended: Ended) -> Answer {
    match ended {
        Ended::Now => Answer::Did("now".into()),
        Ended::Already => Answer::Did("already".into()),
        Ended::ToRetry { generation, attempts } => Answer::ToRetry { generation, attempts },
    }
}

/// The name of the one group of a history.
pub fn group(names: &Names) -> String {
    format!("g-{}", names.history)
}

pub fn completion(
    names: &Names,
    how: u8,
    holder: Option<u8>,
    generation: Option<u64>,
    summary: Option<u8>,
) -> Completion {
    let holder = holder.map(|holder| names.holder(holder));
    Completion { outcome: outcome(how), generation, holder, summary: summary.map(|s| format!("s{s}")) }
}

pub fn spec(names: &Names, node: u8, summary: u8) -> NodeSpec {
    NodeSpec {
        name: Some(names.node(node)),
        summary: Some(format!("s{summary}")),
        group: names.is_in_group(node).then(|| group(names)),
        max_attempts: Some(names.max_attempts(node)),
        retry_delay_ms: Some(names.retry_delay_ms(node)),
        ..NodeSpec::default()
    }
}

/// Makes the nodes of a history, as the model begins with them.
pub fn begin(table: &Table, names: &Names) {
    if let Some(limit) = names.limit() {
        table.set_group(&group(names), limit).expect("room for the group of a history");
    }
    let specs: Vec<NodeSpec> = (0..NODES).map(|node| spec(names, node, 0)).collect();
    table.import(&specs).expect("room for the nodes of a history");
}

/// Now, on the clock that all processes share.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Numbers that look random and are the same for the same seed.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }

    /// Mostly the table's.
    fn length(&mut self) -> u8 {
        self.below(6).saturating_sub(3) as u8
    }

    /// A call as `holder` might make it; `last` is what its last claim gave, to be presented sometimes.
    pub fn call(&mut self, names: &Names, holder: u8, last: Option<(u8, u64)>, with_next: bool) -> Call {
        let node = self.below(NODES.into()) as u8;
        let other = (node + 1 + self.below(u64::from(NODES) - 1) as u8) % NODES;
        // Mostly about what it has, and then mostly with the fence.
        let (node, generation) = match last {
            Some((own, generation)) if self.below(4) > 0 => (own, (self.below(3) > 0).then_some(generation)),
            _ => (node, None),
        };
        // Sometimes another goes by its name.
        let holder = if self.below(8) == 0 { self.below(HOLDERS.into()) as u8 } else { holder };
        match self.below(if MOVES { 30 } else { 23 }) {
            0..=4 => Call::Claim {
                node: if last.is_some() { other } else { node },
                holder,
                generation: None,
                resume: self.below(6) == 0,
                length: self.length(),
            },
            5..=6 => Call::Release { node, holder, generation },
            7..=9 => {
                let (by, summary) = (self.below(4) > 0, self.below(2) == 0);
                let outcome = if self.below(3) == 0 { 1 + self.below(2) as u8 } else { 0 };
                Call::Complete {
                    node,
                    outcome,
                    holder: by.then_some(holder),
                    generation,
                    summary: summary.then_some(holder + 1),
                }
            }
            10 => Call::Renew { node, holder, generation, long: self.below(3) == 0 },
            11..=12 => Call::Force { node },
            13..=14 => Call::Reopen { node },
            15 => Call::Archive { node, to: self.below(2) == 0 },
            16 => Call::Link { parent: node.min(other), child: node.max(other) },
            17 => Call::Unlink { parent: node.min(other), child: node.max(other) },
            18 if names.limit().is_some() => Call::Limit { limit: 1 + self.below(2) as u8 },
            18 => Call::Upsert { node, summary: holder + 4 },
            19 => Call::Get { node },
            20..=22 if with_next => Call::Next { holder, length: self.length() },
            20..=22 => Call::Claim { node, holder, generation: None, resume: false, length: self.length() },
            23..=25 => Call::Advance,
            26..=27 => Call::Renew { node, holder, generation, long: self.below(3) == 0 },
            _ => Call::Reclaim,
        }
    }
}
