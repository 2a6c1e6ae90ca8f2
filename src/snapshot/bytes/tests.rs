//! Whatever the bytes are, they are a snapshot that could have been written, or refused.

use proptest::prelude::*;

use super::*;

fn node(slot: u16, name: &str, status: Status) -> SavedNode {
    SavedNode {
        id: NodeId::of_name(name),
        slot,
        generation: 7,
        status,
        archived: status == Status::Failed,
        holder: (status == Status::Claimed).then(|| "ann".to_owned()),
        name: name.into(),
        kind: String::new(),
        role: "writer".into(),
        summary: "two\nlines".into(),
        run: "exit 3".into(),
        surface: "repo#docs".into(),
        cost: 9,
        parent: (slot > 0).then_some(0),
        max_attempts: 3,
        retry_delay_ms: 250,
        group: u8::from(slot > 0),
        attempts_from: 2,
        born: u64::from(slot) + 1,
        created_at_ms: 1,
        updated_at_ms: 2,
        finished_at_ms: (status == Status::Failed).then_some(3),
    }
}

fn edge(child: u16, parent: u16) -> SavedEdge {
    SavedEdge { child, parent, on_failure: OnFailure::Block }
}

fn small() -> Snapshot {
    Snapshot {
        taken: Moment { boot: (1, 2), table_created_at_ms: 3, version: 4, began_ns: 5, ended_ns: 6, taken_at_ms: 7 },
        lease_ms: 300_000,
        require_fence: true,
        floor: 5,
        groups: vec![SavedGroup { number: 1, limit: 2, name: "gpu".into() }],
        nodes: vec![node(0, "a", Status::Open), node(2, "b", Status::Claimed), node(9, "c", Status::Failed)],
        edges: vec![edge(2, 0), edge(9, 0), SavedEdge { on_failure: OnFailure::Skip, ..edge(9, 2) }],
    }
}

/// The content with a checksum that fits.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let content = bytes.len() - CHECKSUM_BYTES;
    let sum = xxh3_64(&bytes[..content]);
    bytes[content..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn a_snapshot_comes_back_as_it_went() {
    let snapshot = small();
    assert_eq!(Snapshot::decode(&snapshot.encode()), Ok(snapshot));
    let empty = Snapshot { groups: vec![], nodes: vec![], edges: vec![], ..small() };
    assert_eq!(empty.encode().len(), HEADER_BYTES + CHECKSUM_BYTES);
    assert_eq!(Snapshot::decode(&empty.encode()), Ok(empty.clone()));
    let one = Snapshot { nodes: vec![node(0, "a", Status::Open)], ..empty.clone() };
    let texts = "a".len() + "writer".len() + "two\nlines".len() + "exit 3".len() + "repo#docs".len() + 6 * 2;
    assert_eq!(one.encode().len(), HEADER_BYTES + NODE_BYTES_MIN + texts + CHECKSUM_BYTES);
}

#[test]
fn every_flipped_bit_is_noticed() {
    let bytes = small().encode();
    for at in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[at / 8] ^= 1 << (at % 8);
        assert!(Snapshot::decode(&flipped).is_err(), "bit {at}");
    }
}

#[test]
fn every_cut_and_every_addition_is_noticed() {
    let bytes = small().encode();
    for len in 0..bytes.len() {
        assert!(Snapshot::decode(&bytes[..len]).is_err(), "the first {len} bytes");
    }
    for more in [1, 7, 8, 4096] {
        assert!(Snapshot::decode(&[&bytes[..], &vec![0; more]].concat()).is_err(), "{more} more bytes");
    }
}

#[test]
fn what_is_wrong_is_said() {
    let bytes = small().encode();
    let why = |bytes: &[u8]| Snapshot::decode(bytes).expect_err("refused");
    assert!(matches!(why(b""), Unreadable::NotASnapshot(why) if why.contains("empty")));
    assert!(matches!(why(&[7; 4096]), Unreadable::NotASnapshot(_)));
    assert!(matches!(why(&vec![0; bytes.len()]), Unreadable::NotASnapshot(_)));
    assert!(matches!(why(&bytes[..bytes.len() / 2]), Unreadable::Damaged(why) if why.contains("says that it is")));
    let mut newer = bytes.clone();
    newer[8] = 3;
    assert_eq!(why(&sealed(newer)), Unreadable::OtherVersion(3));
    let mut flipped = bytes;
    flipped[200] ^= 1;
    assert!(matches!(why(&flipped), Unreadable::Damaged(why) if why.contains("checksum")));
}

#[test]
fn what_no_table_could_hold_is_refused_although_its_checksum_is_right() {
    assert!(Snapshot::decode(&small().encode()).is_ok());
    let refused = |what: &str, change: &dyn Fn(&mut Snapshot)| {
        let mut snapshot = small();
        change(&mut snapshot);
        assert!(matches!(Snapshot::decode(&snapshot.encode()), Err(Unreadable::Damaged(_))), "{what}");
    };
    refused("two claims of one holder", &|s| {
        s.nodes[0].status = Status::Claimed;
        s.nodes[0].holder = Some("ann".into());
    });
    refused("a claim of nobody", &|s| s.nodes[1].holder = None);
    refused("a holder of an open node", &|s| s.nodes[0].holder = Some("bob".into()));
    refused("an archived open node", &|s| s.nodes[0].archived = true);
    refused("an open node that has ended", &|s| s.nodes[0].finished_at_ms = Some(1));
    refused("the same node twice", &|s| {
        s.nodes[1].name = "a".into();
        s.nodes[1].id = NodeId::of_name("a");
    });
    refused("an id that is another name's", &|s| s.nodes[1].id = NodeId(1));
    refused("slots out of order", &|s| s.nodes.swap(0, 1));
    refused("a slot past the last", &|s| s.nodes[2].slot = NODES as u16);
    refused("an edge to a free slot", &|s| s.edges.push(edge(9, 3)));
    refused("an edge to itself", &|s| s.edges = vec![edge(2, 2)]);
    refused("the same edge twice", &|s| {
        s.edges = vec![edge(2, 0), SavedEdge { on_failure: OnFailure::Skip, ..edge(2, 0) }]
    });
    refused("a parent that is not there", &|s| s.nodes[1].parent = Some(5));
    refused("a node under itself", &|s| s.nodes[1].parent = Some(2));
    refused("a generation that no word can hold", &|s| s.nodes[1].generation = GENERATION_MAX + 1);
    refused("a summary that is too long", &|s| s.nodes[0].summary = "x".repeat(1_025));
    refused("attempts counted from a generation to come", &|s| s.nodes[0].attempts_from = 8);
    refused("a group that is not there", &|s| s.groups.clear());
    refused("a group without a number", &|s| s.groups[0].number = 0);
    refused("a group without a name", &|s| s.groups[0].name.clear());
    refused("a group without a seat", &|s| s.groups[0].limit = 0);
    refused("two groups of one name", &|s| s.groups.push(SavedGroup { number: 2, ..s.groups[0].clone() }));
    refused("two groups of one number", &|s| s.groups.push(SavedGroup { name: "cpu".into(), ..s.groups[0].clone() }));
    refused("new nodes past the last generation", &|s| s.floor = GENERATION_MAX + 1);
    refused("no lease", &|s| s.lease_ms = 0);
    refused("a lease that no word can hold", &|s| s.lease_ms = LEASE_MS_MAX + 1);
}

#[test]
fn the_largest_snapshot_is_as_long_as_stated() {
    let texts = Record {
        name: "n".repeat(NAME_BYTES_MAX),
        kind: "k".repeat(NAME_BYTES_MAX),
        role: "r".repeat(NAME_BYTES_MAX),
        summary: "s".repeat(crate::node::SUMMARY_BYTES_MAX),
        run: "x".repeat(crate::node::RUN_BYTES_MAX),
        surface: "x".repeat(crate::node::SURFACE_BYTES_MAX),
    };
    let Record { name, kind, role, summary, run, surface } = texts;
    let mut longest = SavedNode { name, kind, role, summary, run, surface, ..node(0, "a", Status::Claimed) };
    longest.holder = Some("h".repeat(NAME_BYTES_MAX));
    let bytes = Snapshot { groups: vec![], nodes: vec![longest], edges: vec![], ..small() }.encode().len();
    assert_eq!(bytes, HEADER_BYTES + NODE_BYTES_MIN + NAME_BYTES_MAX + RECORD_BYTES_MAX + CHECKSUM_BYTES);
}

fn any_text(longest: usize) -> impl Strategy<Value = String> {
    proptest::collection::vec(any::<char>(), 0..longest).prop_map(|c| c.into_iter().filter(|&c| c != '\0').collect())
}

prop_compose! {
    fn any_node()(
        slot in 0..NODES as u16, generation in 0..=GENERATION_MAX, status in 0..5usize, archived in any::<bool>(),
        holder in "[a-z]{1,9}", named in any::<bool>(), id in any::<u128>(), name in "[A-Z]{1,9}",
        kind in any_text(9), role in any_text(9), summary in any_text(40), run in any_text(40), surface in any_text(9),
        (cost, created_at_ms, updated_at_ms, finished) in any::<(u32, u64, u64, u64)>(),
        (max_attempts, retry_delay_ms, group, attempts) in (any::<u16>(), any::<u32>(), 0..3u8, any::<u64>()),
    ) -> SavedNode {
        let status = STATUSES[status];
        let ended = status != Status::Open && status != Status::Claimed;
        let name = if named { format!("{name}{slot}") } else { String::new() };
        SavedNode {
            id: if named { NodeId::of_name(&name) } else { NodeId(id) },
            slot, generation, status, archived: ended && archived,
            holder: (status == Status::Claimed).then(|| format!("{holder}{slot}")),
            name, kind, role, summary, run, surface, cost, parent: None, born: u64::from(slot), max_attempts, retry_delay_ms, group,
            attempts_from: attempts % (generation + 1),
            created_at_ms, updated_at_ms,
            finished_at_ms: (ended && finished != 0).then_some(finished),
        }
    }
}

prop_compose! {
    fn any_snapshot()(
        mut nodes in proptest::collection::vec(any_node(), 0..12), pairs in any::<Vec<(u8, u8)>>(), require_fence in any::<bool>(),
        lease_ms in 1..=LEASE_MS_MAX, floor in 0..=GENERATION_MAX, words in any::<[u64; 6]>(),
    ) -> Snapshot {
        nodes.sort_by_key(|n| n.slot);
        nodes.dedup_by_key(|n| n.slot);
        let slot = |i: u8| nodes.get(usize::from(i) % nodes.len().max(1)).map(|n| n.slot);
        let mode = |a: u8| MODES[usize::from(a) % 3];
        let mut edges: Vec<SavedEdge> = pairs.iter().filter_map(|&(a, b)| Some(SavedEdge { child: slot(a)?, parent: slot(b)?, on_failure: mode(a) })).filter(|e| e.child != e.parent).collect();
        edges.sort_unstable();
        edges.dedup_by_key(|e| (e.child, e.parent));
        let groups = vec![SavedGroup { number: 1, limit: 1, name: "a".into() }, SavedGroup { number: 2, limit: 4096, name: "b".into() }];
        let [hi, lo, table_created_at_ms, version, began_ns, ended_ns] = words;
        let taken = Moment { boot: (hi, lo), table_created_at_ms, version, began_ns, ended_ns, taken_at_ms: hi };
        Snapshot { taken, lease_ms, require_fence, floor, groups, nodes, edges }
    }
}

proptest! {
    #[test]
    fn any_snapshot_comes_back_as_it_went(snapshot in any_snapshot()) {
        prop_assert_eq!(Snapshot::decode(&snapshot.encode()), Ok(snapshot));
    }

    #[test]
    fn any_bytes_decode_or_do_not(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(Snapshot::decode(&bytes).is_err());
    }

    /// What a hostile writer can do, who knows how the checksum is made.
    #[test]
    fn changed_and_sealed_again_it_decodes_to_what_encodes_the_same_or_not_at_all(
        snapshot in any_snapshot(), changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), cut in 0..64usize,
    ) {
        let mut bytes = snapshot.encode();
        bytes.drain(bytes.len() - CHECKSUM_BYTES - cut.min(bytes.len() - HEADER_BYTES - CHECKSUM_BYTES)..bytes.len() - CHECKSUM_BYTES);
        for (at, to) in changes {
            let at = at.index(bytes.len());
            bytes[at] = to;
        }
        let length = (bytes.len() as u64).to_le_bytes();
        bytes[16..24].copy_from_slice(&length);
        let bytes = sealed(bytes);
        if let Ok(decoded) = Snapshot::decode(&bytes) {
            prop_assert_eq!(decoded.encode(), bytes);
        }
    }
}
