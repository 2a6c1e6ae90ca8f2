//! Changes of the graph: upsert, import, link, unlink, reopen.

use ahash::AHashSet;

use crate::clock;
use crate::error::{Damaged, NameError, Refusal};
use crate::graph::{Edge, Graph, Node};
use crate::id::NodeId;
use crate::layout::{EDGES, NODES};
use crate::node::{Change, Need, NodeSpec, OnFailure, Seen};
use crate::record::{Record, name_hash};
use crate::sync::Ordering;
use crate::table::change::{PublishError, Published};
use crate::table::hints::BORN_COUNT_BITS;
use crate::table::text::Draft;
use crate::table::{Core, TRIES};
use crate::verbs::Table;
use crate::word::{
    GENERATION_CLAIMABLE_MAX, GENERATION_MAX, NodeWord, Phase, PolicyWord, RootWord, Step, TextOf, TextRef,
};

/// A change in the making: a private copy of the version in force, what it will have to be done with, and its texts.
pub(crate) struct Edit<'m> {
    pub(crate) core: Core<'m>,
    pub(crate) root: RootWord,
    pub(crate) graph: Graph,
    pub(crate) steps: Vec<Step>,
    /// What steps that set a node's word set it to.
    targets: Vec<(u16, NodeWord)>,
    draft: Draft<'m>,
    table: &'m Table,
}

/// What a change came to, as far as the copy tells.
pub(crate) enum Planned<T> {
    /// Nothing has to change; the answer is read off the version in force.
    Nothing(T),
    /// The copy is to take the place of the version in force.
    Publish(T),
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
            match plan(&mut edit)? {
                Planned::Again => {}
                Planned::Nothing(answer) if core.fixed.header.root.load(Ordering::Acquire) == root => {
                    return Ok(answer);
                }
                Planned::Nothing(_) => {}
                Planned::Publish(answer) => match core.publish(root, &edit.graph, &edit.steps, &edit.targets) {
                    Ok(Published::InForce) => return Ok(answer),
                    Ok(Published::Stale) => {}
                    Err(PublishError::Stop(stop)) => return Err(self.refusal(stop)),
                    Err(PublishError::Loop(stuck)) => {
                        let path = edit.graph.a_loop(&stuck);
                        return Err(Refusal::Cycle { path: path.iter().map(|&slot| edit.label(slot)).collect() });
                    }
                },
            }
        }
        Err(Refusal::Contended { tries: TRIES })
    }

    /// Creates or updates one node; `existing` refuses to create. All fields change in one step.
    ///
    /// # Errors
    /// [`Refusal::NoSuchNode`] for an unknown parent or dependency, or with `existing`; [`Refusal::Ended`],
    /// [`Refusal::Cycle`], [`Refusal::Full`], [`Refusal::Name`] and the like; nothing has changed then.
    pub fn upsert(&self, spec: &NodeSpec, existing: bool) -> Result<(NodeId, Change), Refusal> {
        let id = spec_id(spec)?;
        let changes = self.apply(&[id], std::slice::from_ref(spec), existing)?;
        Ok((id, changes.first().copied().unwrap_or(Change::Unchanged)))
    }

    /// Creates or updates many nodes with their dependencies in one step that others see whole or not at all; one answer
    /// per spec, in order. `needs` and `parent` may name nodes of the same import or of the table.
    ///
    /// # Errors
    /// As [`upsert`](Table::upsert), and [`Refusal::Duplicate`] when a node stands twice.
    pub fn import(&self, specs: &[NodeSpec]) -> Result<Vec<(NodeId, Change)>, Refusal> {
        let ids = specs.iter().map(spec_id).collect::<Result<Vec<_>, _>>()?;
        let changes = self.apply(&ids, specs, false)?;
        Ok(ids.into_iter().zip(changes).collect())
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
            edit.unready_behind(child);
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
            if !edit.graph.unlink(parent, child) {
                return Ok(Planned::Nothing(false));
            }
            edit.touch(child)?;
            edit.unready_behind(child);
            edit.stamp_updated(child);
            Ok(Planned::Publish(true))
        })
    }

    /// An ended node is open again; answers with its new generation. Its dependents that are open wait for it again;
    /// those that are claimed or have ended stay as they are.
    ///
    /// # Errors
    /// [`Refusal::NoSuchNode`], [`Refusal::NotEnded`], [`Refusal::Exhausted`].
    pub fn reopen(&self, node: NodeId) -> Result<u64, Refusal> {
        self.change(|edit| {
            let slot = edit.slot(node)?;
            let word = edit.word(slot)?;
            let Phase::Ended { text, .. } = word.state().phase else {
                return Err(Refusal::NotEnded { node: edit.label(slot), status: edit.seen(slot)? });
            };
            if word.generation() >= GENERATION_MAX {
                return Err(Refusal::Exhausted { node: edit.label(slot), what: "generations" });
            }
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
                if let Some(node) = edit.graph.node_mut(slot) {
                    node.text = record;
                }
            }
            if let Some(node) = edit.graph.node_mut(slot) {
                // Attempts are counted anew.
                node.base = word.generation() + 1;
            }
            edit.unready_behind(slot);
            edit.steps.push(Step::Open(slot));
            edit.stamp_updated(slot);
            Ok(Planned::Publish(word.generation() + 1))
        })
    }

    fn apply(&self, ids: &[NodeId], specs: &[NodeSpec], existing: bool) -> Result<Vec<Change>, Refusal> {
        let mut seen = AHashSet::with_capacity(ids.len());
        for (id, spec) in ids.iter().zip(specs) {
            check_spec(spec)?;
            if !seen.insert(*id) {
                return Err(Refusal::Duplicate { node: spec.name.clone().unwrap_or_else(|| id.to_string()) });
            }
        }
        self.change(|edit| edit.plan_upserts(ids, specs, existing))
    }
}

/// The id that a spec is about.
fn spec_id(spec: &NodeSpec) -> Result<NodeId, Refusal> {
    match (&spec.name, spec.id) {
        (Some(name), id) => {
            crate::id::check_name("name", name)?;
            let of_name = NodeId::of_name(name);
            match id {
                Some(id) if id != of_name => Err(Refusal::NameMismatch { id, name: name.clone() }),
                _ => Ok(of_name),
            }
        }
        (None, Some(id)) => Ok(id),
        (None, None) => Ok(NodeId::fresh()),
    }
}

/// The limits of the texts, before anything is looked up.
fn check_spec(spec: &NodeSpec) -> Result<(), NameError> {
    let mut record = Record::default();
    set_texts(&mut record, spec);
    record.check()
}

/// Puts the text fields that a spec names into a record.
fn set_texts(record: &mut Record, spec: &NodeSpec) {
    let set = |field: &mut String, value: &Option<String>| {
        if let Some(value) = value {
            field.clone_from(value);
        }
    };
    set(&mut record.name, &spec.name);
    set(&mut record.kind, &spec.kind);
    set(&mut record.role, &spec.role);
    set(&mut record.summary, &spec.summary);
    set(&mut record.run, &spec.run);
}

impl Edit<'_> {
    pub(crate) fn word(&self, slot: u16) -> Result<NodeWord, Refusal> {
        Ok(self.core.node(slot)?.word.load(Ordering::Acquire))
    }

    fn slot(&self, id: NodeId) -> Result<u16, Refusal> {
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
    fn wanted_edge(&self, parent: u16, child: u16, on_failure: Option<OnFailure>) -> Edge {
        let has = self.graph.edge(parent, child).map(|edge| edge.on_failure);
        Edge { parent, child, on_failure: on_failure.or(has).unwrap_or_default() }
    }

    /// What waits for `slot` may lose its readiness: its children, and behind those that its failure skips, or would no
    /// longer skip, their children too.
    fn unready_behind(&mut self, slot: u16) {
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
        self.steps.extend(reached.into_iter().map(Step::Unready));
    }

    /// Sets the word of `slot` together with this change. Its generation must be above the one it has now.
    pub(crate) fn become_word(&mut self, slot: u16, word: NodeWord) {
        self.targets.push((slot, word));
        self.steps.push(Step::Become(slot));
    }

    /// The name of a node in this copy, for messages.
    pub(crate) fn label(&self, slot: u16) -> String {
        self.table.label_in(&self.graph, slot)
    }

    /// What a reader sees of a node that is not blocked or waiting: for messages.
    fn seen(&self, slot: u16) -> Result<Seen, Refusal> {
        let mut waits = false;
        for edge in self.graph.deps(slot) {
            waits |= !self.word(edge.parent)?.is_done();
        }
        Ok(self.word(slot)?.status().seen(if waits { Seen::Todo } else { Seen::Ready }))
    }

    pub(crate) fn write_text(&mut self, of: TextOf, bytes: &[u8]) -> Result<TextRef, Refusal> {
        self.draft.write(of, bytes).map_err(|stop| self.table.refusal(stop))
    }

    fn stamp_updated(&mut self, slot: u16) {
        let now = clock::wall_now_ms();
        if let Some(node) = self.graph.node_mut(slot) {
            node.updated_ms = now;
        }
    }

    /// `slot` is going to change, which it only may while it has not ended.
    fn touch(&mut self, slot: u16) -> Result<(), Refusal> {
        let word = self.word(slot)?;
        if let Phase::Ended { outcome, .. } = word.state().phase {
            let status = outcome.status().seen(Seen::Ready);
            return Err(Refusal::Ended { node: self.label(slot), status, generation: word.generation() });
        }
        if word.bumped().is_none() {
            let what = if word.is_open() { "generations" } else { "changes while it is held (2,047 a claim)" };
            return Err(Refusal::Exhausted { node: self.label(slot), what });
        }
        self.steps.push(Step::Touch(slot));
        Ok(())
    }

    fn plan_upserts(
        &mut self,
        ids: &[NodeId],
        specs: &[NodeSpec],
        existing: bool,
    ) -> Result<Planned<Vec<Change>>, Refusal> {
        let old: Vec<Option<u16>> = ids.iter().map(|&id| self.graph.slot_of(id)).collect();
        if existing && let Some(missing) = old.iter().position(Option::is_none) {
            return Err(Refusal::NoSuchNode { node: specs[missing].name.clone().unwrap_or(ids[missing].to_string()) });
        }
        let new = old.iter().filter(|slot| slot.is_none()).count();
        if self.graph.count() + new > NODES {
            let keep: AHashSet<NodeId> = ids.iter().copied().chain(specs.iter().flat_map(references)).collect();
            self.check_references(ids, specs)?;
            self.table.make_room(self.root, &self.graph, new, &keep)?;
            return Ok(Planned::Again);
        }
        let mut free = self.free_slots(new)?.into_iter();
        let now = clock::wall_now_ms();
        let mut slots = Vec::with_capacity(ids.len());
        let mut changes = Vec::with_capacity(ids.len());
        for (&id, old) in ids.iter().zip(&old) {
            let (slot, change) = match old {
                Some(slot) => (*slot, Change::Unchanged),
                None => {
                    let Some(slot) = free.next() else { return Ok(Planned::Again) };
                    let born = self.graph.next_born.max(clock::lease_now_ms() << BORN_COUNT_BITS);
                    self.graph.next_born = born + 1;
                    let word = self.word(slot)?;
                    let base = word.generation() + u64::from(word.is_ended());
                    self.graph.insert(slot, fresh_node(id, born, base, now));
                    (slot, Change::Created)
                }
            };
            slots.push(slot);
            changes.push(change);
        }
        let mut edges = Vec::new();
        for ((&slot, spec), change) in slots.iter().zip(specs).zip(&mut changes) {
            let Some(fields) = self.set_fields(slot, spec, *change == Change::Created)? else {
                self.table.look_again(self.root)?;
                return Ok(Planned::Again);
            };
            let mut linked = false;
            for need in &spec.needs {
                let edge = self.wanted_edge(self.slot(need.node)?, slot, need.on_failure);
                if edge.parent == slot {
                    return Err(Refusal::SelfLink { node: self.label_of_spec(slot, spec) });
                }
                if self.graph.edge(edge.parent, slot) != Some(edge) {
                    linked = true;
                    edges.push(edge);
                }
            }
            if *change == Change::Unchanged && (fields || linked) {
                self.touch(slot)?;
                if linked {
                    self.unready_behind(slot);
                }
                self.stamp_updated(slot);
                *change = Change::Updated;
            }
        }
        self.graph.link(&edges);
        if self.graph.edges.len() > EDGES {
            return Err(Refusal::NoRoom { what: "edges", limit: EDGES as u64 });
        }
        let nothing = changes.iter().all(|change| *change == Change::Unchanged);
        Ok(if nothing { Planned::Nothing(changes) } else { Planned::Publish(changes) })
    }

    fn label_of_spec(&self, slot: u16, spec: &NodeSpec) -> String {
        spec.name.clone().unwrap_or_else(|| self.label(slot))
    }

    /// Writes the fields that the spec names. True: something differs from before. `None`: the node's record was used
    /// again since the copy was made.
    fn set_fields(&mut self, slot: u16, spec: &NodeSpec, new: bool) -> Result<Option<bool>, Refusal> {
        let parent = match spec.parent {
            None => self.graph.node(slot).and_then(|n| n.parent),
            Some(None) => None,
            Some(Some(id)) => Some(self.slot(id)?),
        };
        if parent == Some(slot) {
            return Err(Refusal::SelfLink { node: self.label_of_spec(slot, spec) });
        }
        let group = match spec.group.as_deref() {
            None => self.graph.node(slot).map_or(0, |n| n.policy.group()),
            Some("") => 0,
            Some(name) => match self.group_number(name)? {
                Some(number) => number,
                None => return Ok(None),
            },
        };
        let record = if new { Some(Record::default()) } else { self.table.record_in(&self.graph, slot)? };
        let Some(before) = record else { return Ok(None) };
        let mut record = before.clone();
        set_texts(&mut record, spec);
        let text_changed = new || record != before;
        let text = if text_changed { Some(self.write_text(TextOf::Node(slot), &record.encode())?) } else { None };
        let Some(node) = self.graph.node_mut(slot) else { return Ok(None) };
        let old = *node;
        node.parent = parent;
        node.cost = spec.cost.unwrap_or(node.cost);
        node.role = if record.role.is_empty() { 0 } else { name_hash(&record.role) };
        node.text = text.unwrap_or(node.text);
        let max_attempts = spec.max_attempts.unwrap_or(node.policy.max_attempts());
        node.policy = PolicyWord::new(max_attempts, spec.retry_delay_ms.unwrap_or(node.policy.retry_delay_ms()), group);
        Ok(Some(*node != old))
    }

    /// Unknown references are found before anything is pruned for the sake of a change that cannot be made.
    fn check_references(&self, ids: &[NodeId], specs: &[NodeSpec]) -> Result<(), Refusal> {
        let own: AHashSet<&NodeId> = ids.iter().collect();
        for id in specs.iter().flat_map(references).filter(|id| !own.contains(id)) {
            self.slot(id)?;
        }
        Ok(())
    }

    /// Free slots that are fit for a new node, lowest first, each with the step that opens it if it needs one.
    fn free_slots(&mut self, count: usize) -> Result<Vec<u16>, Refusal> {
        let mut free = Vec::with_capacity(count);
        for slot in (0..NODES as u16).filter(|&slot| self.graph.node(slot).is_none()) {
            if free.len() == count {
                return Ok(free);
            }
            let word = self.core.node(slot)?.word.load(Ordering::Acquire);
            if word.generation() > GENERATION_CLAIMABLE_MAX || word.holder().is_some() {
                continue;
            }
            if word.is_ended() {
                self.steps.push(Step::Open(slot));
            }
            free.push(slot);
        }
        if free.len() == count {
            return Ok(free);
        }
        Err(Refusal::Full { live: self.graph.count() as u32, capacity: NODES as u32 })
    }
}

/// The nodes that a spec refers to.
fn references(spec: &NodeSpec) -> impl Iterator<Item = NodeId> + '_ {
    spec.needs.iter().map(|need| need.node).chain(spec.parent.flatten())
}

fn fresh_node(id: NodeId, born: u64, base: u64, now_ms: u64) -> Node {
    let policy = PolicyWord::new(0, 0, 0);
    let (created_ms, updated_ms) = (now_ms, now_ms);
    Node { id, text: TextRef::NONE, cost: 1, parent: None, role: 0, born, created_ms, updated_ms, base, policy }
}
