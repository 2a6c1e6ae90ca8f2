//! Where each node of a version stands: its own word, and what its dependencies make of it. Pure.
//!
//! A node behind a failed one is not changed by the failure: what became of it is read off the failed one whenever it
//! matters. So nothing has to be undone when that one is reopened, and a process that dies between a failure and its
//! consequences leaves nothing half done.

use crate::graph::Graph;
use crate::node::{OnFailure, Outcome, Seen};
use crate::word::{NodeWord, Phase};

/// What a node is, seen together with its dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Ready,
    /// Open; some dependency is unfinished.
    Todo,
    /// Open; some dependency failed or was cancelled, or is blocked itself.
    Blocked,
    /// Open; a dependency failed whose failure skips it.
    Skipped,
    Claimed,
    Ended(Outcome),
}

impl Standing {
    pub(crate) fn seen(self) -> Seen {
        match self {
            Standing::Ready => Seen::Ready,
            Standing::Todo => Seen::Todo,
            Standing::Blocked => Seen::Blocked,
            Standing::Skipped | Standing::Ended(Outcome::Cancelled) => Seen::Cancelled,
            Standing::Claimed => Seen::Claimed,
            Standing::Ended(Outcome::Done) => Seen::Done,
            Standing::Ended(Outcome::Failed) => Seen::Failed,
        }
    }

    /// Whether nobody will work on it unless something is reopened.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Standing::Ended(_) | Standing::Skipped)
    }

    /// Whether it came to an end that is not `done`.
    pub(crate) fn is_failure(self) -> bool {
        self.is_over() && self != Standing::Ended(Outcome::Done)
    }
}

/// Whether an edge from a node that stands so lets its child go.
pub(crate) fn satisfies(parent: Standing, on_failure: OnFailure) -> bool {
    parent == Standing::Ended(Outcome::Done) || (on_failure == OnFailure::Continue && parent.is_over())
}

/// By slot, where each node stands; dependencies come first in `topological`. Meaningless for a free slot.
pub(crate) fn standings(graph: &Graph, topological: &[u16], words: &[NodeWord]) -> Vec<Standing> {
    let dep_start = graph.dep_start();
    let mut standings = vec![Standing::Ready; graph.nodes.len()];
    // Behind a failure: it cannot become ready, or done if it is claimed, by itself.
    let mut stuck = vec![false; graph.nodes.len()];
    for &slot in topological {
        let at = usize::from(slot);
        let deps = dep_start.get(at..at + 2).and_then(|ends| graph.edges.get(ends[0] as usize..ends[1] as usize));
        let (mut skipped, mut behind, mut waits) = (false, false, false);
        for edge in deps.unwrap_or(&[]) {
            let parent = standings[usize::from(edge.parent)];
            skipped |= edge.on_failure == OnFailure::Skip && parent.is_failure();
            behind |= edge.on_failure == OnFailure::Block && parent.is_failure();
            behind |= stuck[usize::from(edge.parent)];
            waits |= !satisfies(parent, edge.on_failure);
        }
        let standing = match words[at].state().phase {
            Phase::Ended { outcome, .. } => Standing::Ended(outcome),
            Phase::Claimed { .. } => Standing::Claimed,
            Phase::Open if skipped => Standing::Skipped,
            Phase::Open if behind => Standing::Blocked,
            Phase::Open if waits => Standing::Todo,
            Phase::Open => Standing::Ready,
        };
        stuck[at] = behind && !standing.is_over();
        standings[at] = standing;
    }
    standings
}
