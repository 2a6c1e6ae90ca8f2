//! What readers see: statuses with readiness, the weight below each node, the order of work (N2, R1, R2), counts.

use std::collections::BTreeMap;

use tenure::{Filter, NodeId, Outcome, Seen};

use super::answers::{Counts, No, Row};
use super::state::{Model, Node};

/// Everything that follows from the nodes and their edges.
#[derive(Clone, Debug, Default)]
pub struct Derived {
    pub seen: BTreeMap<NodeId, Seen>,
    pub waiting_below: BTreeMap<NodeId, u64>,
    /// What each node would be if it were open.
    pub open_as: BTreeMap<NodeId, Seen>,
}

impl Model {
    pub fn derive(&self) -> Derived {
        let hopeless = self.hopeless();
        let waiting_below = self.weights();
        let mut derived = Derived { waiting_below, ..Derived::default() };
        for (&id, node) in &self.nodes {
            let is_done = |d: &NodeId| self.nodes.get(d).is_none_or(|n| n.end == Some(Outcome::Done));
            let open_as = if node.needs.iter().all(is_done) {
                Seen::Ready
            } else if hopeless[&id] {
                Seen::Blocked
            } else {
                Seen::Todo
            };
            let seen = match (node.end, &node.lease) {
                (Some(Outcome::Done), _) => Seen::Done,
                (Some(Outcome::Failed), _) => Seen::Failed,
                (Some(Outcome::Cancelled), _) => Seen::Cancelled,
                (None, Some(_)) => Seen::Claimed,
                (None, None) => open_as,
            };
            derived.seen.insert(id, seen);
            derived.open_as.insert(id, open_as);
        }
        derived
    }

    /// For each node whether one of its dependencies, directly or through others that are not done, ended badly.
    fn hopeless(&self) -> BTreeMap<NodeId, bool> {
        let mut hopeless: BTreeMap<NodeId, bool> = self.nodes.keys().map(|&id| (id, false)).collect();
        loop {
            let mut changed = false;
            for (id, node) in &self.nodes {
                let now = node
                    .needs
                    .iter()
                    .any(|d| self.nodes.get(d).is_some_and(|n| n.has_failed() || (n.end.is_none() && hopeless[d])));
                if now && !hopeless[id] {
                    hopeless.insert(*id, true);
                    changed = true;
                }
            }
            if !changed {
                return hopeless;
            }
        }
    }

    /// For each node the cost of the longest chain of unfinished nodes strictly below it; its own cost is not in it.
    fn weights(&self) -> BTreeMap<NodeId, u64> {
        let mut weights: BTreeMap<NodeId, u64> = self.nodes.keys().map(|&id| (id, 0)).collect();
        loop {
            let mut changed = false;
            for (id, node) in self.nodes.iter().filter(|(_, n)| n.end.is_none()) {
                let through = weights[id] + u64::from(node.cost);
                for need in &node.needs {
                    if weights.get(need).is_some_and(|&w| w < through) {
                        weights.insert(*need, through);
                        changed = true;
                    }
                }
            }
            if !changed {
                return weights;
            }
        }
    }

    pub fn get(&self, id: NodeId) -> Result<Row, No> {
        self.node(id)?;
        Ok(self.row(id, &self.nodes[&id], &self.derive()))
    }

    fn row(&self, id: NodeId, node: &Node, derived: &Derived) -> Row {
        let filled = |text: &String| (!text.is_empty()).then(|| text.clone());
        Row {
            id,
            name: node.name.clone(),
            status: derived.seen[&id],
            generation: node.generation,
            holder: node.lease.as_ref().map(|l| l.holder.clone()),
            leased: node.lease.is_some(),
            kind: filled(&node.kind),
            role: filled(&node.role),
            parent: node.parent.map(|p| self.label(p)),
            depends_on: node.needs.iter().map(|&d| self.label(d)).collect(),
            cost: node.cost,
            waiting_below: derived.waiting_below[&id],
            summary: filled(&node.summary),
            run: filled(&node.run),
            attempts: node.attempts,
            archived: node.archived,
            finished: node.end.is_some(),
        }
    }

    /// Oldest first.
    pub fn list(&self, filter: Filter) -> Vec<Row> {
        let derived = self.derive();
        let shown = |n: &Node| match (n.end.is_some(), n.archived) {
            (_, true) => filter.archived,
            (true, false) => filter.terminal,
            (false, false) => true,
        };
        let mut rows: Vec<(&NodeId, &Node)> = self.nodes.iter().filter(|(_, n)| shown(n)).collect();
        rows.sort_by_key(|(id, n)| (n.created, **id));
        rows.into_iter().map(|(&id, n)| self.row(id, n, &derived)).collect()
    }

    /// Most work waiting below first, then oldest, then id (R1).
    pub fn ready(&self) -> Vec<Row> {
        let derived = self.derive();
        let mut ready: Vec<(&NodeId, &Node)> =
            self.nodes.iter().filter(|(id, n)| derived.seen[id] == Seen::Ready && !n.archived).collect();
        ready.sort_by_key(|(id, n)| (std::cmp::Reverse(derived.waiting_below[id]), n.created, **id));
        ready.into_iter().map(|(&id, n)| self.row(id, n, &derived)).collect()
    }

    pub fn counts(&self) -> Counts {
        let derived = self.derive();
        let with = |seen: Seen| derived.seen.values().filter(|&&s| s == seen).count() as u32;
        Counts {
            nodes: self.nodes.len() as u32,
            ready: with(Seen::Ready),
            todo: with(Seen::Todo),
            blocked: with(Seen::Blocked),
            claimed: with(Seen::Claimed),
            done: with(Seen::Done),
            failed: with(Seen::Failed),
            cancelled: with(Seen::Cancelled),
            archived: self.nodes.values().filter(|n| n.archived).count() as u32,
            edges: self.nodes.values().map(|n| n.needs.len() as u32).sum(),
        }
    }
}
