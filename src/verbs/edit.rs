//! Changes of the graph: upsert, import, link, unlink, reopen.

use crate::clock;
use crate::derive::Loop;
use crate::error::{Damaged, Refusal};
use crate::graph::{Edge, Graph};
use crate::id::NodeId;
use crate::layout::NODES;
use crate::node::{Need, OnFailure, Seen};
use crate::sync::Ordering;
use crate::table::change::{PublishError, Published};
use crate::table::text::Draft;
use crate::table::{Core, TRIES};
use crate::verbs::Table;
use crate::word::{NodeWord, Phase, RootWord, Step, TextOf, TextRef};

/// A change in the making: a private copy of the version in force, what it will have to be done with, and its texts.
pub(crate) struct Edit<'m> {
    pub(crate) core: Core<'m>,
    pub(crate) root: RootWord,
    pub(crate) graph: Graph,
    pub(crate) steps: Vec<Step>,
    /// What steps that set a node's word set it to.
    targets: Vec<(u16, NodeWord)>,
    draft: Draft<'m>,
    pub(crate) table: &'m Table,
}

/// What a change came to, as far as the copy tells.
pub(crate) enum Planned<T> {
    /// Nothing has to change; the answer is read off the version in force.
    Nothing(T),
    /// The copy is to take the place of the version in force.
    Publish(T),
    /// This graph is to take the place first, and then everything is planned anew.
    First(Graph),
    /// The copy was out of date: begin anew.
    Again,
}

impl Table {
    /// Plans a change on a private copy and publishes it, as often as it takes.
    pub(crate) fn change<T>(
        &self,
        mut plan: impl FnMut(&mut Edit<'_>) -> Result<Planned<T>, Refusal>,
    ) -> Result<T, Refusal> {
        let core = self.core_mut()?;
        let stopped = |stop| self.refusal(stop);
        for _ in 0..TRIES {
            core.settled_root().map_err(stopped)?;
            let (root, graph) = core.load().map_err(stopped)?;
            if root.is_pending() {
                continue;
            }
            let mut edit =
                Edit { core, root, graph, steps: Vec::new(), targets: Vec::new(), draft: core.draft(), table: self };
            let planned = plan(&mut edit);
            let is_current = || core.fixed.header.root.load(Ordering::Acquire) == root;
            match planned {
                // What follows from a version that is no longer in force is no answer.
                Err(refusal) if is_current() => return Err(refusal),
                Ok(Planned::Nothing(answer)) if is_current() => return Ok(answer),
                Err(_) | Ok(Planned::Nothing(_) | Planned::Again) => {}
                Ok(Planned::First(graph)) => match core.publish(root, &graph, &[], &[]) {
                    Ok(_) => {}
                    Err(PublishError::Stop(stop)) => return Err(self.refusal(stop)),
                    Err(PublishError::Loop(_)) => {
                        return Err(Damaged { what: "the version in force has a loop" }.into());
                    }
                },
                Ok(Planned::Publish(answer)) => match core.publish(root, &edit.graph, &edit.steps, &edit.targets) {
                    Ok(Published::InForce) => return Ok(answer),
                    Ok(Published::Stale) => {}
                    Err(PublishError::Stop(stop)) => return Err(self.refusal(stop)),
                    Err(PublishError::Loop(stuck)) => {
                        return Err(edit.cycle(&stuck));
                    }
                },
            }
        }
        Err(Refusal::Contended { tries: TRIES })
    }

    /// `child` waits for `parent`. False: it already did, and nothing changed.
    ///
    /// # Errors
    /// [`Refusal::NoSuchNode`], [`Refusal::SelfLink`], [`Refusal::Cycle`]; [`Refusal::Ended`] when the child has ended.
    pub fn link(&self, parent: NodeId, child: NodeId) -> Result<bool, Refusal> {
        self.link_with(Need::from(parent), child)
    }

    /// As [`link`](Table::link), and says what the child does when the parent fails.
    ///
    /// # Errors
    /// As [`link`](Table::link).
    pub fn link_with(&self, need: Need, child: NodeId) -> Result<bool, Refusal> {
        self.change(|edit| {
            let (parent, child) = edit.ends(need.node, child)?;
            let old = edit.graph.edge(parent, child);
            let edge = edit.wanted_edge(parent, child, need.on_failure);
            if old == Some(edge) {
                return Ok(Planned::Nothing(false));
            }
            edit.touch(child)?;
            edit.unready_behind(child)?;
            edit.graph.link(&[edge]);
            edit.stamp_updated(child);
            Ok(Planned::Publish(true))
        })
    }

    /// `child` no longer waits for `parent`. False: it did not.
    ///
    /// # Errors
    /// [`Refusal::NoSuchNode`], [`Refusal::SelfLink`]; [`Refusal::Ended`] when the child has ended.
    pub fn unlink(&self, parent: NodeId, child: NodeId) -> Result<bool, Refusal> {
        self.change(|edit| {
            let (parent, child) = edit.ends(parent, child)?;
            if edit.graph.edge(parent, child).is_none() {
                return Ok(Planned::Nothing(false));
            }
            edit.touch(child)?;
            edit.unready_behind(child)?;
            edit.graph.unlink(parent, child);
            edit.stamp_updated(child);
            Ok(Planned::Publish(true))
        })
    }

    /// An ended node is open again; answers with its new generation. Its dependents that are open wait for it again;
    /// those that are claimed or have ended stay as they are.
    ///
    /// # Errors
    /// [`Refusal::NoSuchNode`], [`Refusal::NotEnded`], [`Refusal::Skipped`], which names the node to reopen instead;
    /// [`Refusal::Exhausted`].
    pub fn reopen(&self, node: NodeId) -> Result<u64, Refusal> {
        self.change(|edit| {
            let slot = edit.slot(node)?;
            let word = edit.word(slot)?;
            let Phase::Ended { text, .. } = word.state().phase else {
                let cut = edit.table.cut()?;
                if cut.root != edit.root || edit.word(slot)? != word {
                    // It may have ended since its word was read.
                    return Ok(Planned::Again);
                }
                let node = edit.label(slot);
                return Err(match cut.skipped_by(slot) {
                    Some(by) => Refusal::Skipped { node, by: edit.label(by) },
                    None => Refusal::NotEnded { node, status: cut.seen(slot) },
                });
            };
            let Some(opened) = word.opened() else {
                return Err(Refusal::Exhausted { node: edit.label(slot), what: "generations" });
            };
            // The text that it ended with becomes the record that it goes on with.
            if let Some(head) = text {
                let block = edit.core.fixed.blocks.get(usize::from(head));
                let record = block.map_or(TextRef::NONE, |block| block.text.load(Ordering::Acquire));
                if edit.word(slot)? != word {
                    return Ok(Planned::Again);
                }
                if record.is_none() || record.of() != TextOf::Node(slot) {
                    return Err(Damaged { what: "the text that a node ended with is not there" }.into());
                }
                if let Some(node) = edit.graph.node_mut(slot).filter(|node| node.text != record) {
                    // First and by itself, since nobody sees it: an ended node shows the text that it ended with. So
                    // when the node opens it already has that text.
                    node.text = record;
                    return Ok(Planned::First(edit.graph.clone()));
                }
            }
            if let Some(node) = edit.graph.node_mut(slot) {
                // Attempts are counted anew.
                node.base = opened.generation();
            }
            edit.unready_behind(slot)?;
            // If it is archived at the last moment its generation is there already, and everything is planned anew.
            edit.become_word(slot, opened);
            edit.stamp_updated(slot);
            Ok(Planned::Publish(opened.generation()))
        })
    }
}

impl Edit<'_> {
    pub(crate) fn word(&self, slot: u16) -> Result<NodeWord, Refusal> {
        Ok(self.core.node(slot)?.word.load(Ordering::Acquire))
    }

    pub(crate) fn slot(&self, id: NodeId) -> Result<u16, Refusal> {
        self.graph.slot_of(id).ok_or_else(|| Refusal::NoSuchNode { node: id.to_string() })
    }

    fn ends(&self, parent: NodeId, child: NodeId) -> Result<(u16, u16), Refusal> {
        let (parent, child) = (self.slot(parent)?, self.slot(child)?);
        if parent == child {
            return Err(Refusal::SelfLink { node: self.label(child) });
        }
        Ok((parent, child))
    }

    /// The edge between the two as it is to be: in the mode that is asked for, else the one it has, else `Block`.
    pub(crate) fn wanted_edge(&self, parent: u16, child: u16, on_failure: Option<OnFailure>) -> Edge {
        let has = self.graph.edge(parent, child).map(|edge| edge.on_failure);
        Edge { parent, child, on_failure: on_failure.or(has).unwrap_or_default() }
    }

    /// What waits for `slot` may lose its readiness: its children, and behind those that its failure skips, or would no
    /// longer skip, their children too.
    pub(crate) fn unready_behind(&mut self, slot: u16) -> Result<(), Refusal> {
        let mut met = vec![false; NODES];
        let mut left = vec![slot];
        let mut reached = Vec::new();
        while let Some(at) = left.pop() {
            for edge in self.graph.edges.iter().filter(|edge| edge.parent == at) {
                if !std::mem::replace(&mut met[usize::from(edge.child)], true) {
                    reached.push(edge.child);
                    if edge.on_failure == OnFailure::Skip {
                        left.push(edge.child);
                    }
                }
            }
        }
        for &child in &reached {
            let word = self.word(child)?;
            if !word.is_ended() && word.bumped().is_none() {
                return Err(self.used_up(child, word));
            }
        }
        self.steps.extend(reached.into_iter().map(Step::Unready));
        Ok(())
    }

    /// A counter of this node is at its end.
    fn used_up(&self, slot: u16, word: NodeWord) -> Refusal {
        let what = if word.is_open() { "generations" } else { "changes while it is held (8,191 a claim)" };
        Refusal::Exhausted { node: self.label(slot), what }
    }

    /// Sets the word of `slot` together with this change. Its generation must be above the one it has now.
    pub(crate) fn become_word(&mut self, slot: u16, word: NodeWord) {
        self.targets.push((slot, word));
        self.steps.push(Step::Become(slot));
    }

    /// The loop that the copy has, in words.
    pub(crate) fn cycle(&self, stuck: &Loop) -> Refusal {
        Refusal::Cycle { path: self.graph.a_loop(stuck).iter().map(|&slot| self.label(slot)).collect() }
    }

    /// The name of a node in this copy, for messages.
    pub(crate) fn label(&self, slot: u16) -> String {
        self.table.label_in(&self.graph, slot)
    }

    pub(crate) fn write_text(&mut self, of: TextOf, bytes: &[u8]) -> Result<TextRef, Refusal> {
        self.draft.write(of, bytes).map_err(|stop| self.table.refusal(stop))
    }

    pub(crate) fn stamp_updated(&mut self, slot: u16) {
        let now = clock::wall_now_ms();
        if let Some(node) = self.graph.node_mut(slot) {
            node.updated_ms = now;
        }
    }

    /// `slot` is going to change, which it only may while it has not ended.
    pub(crate) fn touch(&mut self, slot: u16) -> Result<(), Refusal> {
        let word = self.word(slot)?;
        if let Phase::Ended { outcome, .. } = word.state().phase {
            let status = outcome.status().seen(Seen::Ready);
            return Err(Refusal::Ended { node: self.label(slot), status, generation: word.generation() });
        }
        if word.bumped().is_none() {
            return Err(self.used_up(slot, word));
        }
        self.steps.push(Step::Touch(slot));
        Ok(())
    }
}
