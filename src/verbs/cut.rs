//! One consistent look at the whole table: a version of the graph, and a state of every node that goes with it.
//!
//! The nodes' words are read dependents first. What was read done was done a little later too, since only a change of
//! the graph undoes it, and then the look is taken anew. So in a cut a node never appears done while something it waited
//! for appears unfinished, as long as nobody reopened or linked behind it.

use crate::clock;
use crate::derive::Plan;
use crate::error::{Damaged, Refusal};
use crate::graph::{Edge, Graph, Node};
use crate::layout::GROUPS;
use crate::node::{OnFailure, Seen};
use crate::record::Record;
use crate::standing::{Standing, satisfies, standings};
use crate::sync::Ordering;
use crate::table::TRIES;
use crate::verbs::Table;
use crate::word::{NodeWord, Phase, RootWord};

/// How often words are read again within one look before the look is taken anew.
const AGAIN_MAX: u32 = 1_000;

/// A version of the graph with the state of its nodes.
pub(crate) struct Cut {
    pub(crate) root: RootWord,
    pub(crate) graph: Graph,
    /// By slot.
    pub(crate) words: Vec<NodeWord>,
    /// By slot; meaningless for a free one.
    pub(crate) standings: Vec<Standing>,
    /// Slots that are ready but for a delay after their last attempt, with the milliseconds that are left of it.
    pub(crate) left_alone: Vec<(u16, u64)>,
    pub(crate) plan: Plan,
    /// The order in which ready nodes are given out.
    pub(crate) order: Vec<u16>,
}

impl Cut {
    /// What a reader sees of a node.
    pub(crate) fn seen(&self, slot: u16) -> Seen {
        self.standings.get(usize::from(slot)).map_or(Seen::Todo, |standing| standing.seen())
    }

    /// Milliseconds that a node is still left alone after its last attempt.
    pub(crate) fn left_alone_ms(&self, slot: u16) -> Option<u64> {
        self.left_alone.iter().find(|(known, _)| *known == slot).map(|&(_, left_ms)| left_ms)
    }

    /// The failed, cancelled or skipped dependency that skips a node.
    pub(crate) fn skipped_by(&self, slot: u16) -> Option<u16> {
        let fails = |parent: u16| self.standings.get(usize::from(parent)).is_some_and(|standing| standing.is_failure());
        let skips = |edge: &&Edge| edge.on_failure == OnFailure::Skip && fails(edge.parent);
        let skipped = self.standings.get(usize::from(slot)) == Some(&Standing::Skipped);
        self.graph.deps(slot).iter().find(skips).map(|edge| edge.parent).filter(|_| skipped)
    }

    /// The dependencies that keep a node from being ready.
    pub(crate) fn unsatisfied(&self, slot: u16) -> impl Iterator<Item = &Edge> {
        self.graph.deps(slot).iter().filter(|edge| {
            let parent = self.standings.get(usize::from(edge.parent));
            parent.is_none_or(|&parent| !satisfies(parent, edge.on_failure))
        })
    }
}

impl Table {
    /// Looks at everything; never writes.
    pub(crate) fn cut(&self) -> Result<Cut, Refusal> {
        let core = self.core();
        for _ in 0..TRIES {
            let (root, graph) = core.load().map_err(|stop| self.refusal(stop))?;
            let mut arrays = graph.arrays();
            let Ok(topological) = arrays.view().topological() else {
                return Err(Damaged { what: "the version in force has a loop" }.into());
            };
            let mut words = vec![<NodeWord as bytemuck::Zeroable>::zeroed(); graph.nodes.len()];
            for &slot in topological.iter().rev() {
                words[usize::from(slot)] = core.seen_word(root, slot)?;
            }
            let possible = self.only_possible_claims(root, &graph, &mut words)?;
            if !possible || core.fixed.header.root.load(Ordering::Acquire) != root {
                continue;
            }
            let mut standings = standings(&graph, &topological, &words);
            let left_alone = self.left_alone(&words, &mut standings)?;
            arrays.ended = standings.iter().map(|standing| standing.is_over()).collect();
            let waiting_below = arrays.view().chains(&topological);
            let plan = Plan { topological, waiting_below };
            let order = arrays.view().order(&plan);
            return Ok(Cut { root, graph, words, standings, left_alone, plan, order });
        }
        Err(Refusal::Contended { tries: TRIES })
    }

    /// The words are read one after the other, and a holder may have gone on from one node to another in between, or a
    /// group's seat from one holder to another. Where words show more claims than there can be, those that were read first
    /// are over: all of them are read again until they no longer do. False: it took too long.
    fn only_possible_claims(&self, root: RootWord, graph: &Graph, words: &mut [NodeWord]) -> Result<bool, Refusal> {
        let core = self.core();
        for _ in 0..AGAIN_MAX {
            // By holder, the slot that was seen claimed by it last.
            let mut held: Vec<Option<usize>> = Vec::new();
            let mut seats: [Vec<usize>; GROUPS] = [const { Vec::new() }; GROUPS];
            let mut doubtful = Vec::new();
            for (slot, word) in words.iter().enumerate() {
                let Some(holder) = word.holder() else { continue };
                let holder = usize::from(holder);
                if held.len() <= holder {
                    held.resize(holder + 1, None);
                }
                if let Some(other) = held.get_mut(holder).and_then(|last| last.replace(slot)) {
                    doubtful.extend([other, slot]);
                }
                let group = graph.node(slot as u16).map_or(0, |node| node.policy.group());
                if let Some(seats) = seats.get_mut(usize::from(group)).filter(|_| group != 0) {
                    seats.push(slot);
                }
            }
            for (seats, group) in seats.iter().zip(&graph.groups) {
                if group.is_some_and(|group| seats.len() > group.limit as usize) {
                    doubtful.extend(seats);
                }
            }
            let mut moved = false;
            for slot in doubtful {
                let now = core.seen_word(root, slot as u16)?;
                moved |= std::mem::replace(&mut words[slot], now) != now;
            }
            // Unmoved, they were all so at one moment: a group's limit may have been lowered below its claims.
            if !moved {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Finds the ready nodes that are left alone for a while, and makes them wait.
    fn left_alone(&self, words: &[NodeWord], standings: &mut [Standing]) -> Result<Vec<(u16, u64)>, Refusal> {
        let core = self.core();
        let mut left_alone = Vec::new();
        for (slot, (&word, standing)) in words.iter().zip(standings.iter_mut()).enumerate() {
            let until_ms = core.node(slot as u16)?.left_alone_until_ms(word);
            if let Some(until_ms) = until_ms.filter(|_| *standing == Standing::Ready) {
                let left_ms = until_ms.saturating_sub(clock::lease_now_ms());
                if left_ms > 0 {
                    *standing = Standing::Todo;
                    left_alone.push((slot as u16, left_ms));
                }
            }
        }
        Ok(left_alone)
    }

    /// The texts of a node as a graph has them. `None`: the graph is no longer in force.
    pub(crate) fn record_in(&self, graph: &Graph, slot: u16) -> Result<Option<Record>, Refusal> {
        graph.node(slot).map_or(Ok(None), |node| self.record_of(node))
    }

    /// The texts of a node. `None`: the version that it was read from is no longer in force.
    pub(crate) fn record_of(&self, node: &Node) -> Result<Option<Record>, Refusal> {
        let Some(bytes) = self.core().read_text(node.text)? else { return Ok(None) };
        Ok(Some(Record::decode(&bytes).ok_or(Damaged { what: "a node's record does not decode" })?))
    }

    /// The name that a node has in the version in force, if it has one; looks at nothing but that node.
    pub(crate) fn name_in_force(&self, slot: u16) -> Result<Option<String>, Refusal> {
        for _ in 0..TRIES {
            let root = self.core().fixed.header.root.load(Ordering::Acquire);
            let node = self.core().load_node(slot).map_err(|stop| self.refusal(stop))?;
            let Some(node) = node else { return Ok(None) };
            if let Some(record) = self.record_of(&node)? {
                return Ok(Some(record.name).filter(|name| !name.is_empty()));
            }
            self.look_again(root)?;
        }
        Ok(None)
    }

    /// The texts of a node in the version of `root`: those it ended with, if it ended with any. `None`: the node or the
    /// version has changed, so look anew.
    pub(crate) fn texts(
        &self,
        root: RootWord,
        graph: &Graph,
        slot: u16,
        word: NodeWord,
    ) -> Result<Option<Record>, Refusal> {
        let Phase::Ended { text: Some(head), .. } = word.state().phase else {
            let record = self.record_in(graph, slot)?;
            if record.is_none() {
                self.look_again(root)?;
            }
            return Ok(record);
        };
        let core = self.core();
        let bytes = core.read_end_text(head)?;
        let moved = root.is_pending() && core.fixed.header.root.load(Ordering::Acquire) != root;
        if moved || core.seen_word(root, slot)? != word {
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
        match (self.name_in_force(slot), self.core().load_node(slot)) {
            (Ok(Some(name)), _) => name,
            (_, Ok(Some(node))) => node.id.to_string(),
            _ => format!("node #{slot}"),
        }
    }
}
