//! SIGKILL at any moment: no node is lost or held for ever, and nothing leaks (G2, G3, cases 3, 15, 40).

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use tenure::{ClaimOptions, Completion, Filter, NodeId, NodeSpec, Outcome, Refusal, Seen, Table};

use super::crew::{Crew, Dice, Hand, Orders, depth, fresh_table, say, until};
use super::graph::loop_among;

const EVERYTHING: Filter = Filter { terminal: true, archived: true };
const NODES: usize = 60;

fn node(k: usize) -> NodeId {
    NodeId::of_name(&format!("e{k}"))
}

fn lease(lease_ms: u64) -> ClaimOptions {
    ClaimOptions { lease_ms: Some(lease_ms), resume: true, ..ClaimOptions::default() }
}

/// Takes back what has run out, then claims: says what it took and what it won.
pub fn reclaim_at_once(orders: &Orders) {
    let table = orders.table();
    let worker = table.worker(orders.word(0)).expect("a name");
    let x = NodeId::of_name("x");
    orders.wait_for_start();
    if orders.word(1) == "reclaim" {
        for taken in table.reclaim(None).expect("reclaim") {
            say(format!("took {}", taken.generation));
        }
    }
    match worker.claim(x) {
        Ok(claim) => say(format!("won {}", claim.generation())),
        Err(Refusal::Held { .. }) => {}
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn eight_contenders_for_a_dead_holders_node_make_one_reclaim_and_one_winner() {
    for round in 0..depth(24) {
        let (dir, table) = fresh_table();
        table.upsert(&NodeSpec { name: Some("x".into()), ..NodeSpec::default() }, false).expect("room");
        let mut dead = Crew::new();
        let holder = dead.add("claim_and_hang", dir.path(), &[&"dead", &30]);
        let generation: u64 = holder.hear().expect("its claim").parse().expect("a generation");
        holder.kill();
        let mut crew = Crew::new();
        let verb = if round % 2 == 0 { "reclaim" } else { "claim" };
        for i in 0..8 {
            crew.add("reclaim_at_once", dir.path(), &[&format!("w{i}"), &verb]);
        }
        crew.start_after(|| {
            until("the lease is out", || table.get(NodeId::of_name("x")).expect("x").lease_left_ms < Some(0))
        });
        let said: Vec<String> = crew.finish().concat();
        let won: Vec<&String> = said.iter().filter(|l| l.starts_with("won")).collect();
        assert_eq!(won, [&format!("won {}", generation + 2)], "{said:?}");
        let took: Vec<&String> = said.iter().filter(|l| l.starts_with("took")).collect();
        assert!(took.len() <= 1 && took.iter().all(|t| **t == format!("took {}", generation + 1)), "{said:?}");
        assert_eq!(table.get(NodeId::of_name("x")).expect("x").generation, generation + 2);
    }
}

/// Uses every verb there is, at random and without end.
pub fn everything(orders: &Orders) {
    let table = orders.table();
    let worker = table.worker(orders.word(0)).expect("a name");
    let mut dice = Dice::new(orders.number(1) as u64);
    orders.wait_for_start();
    loop {
        any_verb(&table, &worker, &mut dice);
    }
}

/// One verb; refusals are as good as answers, but damage and giving up are not.
pub fn any_verb(table: &Table, worker: &tenure::Worker, dice: &mut Dice) {
    let (a, b) = (node(dice.below(NODES)), node(dice.below(NODES)));
    let answer = match dice.below(20) {
        0..=2 => table.upsert(&texts(dice), false).map(drop),
        3 => table.import(&[texts(dice), texts(dice)]).map(drop),
        4 | 5 => table.link(a, b).map(drop),
        6 | 7 => table.unlink(a, b).map(drop),
        8 | 9 => worker.claim_next_with(&lease(1 + dice.below(30) as u64)).map(drop),
        10 => worker.claim_with(a, &lease(1 + dice.below(30) as u64)).map(drop),
        11 => worker.current().and_then(|c| c.map_or(Ok(()), |c| c.renew().map(drop))),
        12 | 13 => {
            worker.current().and_then(|c| c.map_or(Ok(()), |c| c.complete_with(Outcome::Done, "well done").map(drop)))
        }
        14 => worker.current().and_then(|c| c.map_or(Ok(()), |c| c.release().map(drop))),
        15 => table.reclaim(None).map(drop),
        16 => table.reopen(a).map(drop),
        17 => table.archive(a).and_then(|_| table.unarchive(b)).map(drop),
        18 => table.list(EVERYTHING).map(drop),
        _ => table.complete(a, &end(Outcome::Failed)).map(drop),
    };
    if let Err(refusal) = answer {
        let code = refusal.code();
        assert!(!["damaged", "contended", "exhausted", "no_room", "full", "forked"].contains(&code), "{refusal}");
    }
}

fn end(outcome: Outcome) -> Completion {
    Completion { outcome, generation: None, holder: None, summary: None }
}

/// A node whose texts all come from one letter and length, so that a mixture is seen.
fn texts(dice: &mut Dice) -> NodeSpec {
    let letter = char::from(b'a' + dice.below(26) as u8).to_string();
    NodeSpec {
        name: Some(format!("e{}", dice.below(NODES))),
        kind: Some(letter.repeat(1 + dice.below(64))),
        summary: Some(letter.repeat(dice.below(1_024))),
        run: Some(letter.repeat(dice.below(4_096))),
        ..NodeSpec::default()
    }
}

/// What must hold of any cut, whoever was killed where.
pub fn assert_sound(table: &Table) {
    let rows = table.list(EVERYTHING).expect("rows");
    assert_eq!(loop_among(&rows), Vec::<String>::new());
    let mut holds: BTreeMap<&String, &NodeId> = BTreeMap::new();
    let done: BTreeSet<String> = rows.iter().filter(|r| r.status == Seen::Done).map(|r| r.label()).collect();
    for row in &rows {
        if let Some(holder) = &row.holder {
            assert_eq!(row.status, Seen::Claimed, "{row:?}");
            assert_eq!(holds.insert(holder, &row.id), None, "{holder} holds two nodes");
        }
        let one_letter =
            |t: &String| t.is_empty() || t == "well done" || t.bytes().all(|b| Some(&b) == t.as_bytes().first());
        for text in [&row.kind, &row.summary, &row.run].into_iter().flatten() {
            assert!(one_letter(text), "torn text in {}: {text}", row.label());
        }
        let ready = row.depends_on.iter().all(|d| done.contains(d));
        if !row.status.is_terminal() && row.status != Seen::Claimed {
            assert_eq!(row.status == Seen::Ready, ready, "{row:?}");
        }
    }
}

/// Nothing that the dead had taken is still taken: what the table uses is what its nodes and holders need.
fn assert_nothing_leaked(table: &Table) {
    for k in 0..NODES {
        let _ = table.reopen(node(k));
    }
    for taken in table.reclaim(Some(0)).expect("reclaim") {
        assert!(!taken.holder.is_empty());
    }
    let cleared = Some(String::new());
    for k in 0..NODES {
        let spec = NodeSpec {
            name: Some(format!("e{k}")),
            kind: cleared.clone(),
            summary: cleared.clone(),
            run: cleared.clone(),
            ..NodeSpec::default()
        };
        table.upsert(&spec, false).expect("an open node");
    }
    let stats = table.stats().expect("counts");
    assert_eq!((stats.nodes as usize, stats.claimed), (NODES, 0), "{stats:?}");
    assert_eq!((stats.text_blocks_reserved, stats.versions_reserved), (0, 0), "{stats:?}");
    let (_dir, fresh) = fresh_table();
    for k in 0..NODES {
        fresh.upsert(&NodeSpec { name: Some(format!("e{k}")), ..NodeSpec::default() }, false).expect("room");
    }
    let wanted = fresh.stats().expect("counts").text_blocks + stats.holders;
    assert!(stats.text_blocks <= wanted, "{} text blocks in use, {wanted} accounted for: {stats:?}", stats.text_blocks);
}

/// Everybody can do every verb, at once and without waiting for the dead.
fn assert_all_verbs_go_on(table: &Table, who: &str, seed: u64) {
    let begun = Instant::now();
    let worker = table.worker(who).expect("a name");
    let mut dice = Dice::new(seed);
    for _ in 0..60 {
        any_verb(table, &worker, &mut dice);
    }
    assert!(begun.elapsed() < Duration::from_secs(1), "sixty verbs took {:?}", begun.elapsed());
}

#[test]
fn five_hundred_killed_workers_leave_nothing_behind() {
    let (dir, table) = fresh_table();
    let mut dice = Dice::new(40);
    let workers = depth(500);
    let at_once = 4;
    let mut done = 0;
    while done < workers {
        let mut crew = Crew::new();
        for i in 0..at_once {
            crew.add("everything", dir.path(), &[&format!("victim-{}", done + i), &(done + i + 1)]);
        }
        crew.start();
        for hand in &mut crew.hands {
            std::thread::sleep(Duration::from_micros(dice.below(2_500) as u64));
            assert!(hand.is_running(), "a worker ended by itself: {:?}", hand.hear());
            hand.kill();
        }
        done += at_once;
        if done % 20 == 0 {
            assert_all_verbs_go_on(&table, &format!("survivor-{}", done % 3), done as u64);
            assert_sound(&table);
        }
    }
    let stats = table.stats().expect("counts");
    assert!(stats.version as usize > 2 * workers, "the victims hardly did anything: {stats:?}");
    assert!(stats.holders <= stats.holders_max, "{stats:?}");
    for k in 0..stats.holders_max {
        table
            .worker(&format!("new-{k}"))
            .and_then(|w| w.claim_next_with(&lease(1)).map(drop))
            .or_else(nothing_ready)
            .expect("a name");
    }
    assert_nothing_leaked(&table);
}

fn nothing_ready(refusal: Refusal) -> Result<(), Refusal> {
    if matches!(refusal, Refusal::NothingReady) { Ok(()) } else { Err(refusal) }
}

/// Works through the graph until all of it is done, under a short lease.
pub fn work_through(orders: &Orders) {
    let table = orders.table();
    let worker = table.worker(orders.word(0)).expect("a name");
    orders.wait_for_start();
    loop {
        match worker.claim_next_with(&lease(15)) {
            Ok(claim) => {
                std::thread::sleep(Duration::from_millis(1));
                match claim.complete(Outcome::Done) {
                    Ok(_) | Err(Refusal::GenerationMismatch { .. }) => {}
                    Err(other) => panic!("{other}"),
                }
            }
            Err(Refusal::NothingReady) => {
                let stats = table.stats().expect("counts");
                if stats.done == stats.nodes {
                    return;
                }
                std::thread::yield_now();
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_graph_is_finished_although_its_workers_keep_dying() {
    let nodes = 1_500;
    let (dir, table) = fresh_table();
    let mut dice = Dice::new(7);
    let specs: Vec<NodeSpec> = (0..nodes)
        .map(|k| NodeSpec {
            id: Some(NodeId(1 + k as u128)),
            needs: (0..3.min(k))
                .map(|_| NodeId(1 + dice.below(k) as u128))
                .collect::<BTreeSet<_>>()
                .into_iter()
                .map(Into::into)
                .collect(),
            ..NodeSpec::default()
        })
        .collect();
    table.import(&specs).expect("room");
    let mut crew = Crew::new();
    let names = 6;
    for i in 0..names {
        crew.add("work_through", dir.path(), &[&format!("w{i}")]);
    }
    crew.start();
    let mut hands: Vec<Hand> = std::mem::take(&mut crew.hands);
    let begun = Instant::now();
    let mut killed = 0;
    while table.stats().expect("counts").done < nodes as u32 {
        assert!(begun.elapsed() < Duration::from_secs(60), "not finished: {:?}", table.stats());
        let victim = dice.below(names);
        if hands[victim].is_running() {
            hands[victim].kill();
            killed += 1;
        }
        let mut next = Crew::new();
        next.add("work_through", dir.path(), &[&format!("w{victim}")]);
        next.start();
        hands[victim] = next.hands.remove(0);
    }
    assert!(killed >= 10, "only {killed} were killed before the end");
    for hand in hands {
        hand.finish();
    }
    for row in table.list(EVERYTHING).expect("rows") {
        assert_eq!(row.status, Seen::Done, "{row:?}");
        assert!(row.generation >= 1 && row.holder.is_none(), "{row:?}");
    }
}
