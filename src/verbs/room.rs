//! Room for new nodes in a full table: ended nodes are pruned, archived ones first, then those that ended longest ago.

use ahash::AHashSet;

use crate::error::Refusal;
use crate::graph::Graph;
use crate::id::NodeId;
use crate::layout::NODES;
use crate::node::Outcome;
use crate::sync::Ordering;
use crate::table::change::PublishError;
use crate::verbs::Table;
use crate::word::{Phase, RootWord};

impl Table {
    /// Prunes as many ended nodes as `new` nodes need, from the version that `root` names; nothing if it has changed.
    ///
    /// That is a change of its own, before the one that adds. A pruned slot only becomes open in the second, when the
    /// node is gone from the version in force, so nobody ever sees a pruned node come back to life.
    ///
    /// A `done` dependency that is pruned counts as satisfied for ever, since its edges go with it. A node whose failure
    /// still blocks somebody stays, and so do the nodes of `keep`, which the change to come refers to.
    pub(crate) fn make_room(
        &self,
        root: RootWord,
        graph: &Graph,
        new: usize,
        keep: &AHashSet<NodeId>,
    ) -> Result<(), Refusal> {
        let core = self.core();
        let needed = (graph.count() + new).saturating_sub(NODES);
        let mut blocking = vec![false; NODES];
        for edge in &graph.edges {
            if !core.node(edge.child)?.word.load(Ordering::Acquire).is_ended() {
                blocking[usize::from(edge.parent)] = true;
            }
        }
        let mut live = 0;
        let mut candidates = Vec::new();
        for (slot, node) in graph.iter() {
            let cell = core.node(slot)?;
            match cell.word.load(Ordering::Acquire).state().phase {
                Phase::Ended { outcome, archived, .. } => {
                    let needed_still = outcome != Outcome::Done && blocking[usize::from(slot)];
                    if !needed_still && !keep.contains(&node.id) {
                        candidates.push((!archived, cell.end.load(Ordering::Relaxed).time_ms(), node.born, slot));
                    }
                }
                Phase::Open | Phase::Claimed { .. } => live += 1,
            }
        }
        if candidates.len() < needed {
            return Err(Refusal::Full { live, capacity: NODES as u32 });
        }
        candidates.sort_unstable();
        let gone: Vec<u16> = candidates.iter().take(needed).map(|&(.., slot)| slot).collect();
        let mut pruned = graph.clone();
        pruned.remove(&gone);
        match core.publish(root, &pruned, &[], &[]) {
            Ok(_) => Ok(()),
            Err(PublishError::Stop(stop)) => Err(self.refusal(stop)),
            // Taking nodes out closes no loop.
            Err(PublishError::Loop(_)) => Err(crate::error::Damaged { what: "the version in force has a loop" }.into()),
        }
    }
}
