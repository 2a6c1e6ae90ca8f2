//! Calls and answers, as they are made, written down and compared.

use serde::{Deserialize, Serialize};
use tenure::{ClaimOptions, Completion, Ended, NodeId, NodeSpec, Outcome, Refusal, Table};

use crate::model::{Got, No};

/// Nodes of one history. Their names carry its number, so that many histories share a table.
pub const NODES: u8 = 3;
pub const HOLDERS: u8 = 3;

/// One call. Nodes and holders by their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    Claim { node: u8, holder: u8, generation: Option<u64>, resume: bool },
    Next { holder: u8 },
    Renew { node: u8, holder: u8, generation: Option<u64> },
    Release { node: u8, holder: u8, generation: Option<u64> },
    Force { node: u8 },
    Complete { node: u8, outcome: u8, holder: Option<u8>, generation: Option<u64>, summary: Option<u8> },
    Reopen { node: u8 },
    Archive { node: u8, to: bool },
    Link { parent: u8, child: u8 },
    Unlink { parent: u8, child: u8 },
    Upsert { node: u8, summary: u8 },
    Get { node: u8 },
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
    Row {
        status: String,
        generation: u64,
        holder: Option<String>,
        summary: Option<String>,
        archived: bool,
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
    pub fn refused(no: &No) -> Answer {
        let status = no.status.map(|status| status.name().to_owned());
        let No { code, node, holder, generation, .. } = no.clone();
        Answer::No { code: code.into(), node, holder, generation, status }
    }

    pub fn got(got: Got) -> Answer {
        Answer::Got { node: got.name.unwrap_or_default(), generation: got.generation, resumed: got.resumed }
    }
}

/// A call with its times on the monotonic clock, in nanoseconds. Without an answer: its process was killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub call: Call,
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
}

pub fn outcome(number: u8) -> Outcome {
    [Outcome::Done, Outcome::Failed, Outcome::Cancelled][usize::from(number % 3)]
}

impl Call {
    /// Makes the call on a table.
    pub fn make(&self, table: &Table, names: &Names) -> Answer {
        self.try_make(table, names).unwrap_or_else(|refusal| Answer::refused(&No::from(&refusal)))
    }

    fn try_make(&self, t: &Table, names: &Names) -> Result<Answer, Refusal> {
        let id = |node: &u8| names.id(*node);
        let options = |generation: &Option<u64>, resume| ClaimOptions {
            generation: *generation,
            resume,
            ..ClaimOptions::default()
        };
        Ok(match self {
            Call::Claim { node, holder, generation, resume } => {
                let worker = t.worker(&names.holder(*holder))?;
                let claim = worker.claim_with(id(node), &options(generation, *resume))?;
                // Not what the table says by now: the claim may be over.
                Answer::Got { node: name_of(&claim, names), generation: claim.generation(), resumed: claim.resumed() }
            }
            Call::Next { holder } => {
                let worker = t.worker(&names.holder(*holder))?;
                let claim = worker.claim_next()?;
                Answer::Got { node: name_of(&claim, names), generation: claim.generation(), resumed: claim.resumed() }
            }
            Call::Renew { node, holder, generation } => {
                let granted = t.renew(id(node), &names.holder(*holder), *generation, None)?;
                Answer::At(granted.generation)
            }
            Call::Release { node, holder, generation } => {
                Answer::At(t.release(id(node), &names.holder(*holder), *generation)?)
            }
            Call::Force { node } => {
                let taken = t.release_forced(id(node), None)?;
                Answer::Taken { holder: taken.holder, generation: taken.generation }
            }
            Call::Complete { node, outcome: how, holder, generation, summary } => {
                let ended = t.complete(id(node), &completion(names, *how, *holder, *generation, *summary))?;
                Answer::Did(if ended == Ended::Already { "already" } else { "now" }.into())
            }
            Call::Reopen { node } => Answer::At(t.reopen(id(node))?),
            Call::Archive { node, to: true } => Answer::At(t.archive(id(node))?),
            Call::Archive { node, to: false } => Answer::At(t.unarchive(id(node))?),
            Call::Link { parent, child } => Answer::Did(t.link(id(parent), id(child))?.to_string()),
            Call::Unlink { parent, child } => Answer::Did(t.unlink(id(parent), id(child))?.to_string()),
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
                Answer::Row { status, generation, holder, summary, archived, needs }
            }
        })
    }
}

fn name_of(claim: &tenure::Claim<'_>, names: &Names) -> String {
    let known = (0..NODES).find(|&node| names.id(node) == claim.id());
    known.map_or_else(|| claim.id().to_string(), |node| names.node(node))
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
    NodeSpec { name: Some(names.node(node)), summary: Some(format!("s{summary}")), ..NodeSpec::default() }
}

/// Makes the nodes of a history, as the model begins with them.
pub fn begin(table: &Table, names: &Names) {
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

    /// A call as `holder` might make it; `last` is what its last claim gave, to be presented sometimes.
    pub fn call(&mut self, holder: u8, last: Option<(u8, u64)>, with_next: bool) -> Call {
        let node = self.below(NODES.into()) as u8;
        let other = (node + 1 + self.below(u64::from(NODES) - 1) as u8) % NODES;
        // Mostly about what it has, and then mostly with the fence.
        let (node, generation) = match last {
            Some((own, generation)) if self.below(4) > 0 => (own, (self.below(3) > 0).then_some(generation)),
            _ => (node, None),
        };
        match self.below(if with_next { 22 } else { 20 }) {
            0..=4 => Call::Claim {
                node: if last.is_some() { other } else { node },
                holder,
                generation: None,
                resume: self.below(6) == 0,
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
            10 => Call::Renew { node, holder, generation },
            11..=12 => Call::Force { node },
            13..=14 => Call::Reopen { node },
            15 => Call::Archive { node, to: self.below(2) == 0 },
            16 => Call::Link { parent: node.min(other), child: node.max(other) },
            17 => Call::Unlink { parent: node.min(other), child: node.max(other) },
            18 => Call::Upsert { node, summary: holder + 4 },
            19 => Call::Get { node },
            _ => Call::Next { holder },
        }
    }
}
