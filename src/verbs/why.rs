//! Why a node has not started: everything that stands between it and its start, from one cut.
//!
//! What can stand there is one variant of [`Reason`] each. To add one, add the variant, and push it in
//! [`Look::reasons`].

use serde::Serialize;

use crate::error::Refusal;
use crate::id::NodeId;
use crate::node::{NodeView, Outcome, Seen};
use crate::table::TRIES;
use crate::verbs::Table;
use crate::verbs::cut::Cut;
use crate::verbs::view::filled;
use crate::word::Phase;

/// The most labels that the chains of one answer hold, besides the first chain, which is always whole. Thousands of
/// failures, each at the far end of a long chain, would make an answer of many megabytes otherwise.
pub const CHAIN_LABELS_MAX: usize = 16_384;

/// What stands between a node and its start, as it was at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Why {
    /// The node itself, with the keys that `get` has.
    #[serde(flatten)]
    pub node: NodeView,
    /// How many nodes that have not ended wait for it, directly or through others; 0 once it is done.
    pub holds_up: u32,
    /// What stands in its way, what weighs most first. Empty: nothing does, it can be claimed.
    pub reasons: Vec<Reason>,
}

/// One thing that stands between a node and its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// It has started: somebody holds it.
    Held {
        /// Who.
        holder: String,
        /// Milliseconds until the lease runs out; negative when it has and nobody has taken the node back yet.
        lease_left_ms: i64,
    },
    /// It has ended.
    Ended {
        /// How.
        status: Seen,
    },
    /// It is archived, so that ordinary lists do not show it.
    Archived,
    /// A node that it waits for, directly or through others, failed or was cancelled: it cannot become ready by itself.
    Failed {
        /// The node that failed or was cancelled.
        node: Standing,
        /// Labels of the nodes from this one to the failed one, both included; each waits for the next. Of all such
        /// chains a shortest. Empty: left out, since the chains before it fill the answer ([`CHAIN_LABELS_MAX`]).
        chain: Vec<String>,
    },
    /// A dependency that has not ended.
    WaitsFor {
        /// The dependency.
        node: Standing,
    },
    /// A node behind the dependencies that could be worked on now, or is.
    Behind {
        /// The node, ready or claimed.
        node: Standing,
    },
    /// Only a worker that offers this role is given it.
    WantsRole {
        /// The role.
        role: String,
    },
    /// It is ready, and so are others that are given out before it.
    GoesAfter {
        /// How many, whatever roles they want.
        ready: u32,
    },
}

/// How another node stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// 128-bit id.
    pub id: NodeId,
    /// The unique name, when it has one.
    pub name: Option<String>,
    /// What a reader sees of it.
    pub status: Seen,
    /// Who holds it, when claimed.
    pub holder: Option<String>,
    /// Milliseconds until the lease runs out, when claimed; negative when it has.
    pub lease_left_ms: Option<i64>,
    /// Role that a worker must offer.
    pub role: Option<String>,
    /// How many of its own dependencies are not done.
    pub waits_for: u32,
    /// Free text: with a failed node, mostly why it failed.
    pub summary: Option<String>,
}

impl Standing {
    /// The name if it has one, else the id.
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.id.to_string())
    }
}

impl Table {
    /// What stands between a node and its start.
    ///
    /// # Errors
    /// [`Refusal::NoSuchNode`].
    pub fn why(&self, node: NodeId) -> Result<Why, Refusal> {
        for _ in 0..TRIES {
            let cut = self.cut()?;
            let Some(slot) = cut.graph.slot_of(node) else {
                return Err(Refusal::NoSuchNode { node: node.to_string() });
            };
            if let Some(why) = (Look { table: self, cut: &cut }).why(slot)? {
                return Ok(why);
            }
            self.look_again(cut.root)?;
        }
        Err(Refusal::Contended { tries: TRIES })
    }
}

/// A table with one cut of it. `None` from any of its functions: texts were used again since, look anew.
struct Look<'a> {
    table: &'a Table,
    cut: &'a Cut,
}

/// What lies behind a node: found breadth first, so nearest first and by shortest chains, and without recursion.
struct Behind {
    /// By slot: the node through which it was found, one step nearer to the node asked about.
    through: Vec<Option<u16>>,
    /// Failed and cancelled nodes, nearest first.
    failed: Vec<u16>,
    /// Ready and claimed nodes that are no direct dependencies, nearest first.
    startable: Vec<u16>,
}

impl Look<'_> {
    fn why(&self, slot: u16) -> Result<Option<Why>, Refusal> {
        let Some(node) = self.table.view(self.cut, slot)? else { return Ok(None) };
        let Some(reasons) = self.reasons(slot, &node)? else { return Ok(None) };
        let holds_up = if self.is_done(slot) { 0 } else { self.holds_up(slot) };
        Ok(Some(Why { node, holds_up, reasons }))
    }

    fn reasons(&self, slot: u16, node: &NodeView) -> Result<Option<Vec<Reason>>, Refusal> {
        let mut reasons = Vec::new();
        if node.status.is_terminal() {
            reasons.push(Reason::Ended { status: node.status });
            if node.archived {
                reasons.push(Reason::Archived);
            }
            return Ok(Some(reasons));
        }
        if let (Some(holder), Some(lease_left_ms)) = (&node.holder, node.lease_left_ms) {
            reasons.push(Reason::Held { holder: holder.clone(), lease_left_ms });
        }
        let behind = self.behind(slot);
        if !self.push_failed(&mut reasons, slot, &behind)? {
            return Ok(None);
        }
        for edge in self.cut.graph.deps(slot).iter().filter(|e| !self.is_ended(e.parent)) {
            let Some(node) = self.standing(edge.parent)? else { return Ok(None) };
            reasons.push(Reason::WaitsFor { node });
        }
        for &other in &behind.startable {
            let Some(node) = self.standing(other)? else { return Ok(None) };
            reasons.push(Reason::Behind { node });
        }
        if let (Some(role), false) = (&node.role, node.status == Seen::Claimed) {
            reasons.push(Reason::WantsRole { role: role.clone() });
        }
        if node.status == Seen::Ready {
            let ready = self.ready_before(slot);
            if ready > 0 {
                reasons.push(Reason::GoesAfter { ready });
            }
        }
        Ok(Some(reasons))
    }

    /// Adds what failed behind the node. False: look anew.
    fn push_failed(&self, reasons: &mut Vec<Reason>, slot: u16, behind: &Behind) -> Result<bool, Refusal> {
        let mut labels = 0;
        for (i, &root) in behind.failed.iter().enumerate() {
            let Some(node) = self.standing(root)? else { return Ok(false) };
            let path = behind.path(slot, root);
            let mut chain = Vec::new();
            if i == 0 || labels + path.len() <= CHAIN_LABELS_MAX {
                labels += path.len();
                for on_it in path {
                    let Some(label) = self.label(on_it)? else { return Ok(false) };
                    chain.push(label);
                }
            }
            reasons.push(Reason::Failed { node, chain });
        }
        Ok(true)
    }

    /// Everything that the node waits for, directly or through others that have not ended.
    fn behind(&self, slot: u16) -> Behind {
        let mut behind =
            Behind { through: vec![None; self.cut.words.len()], failed: Vec::new(), startable: Vec::new() };
        let mut queue = vec![slot];
        let mut at = 0;
        while let Some(&waiting) = queue.get(at) {
            at += 1;
            for edge in self.cut.graph.deps(waiting) {
                let Some(through @ None) = behind.through.get_mut(usize::from(edge.parent)) else { continue };
                *through = Some(waiting);
                match self.phase(edge.parent) {
                    Some(Phase::Ended { outcome: Outcome::Done, .. }) => {}
                    Some(Phase::Ended { .. }) => behind.failed.push(edge.parent),
                    _ => {
                        queue.push(edge.parent);
                        let is_startable = matches!(self.seen(edge.parent), Seen::Ready | Seen::Claimed);
                        if waiting != slot && is_startable {
                            behind.startable.push(edge.parent);
                        }
                    }
                }
            }
        }
        behind
    }

    /// How many nodes that have not ended wait for it, directly or through others.
    fn holds_up(&self, slot: u16) -> u32 {
        // Dependencies stand before what waits for them, so one pass over the order reaches everything.
        let mut waits = vec![false; self.cut.words.len()];
        let mut count = 0;
        for &other in &self.cut.plan.topological {
            let is_behind = |dep: u16| dep == slot || waits.get(usize::from(dep)).copied().unwrap_or(false);
            if !self.is_ended(other) && self.cut.graph.deps(other).iter().any(|e| is_behind(e.parent)) {
                if let Some(waits) = waits.get_mut(usize::from(other)) {
                    *waits = true;
                }
                count += 1;
            }
        }
        count
    }

    fn ready_before(&self, slot: u16) -> u32 {
        let before = self.cut.order.iter().take_while(|&&other| other != slot);
        before.filter(|&&other| self.seen(other) == Seen::Ready).count() as u32
    }

    fn standing(&self, slot: u16) -> Result<Option<Standing>, Refusal> {
        let (Some(node), Some(&word)) = (self.cut.graph.node(slot), self.cut.words.get(usize::from(slot))) else {
            return Ok(None);
        };
        let Some(texts) = self.table.texts(&self.cut.graph, slot, word)? else { return Ok(None) };
        let holder = word.holder().map(|holder| self.table.holder_name(holder)).transpose()?;
        Ok(Some(Standing {
            id: node.id,
            name: filled(texts.name),
            status: self.seen(slot),
            lease_left_ms: if holder.is_some() { Some(self.table.lease_left_ms(slot, word)?) } else { None },
            holder,
            role: filled(texts.role),
            waits_for: self.cut.graph.deps(slot).iter().filter(|e| !self.is_done(e.parent)).count() as u32,
            summary: filled(texts.summary),
        }))
    }

    fn label(&self, slot: u16) -> Result<Option<String>, Refusal> {
        let (Some(node), Some(record)) = (self.cut.graph.node(slot), self.table.record_in(&self.cut.graph, slot)?)
        else {
            return Ok(None);
        };
        Ok(Some(if record.name.is_empty() { node.id.to_string() } else { record.name }))
    }

    fn seen(&self, slot: u16) -> Seen {
        self.cut.seen.get(usize::from(slot)).copied().unwrap_or(Seen::Ready)
    }

    fn phase(&self, slot: u16) -> Option<Phase> {
        Some(self.cut.words.get(usize::from(slot))?.state().phase)
    }

    fn is_ended(&self, slot: u16) -> bool {
        matches!(self.phase(slot), Some(Phase::Ended { .. }))
    }

    fn is_done(&self, slot: u16) -> bool {
        matches!(self.phase(slot), Some(Phase::Ended { outcome: Outcome::Done, .. }))
    }
}

impl Behind {
    /// The slots from the node asked about to one behind it, both included.
    fn path(&self, from: u16, to: u16) -> Vec<u16> {
        let mut path = vec![to];
        let mut at = to;
        // As many steps as there are nodes at most: no step leads back.
        for _ in 0..self.through.len() {
            if at == from {
                break;
            }
            let Some(nearer) = self.through.get(usize::from(at)).copied().flatten() else { break };
            path.push(nearer);
            at = nearer;
        }
        path.reverse();
        path
    }
}
