//! A restore over a table that others work on: one change, and everybody's claims are gone with it (P3, C6).

use std::collections::BTreeMap;

use tenure::{Filter, NodeSpec, Outcome, Refusal, Seen, Snapshot};

use super::crew::{Crew, Dice, Orders, depth, fresh_table, say};
use super::help::{id, node, read, take};

const NODES: usize = 60;

/// Works and reopens until it is killed, and says every generation that it was given.
pub fn work_and_reopen(orders: &Orders) {
    let table = orders.table();
    let worker = table.worker(orders.word(0)).expect("a name");
    let mut dice = Dice::new(orders.number(1) as u64);
    orders.wait_for_start();
    for n in 0.. {
        let name = format!("n{}", dice.below(NODES));
        match dice.below(4) {
            0 => drop(table.reopen(id(&name))),
            1 => drop(table.upsert(&NodeSpec { summary: Some(n.to_string()), ..node(&name) }, true)),
            _ => match worker.claim_next() {
                Ok(claim) => {
                    say(format!("{} {}", claim.id(), claim.generation()));
                    let ended = if dice.below(3) == 0 {
                        claim.release().map(drop)
                    } else {
                        claim.complete(Outcome::Done).map(drop)
                    };
                    match ended {
                        Ok(()) | Err(Refusal::GenerationMismatch { .. } | Refusal::NotReady { .. }) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
                Err(Refusal::NothingReady | Refusal::Busy { .. }) => {
                    if let Some(claim) = worker.current().expect("a look") {
                        let _ = claim.release();
                    }
                }
                Err(other) => panic!("{other}"),
            },
        }
    }
}

#[test]
fn a_restore_beside_workers_is_whole_and_no_fence_is_given_out_twice() {
    let (dir, table) = fresh_table();
    let nodes: Vec<NodeSpec> = (0..NODES)
        .map(|n| NodeSpec {
            needs: n.checked_sub(7).map(|p| id(&format!("n{p}")).into()).into_iter().collect(),
            ..node(&format!("n{n}"))
        })
        .collect();
    table.import(&nodes).expect("room");
    let mut crew = Crew::new();
    for k in 0..3 {
        crew.add("work_and_reopen", dir.path(), &[&format!("w{k}"), &(k + 1)]);
    }
    crew.start();
    let mut last: Option<Snapshot> = None;
    for round in 0..depth(40) {
        take(&table);
        let snapshot = read(dir.path());
        if let Some(last) = &last {
            assert!(snapshot.nodes.iter().zip(&last.nodes).all(|(l, e)| l.generation >= e.generation), "round {round}");
        }
        let restored = table.restore(None, true).expect("by force");
        assert_eq!(restored.nodes as usize, NODES);
        let rows = table.list(Filter { terminal: true, archived: true }).expect("rows");
        assert_eq!(rows.len(), NODES);
        let mut holders = BTreeMap::new();
        for row in &rows {
            let then = snapshot.nodes.iter().find(|n| n.id == row.id).expect("the same nodes");
            assert!(row.generation > then.generation + 1_000, "round {round}: {} was not restored", row.label());
            if row.status == Seen::Claimed {
                *holders.entry(row.holder.clone()).or_insert(0) += 1;
            }
        }
        assert!(holders.values().all(|&claims| claims == 1), "round {round}: {holders:?}");
        last = Some(snapshot);
    }
    let mut given = Vec::new();
    for hand in &mut crew.hands {
        assert!(hand.is_running(), "a worker failed: {:?}", hand.hear());
        hand.kill();
        given.extend(std::iter::from_fn(|| hand.hear()));
    }
    let count = given.len();
    assert!(count > 200, "the workers hardly worked: {count} claims");
    given.sort();
    given.dedup();
    assert_eq!(given.len(), count, "a generation of a node was given out twice");
    let stats = table.stats().expect("counts");
    assert_eq!((stats.text_blocks_reserved, stats.versions_reserved), (0, 0));
}
