//! What a holder can still do after its lease has run out: nothing (C2-C5, cases 8, 9, 10).

use std::time::Duration;

use tenure::{ClaimOptions, Completion, NodeId, NodeSpec, Outcome, Refusal, Seen, Table};

use super::crew::{Crew, Orders, fresh_table, say};

const LEASE_MS: u64 = 20;

fn x() -> NodeId {
    NodeId::of_name("x")
}

fn with_x() -> (tempfile::TempDir, Table) {
    let (dir, table) = fresh_table();
    table.upsert(&NodeSpec { name: Some("x".into()), ..NodeSpec::default() }, false).expect("room");
    (dir, table)
}

fn short() -> ClaimOptions {
    ClaimOptions { lease_ms: Some(LEASE_MS), ..ClaimOptions::default() }
}

fn completion(generation: Option<u64>, holder: Option<&str>) -> Completion {
    Completion { outcome: Outcome::Done, generation, holder: holder.map(str::to_owned), summary: Some("late".into()) }
}

fn code<T>(answer: Result<T, Refusal>) -> &'static str {
    answer.err().map_or("ok", |refusal| refusal.code())
}

/// Claims, goes quiet until the parent says so, and then tries everything that a holder might.
pub fn acknowledge_late(orders: &Orders) {
    let table = orders.table();
    let worker = table.worker("a").expect("a name");
    let claim = worker.claim_with(x(), &short()).expect("x is ready");
    let generation = claim.generation();
    say(generation);
    orders.wait_for_start();
    say(code(table.complete(x(), &completion(None, None))));
    say(code(table.complete(x(), &completion(None, Some("a")))));
    say(code(table.complete(x(), &completion(Some(generation), None))));
    say(code(table.complete(x(), &completion(Some(generation), Some("a")))));
    say(code(table.renew(x(), "a", None, None)));
    say(code(table.renew(x(), "a", Some(generation), Some(60_000))));
    say(code(table.release(x(), "a", None)));
    say(code(table.release(x(), "a", Some(generation))));
    say(code(claim.renew()));
    say(code(claim.complete(Outcome::Done)));
}

#[test]
fn a_late_acknowledgement_is_refused_even_without_a_generation() {
    let (dir, table) = with_x();
    let mut crew = Crew::new();
    let late = crew.add("acknowledge_late", dir.path(), &[]);
    let generation: u64 = late.hear().expect("its claim").parse().expect("a generation");
    std::thread::sleep(Duration::from_millis(2 * LEASE_MS));
    let b = table.worker("b").expect("a name");
    let claim = b.claim(x()).expect("the lease has run out");
    assert_eq!(claim.generation(), generation + 2, "one for the reclaim, one for the claim");
    let said = crew.finish();
    let fenced = "generation_mismatch";
    let wanted = ["held", "not_holder", fenced, fenced, "not_holder", fenced, "not_holder", fenced, fenced, fenced];
    assert_eq!(said, [wanted]);
    let row = table.get(x()).expect("x");
    assert_eq!((row.status, row.holder.as_deref(), row.generation), (Seen::Claimed, Some("b"), generation + 2));
    assert_eq!(row.summary, None, "a refused completion leaves the summary alone");
    claim.complete(Outcome::Done).expect("the holder completes");
}

#[test]
fn a_late_holder_of_a_node_that_nobody_took_is_refused_too() {
    let (dir, table) = with_x();
    let mut crew = Crew::new();
    let late = crew.add("acknowledge_late", dir.path(), &[]);
    let generation: u64 = late.hear().expect("its claim").parse().expect("a generation");
    std::thread::sleep(Duration::from_millis(2 * LEASE_MS));
    assert_eq!(table.reclaim(None).expect("reclaim").len(), 1);
    // So that the completion without holder and generation, which an open node allows, does not come in between.
    let fence = table.worker("b").expect("a name").claim(x()).expect("open again").release().expect("b holds it");
    assert_eq!(fence, generation + 3);
    table.link(blocker(&table), x()).expect("an open node");
    let fenced = "generation_mismatch";
    let wanted =
        ["not_ready", "not_holder", fenced, fenced, "not_holder", fenced, "not_holder", fenced, fenced, fenced];
    assert_eq!(crew.finish(), [wanted]);
    assert_eq!(table.get(x()).expect("x").status, Seen::Todo);
}

fn blocker(table: &Table) -> NodeId {
    table.upsert(&NodeSpec { name: Some("first".into()), ..NodeSpec::default() }, false).expect("room").0
}

/// Claims `x` under the name and lease it is told, says the generation, and never comes back.
pub fn claim_and_hang(orders: &Orders) {
    let table = orders.table();
    let options = ClaimOptions { lease_ms: Some(orders.number(1) as u64), ..ClaimOptions::default() };
    let worker = table.worker(orders.word(0)).expect("a name");
    let claim = worker.claim_with(x(), &options).expect("x is ready");
    say(claim.generation());
    orders.wait_for_start();
}

#[test]
fn a_restarted_worker_does_not_inherit_its_old_generation() {
    let (dir, table) = with_x();
    let mut crew = Crew::new();
    let first = crew.add("claim_and_hang", dir.path(), &[&"a", &LEASE_MS]);
    let old: u64 = first.hear().expect("its claim").parse().expect("a generation");
    first.kill();
    std::thread::sleep(Duration::from_millis(2 * LEASE_MS));
    let again = table.worker("a").expect("a name");
    let claim = again.claim(x()).expect("its own lease has run out");
    assert_eq!(claim.generation(), old + 2);
    assert_eq!(code(table.renew(x(), "a", Some(old), None)), "generation_mismatch");
    assert_eq!(code(table.release(x(), "a", Some(old))), "generation_mismatch");
    assert_eq!(code(table.complete(x(), &completion(Some(old), Some("a")))), "generation_mismatch");
    claim.complete(Outcome::Done).expect("the new generation completes");
}

#[test]
fn a_worker_killed_between_claim_and_answer_can_ask_again() {
    let (dir, table) = with_x();
    let mut crew = Crew::new();
    let first = crew.add("claim_and_hang", dir.path(), &[&"a", &60_000]);
    let generation: u64 = first.hear().expect("its claim").parse().expect("a generation");
    first.kill();
    let again = table.worker("a").expect("a name");
    match again.claim_next() {
        Err(Refusal::Busy { node, generation: named, holder }) => {
            assert_eq!((node.as_str(), named, holder.as_str()), ("x", generation, "a"));
        }
        other => panic!("not busy: {:?}", other.map(|c| c.id())),
    }
    let resume = ClaimOptions { resume: true, ..ClaimOptions::default() };
    let claim = again.claim_next_with(&resume).expect("its own claim");
    assert_eq!((claim.id(), claim.generation(), claim.resumed()), (x(), generation, true));
    assert_eq!(again.current().expect("a look").map(|c| c.generation()), Some(generation));
    claim.complete(Outcome::Done).expect("the claim is live");
}

#[test]
fn renewing_a_lost_lease_says_who_holds_it() {
    let (_dir, table) = with_x();
    let (a, b) = (table.worker("a").expect("a name"), table.worker("b").expect("a name"));
    let lost = a.claim_with(x(), &short()).expect("x is ready");
    std::thread::sleep(Duration::from_millis(2 * LEASE_MS));
    let _held = b.claim(x()).expect("the lease has run out");
    let refusals = [
        lost.renew().err().map(|e| e.to_string()),
        table.renew(x(), "a", None, None).err().map(|e| e.to_string()),
        table.renew(x(), "a", Some(lost.generation()), None).err().map(|e| e.to_string()),
    ];
    for message in refusals {
        let message = message.expect("the lease is lost");
        assert!(message.contains('b') && message.contains('x'), "who holds what? {message}");
    }
}

#[test]
fn a_renewal_that_succeeded_keeps_the_node_for_its_whole_lease() {
    let (_dir, table) = with_x();
    let a = table.worker("a").expect("a name");
    let claim = a.claim_with(x(), &short()).expect("x is ready");
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_millis(10 * LEASE_MS) {
        claim.renew().expect("renewed in time");
        assert_eq!(table.reclaim(None).expect("reclaim"), [], "a renewed lease was taken");
        let b = table.worker("b").expect("a name");
        assert_eq!(b.claim(x()).err().map(|e| e.code()), Some("held"));
    }
    assert_eq!(claim.generation(), table.get(x()).expect("x").generation);
}
