//! The bytes of the table file: one `repr(C)` struct of 64-bit words, its sizes and offsets checked at compile time.
//!
//! If you touch a struct here, bump [`LAYOUT_VERSION`]. The fingerprint changes by itself, so that two builds that
//! differ in a capacity refuse each other even when somebody forgot to. `docs/layout.md` has the byte diagram.
//!
//! Everything is a `u64`, also the short numbers, which are packed by [`pack16`] and [`range_bits`], but for the doorbell, which
//! the kernel wants to be 32 bits: a word of the mapping is never read with two different widths.

#[cfg(all(test, not(any(tenure_loom, tenure_crash))))]
mod diagram;
#[cfg(tenure_loom)]
mod fresh;

use std::mem::{offset_of, size_of};

use crate::node::OnFailure;
use crate::sync::{Shared, Shared32};
use crate::word::{
    ChangeWord, EndWord, GroupWord, HolderWord, LeaseWord, LengthWord, NodeWord, OwnerWord, PolicyWord, ProcessWord,
    RootWord, TextRef,
};

/// Counts up whenever a struct of this file changes its meaning.
pub(crate) const LAYOUT_VERSION: u64 = 3;

/// "tenure" and a line end, so that a text tool which mangles line ends is noticed.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"tenure\r\n");

/// Reads as something else on a machine of the other byte order.
pub(crate) const BYTE_ORDER: u64 = 0x0102_0304_0506_0708;

/// Capacities: the real ones, and tiny ones for models, which explore every interleaving.
#[cfg(not(any(tenure_loom, tenure_crash)))]
mod capacity {
    pub(crate) const NODES: usize = 4096;
    pub(crate) const HOLDERS: usize = 4096;
    pub(crate) const GROUPS: usize = 256;
    pub(crate) const EDGES: usize = 1 << 18;
    pub(crate) const BLOCKS: usize = 1 << 16;
    pub(crate) const VERSIONS_INITIAL: usize = 4;
    pub(crate) const VERSIONS_MAX: usize = 256;
}
#[cfg(tenure_loom)]
mod capacity {
    pub(crate) const NODES: usize = 4;
    pub(crate) const HOLDERS: usize = 4;
    pub(crate) const GROUPS: usize = 3;
    pub(crate) const EDGES: usize = 8;
    pub(crate) const BLOCKS: usize = 4;
    pub(crate) const VERSIONS_INITIAL: usize = 3;
    pub(crate) const VERSIONS_MAX: usize = 3;
}
/// Small enough to be full at once, and for every access to be a crash point.
#[cfg(all(tenure_crash, not(tenure_loom)))]
mod capacity {
    pub(crate) const NODES: usize = 8;
    pub(crate) const HOLDERS: usize = 4;
    pub(crate) const GROUPS: usize = 4;
    pub(crate) const EDGES: usize = 32;
    pub(crate) const BLOCKS: usize = 56;
    pub(crate) const VERSIONS_INITIAL: usize = 4;
    pub(crate) const VERSIONS_MAX: usize = 16;
}
pub(crate) use capacity::{BLOCKS, EDGES, GROUPS, HOLDERS, NODES, VERSIONS_INITIAL, VERSIONS_MAX};

/// Slots of the open-addressing index from id to node: half full at most.
pub(crate) const INDEX: usize = 2 * NODES;
/// Words of the ready hints, one bit a node.
pub(crate) const HINT_WORDS: usize = NODES.div_ceil(64);
/// Steps of one change: the guard of every node moved and the word of every node set, or every holder evicted.
pub(crate) const STEPS: usize = 2 * NODES;
/// Payload words of a text block.
pub(crate) const BLOCK_WORDS: usize = 13;
/// Payload bytes of a text block.
pub(crate) const BLOCK_BYTES: usize = BLOCK_WORDS * 8;

/// What is written once, at creation, plus the few words that every process shares.
#[cfg_attr(not(tenure_loom), repr(C, align(4096)))]
pub(crate) struct Header {
    pub(crate) magic: Shared<u64>,
    pub(crate) layout_version: Shared<u64>,
    pub(crate) fingerprint: Shared<u64>,
    pub(crate) byte_order: Shared<u64>,
    pub(crate) capacity: Shared<u64>,
    pub(crate) boot_hi: Shared<u64>,
    pub(crate) boot_lo: Shared<u64>,
    /// Which pid and time namespace pids and lease times are of.
    pub(crate) namespaces: Shared<u64>,
    /// Wall clock, milliseconds since 1970.
    pub(crate) created_ms: Shared<u64>,
    pub(crate) lease_ms: Shared<u64>,
    /// Bit 0: completions must name a generation.
    pub(crate) options: Shared<u64>,
    /// Stored last; until then nobody else has seen the file.
    pub(crate) ready: Shared<u64>,
    _to_root: [u64; 4],
    /// Which version of the graph is in force. Read by every verb, written by changes of the graph only.
    pub(crate) root: Shared<RootWord>,
    /// Buffers for versions that the file has room for.
    pub(crate) versions: Shared<u64>,
    _to_scan: [u64; 6],
    /// When somebody must next look for leases that have run out, on the lease clock.
    pub(crate) next_scan_ms: Shared<u64>,
    _to_text: [u64; 7],
    /// See `doorbell`. On a line of its own: waiters and ringers of all processes meet here.
    pub(crate) bell: Shared32,
    _beside_bell: u32,
    /// The waiter that looks after leases for all.
    pub(crate) watcher: Shared<OwnerWord>,
    _to_cursor: [u64; 6],
    /// Where to begin looking for a free text block.
    pub(crate) text_cursor: Shared<u64>,
    /// Number of the last text written.
    pub(crate) text_stamp: Shared<u64>,
    _to_end: [u64; 6],
}

/// One node slot: everything that changes while the node is worked on, on a cache line of its own.
#[repr(C, align(64))]
pub(crate) struct NodeSlot {
    pub(crate) word: Shared<NodeWord>,
    pub(crate) lease: Shared<LeaseWord>,
    pub(crate) length: Shared<LengthWord>,
    pub(crate) end: Shared<EndWord>,
    /// The process that the claim stands and falls with, if its holder named one.
    pub(crate) process: Shared<ProcessWord>,
    /// Until when a node that was handed back is left alone.
    pub(crate) not_before: Shared<EndWord>,
    _spare: [u64; 2],
}

/// One holder slot.
#[repr(C, align(64))]
pub(crate) struct HolderSlot {
    pub(crate) word: Shared<HolderWord>,
    _spare: [u64; 7],
}

/// One group: whose claim in it is on its way.
#[repr(C, align(64))]
pub(crate) struct GroupSlot {
    pub(crate) word: Shared<GroupWord>,
    _spare: [u64; 7],
}

/// A piece of a text. The pieces of one text are chained and carry the same [`TextRef`].
#[repr(C, align(64))]
pub(crate) struct Block {
    pub(crate) owner: Shared<OwnerWord>,
    /// What the payload is; zero while it is being written.
    pub(crate) text: Shared<TextRef>,
    /// `next block + 1` in the upper half (0: the last one), payload bytes in the lower.
    pub(crate) chain: Shared<u64>,
    pub(crate) payload: [Shared<u64>; BLOCK_WORDS],
}

/// What a version says of one node. Claiming and ending it read the first cache line alone; whoever looks at one node
/// finds all of it on one page.
#[cfg_attr(not(tenure_loom), repr(C, align(64)))]
pub(crate) struct NodeFacts {
    /// The node's record; none: the slot is free.
    pub(crate) text: Shared<TextRef>,
    pub(crate) id_hi: Shared<u64>,
    pub(crate) id_lo: Shared<u64>,
    /// Hash of the role that a worker must offer; 0: any worker.
    pub(crate) role: Shared<u64>,
    /// Most attempts, delay between them, group; see [`PolicyWord`].
    pub(crate) policy: Shared<PolicyWord>,
    /// Where its dependencies stand in `deps`, see [`range_bits`]; those of the next slot follow them.
    pub(crate) deps_at: Shared<u64>,
    /// The same for `children`.
    pub(crate) children_at: Shared<u64>,
    /// Its place in `order`.
    pub(crate) rank: Shared<u64>,

    /// `parent slot + 1` in the upper half (0: none), cost in the lower.
    pub(crate) parent_and_cost: Shared<u64>,
    /// Cost of the longest chain of unfinished work below.
    pub(crate) waiting_below: Shared<u64>,
    /// The node's generation when it was made or reopened: attempts are counted from there.
    pub(crate) base: Shared<u64>,
    pub(crate) born: Shared<u64>,
    pub(crate) created_ms: Shared<u64>,
    pub(crate) updated_ms: Shared<u64>,
    _spare: [u64; 2],
}

/// One version of the graph. Nothing of it changes while it is in force, except the hints.
#[cfg_attr(not(tenure_loom), repr(C, align(4096)))]
pub(crate) struct Version {
    pub(crate) owner: Shared<OwnerWord>,
    /// The number that the version was written as; zero while it is being written.
    pub(crate) stamp: Shared<u64>,
    /// `number << 2 | verdict` of the change that brings this version in.
    pub(crate) verdict: Shared<u64>,
    /// Slots in use are all below this.
    pub(crate) high: Shared<u64>,
    pub(crate) edges: Shared<u64>,
    pub(crate) steps: Shared<u64>,
    /// The creation number of the next new node.
    pub(crate) next_born: Shared<u64>,
    /// Holder slots in use are all below this.
    pub(crate) holder_high: Shared<u64>,
    /// Not 0 once every ready node has its hint; 2 when some of them have been ready for long.
    pub(crate) filled: Shared<u64>,
    /// New nodes begin at no lower generation: one that was pruned may come back under its name, in another slot.
    pub(crate) floor: Shared<u64>,
    _to_nodes: [u64; 6],

    pub(crate) nodes: [NodeFacts; NODES],
    /// Slot and mode, 16 bits each, ascending by slot within a node; see [`edge_bits`].
    pub(crate) deps: [Shared<u64>; EDGES / 4],
    pub(crate) children: [Shared<u64>; EDGES / 4],
    /// Slots in the order in which ready nodes are given out, 16 bits each.
    pub(crate) order: [Shared<u64>; NODES / 4],
    /// `slot + 1` by id, open addressing, 16 bits each.
    pub(crate) index: [Shared<u64>; INDEX / 4],

    /// The name of each holder; none: the slot is free. Slot 0 is never used.
    pub(crate) holders: [Shared<TextRef>; HOLDERS],
    /// Hash of each holder's name, to find it by.
    pub(crate) holder_hash: [Shared<u64>; HOLDERS],

    /// The name of each group; none: the slot is free. Slot 0 is never used.
    pub(crate) groups: [Shared<TextRef>; GROUPS],
    pub(crate) group_hash: [Shared<u64>; GROUPS],
    /// How many nodes of the group may be claimed at once.
    pub(crate) group_limit: [Shared<u64>; GROUPS],

    /// What has to be done before this version is in force.
    pub(crate) changes: [Shared<ChangeWord>; STEPS],
    /// By slot, what a step that sets a node's word sets it to.
    pub(crate) targets: [Shared<NodeWord>; NODES],
    /// What those words were before, for readers, who see the change whole or not at all; the target itself until the step
    /// is taken.
    pub(crate) befores: [Shared<NodeWord>; NODES],

    /// Hint, one bit by rank: may be ready. With `watch` and `filled` the only words written while the version is in force.
    pub(crate) hints: [Shared<u64>; HINT_WORDS],
    /// Hint, one bit by rank: ready for so long that it goes before others.
    pub(crate) aged: [Shared<u64>; HINT_WORDS],
    /// Hint: `slot + 1` of a dependency that was last seen not done.
    pub(crate) watch: [Shared<u64>; NODES],
}

/// The fixed part of the file. The version buffers follow it, as many as the header counts.
#[cfg_attr(not(tenure_loom), repr(C, align(4096)))]
pub(crate) struct Fixed {
    pub(crate) header: Header,
    pub(crate) nodes: [NodeSlot; NODES],
    pub(crate) holders: [HolderSlot; HOLDERS],
    pub(crate) groups: [GroupSlot; GROUPS],
    pub(crate) blocks: [Block; BLOCKS],
}

/// Bytes of a file with `versions` version buffers.
pub(crate) const fn file_bytes(versions: usize) -> u64 {
    (size_of::<Fixed>() + versions * size_of::<Version>()) as u64
}

/// A number that differs between builds whose files do not fit each other.
pub(crate) const FINGERPRINT: u64 = {
    let parts = [
        LAYOUT_VERSION,
        NODES as u64,
        HOLDERS as u64,
        GROUPS as u64,
        EDGES as u64,
        BLOCKS as u64,
        VERSIONS_MAX as u64,
        size_of::<Fixed>() as u64,
        size_of::<Version>() as u64,
        offset_of!(Header, root) as u64,
        offset_of!(Fixed, blocks) as u64,
        offset_of!(Version, deps) as u64,
        offset_of!(Version, hints) as u64,
    ];
    // FNV-1a over the parts: all it has to do is to differ.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut i = 0;
    while i < parts.len() {
        hash = (hash ^ parts[i]).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    hash
};

#[cfg(not(tenure_loom))]
const _: () = {
    assert!(cfg!(target_endian = "little"), "the file is defined for little-endian machines");
    assert!(size_of::<Header>() == 4096 && offset_of!(Header, root) == 128);
    assert!(
        offset_of!(Header, next_scan_ms) == 192
            && offset_of!(Header, bell) == 256
            && offset_of!(Header, text_cursor) == 320
    );
    assert!(size_of::<NodeSlot>() == 64 && size_of::<HolderSlot>() == 64 && size_of::<Block>() == 128);
    assert!(offset_of!(Fixed, nodes) == 4096);
    assert!(offset_of!(Fixed, holders) == 4096 + 64 * NODES);
    assert!(offset_of!(Fixed, blocks) == 4096 + 64 * (NODES + HOLDERS + GROUPS));
    assert!(size_of::<Fixed>() == 4096 + 64 * (NODES + HOLDERS + GROUPS) + 128 * BLOCKS);
    assert!(size_of::<GroupSlot>() == 64 && GROUPS <= 1 << 8);
    assert!(offset_of!(Version, nodes) == 128 && size_of::<NodeFacts>() == 128);
    assert!(offset_of!(Version, hints).is_multiple_of(8) && size_of::<Version>().is_multiple_of(4096));
    assert!(NODES <= 1 << 12 && HOLDERS <= 1 << 12 && BLOCKS <= 1 << 16 && VERSIONS_MAX <= 1 << 8);
};

/// A dependency as `deps` and `children` keep it: the slot at the other end, and what the child does when the parent fails.
pub(crate) const fn edge_bits(slot: u16, on_failure: OnFailure) -> u16 {
    slot | (on_failure as u16) << 12
}

/// The slot and the mode of an entry of `deps` or `children`; a mode that is never written reads as `Block`.
#[inline]
pub(crate) const fn edge_parts(bits: u16) -> (u16, OnFailure) {
    let on_failure = match bits >> 12 {
        1 => OnFailure::Skip,
        2 => OnFailure::Continue,
        _ => OnFailure::Block,
    };
    (bits & 0xfff, on_failure)
}

/// Entry `i` of numbers packed four to a word; `None` past the end.
#[inline]
pub(crate) fn get16(words: &[Shared<u64>], i: usize) -> Option<u16> {
    let word = words.get(i / 4)?.load(crate::sync::Ordering::Relaxed);
    Some((word >> (16 * (i % 4))) as u16)
}

/// Where a node's entries of `deps` or `children` stand, as one word: the first in the upper half, the end in the lower.
pub(crate) const fn range_bits(from: u32, to: u32) -> u64 {
    (from as u64) << 32 | to as u64
}

/// Where such a word says that entries stand; nowhere, when there are none such.
#[inline]
pub(crate) fn range_parts(bits: u64) -> std::ops::Range<usize> {
    let (from, to) = ((bits >> 32) as usize, bits as u32 as usize);
    if from <= to && to <= EDGES { from..to } else { 0..0 }
}

/// The words that hold `numbers`, four to a word, the last one filled up with zeros.
pub(crate) fn pack16(numbers: &[u16]) -> impl Iterator<Item = u64> + '_ {
    numbers.chunks(4).map(|four| four.iter().rev().fold(0, |word, &n| word << 16 | u64::from(n)))
}

/// The first `count` numbers that `words` hold, four to a word.
pub(crate) fn unpack16(words: &[Shared<u64>], count: usize) -> Vec<u16> {
    let mut numbers = Vec::with_capacity(count + 3);
    for word in words.iter().take(count.div_ceil(4)) {
        let word = word.load(crate::sync::Ordering::Relaxed);
        numbers.extend([word as u16, (word >> 16) as u16, (word >> 32) as u16, (word >> 48) as u16]);
    }
    numbers.truncate(count);
    numbers
}
