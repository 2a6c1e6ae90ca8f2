//! One test for each fault that was found and mended, here or elsewhere, with the shortest sequence that showed it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tenure::{
    Change, ClaimOptions, Completion, CreateOptions, Filter, NodeId, NodeSpec, Outcome, Refusal, Seen, Table,
};

const EVERYTHING: Filter = Filter { terminal: true, archived: true };

fn fresh() -> (tempfile::TempDir, Table) {
    let dir = tempfile::tempdir().expect("a scratch directory");
    let (table, _) = Table::open_or_create(dir.path(), &CreateOptions::default()).expect("a fresh directory");
    (dir, table)
}

fn id(name: &str) -> NodeId {
    NodeId::of_name(name)
}

fn named(name: &str) -> NodeSpec {
    NodeSpec { name: Some(name.to_owned()), ..NodeSpec::default() }
}

fn add(table: &Table, name: &str) -> NodeId {
    table.upsert(&named(name), false).expect("room").0
}

fn end(table: &Table, node: NodeId, outcome: Outcome) -> Result<bool, Refusal> {
    table
        .complete(node, &Completion { outcome, generation: None, holder: None, summary: None })
        .map(|ended| ended != tenure::Ended::Already)
}

fn code<T>(answer: Result<T, Refusal>) -> &'static str {
    answer.err().map_or("ok", |refusal| refusal.code())
}

fn lease(lease_ms: u64) -> ClaimOptions {
    ClaimOptions { lease_ms: Some(lease_ms), ..ClaimOptions::default() }
}

/// Fills what is left of the table with open nodes.
fn fill(table: &Table) -> Vec<NodeId> {
    let free = 4_096 - u128::from(table.stats().expect("counts").nodes);
    let filler: Vec<NodeSpec> = (1..=free).map(|i| NodeSpec { id: Some(NodeId(i)), ..NodeSpec::default() }).collect();
    table.import(&filler).expect("room");
    filler.into_iter().filter_map(|f| f.id).collect()
}

/// C6: a holder of the first `x` must not be taken for one of the second, wherever in the table that lies.
#[test]
fn a_name_that_comes_back_in_another_slot_does_not_begin_again() {
    let (_dir, table) = fresh();
    let worker = table.worker("w").expect("a name");
    let x = add(&table, "x");
    for _ in 0..10 {
        worker.claim(x).expect("ready").release().expect("held");
    }
    let old = table.get(x).expect("x").generation;
    assert!(end(&table, x, Outcome::Done).expect("open"));
    let filler = fill(&table);
    add(&table, "in the place of x");
    assert_eq!(code(table.get(x)), "no_such_node");
    assert!(end(&table, filler[0], Outcome::Done).expect("open"));
    add(&table, "x");
    let new = table.get(x).expect("x").generation;
    assert!(new > old, "x was at generation {old} and comes back at {new}");
}

/// C5: nobody needs a timer, also not for the lease that the claimer itself has let run out.
#[test]
fn a_holder_whose_own_lease_has_run_out_elsewhere_can_claim() {
    let (_dir, table) = fresh();
    let (x, y) = (add(&table, "x"), add(&table, "y"));
    let worker = table.worker("w").expect("a name");
    let lost = worker.claim_with(x, &lease(1)).expect("ready");
    std::thread::sleep(Duration::from_millis(5));
    let claim = worker.claim(y).expect("its lease on x has run out");
    assert_eq!(claim.id(), y);
    assert_eq!(code(lost.renew()), "generation_mismatch");
    assert_eq!(table.get(x).expect("x").status, Seen::Ready);
}

/// N3: what an ended node shows is what an upsert is compared with.
#[test]
fn an_upsert_of_an_ended_node_is_compared_with_the_summary_it_ended_with() {
    let (_dir, table) = fresh();
    let before = NodeSpec { summary: Some("before".into()), ..named("x") };
    table.upsert(&before, false).expect("room");
    let summary = Some("after".to_owned());
    table
        .complete(id("x"), &Completion { outcome: Outcome::Done, generation: None, holder: None, summary })
        .expect("open");
    assert_eq!(code(table.upsert(&before, false)), "ended");
    let same = NodeSpec { summary: Some("after".into()), ..named("x") };
    assert_eq!(table.upsert(&same, false).expect("nothing to change").1, Change::Unchanged);
}

#[test]
fn a_blocked_node_is_called_blocked_in_every_refusal() {
    let (_dir, table) = fresh();
    let (x, y) = (add(&table, "x"), add(&table, "y"));
    table.link(x, y).expect("two nodes");
    end(&table, x, Outcome::Failed).expect("open");
    let blocked = |refusal: Option<Refusal>| match refusal {
        Some(Refusal::NotEnded { status, .. } | Refusal::NotReady { status, .. }) => assert_eq!(status, Seen::Blocked),
        other => panic!("{other:?}"),
    };
    blocked(table.reopen(y).err());
    blocked(table.archive(y).err());
    blocked(table.unarchive(y).err());
    blocked(table.worker("w").expect("a name").claim(y).err());
    blocked(end(&table, y, Outcome::Done).err());
}

/// I1: a refused import leaves everything as it was, also what could have been pruned for it.
#[test]
fn a_refused_import_prunes_nothing() {
    let (_dir, table) = fresh();
    let (done, ended) = (add(&table, "done"), add(&table, "ended"));
    end(&table, done, Outcome::Done).expect("open");
    end(&table, ended, Outcome::Done).expect("open");
    let live = fill(&table);
    let before = table.list(EVERYTHING).expect("rows").len();
    let new = named("new");
    let changes_ended = NodeSpec { kind: Some("other".into()), ..named("ended") };
    assert_eq!(code(table.import(&[new.clone(), changes_ended])), "ended");
    let (a, b) = (live[0], live[1]);
    let waits = |id, needs| NodeSpec { id: Some(id), needs: vec![tenure::Need::from(needs)], ..NodeSpec::default() };
    assert_eq!(code(table.import(&[new.clone(), waits(a, b), waits(b, a)])), "cycle");
    assert_eq!(code(table.import(&[NodeSpec { needs: vec![id("new").into()], ..new }])), "self_link");
    assert_eq!(table.list(EVERYTHING).expect("rows").len(), before);
    assert!(table.get(done).is_ok() && table.get(ended).is_ok());
}

/// F1: what a failure still blocks does not come free by pruning the failure.
#[test]
fn a_failure_that_blocks_somebody_is_not_pruned() {
    let (_dir, table) = fresh();
    let (first, failed, waits) = (add(&table, "first"), add(&table, "failed"), add(&table, "waits"));
    table.link(first, waits).expect("two nodes");
    table.link(failed, waits).expect("two nodes");
    end(&table, failed, Outcome::Failed).expect("open");
    end(&table, first, Outcome::Done).expect("open");
    fill(&table);
    add(&table, "one more");
    assert_eq!(code(table.get(first)), "no_such_node");
    assert_eq!(table.get(waits).expect("waits").status, Seen::Blocked);
    match table.upsert(&named("too many"), false) {
        Err(Refusal::Full { live, capacity }) => assert_eq!((live, capacity), (4_095, 4_096)),
        other => panic!("{other:?}"),
    }
}

/// N4: no limit on fan-in below 4,095, also for a node that is held.
#[test]
fn a_held_node_can_be_given_thousands_of_dependencies() {
    let (_dir, table) = fresh();
    let x = add(&table, "x");
    let others = fill(&table);
    let worker = table.worker("w").expect("a name");
    let claim = worker.claim(x).expect("ready");
    for &other in &others[1..] {
        assert!(table.link(other, x).expect("no limit below 4,095"));
    }
    assert_eq!(code(claim.complete(Outcome::Done)), "not_ready");
    claim.complete(Outcome::Failed).expect("a failure waits for nobody");
}

/// A reader that is overtaken looks again; it does not take a moved word for damage.
#[test]
fn archiving_while_somebody_lists_is_not_damage() {
    let (_dir, table) = fresh();
    for k in 0..40 {
        let x = add(&table, &format!("x{k}"));
        let summary = Some(format!("ended {k}"));
        table
            .complete(x, &Completion { outcome: Outcome::Done, generation: None, holder: None, summary })
            .expect("open");
    }
    let stop = AtomicBool::new(false);
    let flips = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for k in 0..40 {
                    table.archive(id(&format!("x{k}"))).expect("ended");
                    table.unarchive(id(&format!("x{k}"))).expect("ended");
                    flips.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        let mut wrong = None;
        let mut lists = 0;
        while wrong.is_none() && (lists < 300 || flips.load(Ordering::Relaxed) < 20_000) {
            wrong = table.list(EVERYTHING).err();
            lists += 1;
        }
        stop.store(true, Ordering::Relaxed);
        assert!(wrong.is_none(), "list {lists}: {wrong:?}");
    });
}

/// G1: what a reader sees was so at one moment, and at no moment does a holder have two claims.
#[test]
fn a_reader_never_sees_two_claims_of_one_holder() {
    let (_dir, table) = fresh();
    let all = fill(&table);
    let nodes = [all[0], all[all.len() / 2], all[all.len() - 1]];
    let stop = AtomicBool::new(false);
    let claims = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let worker = table.worker("w").expect("a name");
            for node in nodes.iter().cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
                worker.claim(*node).expect("ready").release().expect("held");
                claims.fetch_add(1, Ordering::Relaxed);
            }
        });
        let (mut most, mut reads) = (0, 0);
        while most < 2 && (reads < 1_000 || claims.load(Ordering::Relaxed) < 20_000) {
            most = most.max(table.counts().expect("counts").claimed);
            reads += 1;
        }
        stop.store(true, Ordering::Relaxed);
        assert!(most < 2, "reader {reads} saw {most} claims of one holder");
    });
}

/// N1: every node of a full table can have the longest summary, and another one after that.
#[test]
fn every_node_can_have_the_longest_summary() {
    let (_dir, table) = fresh();
    let all = fill(&table);
    for letter in ["a", "b"] {
        for &node in &all {
            let spec = NodeSpec { id: Some(node), summary: Some(letter.repeat(1_024)), ..NodeSpec::default() };
            table.upsert(&spec, true).expect("room for its summary");
        }
    }
    let rows = table.list(EVERYTHING).expect("rows");
    assert!(rows.iter().all(|row| row.summary.as_deref() == Some("b".repeat(1_024).as_str())));
}

/// F22: no recursion over the graph, in either kind of edge.
#[test]
fn a_chain_through_the_whole_table_is_followed_without_recursion() {
    let (_dir, table) = fresh();
    let all = fill(&table);
    let chain: Vec<NodeSpec> = all
        .windows(2)
        .map(|two| NodeSpec {
            id: Some(two[1]),
            needs: vec![two[0].into()],
            parent: Some(Some(two[0])),
            ..NodeSpec::default()
        })
        .collect();
    std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(256 << 10);
        let work = small.spawn_scoped(scope, || {
            table.import(&chain).expect("no loop");
            assert_eq!(table.get(all[0]).expect("the first").waiting_below, 4_095);
            assert_eq!(code(table.link(all[4_095], all[0])), "cycle");
            end(&table, all[0], Outcome::Failed).expect("open");
            assert_eq!(table.stats().expect("counts").blocked, 4_095);
        });
        work.expect("a thread").join().expect("a small stack is enough");
    });
}

/// A worker may say often how far it is: a long claim is not refused its own summary after a while.
#[test]
fn the_summary_of_a_held_node_can_be_changed_any_number_of_times() {
    let (_dir, table) = fresh();
    let x = add(&table, "x");
    let worker = table.worker("w").expect("a name");
    let claim = worker.claim(x).expect("ready");
    for k in 0..5_000 {
        let spec = NodeSpec { summary: Some(format!("{k} of 5000")), ..named("x") };
        table.upsert(&spec, true).expect("its summary can be changed");
    }
    claim.complete(Outcome::Done).expect("held");
}
