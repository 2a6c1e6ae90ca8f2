//! Snapshots beside processes that change the table at full rate, and beside each other (P2, cases 6, 7 and 48).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tenure::{Completion, Filter, NodeSpec, NodeView, Outcome, SNAPSHOT_PATIENCE, Seen, Snapshot, Status, Table};

use super::crew::{Crew, Dice, Orders, depth, fresh_table, say};
use super::help::{id, names, node, read, take};

const SETS: usize = 4;
/// Nodes between which one holder goes to and fro.
const ROUND: usize = 6;

fn name(set: usize, what: impl std::fmt::Display) -> String {
    format!("{what}-{set}")
}

/// The nodes that one writer works on: two that always change together, a chain of three, and some to claim in turn.
fn set(k: usize) -> Vec<NodeSpec> {
    let mut all = vec![node(&name(k, "left")), node(&name(k, "right"))];
    for (child, parent) in [("first", None), ("second", Some("first")), ("third", Some("second"))] {
        let needs = parent.map(|p| id(&name(k, p)).into()).into_iter().collect();
        all.push(NodeSpec { needs, ..node(&name(k, child)) });
    }
    all.extend((0..ROUND).map(|i| node(&name(k, i))));
    all
}

/// Changes its set until it is killed. In every state that another process can see, left and right have the same summary,
/// a node of the chain is done only while those before it are, and the holder has one claim.
pub fn change_at_full_rate(orders: &Orders) {
    let table = orders.table();
    let set = orders.number(0);
    let worker = table.worker(&name(set, "w")).expect("a name");
    let mut dice = Dice::new(set as u64 + 1);
    orders.wait_for_start();
    for n in 0u64.. {
        match dice.below(3) {
            0 => {
                let text = format!("{n} {}", "x".repeat(dice.below(900)));
                let both =
                    ["left", "right"].map(|side| NodeSpec { summary: Some(text.clone()), ..node(&name(set, side)) });
                table.import(&both).expect("room");
            }
            1 => {
                let chain = ["first", "second", "third"].map(|step| id(&name(set, step)));
                for step in chain {
                    let summary = (dice.below(2) == 0).then(|| format!("done in round {n}"));
                    let done = Completion { outcome: Outcome::Done, generation: None, holder: None, summary };
                    table.complete(step, &done).expect("what it needs is done");
                }
                for step in chain.into_iter().rev() {
                    table.reopen(step).expect("it is done");
                }
            }
            _ => {
                for _ in 0..100 {
                    let claim = worker.claim(id(&name(set, dice.below(ROUND)))).expect("nobody else claims it");
                    claim.release().expect("held");
                }
            }
        }
    }
}

/// What holds in every state of the table.
fn assert_could_have_existed(snapshot: &Snapshot) {
    let by_name: BTreeMap<&str, _> = snapshot.nodes.iter().map(|n| (n.name.as_str(), n)).collect();
    let by_slot: BTreeMap<u16, _> = snapshot.nodes.iter().map(|n| (n.slot, n)).collect();
    for set in 0..SETS {
        let [left, right] = ["left", "right"].map(|side| by_name[name(set, side).as_str()]);
        assert_eq!(left.summary, right.summary, "half of a change");
        let held = (0..ROUND).filter(|i| by_name[name(set, i).as_str()].status == Status::Claimed).count();
        assert!(held <= 1, "one holder has {held} claims");
    }
    for edge in &snapshot.edges {
        let [child, parent] = [edge.child, edge.parent].map(|slot| by_slot[&slot]);
        let needs_it = matches!(child.status, Status::Claimed | Status::Done);
        assert!(
            !needs_it || parent.status == Status::Done,
            "{} is {:?} and {} {:?}",
            child.name,
            child.status,
            parent.name,
            parent.status
        );
    }
}

/// In a later snapshot no node is at an earlier generation.
fn assert_newer(later: &Snapshot, earlier: &Snapshot) {
    assert!(later.taken.version >= earlier.taken.version, "the graph went back");
    assert!(later == earlier || later.taken.began_ns > earlier.taken.ended_ns, "two cuts of one moment");
    for (l, e) in later.nodes.iter().zip(&earlier.nodes) {
        assert!(l.generation >= e.generation, "{} went back from {} to {}", l.name, e.generation, l.generation);
    }
}

/// A table with the sets of `SETS` writers, and a crew of these writers.
fn busy() -> (tempfile::TempDir, Table, Crew) {
    let (dir, table) = fresh_table();
    table.import(&(0..SETS).flat_map(set).collect::<Vec<_>>()).expect("room");
    let mut crew = Crew::new();
    for set in 0..SETS {
        crew.add("change_at_full_rate", dir.path(), &[&set]);
    }
    (dir, table, crew)
}

#[test]
fn every_snapshot_is_a_state_that_could_have_existed() {
    let (dir, table, mut crew) = busy();
    crew.start();
    let mut last: Option<Snapshot> = None;
    let mut kinds = BTreeMap::new();
    let until = Instant::now() + Duration::from_secs(depth(3) as u64);
    while Instant::now() < until {
        take(&table);
        let snapshot = read(dir.path());
        assert_could_have_existed(&snapshot);
        if let Some(last) = &last {
            assert_newer(&snapshot, last);
        }
        for node in &snapshot.nodes {
            *kinds.entry(node.status.name_for_tests()).or_insert(0) += 1;
        }
        last = Some(snapshot);
    }
    let changes = last.expect("snapshots").taken.version;
    assert!(
        changes > 1_000 && kinds.contains_key("ended"),
        "nothing much happened meanwhile: {changes} changes, {kinds:?}"
    );
    crew.hands.iter_mut().for_each(|hand| assert!(hand.is_running(), "a writer failed: {:?}", hand.hear()));
}

#[test]
fn every_list_is_a_state_that_could_have_existed() {
    let (_dir, table, mut crew) = busy();
    crew.start();
    for _ in 0..depth(4_000) {
        let rows = table.list(Filter { terminal: true, archived: true }).expect("rows");
        let by_name: BTreeMap<&str, &NodeView> = rows.iter().filter_map(|r| Some((r.name.as_deref()?, r))).collect();
        for set in 0..SETS {
            for (child, parent) in [("second", "first"), ("third", "second")] {
                let [child, parent] = [child, parent].map(|step| by_name[name(set, step).as_str()]);
                let both = (child.status, parent.status);
                assert!(
                    both.0 != Seen::Done || both.1 == Seen::Done,
                    "{} and what it needs are {both:?}",
                    child.label()
                );
            }
        }
    }
    crew.hands.iter_mut().for_each(|hand| assert!(hand.is_running(), "a writer failed: {:?}", hand.hear()));
}

trait NameForTests {
    fn name_for_tests(self) -> &'static str;
}

impl NameForTests for Status {
    fn name_for_tests(self) -> &'static str {
        match self {
            Status::Open => "open",
            Status::Claimed => "claimed",
            _ => "ended",
        }
    }
}

pub fn snapshot_again_and_again(orders: &Orders) {
    let table = orders.table();
    let mine = id(&format!("mine {}", orders.word(0)));
    orders.wait_for_start();
    let mut covered = 0;
    for round in 1..=orders.number(1) as u64 {
        table.worker(orders.word(0)).expect("a name").claim(mine).expect("nobody else does").release().expect("held");
        let taken = table.snapshot(SNAPSHOT_PATIENCE, || ()).expect("a snapshot");
        covered += u32::from(taken.covered);
        // What was so before the snapshot was asked for is in the one that is there now.
        let there = read(&orders.dir);
        let own = there.nodes.iter().find(|n| n.id == mine).expect("it is there");
        assert!(
            own.generation >= 2 * round,
            "asked for after generation {}, and {} is there",
            2 * round,
            own.generation
        );
    }
    say(covered);
}

pub fn read_again_and_again(orders: &Orders) {
    let mut last = read(&orders.dir);
    orders.wait_for_start();
    let last_generation = orders.number(0) as u64;
    let until = Instant::now() + Duration::from_secs(120);
    let mut seen = 0u32;
    while last.nodes.iter().any(|node| node.generation < last_generation) {
        assert!(Instant::now() < until, "the last snapshot never came");
        let snapshot = read(&orders.dir);
        assert_newer(&snapshot, &last);
        seen += u32::from(snapshot != last);
        last = snapshot;
    }
    say(seen);
}

#[test]
fn sixteen_snapshotters_beside_four_readers_never_go_back() {
    let (dir, table) = fresh_table();
    let rounds = depth(100);
    table.import(&(0..16).map(|k| node(&format!("mine s{k}"))).collect::<Vec<_>>()).expect("room");
    take(&table);
    let mut crew = Crew::new();
    for k in 0..16 {
        crew.add("snapshot_again_and_again", dir.path(), &[&format!("s{k}"), &rounds]);
    }
    for _ in 0..4 {
        crew.add("read_again_and_again", dir.path(), &[&(2 * rounds)]);
    }
    let said = crew.finish();
    let number = |words: &Vec<String>| words[0].parse::<u32>().expect("a number");
    let seen: Vec<u32> = said[16..].iter().map(number).collect();
    assert!(seen.iter().sum::<u32>() > 20, "the readers hardly saw anything change: {seen:?}");
    assert_eq!(names(dir.path()), ["snapshot", "snapshot.lock"], "something was left over");
    for node in read(dir.path()).nodes {
        assert_eq!(node.generation, 2 * rounds as u64, "{}: the last one is missing", node.name);
    }
}
