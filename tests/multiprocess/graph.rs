//! Edges under fire: no loop is ever seen, and a child ends as the graph says (N2, N4, cases 17 and 34).

use std::collections::{BTreeMap, BTreeSet};

use tenure::{Completion, Filter, NodeId, NodeSpec, NodeView, Outcome, Refusal, Seen};

use super::crew::{Crew, Dice, Hand, Orders, depth, fresh_table, now_ns, say};

const EVERYTHING: Filter = Filter { terminal: true, archived: true };

/// The labels that are left when nodes with nothing above them are taken away again and again: a loop, or nothing.
pub fn loop_among(rows: &[NodeView]) -> Vec<String> {
    let mut left: BTreeMap<String, BTreeSet<&String>> =
        rows.iter().map(|r| (r.label(), r.depends_on.iter().chain(&r.parent).collect())).collect();
    loop {
        let free: Vec<String> = left
            .iter()
            .filter(|(_, above)| above.iter().all(|a| !left.contains_key(*a)))
            .map(|(label, _)| label.clone())
            .collect();
        if free.is_empty() {
            return left.into_keys().collect();
        }
        free.iter().for_each(|label| {
            left.remove(label);
        });
    }
}

/// Adds and removes edges of both kinds between random nodes.
pub fn link_at_random(orders: &Orders) {
    let table = orders.table();
    let (seed, nodes, times) = (orders.number(0), orders.number(1), orders.number(2));
    let mut dice = Dice::new(seed as u64);
    let name = |k: usize| format!("n{k}");
    let (mut made, mut refused) = (0, 0);
    orders.wait_for_start();
    for _ in 0..times {
        let (a, b) = (NodeId::of_name(&name(dice.below(nodes))), NodeId::of_name(&name(dice.below(nodes))));
        let under = |parent| NodeSpec { id: Some(b), parent: Some(parent), ..NodeSpec::default() };
        let answer = match dice.below(8) {
            0..=2 => table.link(a, b),
            3..=5 => table.upsert(&under(Some(a)), true).map(|_| true),
            6 => table.upsert(&under(None), true).map(|_| false),
            _ => table.unlink(a, b).map(|_| false),
        };
        match answer {
            Ok(added) => made += u32::from(added),
            Err(Refusal::Cycle { path }) => {
                assert!(path.len() >= 3 && path.first() == path.last(), "not a loop: {path:?}");
                refused += 1;
            }
            Err(Refusal::SelfLink { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    say(format!("{made} {refused}"));
}

#[test]
fn no_reader_ever_sees_a_loop() {
    let (nodes, times) = (24, depth(600));
    let (dir, table) = fresh_table();
    for k in 0..nodes {
        table.upsert(&NodeSpec { name: Some(format!("n{k}")), ..NodeSpec::default() }, false).expect("room");
    }
    let mut crew = Crew::new();
    for i in 0..8 {
        crew.add("link_at_random", dir.path(), &[&(i + 1), &nodes, &times]);
    }
    crew.start();
    let mut looks = 0;
    while crew.hands.iter_mut().any(Hand::is_running) {
        let rows = table.list(EVERYTHING).expect("rows");
        assert_eq!(loop_among(&rows), Vec::<String>::new(), "a loop, seen after {looks} looks");
        assert_eq!(rows.len(), nodes);
        looks += 1;
    }
    assert_eq!(loop_among(&table.list(EVERYTHING).expect("rows")), Vec::<String>::new());
    for said in crew.hands.into_iter().map(Hand::finish) {
        let (made, refused) = said[0].split_once(' ').expect("two counts");
        assert!(made != "0" && refused != "0", "nothing was tried: {made} edges, {refused} refusals");
    }
    assert!(looks > 10, "the reader hardly looked");
}

fn parent(k: usize) -> NodeId {
    NodeId(10_000 + k as u128)
}

fn child(k: usize) -> NodeId {
    NodeId(20_000 + k as u128)
}

/// Round by round: makes the child wait for the parent that the other process completes at the same moment.
pub fn link_children(orders: &Orders) {
    let table = orders.table();
    orders.wait_for_start();
    for k in 0..orders.number(0) {
        let begun = now_ns();
        let linked = table.link(parent(k), child(k));
        let ended = now_ns();
        match linked {
            Ok(true) => say(format!("link {k} {begun} {ended}")),
            other => panic!("round {k}: {other:?}"),
        }
        while !table.get(parent(k)).expect("the parent").status.is_terminal() {
            std::thread::yield_now();
        }
    }
}

fn outcome(k: usize) -> Outcome {
    [Outcome::Done, Outcome::Done, Outcome::Failed, Outcome::Cancelled][k % 4]
}

/// Round by round: tries to claim the child, then completes the parent. Says when the child was claimed.
pub fn complete_parents(orders: &Orders) {
    let table = orders.table();
    let worker = table.worker("eager").expect("a name");
    orders.wait_for_start();
    for k in 0..orders.number(0) {
        if k % 2 == 0 {
            let begun = now_ns();
            match worker.claim(child(k)) {
                Ok(claim) => {
                    say(format!("claim {k} {begun} {}", now_ns()));
                    claim.release().expect("the holder releases");
                }
                Err(Refusal::NotReady { .. }) => {}
                Err(other) => panic!("round {k}: {other}"),
            }
        }
        let completion = Completion { outcome: outcome(k), generation: None, holder: None, summary: None };
        assert_ne!(
            tenure::Ended::Already,
            table.complete(parent(k), &completion).expect("nobody holds it"),
            "round {k}"
        );
        while table.get(child(k)).expect("the child").depends_on.is_empty() {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_child_linked_while_its_parent_ends_is_as_the_graph_says() {
    let rounds = 2_000;
    for _ in 0..depth(1) {
        let (dir, table) = fresh_table();
        let specs: Vec<NodeSpec> = (0..rounds)
            .flat_map(|k| [parent(k), child(k)])
            .map(|id| NodeSpec { id: Some(id), ..NodeSpec::default() })
            .collect();
        table.import(&specs).expect("room");
        let mut crew = Crew::new();
        crew.add("link_children", dir.path(), &[&rounds]);
        crew.add("complete_parents", dir.path(), &[&rounds]);
        let said = crew.finish();
        for k in 0..rounds {
            let seen = table.get(child(k)).expect("the child").status;
            let wanted = if outcome(k) == Outcome::Done { Seen::Ready } else { Seen::Blocked };
            assert_eq!(seen, wanted, "round {k}: the parent ended {:?}", outcome(k));
        }
        assert_no_claim_after_link(&said);
    }
}

/// The parent of a round is completed only after the claim was tried, so a claim that began when the link had already
/// been answered was not allowed by any order of the two.
fn assert_no_claim_after_link(said: &[Vec<String>]) {
    let mut linked_at: BTreeMap<&str, u128> = BTreeMap::new();
    for line in &said[0] {
        let words: Vec<&str> = line.split(' ').collect();
        linked_at.insert(words[1], words[3].parse().expect("a time"));
    }
    for line in &said[1] {
        let words: Vec<&str> = line.split(' ').collect();
        let begun: u128 = words[2].parse().expect("a time");
        assert!(begun <= linked_at[words[1]], "round {}: claimed although a link was in place", words[1]);
    }
}
