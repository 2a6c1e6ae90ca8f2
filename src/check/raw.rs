//! A version of the graph copied as it stands, good or bad.

use crate::layout::{EDGES, INDEX, NODES, NodeFacts, Version, unpack16};
use crate::sync::{Bits, Ordering, Shared};
use crate::table::Core;
use crate::table::version::InForce;
use crate::word::{PolicyWord, TextRef};

/// How often a copy is begun anew because the buffer was taken for a later version meanwhile.
const TRIES: u32 = 1_000;

/// The words of a version. Those of nodes, holders and groups are copied whole, edges as many as are counted and fit.
pub(super) struct Raw {
    pub(super) high: u64,
    pub(super) edge_count: u64,
    pub(super) steps: u64,
    pub(super) next_born: u64,
    pub(super) holder_high: u64,
    pub(super) filled: u64,
    pub(super) floor: u64,
    pub(super) id: Vec<u128>,
    pub(super) text: Vec<TextRef>,
    pub(super) parent_and_cost: Vec<u64>,
    pub(super) role: Vec<u64>,
    pub(super) born: Vec<u64>,
    pub(super) policy: Vec<PolicyWord>,
    pub(super) waiting_below: Vec<u64>,
    pub(super) deps_at: Vec<u64>,
    pub(super) children_at: Vec<u64>,
    pub(super) deps: Vec<u16>,
    pub(super) children: Vec<u16>,
    pub(super) order: Vec<u16>,
    pub(super) rank: Vec<u64>,
    pub(super) index: Vec<u16>,
    pub(super) holders: Vec<TextRef>,
    pub(super) holder_hash: Vec<u64>,
    pub(super) groups: Vec<TextRef>,
    pub(super) group_hash: Vec<u64>,
    pub(super) group_limit: Vec<u64>,
}

fn all<T: Bits>(words: &[Shared<T>]) -> Vec<T> {
    words.iter().map(|word| word.load(Ordering::Relaxed)).collect()
}

impl Raw {
    fn copy(v: &Version) -> Raw {
        let one = |word: &Shared<u64>| word.load(Ordering::Relaxed);
        let edge_count = one(&v.edges);
        let edges = usize::try_from(edge_count).unwrap_or(EDGES).min(EDGES);
        let of_all = |word: fn(&NodeFacts) -> &Shared<u64>| v.nodes.iter().map(|facts| one(word(facts))).collect();
        let id = |facts: &NodeFacts| u128::from(one(&facts.id_hi)) << 64 | u128::from(one(&facts.id_lo));
        Raw {
            high: one(&v.high),
            edge_count,
            steps: one(&v.steps),
            next_born: one(&v.next_born),
            holder_high: one(&v.holder_high),
            filled: one(&v.filled),
            floor: one(&v.floor),
            id: v.nodes.iter().map(id).collect(),
            text: v.nodes.iter().map(|facts| facts.text.load(Ordering::Relaxed)).collect(),
            parent_and_cost: of_all(|facts| &facts.parent_and_cost),
            role: of_all(|facts| &facts.role),
            born: of_all(|facts| &facts.born),
            policy: v.nodes.iter().map(|facts| facts.policy.load(Ordering::Relaxed)).collect(),
            waiting_below: of_all(|facts| &facts.waiting_below),
            deps_at: of_all(|facts| &facts.deps_at),
            children_at: of_all(|facts| &facts.children_at),
            deps: unpack16(&v.deps, edges),
            children: unpack16(&v.children, edges),
            order: unpack16(&v.order, NODES),
            rank: of_all(|facts| &facts.rank),
            index: unpack16(&v.index, INDEX),
            holders: all(&v.holders),
            holder_hash: all(&v.holder_hash),
            groups: all(&v.groups),
            group_hash: all(&v.group_hash),
            group_limit: all(&v.group_limit),
        }
    }

    /// A whole copy of the version in force. `None`: none is in force, or others changed the graph too fast.
    pub(super) fn in_force(core: &Core<'_>) -> Option<Raw> {
        for _ in 0..TRIES {
            let seen: InForce<'_> = core.in_force().ok()?;
            let raw = Raw::copy(seen.version);
            if seen.is_whole() {
                return Some(raw);
            }
        }
        None
    }

    /// Slots in use are below this.
    pub(super) fn high(&self) -> usize {
        usize::try_from(self.high).unwrap_or(NODES).min(NODES)
    }

    /// The slots that have a node.
    pub(super) fn nodes(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.high()).filter(|&slot| self.is_node(slot))
    }

    pub(super) fn is_node(&self, slot: usize) -> bool {
        slot < self.high() && self.text.get(slot).is_some_and(|text| !text.is_none())
    }

    /// `parent slot + 1`, 0 for none.
    pub(super) fn parent_word(&self, slot: usize) -> u64 {
        self.parent_and_cost.get(slot).map_or(0, |bits| bits >> 32)
    }
}
