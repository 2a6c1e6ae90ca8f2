//! One consistent look at the whole table: a version of the graph, and a state of every node that goes with it.
//!
//! The nodes' words are read dependents first. What was read done was done a little later too, since only a change of
//! the graph undoes it, and then the look is taken anew. So in a cut a node never appears done while something it waited
//! for appears unfinished, as long as nobody reopened or linked behind it.

use crate::derive::Plan;
use crate::error::{Damaged, Refusal};
use crate::graph::Graph;
use crate::node::{Outcome, Seen};
use crate::record::Record;
use crate::sync::Ordering;
use crate::table::TRIES;
use crate::verbs::Table;
use crate::word::{NodeWord, Phase, RootWord};

/// A version of the graph with the state of its nodes.
pub(crate) struct Cut {
    pub(crate) root: RootWord,
    pub(crate) graph: Graph,
    /// By slot.
    pub(crate) words: Vec<NodeWord>,
    /// By slot; meaningless for a free one.
    pub(crate) seen: Vec<Seen>,
    pub(crate) plan: Plan,
    /// The order in which ready nodes are given out.
    pub(crate) order: Vec<u16>,
}

impl Table {
    /// Looks at everything; never writes.
    pub(crate) fn cut(&self) -> Result<Cut, Refusal> {
        let core = self.core();
        for _ in 0..TRIES {
            let (root, graph) = core.load().map_err(|stop| self.refusal(stop))?;
            let mut arrays = graph.arrays(vec![false; graph.nodes.len()]);
            let Ok(topological) = arrays.view().topological() else {
                return Err(Damaged { what: "the version in force has a loop" }.into());
            };
            let mut words = vec![<NodeWord as bytemuck::Zeroable>::zeroed(); graph.nodes.len()];
            for &slot in topological.iter().rev() {
                words[usize::from(slot)] = core.node(slot)?.word.load(Ordering::Acquire);
            }
            if core.fixed.header.root.load(Ordering::Acquire).current() != root.current() {
                continue;
            }
            arrays.ended = words.iter().map(|word| word.is_ended()).collect();
            let seen = seen(&graph, &topological, &words);
            let waiting_below = arrays.view().chains(&topological);
            let plan = Plan { topological, waiting_below };
            let order = arrays.view().order(&plan);
            return Ok(Cut { root, graph, words, seen, plan, order });
        }
        Err(Refusal::Contended { tries: TRIES })
    }

    /// The texts of a node as a graph has them. `None`: the graph is no longer in force.
    pub(crate) fn record_in(&self, graph: &Graph, slot: u16) -> Result<Option<Record>, Refusal> {
        let Some(node) = graph.node(slot) else { return Ok(None) };
        let Some(bytes) = self.core().read_text(node.text)? else { return Ok(None) };
        Ok(Some(Record::decode(&bytes).ok_or(Damaged { what: "a node's record does not decode" })?))
    }

    /// The texts of a node: those it ended with, if it ended with any. `None`: they were used again since `word` was read.
    pub(crate) fn texts(&self, graph: &Graph, slot: u16, word: NodeWord) -> Result<Option<Record>, Refusal> {
        let Phase::Ended { text: Some(head), .. } = word.state().phase else { return self.record_in(graph, slot) };
        let core = self.core();
        let bytes = core.read_end_text(head)?;
        if core.node(slot)?.word.load(Ordering::Acquire) != word {
            return Ok(None);
        }
        // The node refers to the text before and after, so it was there all the time.
        let record = bytes.and_then(|bytes| Record::decode(&bytes));
        Ok(Some(record.ok_or(Damaged { what: "the text that a node ended with does not decode" })?))
    }

    /// Name or id of a node, for messages; never fails.
    pub(crate) fn label_in(&self, graph: &Graph, slot: u16) -> String {
        let Some(node) = graph.node(slot) else { return format!("node #{slot}") };
        match self.record_in(graph, slot) {
            Ok(Some(record)) if !record.name.is_empty() => record.name,
            _ => node.id.to_string(),
        }
    }

    /// The same from the version in force.
    pub(crate) fn label(&self, slot: u16) -> String {
        match self.core().load() {
            Ok((_, graph)) => self.label_in(&graph, slot),
            Err(_) => format!("node #{slot}"),
        }
    }
}

/// What a reader sees of each node.
fn seen(graph: &Graph, topological: &[u16], words: &[NodeWord]) -> Vec<Seen> {
    let mut seen = vec![Seen::Ready; graph.nodes.len()];
    // Behind a failure, directly or through others that have not ended: cannot become ready by itself.
    let mut stuck = vec![false; graph.nodes.len()];
    for &slot in topological {
        let at = usize::from(slot);
        let deps = graph.deps(slot);
        let behind = deps.iter().any(|e| stuck[usize::from(e.parent)]);
        let waits = deps.iter().any(|e| !words[usize::from(e.parent)].is_done());
        let open_as = if behind {
            Seen::Blocked
        } else if waits {
            Seen::Todo
        } else {
            Seen::Ready
        };
        let word = words[at];
        seen[at] = word.status().seen(open_as);
        stuck[at] = match word.state().phase {
            Phase::Ended { outcome, .. } => outcome != Outcome::Done,
            Phase::Open | Phase::Claimed { .. } => behind,
        };
    }
    seen
}
