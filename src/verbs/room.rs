//! Room for new nodes in a full table: ended nodes are pruned, archived ones first, then those that ended longest ago.

use ahash::AHashSet;

use crate::error::Refusal;
use crate::graph::Graph;
use crate::id::NodeId;
use crate::layout::NODES;
use crate::node::Outcome;
use crate::sync::Ordering;
use crate::verbs::Table;
use crate::word::Phase;

impl Table {
    /// The graph with as many ended nodes fewer as `new` nodes need.
    ///
    /// Pruning is published as a change of its own, before the one that adds: a pruned slot only becomes open in the
    /// second, when the node is gone from the version in force, so nobody ever sees a pruned node come back to life. It is
    /// published only once the addition is known to be possible; a process that is killed between the two has pruned and
    /// not added.
    ///
    /// A `done` dependency that is pruned counts as satisfied for ever, since its edges go with it. A node whose failure
    /// still matters to somebody stays, and so do the nodes of `keep`, which the change to come refers to.
    pub(crate) fn pruned(&self, graph: &Graph, new: usize, keep: &AHashSet<NodeId>) -> Result<Graph, Refusal> {
        let core = self.core();
        let needed = (graph.count() + new).saturating_sub(NODES);
        let mut matters = vec![false; NODES];
        for edge in &graph.edges {
            if !core.node(edge.child)?.word.load(Ordering::Acquire).is_ended() {
                matters[usize::from(edge.parent)] = true;
            }
        }
        let mut live = 0;
        let mut candidates = Vec::new();
        for (slot, node) in graph.iter() {
            let cell = core.node(slot)?;
            let word = cell.word.load(Ordering::Acquire);
            match word.state().phase {
                Phase::Ended { outcome, archived, .. } => {
                    let needed_still = outcome != Outcome::Done && matters[usize::from(slot)];
                    if !needed_still && !keep.contains(&node.id) {
                        let ended_ms = cell.end.load(Ordering::Relaxed).time_ms();
                        candidates.push((!archived, ended_ms, node.born, slot, word.generation()));
                    }
                }
                Phase::Open | Phase::Claimed { .. } => live += 1,
            }
        }
        if candidates.len() < needed {
            return Err(Refusal::Full { live, capacity: NODES as u32 });
        }
        candidates.sort_unstable();
        candidates.truncate(needed);
        let mut pruned = graph.clone();
        pruned.remove(&candidates.iter().map(|&(.., slot, _)| slot).collect::<Vec<u16>>());
        // A node that comes back under its name finds its old fences below it, whatever slot it gets.
        let highest = candidates.iter().map(|&(.., generation)| generation + 1).max().unwrap_or(0);
        pruned.floor = pruned.floor.max(highest);
        Ok(pruned)
    }
}
