//! One version of the graph in private memory: what a change is made on, and what readers look at.
//!
//! Pure data. A writer copies the version in force into a `Graph`, changes it, derives from it, and writes the result
//! out as the next version; nobody else ever sees the steps between.

use crate::derive::{Loop, View};
use crate::id::NodeId;
use crate::layout::{GROUPS, HOLDERS, INDEX, NODES, edge_bits};
use crate::node::OnFailure;
use crate::word::{PolicyWord, TextRef};

/// The fields of one node that a version holds. Names and texts are in its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) text: TextRef,
    pub(crate) cost: u32,
    pub(crate) parent: Option<u16>,
    /// Hash of the role's name; 0 is no role.
    pub(crate) role: u64,
    pub(crate) born: u64,
    pub(crate) created_ms: u64,
    pub(crate) updated_ms: u64,
    /// The generation that attempts are counted from.
    pub(crate) base: u64,
    pub(crate) policy: PolicyWord,
}

/// A holder name that a version knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) name: TextRef,
    pub(crate) hash: u64,
}

/// A group that a version knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: TextRef,
    pub(crate) hash: u64,
    /// How many of its nodes may be claimed at once.
    pub(crate) limit: u32,
}

/// A dependency: `child` waits for `parent`. Ordered by child, so that a node's dependencies stand together; at most one
/// joins the same two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) child: u16,
    pub(crate) parent: u16,
    pub(crate) on_failure: OnFailure,
}

impl Edge {
    fn ends(&self) -> (u16, u16) {
        (self.child, self.parent)
    }
}

/// A version of the graph.
#[derive(Clone)]
pub(crate) struct Graph {
    /// By slot. The last entry is present, or there is none.
    pub(crate) nodes: Vec<Option<Node>>,
    /// Sorted, without repeats.
    pub(crate) edges: Vec<Edge>,
    /// By holder slot; slot 0 is never used.
    pub(crate) holders: Vec<Option<Holder>>,
    /// By group number; 0 is never used.
    pub(crate) groups: Vec<Option<Group>>,
    pub(crate) next_born: u64,
    /// New nodes begin at no lower generation.
    pub(crate) floor: u64,
    /// `slot + 1` by id, open addressing with linear probing.
    pub(crate) index: Vec<u16>,
}

/// Where the search for an id begins.
pub(crate) fn index_home(id: NodeId) -> usize {
    ((id.0 ^ (id.0 >> 64)) as usize) % INDEX
}

impl Graph {
    pub(crate) fn node(&self, slot: u16) -> Option<&Node> {
        self.nodes.get(usize::from(slot))?.as_ref()
    }

    pub(crate) fn node_mut(&mut self, slot: u16) -> Option<&mut Node> {
        self.nodes.get_mut(usize::from(slot))?.as_mut()
    }

    /// Slots and nodes, by slot.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u16, &Node)> {
        self.nodes.iter().enumerate().filter_map(|(slot, node)| Some((slot as u16, node.as_ref()?)))
    }

    pub(crate) fn count(&self) -> usize {
        self.nodes.iter().flatten().count()
    }

    /// The slot of the node with this id.
    pub(crate) fn slot_of(&self, id: NodeId) -> Option<u16> {
        let home = index_home(id);
        for probe in 0..INDEX {
            let slot = self.index.get((home + probe) % INDEX)?.checked_sub(1)?;
            if self.node(slot).is_some_and(|node| node.id == id) {
                return Some(slot);
            }
        }
        None
    }

    /// Puts a node into a free slot below [`NODES`].
    pub(crate) fn insert(&mut self, slot: u16, node: Node) {
        let at = usize::from(slot);
        if self.nodes.len() <= at {
            self.nodes.resize(at + 1, None);
        }
        self.nodes[at] = Some(node);
        Graph::enter(&mut self.index, node.id, slot);
    }

    /// Takes nodes out, with their edges; what belonged under one now belongs under its parent.
    pub(crate) fn remove(&mut self, gone: &[u16]) {
        let mut is_gone = vec![false; NODES];
        gone.iter().for_each(|&slot| is_gone[usize::from(slot)] = true);
        let parents: Vec<Option<u16>> = self.nodes.iter().map(|n| n.and_then(|n| n.parent)).collect();
        for node in self.nodes.iter_mut().flatten() {
            // The forest has no loop, so this ends; the bound is for safety's sake alone.
            for _ in 0..NODES {
                match node.parent {
                    Some(parent) if is_gone[usize::from(parent)] => node.parent = parents[usize::from(parent)],
                    _ => break,
                }
            }
        }
        for &slot in gone {
            self.nodes[usize::from(slot)] = None;
        }
        self.edges.retain(|e| !is_gone[usize::from(e.child)] && !is_gone[usize::from(e.parent)]);
        while self.nodes.last().is_some_and(Option::is_none) {
            self.nodes.pop();
        }
        self.index = vec![0; INDEX];
        for (slot, node) in self.nodes.iter().enumerate() {
            if let Some(node) = node {
                Graph::enter(&mut self.index, node.id, slot as u16);
            }
        }
    }

    fn enter(index: &mut [u16], id: NodeId, slot: u16) {
        let home = index_home(id);
        let free = (0..INDEX).map(|probe| (home + probe) % INDEX).find(|&at| index[at] == 0);
        if let Some(at) = free {
            index[at] = slot + 1;
        }
    }

    /// The edges from `child` to what it waits for.
    pub(crate) fn deps(&self, child: u16) -> &[Edge] {
        let from = self.edges.partition_point(|e| e.child < child);
        let len = self.edges[from..].partition_point(|e| e.child == child);
        &self.edges[from..from + len]
    }

    /// Where each slot's dependencies begin in `edges`, and after the last the end.
    pub(crate) fn dep_start(&self) -> Vec<u32> {
        let mut start = vec![0u32; self.nodes.len() + 1];
        for edge in &self.edges {
            start[usize::from(edge.child) + 1] += 1;
        }
        for slot in 0..self.nodes.len() {
            start[slot + 1] += start[slot];
        }
        start
    }

    /// The edge that joins the two, if there is one.
    pub(crate) fn edge(&self, parent: u16, child: u16) -> Option<Edge> {
        let at = self.edges.binary_search_by_key(&(child, parent), Edge::ends).ok()?;
        self.edges.get(at).copied()
    }

    /// Adds edges; one that joins two that are joined already takes the place of the old one.
    pub(crate) fn link(&mut self, edges: &[Edge]) {
        if let [edge] = edges {
            match self.edges.binary_search_by_key(&edge.ends(), Edge::ends) {
                Ok(at) => self.edges[at] = *edge,
                Err(at) => self.edges.insert(at, *edge),
            }
            return;
        }
        // Stable, so that of two that join the same nodes the newer stands behind the older; the last one is kept.
        self.edges.extend_from_slice(edges);
        self.edges.sort_by_key(Edge::ends);
        self.edges.reverse();
        self.edges.dedup_by_key(|edge| edge.ends());
        self.edges.reverse();
    }

    /// Takes an edge out. False: there was none.
    pub(crate) fn unlink(&mut self, parent: u16, child: u16) -> bool {
        match self.edges.binary_search_by_key(&(child, parent), Edge::ends) {
            Ok(at) => {
                self.edges.remove(at);
                true
            }
            Err(_) => false,
        }
    }

    /// The holder slots that a name with this hash may have.
    pub(crate) fn holders_with_hash(&self, hash: u64) -> impl Iterator<Item = (u16, Holder)> + '_ {
        self.holders
            .iter()
            .enumerate()
            .filter_map(|(slot, holder)| holder.map(|h| (slot as u16, h)))
            .filter(move |(_, holder)| holder.hash == hash)
    }

    /// The lowest holder slot that no name has.
    pub(crate) fn free_holder(&self) -> Option<u16> {
        let slot = self.holders.iter().skip(1).position(Option::is_none).map_or(self.holders.len(), |i| i + 1);
        (slot < HOLDERS).then_some(slot as u16)
    }

    pub(crate) fn set_holder(&mut self, slot: u16, holder: Holder) {
        let at = usize::from(slot);
        if self.holders.len() <= at {
            self.holders.resize(at + 1, None);
        }
        self.holders[at] = Some(holder);
    }

    /// The groups that a name with this hash may have.
    pub(crate) fn groups_with_hash(&self, hash: u64) -> impl Iterator<Item = (u8, Group)> + '_ {
        let known = self.groups.iter().enumerate().filter_map(|(i, group)| group.map(|g| (i as u8, g)));
        known.filter(move |(_, group)| group.hash == hash)
    }

    /// The lowest group number that no group has.
    pub(crate) fn free_group(&self) -> Option<u8> {
        let free = self.groups.iter().skip(1).position(Option::is_none).map_or(self.groups.len().max(1), |i| i + 1);
        (free < GROUPS).then_some(free as u8)
    }

    pub(crate) fn set_group(&mut self, number: u8, group: Group) {
        let at = usize::from(number);
        if self.groups.len() <= at {
            self.groups.resize(at + 1, None);
        }
        self.groups[at] = Some(group);
    }

    /// The graph as arrays, to derive from. No node counts as ended until somebody sets `ended`.
    pub(crate) fn arrays(&self) -> Arrays {
        let high = self.nodes.len();
        let node = |slot: usize| self.nodes[slot].as_ref();
        let (child_start, children) = turned(&self.edges, high);
        Arrays {
            present: self.nodes.iter().map(Option::is_some).collect(),
            cost: (0..high).map(|s| node(s).map_or(0, |n| n.cost)).collect(),
            born: (0..high).map(|s| node(s).map_or(0, |n| n.born)).collect(),
            parent: (0..high).map(|s| node(s).and_then(|n| n.parent)).collect(),
            ended: vec![false; high],
            dep_start: self.dep_start(),
            child_start,
            children,
        }
    }

    /// The children of `arrays` with the modes of their edges, as the mapping keeps them.
    pub(crate) fn children_bits(&self, arrays: &Arrays) -> Vec<u16> {
        let mut fill = arrays.child_start.clone();
        let mut bits = vec![0u16; self.edges.len()];
        for edge in &self.edges {
            let place = &mut fill[usize::from(edge.parent)];
            bits[*place as usize] = edge_bits(edge.child, edge.on_failure);
            *place += 1;
        }
        bits
    }

    /// The slots along one loop, the first again at the end.
    pub(crate) fn a_loop(&self, stuck: &Loop) -> Vec<u16> {
        let is_stuck = |slot: u16| stuck.stuck.get(usize::from(slot)).copied().unwrap_or(false);
        let Some(start) = (0..self.nodes.len() as u16).find(|&slot| is_stuck(slot)) else { return Vec::new() };
        // Every stuck slot has a stuck one before it, so walking backwards must come round.
        let before = |slot: u16| {
            let dep = self.deps(slot).iter().map(|e| e.parent).find(|&p| is_stuck(p));
            dep.or_else(|| self.node(slot)?.parent.filter(|&p| is_stuck(p)))
        };
        let mut walk = vec![start];
        let mut seen_at = vec![None; NODES];
        seen_at[usize::from(start)] = Some(0);
        while let Some(next) = walk.last().and_then(|&slot| before(slot)) {
            walk.push(next);
            if let Some(at) = seen_at[usize::from(next)] {
                let mut path = walk.split_off(at);
                path.reverse();
                return path;
            }
            seen_at[usize::from(next)] = Some(walk.len() - 1);
        }
        Vec::new()
    }
}

/// Edges by parent: where each slot's children begin, and the children.
fn turned(edges: &[Edge], high: usize) -> (Vec<u32>, Vec<u16>) {
    let mut start = vec![0u32; high + 1];
    for edge in edges {
        start[usize::from(edge.parent) + 1] += 1;
    }
    for slot in 0..high {
        start[slot + 1] += start[slot];
    }
    let mut fill = start.clone();
    let mut children = vec![0u16; edges.len()];
    for edge in edges {
        let place = &mut fill[usize::from(edge.parent)];
        children[*place as usize] = edge.child;
        *place += 1;
    }
    (start, children)
}

/// A graph as the arrays that deriving works on.
pub(crate) struct Arrays {
    present: Vec<bool>,
    cost: Vec<u32>,
    born: Vec<u64>,
    parent: Vec<Option<u16>>,
    pub(crate) ended: Vec<bool>,
    dep_start: Vec<u32>,
    pub(crate) child_start: Vec<u32>,
    pub(crate) children: Vec<u16>,
}

impl Arrays {
    pub(crate) fn view(&self) -> View<'_> {
        View {
            present: &self.present,
            cost: &self.cost,
            born: &self.born,
            parent: &self.parent,
            ended: &self.ended,
            dep_start: &self.dep_start,
            child_start: &self.child_start,
            children: &self.children,
        }
    }
}
