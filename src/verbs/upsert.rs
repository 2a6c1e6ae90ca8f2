//! Upsert and import: nodes created and changed, one or thousands in one step.

use ahash::AHashSet;

use crate::clock;
use crate::error::{Damaged, NameError, Refusal};
use crate::graph::Node;
use crate::id::NodeId;
use crate::layout::{EDGES, NODES};
use crate::node::{Change, NodeSpec};
use crate::record::{Record, name_hash};
use crate::sync::Ordering;
use crate::table::hints::BORN_COUNT_BITS;
use crate::verbs::Table;
use crate::verbs::edit::{Edit, Planned};
use crate::word::{GENERATION_CLAIMABLE_MAX, NodeWord, Phase, PolicyWord, State, TextOf, TextRef};

impl Table {
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
    set(&mut record.surface, &spec.surface);
}

impl Edit<'_> {
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
        let mut pruned = None;
        if self.graph.count() + new > NODES {
            let keep: AHashSet<NodeId> = ids.iter().copied().chain(specs.iter().flat_map(references)).collect();
            // A mistyped name is the better answer than a full table.
            let own: AHashSet<&NodeId> = ids.iter().collect();
            for id in specs.iter().flat_map(references).filter(|id| !own.contains(id)) {
                self.slot(id)?;
            }
            self.graph = self.table.pruned(&self.graph, new, &keep)?;
            pruned = Some(self.graph.clone());
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
                    let at_its_end = Damaged { what: "the creation numbers are used up" };
                    self.graph.next_born = born.checked_add(1).ok_or(at_its_end)?;
                    let base = self.make_fit(slot)?;
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
                    self.unready_behind(slot)?;
                }
                self.stamp_updated(slot);
                *change = Change::Updated;
            }
        }
        self.graph.link(&edges);
        if self.graph.edges.len() > EDGES {
            return Err(Refusal::NoRoom { what: "edges", limit: EDGES as u64 });
        }
        if let Some(pruned) = pruned {
            // Room is made only for what can be added.
            self.graph.arrays().view().topological().map_err(|stuck| self.cycle(&stuck))?;
            return Ok(Planned::First(pruned));
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
                None => {
                    self.table.look_again(self.root)?;
                    return Ok(None);
                }
            },
        };
        let record = match new {
            true => Some(Record::default()),
            // Of an ended node: the texts that it ended with.
            false => self.table.texts(self.root, &self.graph, slot, self.word(slot)?)?,
        };
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
        let retry_delay_ms = spec.retry_delay_ms.unwrap_or(node.policy.retry_delay_ms());
        node.policy = PolicyWord::new(max_attempts, retry_delay_ms, group).gated(!record.surface.is_empty());
        Ok(Some(*node != old))
    }

    /// Makes a free slot fit for a new node with the step that it needs, if any; answers with the node's first generation,
    /// which is above every one that a node of the same name ever had.
    fn make_fit(&mut self, slot: u16) -> Result<u64, Refusal> {
        let word = self.word(slot)?;
        if word.is_open() && word.generation() >= self.graph.floor {
            return Ok(word.generation());
        }
        let above = (word.generation() + 1).max(self.graph.floor);
        let generation = self.core.clear_generation(slot, above)?;
        self.become_word(slot, NodeWord::new(State { generation, phase: Phase::Open }));
        Ok(generation)
    }

    /// Free slots that are fit for a new node, lowest first.
    fn free_slots(&self, count: usize) -> Result<Vec<u16>, Refusal> {
        let mut free = Vec::with_capacity(count);
        for slot in (0..NODES as u16).filter(|&slot| self.graph.node(slot).is_none()) {
            if free.len() == count {
                return Ok(free);
            }
            let word = self.core.node(slot)?.word.load(Ordering::Acquire);
            if word.generation().max(self.graph.floor) > GENERATION_CLAIMABLE_MAX || word.holder().is_some() {
                continue;
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
