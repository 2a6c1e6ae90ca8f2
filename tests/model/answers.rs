//! What verbs answer, reduced to what the rules promise: codes and key fields, no message texts and no wall time.

use std::collections::BTreeSet;

use tenure::{Granted, NodeId, NodeView, Reclaimed, Refusal, Seen, Stats};

/// A refusal: its stable code and the fields a caller acts on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct No {
    pub code: &'static str,
    /// Label of the node it is about (for `busy` the one that is held).
    pub node: Option<String>,
    /// Who holds that node.
    pub holder: Option<String>,
    /// The generation the node has.
    pub generation: Option<u64>,
    /// What the node is.
    pub status: Option<Seen>,
}

impl No {
    pub fn new(code: &'static str) -> No {
        No { code, ..No::default() }
    }
    pub fn node(mut self, label: impl Into<String>) -> No {
        self.node = Some(label.into());
        self
    }
    pub fn holder(mut self, holder: Option<String>) -> No {
        self.holder = holder;
        self
    }
    pub fn generation(mut self, generation: u64) -> No {
        self.generation = Some(generation);
        self
    }
    pub fn status(mut self, status: Seen) -> No {
        self.status = Some(status);
        self
    }
}

impl From<&Refusal> for No {
    fn from(refusal: &Refusal) -> No {
        let no = No::new(refusal.code());
        match refusal {
            Refusal::NoSuchNode { node } | Refusal::SelfLink { node } | Refusal::Duplicate { node } => no.node(node),
            Refusal::GroupFull { node, .. } | Refusal::NotBefore { node, .. } => no.node(node),
            Refusal::FenceRequired { node } => no.node(node),
            Refusal::Ended { node, status, generation } => no.node(node).status(*status).generation(*generation),
            Refusal::NotEnded { node, status } => no.node(node).status(*status),
            Refusal::NotReady { node, status, .. } => no.node(node).status(*status),
            Refusal::NotHeld { node, status, generation } => no.node(node).status(*status).generation(*generation),
            Refusal::Held { node, holder, generation } => {
                no.node(node).holder(Some(holder.clone())).generation(*generation)
            }
            Refusal::Busy { node, holder, generation } => {
                no.node(node).holder(Some(holder.clone())).generation(*generation)
            }
            Refusal::GenerationMismatch { node, found, held_by, .. } => {
                no.node(node).holder(held_by.clone()).generation(*found)
            }
            Refusal::NotHolder { node, held_by, status, generation, .. } => {
                no.node(node).holder(held_by.clone()).status(*status).generation(*generation)
            }
            _ => no,
        }
    }
}

/// A claim as a caller gets it, without the time left.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Got {
    pub id: NodeId,
    pub name: Option<String>,
    pub generation: u64,
    pub resumed: bool,
}

impl From<Granted> for Got {
    fn from(g: Granted) -> Got {
        Got { id: g.id, name: g.name, generation: g.generation, resumed: g.resumed }
    }
}

/// A claim that was taken back, without how long it had been quiet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taken {
    pub id: NodeId,
    pub name: Option<String>,
    pub holder: String,
    pub generation: u64,
}

impl From<Reclaimed> for Taken {
    fn from(r: Reclaimed) -> Taken {
        Taken { id: r.id, name: r.name, holder: r.holder, generation: r.generation }
    }
}

/// A node as a reader sees it, without times; whether it carries a lease and an end is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub id: NodeId,
    pub name: Option<String>,
    pub status: Seen,
    pub generation: u64,
    pub holder: Option<String>,
    pub leased: bool,
    pub kind: Option<String>,
    pub role: Option<String>,
    pub parent: Option<String>,
    pub depends_on: BTreeSet<String>,
    pub cost: u32,
    pub waiting_below: u64,
    pub summary: Option<String>,
    pub run: Option<String>,
    pub attempts: u64,
    pub archived: bool,
    pub finished: bool,
}

impl From<&NodeView> for Row {
    fn from(v: &NodeView) -> Row {
        Row {
            id: v.id,
            name: v.name.clone(),
            status: v.status,
            generation: v.generation,
            holder: v.holder.clone(),
            leased: v.lease_left_ms.is_some(),
            kind: v.kind.clone(),
            role: v.role.clone(),
            parent: v.parent.clone(),
            depends_on: v.depends_on.iter().cloned().collect(),
            cost: v.cost,
            waiting_below: v.waiting_below,
            summary: v.summary.clone(),
            run: v.run.clone(),
            attempts: v.attempts,
            archived: v.archived,
            finished: v.finished_at_ms.is_some(),
        }
    }
}

/// The counts that follow from the rules alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub nodes: u32,
    pub ready: u32,
    pub todo: u32,
    pub blocked: u32,
    pub claimed: u32,
    pub done: u32,
    pub failed: u32,
    pub cancelled: u32,
    pub archived: u32,
    pub edges: u32,
}

impl From<&Stats> for Counts {
    fn from(s: &Stats) -> Counts {
        Counts {
            nodes: s.nodes,
            ready: s.ready,
            todo: s.todo,
            blocked: s.blocked,
            claimed: s.claimed,
            done: s.done,
            failed: s.failed,
            cancelled: s.cancelled,
            archived: s.archived,
            edges: s.edges,
        }
    }
}
