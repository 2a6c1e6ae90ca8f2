//! Tables spoiled in one way each.

use super::*;
use crate::layout::{HOLDERS, NODES, Version};
use crate::sync::{Bits, Ordering, Shared};
use crate::table::Core;
use crate::word::{
    EndWord, GENERATION_CLAIMABLE_MAX, HolderWord, LeaseWord, LengthWord, NodeWord, PolicyWord, RootWord, TextOf,
    TextRef,
};

/// The slots of the sample.
const A: usize = 0;
const B: usize = 1;
const C: usize = 2;
const D: usize = 3;
const E: usize = 4;

/// A way to spoil the sample, and the one code that it must lead to.
type Case = (Code, &'static str, fn(&Core<'_>, &Version));

fn put<T: Bits>(word: &Shared<T>, value: T) {
    word.store(value, Ordering::SeqCst);
}

fn get<T: Bits>(word: &Shared<T>) -> T {
    word.load(Ordering::SeqCst)
}

fn flip(word: &Shared<u64>, bits: u64) {
    put(word, get(word) ^ bits);
}

/// The block that a text begins in.
fn block<'a>(core: &Core<'a>, text: TextRef) -> &'a crate::layout::Block {
    &core.fixed.blocks[usize::from(text.head())]
}

const CASES: &[Case] = &[
    (Code::Unfinished, "ready is 0", |c, _| put(&c.fixed.header.ready, 0)),
    (Code::BootMismatch, "a boot id of nobody", |c, _| flip(&c.fixed.header.boot_lo, 1)),
    (Code::DefaultLease, "no lease", |c, _| put(&c.fixed.header.lease_ms, 0)),
    (Code::DefaultLease, "an endless lease", |c, _| put(&c.fixed.header.lease_ms, u64::MAX)),
    (Code::UnknownOption, "an option", |c, _| put(&c.fixed.header.options, 2)),
    (Code::VersionCount, "none", |c, _| put(&c.fixed.header.versions, 0)),
    (Code::VersionCount, "more than the file has", |c, _| put(&c.fixed.header.versions, 200)),
    (Code::VersionCount, "more than any", |c, _| put(&c.fixed.header.versions, 1 << 40)),
    (Code::ScanTooLate, "never", |c, _| put(&c.fixed.header.next_scan_ms, u64::MAX)),
    (Code::Root, "a phase that is not", |c, _| {
        put(&c.fixed.header.root, RootWord::from_bits(get(&c.fixed.header.root).bits() | 2))
    }),
    (Code::Root, "a buffer that is not", |c, _| put(&c.fixed.header.root, RootWord::settled(9, 200))),
    (Code::Root, "number 0", |c, _| {
        put(&c.fixed.header.root, RootWord::settled(0, get(&c.fixed.header.root).current()))
    }),
    (Code::VersionNumber, "one to come", |_, v| put(&v.stamp, 1 << 40)),
    (Code::VersionNumber, "none", |_, v| put(&v.stamp, 0)),
    (Code::VersionNumber, "a change of another number", |c, _| pend(c, |next, _| put(&next.stamp, 3))),
    (Code::Step, "a kind that is not", |c, _| {
        pend(c, |next, number| {
            put(&next.stamp, number);
            put(&next.verdict, number << 2);
            put(&next.steps, 1);
            put(&next.changes[0], crate::word::ChangeWord::from_bits(7 << 12));
        })
    }),
    (Code::Step, "more than there can be", |c, _| {
        pend(c, |next, number| {
            put(&next.stamp, number);
            put(&next.verdict, number << 2);
            put(&next.steps, u64::MAX);
        })
    }),
    (Code::VersionBounds, "holders", |_, v| put(&v.holder_high, HOLDERS as u64 + 1)),
    (Code::VersionBounds, "generations", |_, v| put(&v.floor, u64::MAX)),
    (Code::VersionBounds, "hints", |_, v| put(&v.filled, 3)),
    (Code::TextMisplaced, "a name in holder slot 0", |c, v| {
        let text = TextRef::new(TextOf::Holder(0), 7, 7);
        put(&v.holders[0], text);
        let _ = c;
    }),
    (Code::DuplicateId, "unnamed twins", |c, v| {
        unname(c, v, B);
        unname(c, v, C);
        for slot in [B, C] {
            put(&v.nodes[slot].id_hi, 5);
            put(&v.nodes[slot].id_lo, 5);
        }
        reindex(v, &[A, D, E, C]);
    }),
    (Code::Index, "an entry gone", |_, v| {
        let at = (0..).find(|&at| crate::layout::get16(&v.index, at) == Some(E as u16 + 1)).unwrap();
        flip(&v.index[at / 4], (E as u64 + 1) << (16 * (at % 4)));
    }),
    (Code::Parent, "a free slot", |_, v| put(&v.nodes[C].parent_and_cost, 100 << 32 | 1)),
    (Code::Parent, "itself", |_, v| put(&v.nodes[C].parent_and_cost, (C as u64 + 1) << 32 | 1)),
    (Code::Parent, "no slot", |_, v| put(&v.nodes[C].parent_and_cost, u64::MAX)),
    (Code::Edge, "to a free slot", |_, v| flip(&v.deps[0], 0x800)),
    (Code::Edge, "a mode that is not", |_, v| flip(&v.deps[0], 0xf000)),
    (Code::Edge, "past the end", |_, v| put(&v.nodes[E].deps_at, u64::MAX)),
    (Code::Edge, "none of the counted", |_, v| put(&v.edges, 4)),
    (Code::Children, "another child", |_, v| flip(&v.children[0], 1)),
    (Code::Children, "another start", |_, v| flip(&v.nodes[C].children_at, 1)),
    (Code::Loop, "over both kinds", |_, v| put(&v.nodes[A].parent_and_cost, (C as u64 + 1) << 32 | 1)),
    (Code::Order, "two places exchanged", |_, v| put(&v.order[0], get(&v.order[0]).rotate_left(16))),
    (Code::Order, "a place misnamed", |_, v| flip(&v.nodes[A].rank, 1)),
    (Code::CreationNumber, "to come", |_, v| put(&v.next_born, 1)),
    (Code::CreationNumber, "used up", |_, v| put(&v.next_born, u64::MAX)),
    (Code::UnknownGroup, "group 9", |_, v| put(&v.nodes[A].policy, PolicyWord::new(0, 0, 9))),
    (Code::GroupLimit, "no seats", |_, v| put(&v.group_limit[1], 0)),
    (Code::GroupLimit, "seats for more than all", |_, v| put(&v.group_limit[1], NODES as u64 + 1)),
    (Code::Hash, "a role", |_, v| flip(&v.nodes[C].role, 1)),
    (Code::Hash, "a holder", |_, v| flip(&v.holder_hash[1], 1)),
    (Code::Hash, "a group", |_, v| flip(&v.group_hash[1], 1)),
    (Code::DuplicateName, "holders", |c, v| {
        put(&block(c, get(&v.holders[2])).payload[0], u64::from_le_bytes(*b"w1\0\0\0\0\0\0"));
        put(&v.holder_hash[2], get(&v.holder_hash[1]));
    }),
    (Code::TextMissing, "the block is another's", |c, v| put(&block(c, get(&v.nodes[B].text)).text, TextRef::NONE)),
    (Code::TextBroken, "longer than a block", |c, v| put(&block(c, get(&v.nodes[B].text)).chain, 4_000)),
    (Code::TextBroken, "in a ring", |c, v| {
        let text = get(&v.nodes[B].text);
        put(&block(c, text).chain, (u64::from(text.head()) + 1) << 32 | 4);
    }),
    (Code::Record, "lengths that cannot be", |c, v| put(&block(c, get(&v.nodes[B].text)).payload[0], u64::MAX)),
    (Code::Name, "a NUL in the name of a holder", |c, v| {
        put(&block(c, get(&v.holders[2])).payload[0], 0);
        put(&v.holder_hash[2], crate::record::name_hash("\0\0"));
    }),
    (Code::Name, "a holder's name that is not UTF-8", |c, v| put(&block(c, get(&v.holders[2])).payload[0], u64::MAX)),
    (Code::IdMismatch, "another name", |c, v| flip(&block(c, get(&v.nodes[B].text)).payload[0], 0x10_000)),
    (Code::NodeWord, "a text past the last", |c, _| {
        let word = &c.fixed.nodes[D].word;
        put(word, NodeWord::from_bits(get(word).bits() | 0x1ff_ffff << 3));
    }),
    (Code::ClaimOfNoNode, "slot 9", |c, _| claim(c, 9, 2)),
    (Code::ClaimOfNobody, "holder 9", |c, _| claim(c, B, 9)),
    (Code::ClaimOfNobody, "holder 0", |c, _| put(&c.fixed.nodes[B].word, get(&c.fixed.nodes[B].word).claimed_by(0))),
    (Code::HolderDisagrees, "it names nothing", |c, _| put(&c.fixed.holders[1].word, HolderWord::from_bits(0))),
    (Code::TwoClaims, "a and b", |c, _| put(&c.fixed.nodes[B].word, get(&c.fixed.nodes[B].word).claimed_by(1))),
    (Code::HolderAhead, "far", |c, _| {
        put(&c.fixed.holders[2].word, get(&c.fixed.holders[2].word).reserving(B as u16, 9))
    }),
    (Code::AttemptsAhead, "far", |_, v| put(&v.nodes[B].base, 1_000)),
    (Code::GenerationLimit, "near the last", |c, _| {
        let generation = GENERATION_CLAIMABLE_MAX + 4;
        let open = NodeWord::new(crate::word::State { generation, phase: crate::word::Phase::Open });
        put(&c.fixed.nodes[B].word, open);
        claim(c, B, 2);
    }),
    (Code::LeaseTooLong, "for ever", |c, _| put(&c.fixed.nodes[A].lease, LeaseWord::running(1, u64::MAX))),
    (Code::LengthAhead, "far", |c, _| put(&c.fixed.nodes[B].length, LengthWord::new(77, 1))),
    (Code::EndAhead, "far", |c, _| put(&c.fixed.nodes[D].end, EndWord::new(0, 1 << 39))),
    (Code::DelayTooLong, "for ever", |c, _| {
        let generation = get(&c.fixed.nodes[E].word).generation();
        put(&c.fixed.nodes[E].not_before, EndWord::new(generation, 1 << 39));
    }),
    (Code::EndText, "a block of another", |c, v| {
        let word = &c.fixed.nodes[D].word;
        put(word, get(word).ended(Outcome::Failed, Some(get(&v.nodes[A].text).head())));
    }),
    (Code::EndText, "an empty block", |c, _| {
        let word = &c.fixed.nodes[D].word;
        put(word, get(word).ended(Outcome::Failed, Some(u16::MAX)));
    }),
];

pub(super) const TESTED: &[Code] = &{
    let mut tested = [Code::Root; CASES.len()];
    let mut i = 0;
    while i < CASES.len() {
        tested[i] = CASES[i].0;
        i += 1;
    }
    tested
};

/// Makes a change pending in a buffer that `fill` has filled.
fn pend(core: &Core<'_>, fill: fn(&Version, u64)) {
    let root = get(&core.fixed.header.root);
    let next = (root.current() + 1) % 4;
    fill(core.version(next).unwrap(), root.number() + 1);
    put(&core.fixed.header.root, RootWord::pending(root.number() + 1, root.current(), next));
}

/// The claim of a slot by a holder, in both words.
fn claim(core: &Core<'_>, slot: usize, holder: u16) {
    let word = &core.fixed.nodes[slot].word;
    let of_holder = &core.fixed.holders[usize::from(holder)].word;
    put(of_holder, get(of_holder).reserving(slot as u16, get(word).generation() + 1));
    put(word, get(word).claimed_by(holder));
}

/// Empties the name in a node's record, and its role.
fn unname(core: &Core<'_>, version: &Version, slot: usize) {
    let block = block(core, get(&version.nodes[slot].text));
    put(&block.chain, crate::record::Record::default().encode().len() as u64);
    block.payload.iter().for_each(|word| put(word, 0));
    put(&version.nodes[slot].role, 0);
}

fn reindex(version: &Version, slots: &[usize]) {
    let mut graph = crate::graph::Graph {
        nodes: Vec::new(),
        edges: Vec::new(),
        holders: Vec::new(),
        groups: Vec::new(),
        next_born: 1,
        floor: 0,
        index: vec![0; crate::layout::INDEX],
    };
    for &slot in slots {
        let id =
            NodeId(u128::from(get(&version.nodes[slot].id_hi)) << 64 | u128::from(get(&version.nodes[slot].id_lo)));
        let text = get(&version.nodes[slot].text);
        let policy = PolicyWord::new(0, 0, 0);
        let (parent, role, created_ms, updated_ms) = (None, 0, 0, 0);
        let node =
            crate::graph::Node { id, text, cost: 1, parent, role, born: 0, created_ms, updated_ms, base: 0, policy };
        graph.insert(slot as u16, node);
    }
    crate::layout::pack16(&graph.index).zip(&version.index).for_each(|(value, word)| put(word, value));
}

#[test]
fn each_way_to_spoil_a_table_is_found_as_what_it_is_and_nothing_else() {
    for (code, how, spoil) in CASES {
        let sample = Sample::new();
        let core = sample.table.core();
        let version = core.in_force().unwrap().version;
        spoil(&core, version);
        let report = sample.report();
        let codes: BTreeSet<Code> = report.findings.iter().map(|finding| finding.code).collect();
        assert_eq!(codes, BTreeSet::from([*code]), "{code:?}, {how}: {:#?}", report.findings);
        assert!(!report.sound);
    }
}

#[test]
fn of_many_findings_all_are_listed_up_to_a_number_and_the_rest_counted() {
    let sample = Sample::new();
    let core = sample.table.core();
    for slot in 100..100 + LISTED_MAX + 30 {
        put(&core.fixed.nodes[slot].word, NodeWord::from_bits(0x1ff_ffff << 3 | 2));
    }
    put(&core.fixed.header.options, 9);
    let report = sample.report();
    assert_eq!((report.findings.len(), report.more), (LISTED_MAX + 1, 30));
    assert!(sample.codes().contains(&Code::UnknownOption));
}

#[test]
fn a_lowered_limit_is_a_note() {
    let sample = Sample::new();
    sample.table.set_group("wide", 2).unwrap();
    for (node, holder) in [("x", "x1"), ("y", "y1")] {
        sample.table.upsert(&NodeSpec { group: Some("wide".into()), ..spec(node, &[]) }, false).unwrap();
        let _ = sample.table.worker(holder).unwrap().claim(id(node)).unwrap();
    }
    assert!(sample.report().notes.is_empty());
    sample.table.set_group("wide", 1).unwrap();
    let report = sample.report();
    assert!(report.sound, "{report:?}");
    assert!(report.notes[0].contains("2 claims and a limit of 1"), "{report:?}");
}
