//! Why a node has not started: everything that stands between it and its start, from one cut.
//!
//! What can stand there is one variant of [`Reason`] each. To add one, add the variant, and push it in
//! [`Look::reasons`].

use serde::Serialize;

use crate::error::Refusal;
use crate::graph::Edge;
use crate::id::NodeId;
use crate::node::{NodeView, OnFailure, Seen};
use crate::standing::Standing;
use crate::table::TRIES;
use crate::verbs::Table;
use crate::verbs::cut::Cut;
use crate::verbs::view::filled;

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
        /// The claim named a process, and that is gone: the lease counts as run out.
        process_gone: bool,
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
        node: Upstream,
        /// Labels of the nodes from this one to the failed one, both included; each waits for the next. Of all such
        /// chains a shortest. Empty: left out, since the chains before it fill the answer ([`CHAIN_LABELS_MAX`]).
        chain: Vec<String>,
    },
    /// A node that it waits for, directly or through others, failed or was cancelled, and it is skipped because of that:
    /// seen as cancelled until that one is reopened.
    Skipped {
        /// The node that failed or was cancelled.
        node: Upstream,
        /// As with [`Reason::Failed`].
        chain: Vec<String>,
    },
    /// A dependency that has not ended.
    WaitsFor {
        /// The dependency.
        node: Upstream,
        /// What becomes of this one if that one fails.
        on_failure: OnFailure,
    },
    /// A node behind the dependencies that could be worked on now or after a delay, or is.
    Behind {
        /// The node, ready, claimed or left alone for a while.
        node: Upstream,
    },
    /// An attempt was lost or failed, and the node is left alone before the next.
    LeftAlone {
        /// Milliseconds until it can be claimed again.
        retry_in_ms: u64,
    },
    /// As many nodes of its group are claimed as may be.
    GroupFull {
        /// The group.
        group: String,
        /// How many of its nodes may be claimed at once.
        limit: u32,
        /// Those that are.
        claimed: Vec<Upstream>,
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

/// How another node stands: one that the node waits for, directly or through others, or that has its group's seat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Upstream {
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
    /// The claim named a process, and that is gone: the lease counts as run out.
    pub process_gone: bool,
    /// Role that a worker must offer.
    pub role: Option<String>,
    /// Milliseconds until it can be claimed again after an attempt that was lost or failed.
    pub retry_in_ms: Option<u64>,
    /// How many of its own dependencies keep it from being ready.
    pub waits_for: u32,
    /// Free text: with a failed node, mostly why it failed.
    pub summary: Option<String>,
}

impl Upstream {
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
    /// Nodes that can be worked on, or are, and are no direct dependencies; nearest first.
    startable: Vec<u16>,
}

impl Look<'_> {
    fn why(&self, slot: u16) -> Result<Option<Why>, Refusal> {
        let Some(node) = self.table.view(self.cut, slot)? else { return Ok(None) };
        let Some(reasons) = self.reasons(slot, &node)? else { return Ok(None) };
        Ok(Some(Why { node, holds_up: self.holds_up(slot), reasons }))
    }

    fn reasons(&self, slot: u16, node: &NodeView) -> Result<Option<Vec<Reason>>, Refusal> {
        let mut reasons = Vec::new();
        let standing = self.standing(slot);
        if let Standing::Ended(_) = standing {
            reasons.push(Reason::Ended { status: node.status });
            if node.archived {
                reasons.push(Reason::Archived);
            }
            return Ok(Some(reasons));
        }
        if let (Some(holder), Some(lease_left_ms)) = (&node.holder, node.lease_left_ms) {
            let process_gone = self.is_process_gone(slot)?;
            reasons.push(Reason::Held { holder: holder.clone(), lease_left_ms, process_gone });
        }
        let behind = self.behind(slot);
        if !self.push_failed(&mut reasons, slot, &behind)? {
            return Ok(None);
        }
        if standing == Standing::Skipped {
            return Ok(Some(reasons));
        }
        for edge in self.cut.unsatisfied(slot).filter(|edge| !self.standing(edge.parent).is_over()) {
            let Some(node) = self.upstream(edge.parent)? else { return Ok(None) };
            reasons.push(Reason::WaitsFor { node, on_failure: edge.on_failure });
        }
        for &other in &behind.startable {
            let Some(node) = self.upstream(other)? else { return Ok(None) };
            reasons.push(Reason::Behind { node });
        }
        if let Some(retry_in_ms) = node.retry_in_ms {
            reasons.push(Reason::LeftAlone { retry_in_ms });
        }
        if standing != Standing::Claimed && !self.push_wanted(&mut reasons, slot, node)? {
            return Ok(None);
        }
        Ok(Some(reasons))
    }

    /// Adds what keeps a node from one worker or another although it may be ready. False: look anew.
    fn push_wanted(&self, reasons: &mut Vec<Reason>, slot: u16, node: &NodeView) -> Result<bool, Refusal> {
        let is_ready = self.standing(slot) == Standing::Ready;
        if let (Some(group), true) = (&node.group, is_ready)
            && !self.push_full_group(reasons, slot, group)?
        {
            return Ok(false);
        }
        if let Some(role) = &node.role {
            reasons.push(Reason::WantsRole { role: role.clone() });
        }
        let ready = if is_ready { self.ready_before(slot) } else { 0 };
        if ready > 0 {
            reasons.push(Reason::GoesAfter { ready });
        }
        Ok(true)
    }

    /// Adds the node's group, called `name`, if as many of it are claimed as may be. False: look anew.
    fn push_full_group(&self, reasons: &mut Vec<Reason>, slot: u16, name: &str) -> Result<bool, Refusal> {
        let graph = &self.cut.graph;
        let Some(number) = graph.node(slot).map(|node| node.policy.group()) else { return Ok(false) };
        let Some(Some(group)) = graph.groups.get(usize::from(number)) else { return Ok(true) };
        let mut claimed = Vec::new();
        for (member, node) in graph.iter() {
            if node.policy.group() == number && self.standing(member) == Standing::Claimed {
                let Some(upstream) = self.upstream(member)? else { return Ok(false) };
                claimed.push(upstream);
            }
        }
        if claimed.len() >= group.limit as usize {
            reasons.push(Reason::GroupFull { group: name.to_owned(), limit: group.limit, claimed });
        }
        Ok(true)
    }

    /// Adds what failed behind the node. False: look anew.
    fn push_failed(&self, reasons: &mut Vec<Reason>, slot: u16, behind: &Behind) -> Result<bool, Refusal> {
        let is_skipped = self.standing(slot) == Standing::Skipped;
        let mut labels = 0;
        for (i, &root) in behind.failed.iter().enumerate() {
            let Some(node) = self.upstream(root)? else { return Ok(false) };
            let path = behind.path(slot, root);
            let mut chain = Vec::new();
            if i == 0 || labels + path.len() <= CHAIN_LABELS_MAX {
                labels += path.len();
                for on_it in path {
                    let Some(label) = self.label(on_it)? else { return Ok(false) };
                    chain.push(label);
                }
            }
            reasons.push(if is_skipped { Reason::Skipped { node, chain } } else { Reason::Failed { node, chain } });
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
            for edge in self.cut.unsatisfied(waiting).filter(|edge| self.counts(slot, waiting, edge)) {
                let Some(through @ None) = behind.through.get_mut(usize::from(edge.parent)) else { continue };
                *through = Some(waiting);
                if let Standing::Ended(_) = self.standing(edge.parent) {
                    behind.failed.push(edge.parent);
                    continue;
                }
                queue.push(edge.parent);
                if waiting != slot && self.is_startable(edge.parent) {
                    behind.startable.push(edge.parent);
                }
            }
        }
        behind
    }

    /// Whether an edge that is not satisfied is one for which the node asked about waits.
    fn counts(&self, asked: u16, waiting: u16, edge: &Edge) -> bool {
        let fails_to_skip = edge.on_failure == OnFailure::Skip && self.standing(edge.parent).is_failure();
        match self.standing(waiting) {
            // What else a skipped node would wait for makes no difference.
            Standing::Skipped => fails_to_skip,
            // A claim goes on although its node would be skipped now; it can only not be done.
            Standing::Claimed => waiting == asked || !fails_to_skip,
            _ => true,
        }
    }

    fn is_startable(&self, slot: u16) -> bool {
        matches!(self.standing(slot), Standing::Ready | Standing::Claimed) || self.cut.left_alone_ms(slot).is_some()
    }

    /// How many nodes that have not ended wait for it, directly or through others.
    fn holds_up(&self, slot: u16) -> u32 {
        // Dependencies stand before what waits for them, so one pass over the order reaches everything.
        let mut waits = vec![false; self.cut.words.len()];
        let mut count = 0;
        for &other in &self.cut.plan.topological {
            let is_behind = |dep: u16| dep == slot || waits.get(usize::from(dep)).copied().unwrap_or(false);
            let standing = self.standing(other);
            if matches!(standing, Standing::Ended(_)) || !self.cut.unsatisfied(other).any(|e| is_behind(e.parent)) {
                continue;
            }
            if let Some(waits) = waits.get_mut(usize::from(other)) {
                *waits = true;
            }
            // A skipped one waits for nothing, but others may be blocked by it.
            count += u32::from(standing != Standing::Skipped);
        }
        count
    }

    fn ready_before(&self, slot: u16) -> u32 {
        let before = self.cut.order.iter().take_while(|&&other| other != slot);
        before.filter(|&&other| self.standing(other) == Standing::Ready).count() as u32
    }

    fn upstream(&self, slot: u16) -> Result<Option<Upstream>, Refusal> {
        let (Some(node), Some(&word)) = (self.cut.graph.node(slot), self.cut.words.get(usize::from(slot))) else {
            return Ok(None);
        };
        let Some(texts) = self.table.texts(self.cut.root, &self.cut.graph, slot, word)? else { return Ok(None) };
        let holder = word.holder().map(|holder| self.table.holder_name(holder)).transpose()?;
        Ok(Some(Upstream {
            id: node.id,
            name: filled(texts.name),
            status: self.cut.seen(slot),
            lease_left_ms: if holder.is_some() { Some(self.table.lease_left_ms(slot, word)?) } else { None },
            process_gone: self.is_process_gone(slot)?,
            holder,
            role: filled(texts.role),
            retry_in_ms: self.cut.left_alone_ms(slot),
            waits_for: self.cut.unsatisfied(slot).count() as u32,
            summary: filled(texts.summary),
        }))
    }

    fn label(&self, slot: u16) -> Result<Option<String>, Refusal> {
        let Some(node) = self.cut.graph.node(slot) else { return Ok(None) };
        let Some(record) = self.table.record_in(&self.cut.graph, slot)? else {
            self.table.look_again(self.cut.root)?;
            return Ok(None);
        };
        Ok(Some(if record.name.is_empty() { node.id.to_string() } else { record.name }))
    }

    /// Whether the process that a claim named is gone; false for a node that is not claimed.
    fn is_process_gone(&self, slot: u16) -> Result<bool, Refusal> {
        let claimed = self.cut.words.get(usize::from(slot)).filter(|word| word.holder().is_some());
        let Some(word) = claimed else { return Ok(false) };
        Ok(self.table.core().is_process_gone(slot, word.generation())?)
    }

    fn standing(&self, slot: u16) -> Standing {
        self.cut.standings.get(usize::from(slot)).copied().unwrap_or(Standing::Todo)
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
