//! A version of the graph copied as it stands, good or bad.

use crate::layout::{EDGES, INDEX, NODES, Version, get32, unpack16};
use crate::sync::{Bits, Ordering, Shared};
use crate::table::Core;
use crate::table::version::InForce;
use crate::word::{PolicyWord, TextRef};

/// How often a copy is begun anew because the buffer was taken for a later version meanwhile.
const TRIES: u32 = 1_000;

/// The words of a version. Arrays of nodes, holders and groups are copied whole, edges as many as are counted and fit.
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
    pub(super) facts: Vec<u64>,
    pub(super) role: Vec<u64>,
    pub(super) born: Vec<u64>,
    pub(super) policy: Vec<PolicyWord>,
    pub(super) waiting_below: Vec<u64>,
    pub(super) dep_start: Vec<u32>,
    pub(super) child_start: Vec<u32>,
    pub(super) deps: Vec<u16>,
    pub(super) children: Vec<u16>,
    pub(super) order: Vec<u16>,
    pub(super) rank: Vec<u16>,
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

fn all32(words: &[Shared<u64>]) -> Vec<u32> {
    (0..=NODES).map_while(|i| get32(words, i)).collect()
}

impl Raw {
    fn copy(v: &Version) -> Raw {
        let one = |word: &Shared<u64>| word.load(Ordering::Relaxed);
        let edge_count = one(&v.edges);
        let edges = usize::try_from(edge_count).unwrap_or(EDGES).min(EDGES);
        let ids = v.id_hi.iter().zip(&v.id_lo);
        Raw {
            high: one(&v.high),
            edge_count,
            steps: one(&v.steps),
            next_born: one(&v.next_born),
            holder_high: one(&v.holder_high),
            filled: one(&v.filled),
            floor: one(&v.floor),
            id: ids.map(|(hi, lo)| u128::from(one(hi)) << 64 | u128::from(one(lo))).collect(),
            text: all(&v.text),
            facts: all(&v.facts),
            role: all(&v.role),
            born: all(&v.born),
            policy: all(&v.policy),
            waiting_below: all(&v.waiting_below),
            dep_start: all32(&v.dep_start),
            child_start: all32(&v.child_start),
            deps: unpack16(&v.deps, edges),
            children: unpack16(&v.children, edges),
            order: unpack16(&v.order, NODES),
            rank: unpack16(&v.rank, NODES),
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
        self.facts.get(slot).map_or(0, |facts| facts >> 32)
    }
}
