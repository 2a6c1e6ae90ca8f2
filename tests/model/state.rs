//! The nodes, and the verbs that change the graph: upsert, import, link, unlink, and making room (N1-N5).

use std::collections::{BTreeMap, BTreeSet};

use tenure::{Change, NodeId, NodeSpec, Outcome, Seen, Status};

use super::answers::No;

/// An hour.
const DELAY_MS_MAX: u64 = 3_600_000;

/// What a table is made with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rules {
    pub capacity: usize,
    pub lease_ms: u64,
    pub require_fence: bool,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules { capacity: 4_096, lease_ms: tenure::LEASE_MS_DEFAULT, require_fence: false }
    }
}

/// A live claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    pub holder: String,
    pub renewed_at_ms: u64,
    pub lease_ms: u64,
}

impl Lease {
    /// A lease of 5 ms that started at 10 has run out at 15.
    pub fn has_run_out(&self, now_ms: u64) -> bool {
        now_ms >= self.renewed_at_ms + self.lease_ms
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    pub name: Option<String>,
    pub kind: String,
    pub role: String,
    pub run: String,
    pub summary: String,
    pub cost: u32,
    /// Empty is none.
    pub group: String,
    /// 0 is no limit.
    pub max_attempts: u16,
    /// How long it is left alone after its first attempt was lost or failed; twice as long after each one more.
    pub retry_delay_ms: u32,
    /// Until when that is. Not set here: who took it back, and at what time, is for whoever knows that to say. It may be known
    /// no better than as a moment between two.
    pub left_alone_ms: (u64, u64),
    /// Claims since it was made or reopened.
    pub attempts: u64,
    pub parent: Option<NodeId>,
    pub needs: BTreeSet<NodeId>,
    pub end: Option<Outcome>,
    pub lease: Option<Lease>,
    pub generation: u64,
    pub archived: bool,
    /// Counts up over all nodes: the order of creation, and of ends.
    pub created: u64,
    pub finished: u64,
}

impl Node {
    fn new(name: Option<String>, created: u64) -> Node {
        Node {
            name,
            kind: String::new(),
            role: String::new(),
            run: String::new(),
            summary: String::new(),
            cost: 1,
            group: String::new(),
            max_attempts: 0,
            retry_delay_ms: 0,
            left_alone_ms: (0, 0),
            attempts: 0,
            parent: None,
            needs: BTreeSet::new(),
            end: None,
            lease: None,
            generation: 0,
            archived: false,
            created,
            finished: 0,
        }
    }

    pub fn status(&self) -> Status {
        match (self.end, &self.lease) {
            (Some(outcome), _) => outcome.status(),
            (None, Some(_)) => Status::Claimed,
            (None, None) => Status::Open,
        }
    }

    /// How long it would be left alone if the attempt that stands were lost (C9).
    pub fn delay_ms(&self) -> u64 {
        let doublings = self.attempts.saturating_sub(1).min(32);
        (u64::from(self.retry_delay_ms) << doublings).min(DELAY_MS_MAX)
    }

    /// Whether the attempt that stands is the last one.
    pub fn is_last_attempt(&self) -> bool {
        self.max_attempts > 0 && self.attempts >= u64::from(self.max_attempts)
    }

    pub fn has_failed(&self) -> bool {
        matches!(self.end, Some(Outcome::Failed | Outcome::Cancelled))
    }
}

/// The whole table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Model {
    pub rules: Rules,
    pub nodes: BTreeMap<NodeId, Node>,
    /// How many nodes of each group may be claimed at once.
    pub groups: BTreeMap<String, u32>,
    pub ticks: u64,
}

impl Model {
    pub fn new(rules: Rules) -> Model {
        Model { rules, nodes: BTreeMap::new(), groups: BTreeMap::new(), ticks: 0 }
    }

    pub fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }

    /// What verbs print for a node: its name, else its id.
    pub fn label(&self, id: NodeId) -> String {
        self.nodes.get(&id).and_then(|n| n.name.clone()).unwrap_or_else(|| id.to_string())
    }

    pub fn node(&self, id: NodeId) -> Result<&Node, No> {
        self.nodes.get(&id).ok_or_else(|| No::new("no_such_node").node(id.to_string()))
    }

    pub fn node_mut(&mut self, id: NodeId) -> Result<&mut Node, No> {
        self.nodes.get_mut(&id).ok_or_else(|| No::new("no_such_node").node(id.to_string()))
    }

    pub fn refuse_ended(&self, id: NodeId) -> No {
        let generation = self.nodes.get(&id).map_or(0, |n| n.generation);
        No::new("ended").node(self.label(id)).status(self.seen(id)).generation(generation)
    }

    pub fn upsert(&mut self, spec: &NodeSpec, existing: bool) -> Result<(NodeId, Change), No> {
        let id = spec_id(spec)?;
        if existing && !self.nodes.contains_key(&id) {
            return Err(No::new("no_such_node").node(spec.name.clone().unwrap_or_else(|| id.to_string())));
        }
        let mut answers = self.import(std::slice::from_ref(spec))?;
        Ok(answers.remove(0))
    }

    /// All or nothing: the work is done on a copy that replaces the model at the end.
    pub fn import(&mut self, specs: &[NodeSpec]) -> Result<Vec<(NodeId, Change)>, No> {
        let ids = specs.iter().map(spec_id).collect::<Result<Vec<_>, _>>()?;
        let mut copy = self.clone();
        let mut made = BTreeSet::new();
        let mut seen = BTreeSet::new();
        for (spec, &id) in specs.iter().zip(&ids) {
            if !seen.insert(id) {
                return Err(No::new("duplicate").node(spec.name.clone().unwrap_or_else(|| id.to_string())));
            }
            if !copy.nodes.contains_key(&id) {
                made.insert(id);
            }
        }
        if copy.nodes.len() + made.len() > self.rules.capacity {
            // Nothing is pruned for the sake of a change that names a node that is not there.
            for other in specs.iter().flat_map(references).filter(|id| !seen.contains(id)) {
                self.node(other)?;
            }
            copy.make_room(made.len(), specs, &ids)?;
        }
        for (spec, &id) in specs.iter().zip(&ids) {
            if made.contains(&id) {
                let created = copy.tick();
                copy.nodes.insert(id, Node::new(spec.name.clone(), created));
            }
        }
        let mut answers = Vec::new();
        for (spec, &id) in specs.iter().zip(&ids) {
            let before = copy.nodes.get(&id).cloned();
            copy.apply(id, spec)?;
            // What already is as asked is not touched, so it may have ended.
            if before.as_ref() != copy.nodes.get(&id) && self.is_terminal(id) {
                return Err(self.refuse_ended(id));
            }
            let change = match (made.contains(&id), before.as_ref() == copy.nodes.get(&id)) {
                (true, _) => Change::Created,
                (false, true) => Change::Unchanged,
                (false, false) => Change::Updated,
            };
            answers.push((id, change));
        }
        if copy.has_loop() {
            return Err(No::new("cycle"));
        }
        *self = copy;
        Ok(answers)
    }

    /// What is not named stays, what is given as empty is cleared (N3).
    fn apply(&mut self, id: NodeId, spec: &NodeSpec) -> Result<(), No> {
        for other in spec.parent.flatten().into_iter().chain(spec.needs.iter().map(|need| need.node)) {
            if other == id {
                return Err(No::new("self_link").node(self.label(id)));
            }
            self.node(other)?;
        }
        if let Some(group) = spec.group.as_ref().filter(|group| !group.is_empty() && !self.groups.contains_key(*group))
        {
            return Err(No::new("no_such_group").node(group));
        }
        let node = self.node_mut(id)?;
        let texts = [&spec.kind, &spec.role, &spec.run, &spec.summary];
        let fields = [&mut node.kind, &mut node.role, &mut node.run, &mut node.summary];
        for (text, field) in texts.into_iter().zip(fields) {
            if let Some(text) = text {
                field.clone_from(text);
            }
        }
        node.cost = spec.cost.unwrap_or(node.cost);
        node.max_attempts = spec.max_attempts.unwrap_or(node.max_attempts);
        node.retry_delay_ms = spec.retry_delay_ms.unwrap_or(node.retry_delay_ms);
        if let Some(group) = &spec.group {
            node.group.clone_from(group);
        }
        if let Some(parent) = spec.parent {
            node.parent = parent;
        }
        node.needs.extend(spec.needs.iter().map(|need| need.node));
        Ok(())
    }

    /// Claims that stand when the limit is lowered stand on. False: it was so.
    pub fn set_group(&mut self, group: &str, limit: u32) -> bool {
        self.groups.insert(group.to_owned(), limit) != Some(limit)
    }

    /// Whether as many nodes of the node's group are claimed as may be at once.
    pub fn is_group_full(&self, id: NodeId) -> bool {
        let Some(node) = self.nodes.get(&id).filter(|node| !node.group.is_empty()) else { return false };
        let claimed = self.nodes.values().filter(|other| other.group == node.group && other.lease.is_some()).count();
        self.groups.get(&node.group).is_some_and(|&limit| claimed as u64 >= u64::from(limit))
    }

    pub fn link(&mut self, parent: NodeId, child: NodeId) -> Result<bool, No> {
        self.check_edge(parent, child)?;
        let node = self.node(child)?;
        if node.needs.contains(&parent) {
            return Ok(false);
        }
        if node.end.is_some() {
            return Err(self.refuse_ended(child));
        }
        let mut copy = self.clone();
        copy.node_mut(child)?.needs.insert(parent);
        if copy.has_loop() {
            return Err(No::new("cycle"));
        }
        *self = copy;
        Ok(true)
    }

    fn check_edge(&self, parent: NodeId, child: NodeId) -> Result<(), No> {
        self.node(parent)?;
        self.node(child)?;
        if parent == child { Err(No::new("self_link").node(self.label(parent))) } else { Ok(()) }
    }

    pub fn unlink(&mut self, parent: NodeId, child: NodeId) -> Result<bool, No> {
        self.check_edge(parent, child)?;
        if !self.node(child)?.needs.contains(&parent) {
            return Ok(false);
        }
        if self.node(child)?.end.is_some() {
            return Err(self.refuse_ended(child));
        }
        Ok(self.node_mut(child)?.needs.remove(&parent))
    }

    /// Whether dependency and parent edges, taken together as one directed graph, close a loop: take away nodes that
    /// nothing points at until none is left or none can be taken.
    pub fn has_loop(&self) -> bool {
        let above = |n: &Node| n.needs.iter().copied().chain(n.parent).collect::<BTreeSet<_>>();
        let mut left: BTreeMap<NodeId, BTreeSet<NodeId>> = self.nodes.iter().map(|(&id, n)| (id, above(n))).collect();
        loop {
            let free: Vec<NodeId> =
                left.iter().filter(|(_, up)| up.iter().all(|u| !left.contains_key(u))).map(|(&id, _)| id).collect();
            if free.is_empty() {
                return !left.is_empty();
            }
            free.iter().for_each(|id| {
                left.remove(id);
            });
        }
    }

    /// N5. Nodes that the same import names stay.
    fn make_room(&mut self, new: usize, specs: &[NodeSpec], ids: &[NodeId]) -> Result<(), No> {
        let named: BTreeSet<NodeId> = specs.iter().flat_map(references).chain(ids.iter().copied()).collect();
        while self.nodes.len() + new > self.rules.capacity {
            let victim = self
                .nodes
                .iter()
                .filter(|(id, n)| n.end.is_some() && !named.contains(id) && !self.still_blocks(**id))
                .min_by_key(|(_, n)| (!n.archived, n.finished))
                .map(|(&id, _)| id);
            match victim {
                Some(id) => self.prune(id),
                None => return Err(No::new("full")),
            }
        }
        Ok(())
    }

    /// Whether somebody unfinished waits for this failed or cancelled node.
    fn still_blocks(&self, id: NodeId) -> bool {
        let failed = self.nodes.get(&id).is_some_and(Node::has_failed);
        failed && self.nodes.values().any(|n| n.end.is_none() && n.needs.contains(&id))
    }

    /// Its edges go with it; what stood under it in the forest moves up to its parent.
    fn prune(&mut self, id: NodeId) {
        let parent = self.nodes.remove(&id).and_then(|n| n.parent);
        for node in self.nodes.values_mut() {
            node.needs.remove(&id);
            if node.parent == Some(id) {
                node.parent = parent;
            }
        }
    }

    pub fn is_terminal(&self, id: NodeId) -> bool {
        self.nodes.get(&id).is_some_and(|n| n.end.is_some())
    }

    /// What a reader sees; a node that is not there reads as `todo`, which no caller reaches.
    pub fn seen(&self, id: NodeId) -> Seen {
        self.derive().seen.get(&id).copied().unwrap_or(Seen::Todo)
    }
}

/// The nodes that a spec refers to.
fn references(spec: &NodeSpec) -> impl Iterator<Item = NodeId> + '_ {
    spec.needs.iter().map(|need| need.node).chain(spec.parent.flatten())
}

/// The id that a spec speaks of (N1).
pub fn spec_id(spec: &NodeSpec) -> Result<NodeId, No> {
    match (spec.id, &spec.name) {
        (Some(id), Some(name)) if id != NodeId::of_name(name) => Err(No::new("bad_name")),
        (Some(id), _) => Ok(id),
        (None, Some(name)) => Ok(NodeId::of_name(name)),
        (None, None) => Ok(NodeId::fresh()),
    }
}
