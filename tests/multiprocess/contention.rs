//! Many processes, one node; many processes, one name (C1, cases 1 and 2).

use std::collections::BTreeMap;
use std::fs::{File, remove_file};
use std::thread::yield_now;

use tenure::{ClaimOptions, Filter, NodeId, NodeSpec, Outcome, Refusal, Seen, Table};

use super::crew::{Crew, Dice, Orders, depth, fresh_table, say};

const CONTENDERS: usize = 64;

fn round(k: usize) -> NodeId {
    NodeId(1 + k as u128)
}

fn has_ended(table: &Table, node: NodeId) -> bool {
    table.get(node).expect("the node is there").status.is_terminal()
}

fn x() -> NodeId {
    NodeId::of_name("x")
}

/// The generation that the node has by now: asked for by presenting one that it never has again.
fn generation(worker: &tenure::Worker) -> u64 {
    let stale = ClaimOptions { generation: Some(u64::MAX), ..ClaimOptions::default() };
    match worker.claim_with(x(), &stale) {
        Err(Refusal::GenerationMismatch { found, .. }) => found,
        other => panic!("no mismatch: {:?}", other.map(|c| c.generation())),
    }
}

/// Claims the one node round after round: round `r` is its generation `2r`, and the winner hands it back at `2r + 2`.
/// Whoever won a round sits out until somebody has the next one, so that no process can run through the rounds while
/// the others are not on a processor.
pub fn win_rounds(orders: &Orders) {
    let table = orders.table();
    let worker = table.worker(orders.word(0)).expect("a name");
    let rounds = orders.number(1) as u64;
    let mut won = Vec::new();
    orders.wait_for_start();
    let mut r = 0;
    while r < rounds {
        let fenced = ClaimOptions { generation: Some(2 * r), ..ClaimOptions::default() };
        match worker.claim_with(x(), &fenced) {
            Ok(claim) => {
                assert_eq!(claim.generation(), 2 * r + 1);
                won.push(r);
                yield_now();
                assert_eq!(claim.release().expect("the holder releases"), 2 * r + 2);
                r += 1;
                while r < rounds && generation(&worker) == 2 * r {
                    yield_now();
                }
            }
            Err(Refusal::GenerationMismatch { found, .. }) => {
                yield_now();
                r = found / 2;
            }
            Err(other) => panic!("round {r}: {other}"),
        }
    }
    won.iter().for_each(say);
}

fn assert_one_winner_each(said: &[Vec<String>], rounds: usize) {
    let mut winners: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (who, lines) in said.iter().enumerate() {
        for line in lines {
            winners.entry(line.parse().expect("a round")).or_default().push(who);
        }
    }
    for k in 0..rounds {
        assert_eq!(winners.get(&k).map(Vec::len), Some(1), "round {k} was won by {:?}", winners.get(&k));
    }
    let wins: Vec<usize> = said.iter().map(Vec::len).collect();
    let most = wins.iter().max().copied().unwrap_or(0);
    assert!(most < rounds / 4, "one process won nearly everything, so nobody competed: {wins:?}");
    let some = wins.iter().filter(|&&w| w > 0).count();
    assert!(some > CONTENDERS / 2, "only {some} of {CONTENDERS} processes ever won: {wins:?}");
}

#[test]
fn one_node_has_one_winner_among_64_processes() {
    let rounds = depth(10_000);
    let (dir, table) = fresh_table();
    table.upsert(&NodeSpec { name: Some("x".into()), ..NodeSpec::default() }, false).expect("room");
    let mut crew = Crew::new();
    for i in 0..CONTENDERS {
        crew.add("win_rounds", dir.path(), &[&format!("w{i}"), &rounds]);
    }
    let said = crew.finish();
    assert_one_winner_each(&said, rounds);
    assert_eq!(table.get(x()).expect("x").generation, 2 * rounds as u64, "two steps a round, and no other");
}

/// As `win_rounds`, along a chain: there is one ready node at a time, and `claim_next` has to find it.
pub fn win_chain(orders: &Orders) {
    let table = orders.table();
    let worker = table.worker(orders.word(0)).expect("a name");
    let rounds = orders.number(1);
    let mut won: Vec<u128> = Vec::new();
    orders.wait_for_start();
    while !has_ended(&table, round(rounds - 1)) {
        let next = won.last().map(|&k| NodeId(k + 1)).filter(|n| n.0 <= rounds as u128);
        if next.is_some_and(|next| !has_ended(&table, next)) {
            yield_now();
            continue;
        }
        match worker.claim_next() {
            Ok(claim) => {
                won.push(claim.id().0);
                yield_now();
                claim.complete(Outcome::Done).expect("the winner completes");
            }
            Err(Refusal::NothingReady) => yield_now(),
            Err(other) => panic!("{other}"),
        }
    }
    won.iter().for_each(|k| say(k - 1));
}

#[test]
fn claim_next_gives_one_ready_node_to_one_of_64_processes() {
    let rounds = depth(600);
    let (dir, table) = fresh_table();
    let nodes: Vec<NodeSpec> = (0..rounds)
        .map(|k| NodeSpec {
            id: Some(round(k)),
            needs: k.checked_sub(1).map(|k| round(k).into()).into_iter().collect(),
            ..NodeSpec::default()
        })
        .collect();
    table.import(&nodes).expect("room for the chain");
    let mut crew = Crew::new();
    for i in 0..CONTENDERS {
        crew.add("win_chain", dir.path(), &[&format!("w{i}"), &rounds]);
    }
    let said = crew.finish();
    assert_one_winner_each(&said, rounds);
    assert_eq!(table.stats().expect("counts").done as usize, rounds);
}

/// Sixteen processes under one name. The file that only one process can make stands for "I hold a claim now".
pub fn one_name(orders: &Orders) {
    let table = orders.table();
    let worker = table.worker("same").expect("a name");
    let (seed, nodes, wanted) = (orders.number(0), orders.number(1), orders.number(2));
    let occupied = orders.dir.join("occupied");
    let mut dice = Dice::new(seed as u64);
    let mut claims = 0;
    orders.wait_for_start();
    while claims < wanted {
        let answer = match dice.below(4) {
            0 => worker.claim_next(),
            1 => worker.claim_with(round(dice.below(nodes)), &ClaimOptions::default()),
            _ => worker.claim(round(dice.below(nodes))),
        };
        match answer {
            Ok(claim) => {
                claims += 1;
                let made = File::create_new(&occupied);
                assert!(made.is_ok(), "{} at {} is a second live claim", claim.id(), claim.generation());
                if dice.below(2) == 0 {
                    yield_now();
                }
                remove_file(&occupied).expect("only the holder removes it");
                say(claim.generation() * 10_000 + claim.id().0 as u64);
                claim.release().expect("the holder releases");
            }
            Err(Refusal::Busy { .. } | Refusal::Held { .. } | Refusal::NothingReady) => yield_now(),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn one_name_has_one_live_claim_whatever_its_processes_do() {
    let (nodes, wanted) = (200, depth(60));
    let (dir, table) = fresh_table();
    let specs: Vec<NodeSpec> = (0..nodes).map(|k| NodeSpec { id: Some(round(k)), ..NodeSpec::default() }).collect();
    table.import(&specs).expect("room");
    let mut crew = Crew::new();
    for i in 0..16 {
        crew.add("one_name", dir.path(), &[&(i + 1), &nodes, &wanted]);
    }
    crew.start();
    let mut looks = 0u32;
    while crew.hands.iter_mut().any(super::crew::Hand::is_running) {
        let held: Vec<(String, u64)> = table
            .list(Filter::default())
            .expect("rows")
            .into_iter()
            .filter(|r| r.status == Seen::Claimed)
            .map(|r| (r.label(), r.generation))
            .collect();
        assert!(held.len() <= 1, "a reader saw two live claims of one name: {held:?}");
        looks += 1;
    }
    let said: Vec<String> = std::mem::take(&mut crew.hands).into_iter().flat_map(|h| h.finish()).collect();
    assert_eq!(said.len(), 16 * wanted);
    let distinct: std::collections::BTreeSet<&String> = said.iter().collect();
    assert_eq!(distinct.len(), said.len(), "a generation of a node was given out twice");
    assert!(looks > 10, "the watcher hardly looked");
}
