//! Boxed tables for models: loom's atomics are made, never laid over bytes.

use std::array::from_fn;

use super::*;
use crate::sync::Bits;

fn zero<T: Bits>() -> Shared<T> {
    Shared::new(T::from_bits(0))
}

fn zeros<T: Bits, const N: usize>() -> [Shared<T>; N] {
    from_fn(|_| zero())
}

impl Header {
    fn fresh() -> Header {
        Header {
            magic: zero(),
            layout_version: zero(),
            fingerprint: zero(),
            byte_order: zero(),
            capacity: zero(),
            boot_hi: zero(),
            boot_lo: zero(),
            namespaces: zero(),
            created_ms: zero(),
            lease_ms: Shared::new(1_000),
            options: zero(),
            ready: zero(),
            _to_root: [0; 4],
            root: Shared::new(RootWord::settled(1, 0)),
            versions: Shared::new(VERSIONS_INITIAL as u64),
            _to_scan: [0; 6],
            next_scan_ms: zero(),
            _to_text: [0; 7],
            bell: Shared32::new(0),
            _beside_bell: 0,
            watcher: zero(),
            _to_cursor: [0; 6],
            text_cursor: zero(),
            text_stamp: zero(),
            _to_end: [0; 6],
        }
    }
}

impl Fixed {
    pub(crate) fn fresh() -> Fixed {
        Fixed {
            header: Header::fresh(),
            nodes: from_fn(|_| NodeSlot {
                word: zero(),
                lease: zero(),
                length: zero(),
                end: zero(),
                process: zero(),
                not_before: zero(),
                _spare: [0; 2],
            }),
            holders: from_fn(|_| HolderSlot { word: zero(), _spare: [0; 7] }),
            groups: from_fn(|_| GroupSlot { word: zero(), _spare: [0; 7] }),
            blocks: from_fn(|_| Block { owner: zero(), text: zero(), chain: zero(), payload: zeros() }),
        }
    }
}

impl NodeFacts {
    fn fresh() -> NodeFacts {
        NodeFacts {
            text: zero(),
            id_hi: zero(),
            id_lo: zero(),
            role: zero(),
            policy: zero(),
            deps_at: zero(),
            children_at: zero(),
            rank: zero(),
            parent_and_cost: zero(),
            waiting_below: zero(),
            base: zero(),
            born: zero(),
            created_ms: zero(),
            updated_ms: zero(),
            _spare: [0; 2],
        }
    }
}

impl Version {
    /// `stamp` 1 is the version that the root of a new table names; other buffers have 0.
    pub(crate) fn fresh(stamp: u64) -> Version {
        Version {
            owner: zero(),
            stamp: Shared::new(stamp),
            verdict: zero(),
            high: zero(),
            edges: zero(),
            steps: zero(),
            next_born: Shared::new(1),
            holder_high: zero(),
            filled: zero(),
            floor: zero(),
            _to_nodes: [0; 6],
            nodes: from_fn(|_| NodeFacts::fresh()),
            deps: zeros(),
            children: zeros(),
            order: zeros(),
            index: zeros(),
            holders: zeros(),
            holder_hash: zeros(),
            groups: zeros(),
            group_hash: zeros(),
            group_limit: zeros(),
            changes: zeros(),
            targets: zeros(),
            befores: zeros(),
            hints: zeros(),
            aged: zeros(),
            watch: zeros(),
        }
    }
}
