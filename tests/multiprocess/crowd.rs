//! The whole width of the table hanging on one node, both ways (case 36).

use std::time::{Duration, Instant};

use tenure::{NodeId, NodeSpec, Outcome, Refusal, Table};

use super::crew::{Crew, Orders, fresh_table, say};

const WIDTH: usize = 4_095;

/// Takes and completes whatever is ready until nothing is left.
pub fn take_all(orders: &Orders) {
    let table = orders.table();
    let worker = table.worker(orders.word(0)).expect("a name");
    let mut taken = 0;
    orders.wait_for_start();
    loop {
        match worker.claim_next() {
            Ok(claim) => {
                claim.complete(Outcome::Done).expect("the holder completes");
                taken += 1;
            }
            Err(Refusal::NothingReady) => {
                let stats = table.stats().expect("counts");
                if stats.done == stats.nodes {
                    break;
                }
                std::thread::yield_now();
            }
            Err(other) => panic!("{other}"),
        }
    }
    say(taken);
}

fn node(k: usize) -> NodeSpec {
    NodeSpec { id: Some(NodeId(100 + k as u128)), ..NodeSpec::default() }
}

fn all_done_within(table: &Table, dir: &std::path::Path, limit: Duration) {
    let begun = Instant::now();
    let mut crew = Crew::new();
    for i in 0..4 {
        crew.add("take_all", dir, &[&format!("w{i}")]);
    }
    let taken: Vec<usize> = crew.finish().concat().iter().map(|l| l.parse().expect("a count")).collect();
    assert_eq!(taken.iter().sum::<usize>(), WIDTH + 1, "each node is taken once: {taken:?}");
    let stats = table.stats().expect("counts");
    assert_eq!(stats.done as usize, WIDTH + 1);
    assert!(begun.elapsed() < limit, "took {:?}", begun.elapsed());
}

#[test]
fn one_node_that_4095_wait_for() {
    let (dir, table) = fresh_table();
    let hub = NodeId(1);
    let mut specs = vec![NodeSpec { id: Some(hub), ..NodeSpec::default() }];
    specs.extend((0..WIDTH).map(|k| NodeSpec { needs: vec![hub.into()], ..node(k) }));
    table.import(&specs).expect("room");
    assert_eq!(table.ready().expect("rows").len(), 1);
    let worker = table.worker("first").expect("a name");
    let claim = worker.claim_next().expect("the hub");
    let begun = Instant::now();
    claim.complete(Outcome::Done).expect("the holder completes");
    assert!(begun.elapsed() < Duration::from_millis(250), "completing the hub took {:?}", begun.elapsed());
    assert_eq!(table.ready().expect("rows").len(), WIDTH);
    table.reopen(hub).expect("an ended node");
    assert_eq!(table.ready().expect("rows").len(), 1, "all wait again");
    all_done_within(&table, dir.path(), Duration::from_secs(60));
}

#[test]
fn one_node_that_waits_for_4095() {
    let (dir, table) = fresh_table();
    let mut specs: Vec<NodeSpec> = (0..WIDTH).map(node).collect();
    let all = specs.iter().filter_map(|s| s.id).map(Into::into).collect();
    specs.push(NodeSpec { id: Some(NodeId(1)), needs: all, ..NodeSpec::default() });
    table.import(&specs).expect("room");
    assert_eq!(table.get(NodeId(1)).expect("the last").depends_on.len(), WIDTH);
    all_done_within(&table, dir.path(), Duration::from_secs(60));
}

#[test]
fn edges_can_be_added_one_by_one_up_to_the_full_width() {
    let (_dir, table) = fresh_table();
    let specs: Vec<NodeSpec> = (0..=WIDTH).map(node).collect();
    table.import(&specs).expect("room");
    let begun = Instant::now();
    for k in 1..=WIDTH {
        let (first, other) = (NodeId(100), NodeId(100 + k as u128));
        let linked = if k % 2 == 0 { table.link(first, other) } else { table.link(other, first) };
        assert!(linked.expect("no limit below 4,095"));
    }
    assert_eq!(table.stats().expect("counts").edges as usize, WIDTH);
    assert!(begun.elapsed() < Duration::from_secs(60), "took {:?}", begun.elapsed());
}
