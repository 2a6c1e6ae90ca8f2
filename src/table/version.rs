//! Versions of the graph in the mapping: read one whole into a [`Graph`], write one out, look single things up.
//!
//! A version in force does not change, but its buffer may be taken for a later one while somebody still reads it. So
//! a reader takes the stamp first, checks that the root still names this buffer, reads, and looks at the stamp again:
//! the stamp of a buffer goes to zero before its first word is rewritten and never comes back to an old value.

use crate::derive::Plan;
use crate::error::Damaged;
use crate::graph::{Edge, Graph, Group, Holder, Node, index_home};
use crate::id::NodeId;
use crate::layout::{
    EDGES, GROUPS, HOLDERS, INDEX, NODES, NodeFacts, STEPS, Version, edge_bits, edge_parts, get16, pack16, range_bits,
    range_parts, unpack16,
};
use crate::sync::{Bits, Ordering, Shared, fence};
use crate::table::claim::Who;
use crate::table::{Core, Stop, TRIES};
use crate::word::{ChangeWord, GENERATION_MAX, NodeWord, PolicyWord, RootWord, Step, TextRef};

/// The version in force at one moment, and what is needed to see whether it was overwritten since.
#[derive(Clone, Copy)]
pub(crate) struct InForce<'m> {
    pub(crate) root: RootWord,
    pub(crate) version: &'m Version,
    stamp: u64,
}

impl<'m> InForce<'m> {
    /// What a slow reader has that took this stamp when the root was this one.
    #[cfg(tenure_loom)]
    pub(crate) fn of_root(root: RootWord, version: &'m Version, stamp: u64) -> InForce<'m> {
        InForce { root, version, stamp }
    }

    /// Whether everything read from the version so far was its own.
    ///
    /// The fence keeps the reads before it before the second look at the stamp; it pairs with the one in `write_out`,
    /// which keeps the zeroing of the stamp before the first new word.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        fence(Ordering::Acquire);
        self.version.stamp.load(Ordering::Relaxed) == self.stamp
    }

    /// What the version says of the node in a slot.
    #[inline]
    pub(crate) fn facts(&self, slot: u16) -> Option<&'m NodeFacts> {
        self.version.nodes.get(usize::from(slot))
    }

    /// The slot of the node with this id.
    pub(crate) fn slot_of(&self, id: NodeId) -> Option<u16> {
        let home = index_home(id);
        let (hi, lo) = ((id.0 >> 64) as u64, id.0 as u64);
        for probe in 0..INDEX {
            let slot = get16(&self.version.index, (home + probe) % INDEX)?.checked_sub(1)?;
            let facts = self.facts(slot)?;
            let found = facts.id_lo.load(Ordering::Relaxed) == lo
                && facts.id_hi.load(Ordering::Relaxed) == hi
                && !facts.text.load(Ordering::Relaxed).is_none();
            if found {
                return Some(slot);
            }
        }
        None
    }

    /// The id of the node in a slot.
    pub(crate) fn id(&self, slot: u16) -> NodeId {
        self.facts(slot).map_or(NodeId(0), read_id)
    }

    /// The node in a slot; none in a free one.
    pub(crate) fn node(&self, slot: u16) -> Option<Node> {
        read_node(self.facts(slot)?)
    }

    /// Cost of the longest chain of unfinished nodes below a live node.
    pub(crate) fn waiting_below(&self, slot: u16) -> u64 {
        self.facts(slot).map_or(0, |facts| facts.waiting_below.load(Ordering::Relaxed))
    }

    /// Where `slot`'s dependencies stand in `deps`.
    #[inline]
    pub(crate) fn deps(&self, slot: u16) -> std::ops::Range<usize> {
        self.facts(slot).map_or(0..0, |facts| range_parts(facts.deps_at.load(Ordering::Relaxed)))
    }

    /// Where `slot`'s children stand in `children`.
    #[inline]
    pub(crate) fn children(&self, slot: u16) -> std::ops::Range<usize> {
        self.facts(slot).map_or(0..0, |facts| range_parts(facts.children_at.load(Ordering::Relaxed)))
    }

    /// Slots in use are all below this.
    pub(crate) fn high(&self) -> u16 {
        self.version.high.load(Ordering::Relaxed).min(NODES as u64) as u16
    }

    /// The node's record; none for a free slot.
    #[inline]
    pub(crate) fn text(&self, slot: u16) -> TextRef {
        self.facts(slot).map_or(TextRef::NONE, |facts| facts.text.load(Ordering::Relaxed))
    }

    /// The name of a group.
    pub(crate) fn group_name(&self, group: u16) -> TextRef {
        self.version.groups.get(usize::from(group)).map_or(TextRef::NONE, |t| t.load(Ordering::Relaxed))
    }

    /// How a node is tried again, and its group.
    #[inline]
    pub(crate) fn policy(&self, slot: u16) -> PolicyWord {
        self.facts(slot).map_or(PolicyWord::new(0, 0, 0), |facts| facts.policy.load(Ordering::Relaxed))
    }

    /// The generation that attempts are counted from.
    pub(crate) fn base(&self, slot: u16) -> u64 {
        self.facts(slot).map_or(0, |facts| facts.base.load(Ordering::Relaxed))
    }

    /// How many claims of the node there were, the one that stands included.
    pub(crate) fn attempts(&self, slot: u16, word: NodeWord) -> u64 {
        word.attempts_since(self.base(slot))
    }

    /// The holders whose names have this hash: few, if any.
    pub(crate) fn holders_with_hash(&self, hash: u64) -> impl Iterator<Item = Who> + '_ {
        let high = self.version.holder_high.load(Ordering::Relaxed).min(HOLDERS as u64) as usize;
        let with_hash = self.version.holder_hash.iter().take(high).enumerate();
        with_hash
            .filter(move |(_, known)| known.load(Ordering::Relaxed) == hash)
            .map(|(slot, _)| Who { slot: slot as u16, name: self.holder_name(slot as u16) })
            .filter(|who| !who.name.is_none())
    }

    /// Whether a holder's slot still is its own.
    pub(crate) fn knows(&self, who: Who) -> bool {
        self.holder_name(who.slot) == who.name
    }

    /// The name that holder slot `holder` belongs to.
    #[inline]
    pub(crate) fn holder_name(&self, holder: u16) -> TextRef {
        self.version.holders.get(usize::from(holder)).map_or(TextRef::NONE, |t| t.load(Ordering::Relaxed))
    }
}

impl<'m> Core<'m> {
    /// The version in force, for whoever only looks: a change under way is not waited for and not helped.
    #[inline]
    pub(crate) fn in_force(&self) -> Result<InForce<'m>, Stop> {
        for _ in 0..TRIES {
            // Acquire: pairs with the Release swaps of the root in `change`; the version's words are visible. SeqCst: whoever
            // has said that it is about to sleep looks at no version that was replaced before somebody looked for sleepers.
            let root = self.fixed.header.root.load(Ordering::SeqCst);
            let version = self.version(root.current())?;
            let stamp = version.stamp.load(Ordering::Acquire);
            // If the root still names the buffer, the stamp read in between is that of the version in force.
            if stamp != 0 && self.fixed.header.root.load(Ordering::Acquire) == root {
                return Ok(InForce { root, version, stamp });
            }
            if stamp == 0 && self.fixed.header.root.load(Ordering::Acquire) == root {
                return Err(Damaged { what: "the version in force has no number" }.into());
            }
        }
        Err(Stop::Contended)
    }

    /// The version in force once no change is under way, for whoever writes.
    #[inline]
    pub(crate) fn settled(&self) -> Result<InForce<'m>, Stop> {
        for _ in 0..TRIES {
            self.settled_root()?;
            let seen = self.in_force()?;
            if !seen.root.is_pending() {
                return Ok(seen);
            }
        }
        Err(Stop::Contended)
    }

    /// One node of the version in force; none in a free slot.
    pub(crate) fn load_node(&self, slot: u16) -> Result<Option<Node>, Stop> {
        for _ in 0..TRIES {
            let seen = self.in_force()?;
            let node = seen.node(slot);
            if seen.is_whole() {
                return Ok(node);
            }
        }
        Err(Stop::Contended)
    }

    /// The version in force as a private copy, with the root it was read under.
    pub(crate) fn load(&self) -> Result<(RootWord, Graph), Stop> {
        for _ in 0..TRIES {
            let seen = self.in_force()?;
            let read = read_in(seen.version);
            if seen.is_whole() {
                return Ok((seen.root, read?));
            }
        }
        Err(Stop::Contended)
    }
}

/// Copies a version. Every number is checked, so that the graph is sound whatever the bytes were; when the buffer was
/// overwritten meanwhile the caller throws the result away, error or not.
fn read_in(v: &Version) -> Result<Graph, Damaged> {
    let wrong = |what| Damaged { what };
    let high = usize::try_from(v.high.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
    let edge_count = usize::try_from(v.edges.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
    let holder_high = usize::try_from(v.holder_high.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
    if high > NODES || edge_count > EDGES || holder_high > HOLDERS {
        return Err(wrong("a version counts more nodes, edges or holders than fit"));
    }
    let nodes: Vec<Option<Node>> = v.nodes.iter().take(high).map(read_node).collect();
    let is_present = |slot: u16| nodes.get(usize::from(slot)).is_some_and(Option::is_some);
    if nodes.iter().flatten().any(|n| n.parent.is_some_and(|p| !is_present(p))) {
        return Err(wrong("a node belongs under a free slot"));
    }
    let edges = read_edges(v, high, edge_count)?;
    if edges.iter().any(|e| !is_present(e.child) || !is_present(e.parent)) {
        return Err(wrong("an edge leads to a free slot"));
    }
    let holders = (0..holder_high.max(1))
        .map(|h| {
            let name = v.holders[h].load(Ordering::Relaxed);
            (h > 0 && !name.is_none()).then(|| Holder { name, hash: v.holder_hash[h].load(Ordering::Relaxed) })
        })
        .collect();
    let groups = (0..GROUPS)
        .map(|i| {
            let name = v.groups[i].load(Ordering::Relaxed);
            let (hash, limit) = (v.group_hash[i].load(Ordering::Relaxed), v.group_limit[i].load(Ordering::Relaxed));
            (i > 0 && !name.is_none()).then_some(Group { name, hash, limit: limit as u32 })
        })
        .collect();
    let index = unpack16(&v.index, INDEX);
    let floor = v.floor.load(Ordering::Relaxed).min(GENERATION_MAX);
    Ok(Graph { nodes, edges, holders, groups, floor, next_born: v.next_born.load(Ordering::Relaxed), index })
}

fn read_id(facts: &NodeFacts) -> NodeId {
    let half = |word: &Shared<u64>| u128::from(word.load(Ordering::Relaxed));
    NodeId(half(&facts.id_hi) << 64 | half(&facts.id_lo))
}

fn read_node(facts: &NodeFacts) -> Option<Node> {
    let word = |word: &Shared<u64>| word.load(Ordering::Relaxed);
    let text = facts.text.load(Ordering::Relaxed);
    if text.is_none() {
        return None;
    }
    let parent_and_cost = word(&facts.parent_and_cost);
    Some(Node {
        id: read_id(facts),
        text,
        cost: parent_and_cost as u32,
        parent: (parent_and_cost >> 32).checked_sub(1).and_then(|p| u16::try_from(p).ok()),
        role: word(&facts.role),
        born: word(&facts.born),
        created_ms: word(&facts.created_ms),
        updated_ms: word(&facts.updated_ms),
        base: word(&facts.base),
        policy: facts.policy.load(Ordering::Relaxed),
    })
}

fn read_edges(v: &Version, high: usize, count: usize) -> Result<Vec<Edge>, Damaged> {
    let wrong = Damaged { what: "the dependencies of a version are not in order" };
    let deps = unpack16(&v.deps, count);
    let mut edges = Vec::with_capacity(count);
    let mut from = 0;
    for (child, facts) in v.nodes.iter().enumerate().take(high) {
        let bits = facts.deps_at.load(Ordering::Relaxed);
        let to = bits as u32 as usize;
        if bits >> 32 != from as u64 {
            return Err(wrong);
        }
        let own = deps.get(from..to).ok_or(wrong.clone())?;
        edges.extend(own.iter().map(|&bits| {
            let (parent, on_failure) = edge_parts(bits);
            Edge { child: child as u16, parent, on_failure }
        }));
        from = to;
    }
    let sorted = edges.windows(2).all(|two| (two[0].child, two[0].parent) < (two[1].child, two[1].parent));
    if from == count && sorted { Ok(edges) } else { Err(wrong) }
}

/// Writes a graph into a buffer that this process has marked as its own.
///
/// `number` is the version's number; `waiting_below` and `order` follow from the graph; `steps` have to be done before
/// it is in force, and `targets` are the words that some of them set. The hints are left empty: whoever publishes the version fills them afterwards, since what is written
/// here may be out of date by then.
pub(crate) fn write_out(
    v: &Version,
    number: u64,
    g: &Graph,
    derived: &Derived,
    steps: &[Step],
    targets: &[(u16, NodeWord)],
) -> Result<(), Stop> {
    let too_many = |what, limit: usize| Stop::NoRoom { what, limit: limit as u64 };
    if g.edges.len() > EDGES {
        return Err(too_many("edges", EDGES));
    }
    if steps.len() > STEPS {
        return Err(too_many("steps in one change", STEPS));
    }
    // Release: whoever reads the zero also sees that the root has moved on; pairs with the Acquire in `in_force`.
    v.stamp.store(0, Ordering::Release);
    fence(Ordering::Release); // keeps the zero before the words below; pairs with the fence in `is_whole`
    let put = |w: &Shared<u64>, value: u64| w.store(value, Ordering::Relaxed);
    put(&v.verdict, number << 2);
    put(&v.high, g.nodes.len() as u64);
    put(&v.edges, g.edges.len() as u64);
    put(&v.holder_high, g.holders.len() as u64);
    put(&v.next_born, g.next_born);
    put(&v.floor, g.floor);
    put(&v.steps, steps.len() as u64);
    for (word, step) in v.changes.iter().zip(steps) {
        word.store(ChangeWord::new(*step), Ordering::Relaxed);
    }
    if !steps.is_empty() {
        // Read by whoever meets the change pending.
        v.targets.iter().for_each(|word| word.store(NodeWord::NEVER, Ordering::Relaxed));
        for &(slot, target) in targets {
            let both = v.targets.get(usize::from(slot)).zip(v.befores.get(usize::from(slot)));
            both.into_iter().flat_map(|(a, b)| [a, b]).for_each(|word| word.store(target, Ordering::Relaxed));
        }
    }
    let dep_start = g.dep_start();
    let mut rank = vec![0u16; g.nodes.len()];
    for (place, &slot) in derived.order.iter().enumerate() {
        rank[usize::from(slot)] = place as u16;
    }
    for (slot, facts) in v.nodes.iter().enumerate().take(g.nodes.len()) {
        let range = |starts: &[u32]| range_bits(starts[slot], starts[slot + 1]);
        put(&facts.deps_at, range(&dep_start));
        put(&facts.children_at, range(&derived.child_start));
        put(&facts.rank, rank[slot].into());
        put(&facts.waiting_below, derived.plan.waiting_below[slot]);
        write_node(facts, g.nodes[slot].as_ref());
    }
    for (slot, holder) in g.holders.iter().enumerate() {
        v.holders[slot].store(holder.map_or(TextRef::NONE, |h| h.name), Ordering::Relaxed);
        put(&v.holder_hash[slot], holder.map_or(0, |h| h.hash));
    }
    for slot in 0..GROUPS {
        let group = g.groups.get(slot).copied().flatten();
        v.groups[slot].store(group.map_or(TextRef::NONE, |group| group.name), Ordering::Relaxed);
        put(&v.group_hash[slot], group.map_or(0, |group| group.hash));
        put(&v.group_limit[slot], group.map_or(0, |group| u64::from(group.limit)));
    }
    let fill = |words: &[Shared<u64>], values: &mut dyn Iterator<Item = u64>| {
        words.iter().zip(values).for_each(|(word, value)| put(word, value));
    };
    let deps: Vec<u16> = g.edges.iter().map(|e| edge_bits(e.parent, e.on_failure)).collect();
    fill(&v.deps, &mut pack16(&deps));
    fill(&v.children, &mut pack16(&derived.children));
    fill(&v.index, &mut pack16(&g.index));
    fill(&v.order, &mut pack16(&derived.order));
    put(&v.filled, 0);
    v.hints.iter().chain(&v.aged).for_each(|word| put(word, 0));
    v.watch.iter().take(g.nodes.len()).for_each(|word| put(word, 0));
    v.stamp.store(number, Ordering::Release); // pairs with the Acquire in `in_force`
    Ok(())
}

fn write_node(facts: &NodeFacts, node: Option<&Node>) {
    let put = |word: &Shared<u64>, value: u64| word.store(value, Ordering::Relaxed);
    facts.text.store(node.map_or(TextRef::NONE, |n| n.text), Ordering::Relaxed);
    let Some(node) = node else { return };
    put(&facts.id_hi, (node.id.0 >> 64) as u64);
    put(&facts.id_lo, node.id.0 as u64);
    put(&facts.parent_and_cost, node.parent.map_or(0, |p| u64::from(p) + 1) << 32 | u64::from(node.cost));
    put(&facts.role, node.role);
    put(&facts.born, node.born);
    put(&facts.created_ms, node.created_ms);
    put(&facts.updated_ms, node.updated_ms);
    put(&facts.base, node.base);
    facts.policy.store(node.policy, Ordering::Relaxed);
}

/// What follows from a graph and is kept beside it.
pub(crate) struct Derived {
    pub(crate) plan: Plan,
    pub(crate) order: Vec<u16>,
    /// By slot, whether the node counts as ended.
    pub(crate) ended: Vec<bool>,
    pub(crate) child_start: Vec<u32>,
    /// Packed with the modes of the edges.
    pub(crate) children: Vec<u16>,
}

/// The steps of the change that brings `v` in, as they stand now; the caller checks the root after each.
pub(crate) fn step(v: &Version, i: usize) -> Option<Step> {
    // Acquire: keeps the look at the root that follows behind this read.
    ChangeWord::from_bits(v.changes.get(i)?.load(Ordering::Acquire).bits()).step()
}
