//! Nodes whose work is tied to a place: given out only to who can say that the place is free.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tenure::{ClaimOptions, Refusal, Table};

use crate::sleeper::SOON;
use crate::support::Sandbox;

fn table() -> (Sandbox, Table) {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "deep", "--surface", "repo#docs", "--cost", "5"]);
    sandbox.ok(["upsert", "below", "--needs", "deep"]);
    sandbox.ok(["upsert", "plain"]);
    let table = Table::open(sandbox.dir()).expect("a table");
    (sandbox, table)
}

#[test]
fn without_a_gate_they_are_passed_over_and_by_name_they_are_claimed() {
    let (sandbox, table) = table();
    let worker = table.worker("w").expect("a name");
    let next = worker.claim_next().expect("a plain one");
    assert_eq!(next.task().expect("held").name.as_deref(), Some("plain"));
    next.release().expect("held");
    let deep = worker.claim(tenure::NodeId::of_name("deep")).expect("by name");
    assert_eq!(deep.task().expect("held").surface.as_deref(), Some("repo#docs"));
    deep.release().expect("held");
    assert_eq!(sandbox.one(["get", "deep"])["surface"], "repo#docs");
    assert!(sandbox.ok(["get", "deep"]).contains("surface        repo#docs\n"));
}

#[test]
fn a_gate_is_asked_with_the_key_and_only_about_such_nodes() {
    let (_sandbox, table) = table();
    let (open, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let gate = {
        let (open, asked) = (Arc::clone(&open), Arc::clone(&asked));
        Arc::new(move |key: &str| {
            assert_eq!(key, "repo#docs");
            asked.fetch_add(1, Ordering::Relaxed);
            open.load(Ordering::Relaxed)
        })
    };
    let worker = table.worker("w").expect("a name").with_gate(gate);
    let next = worker.claim_next().expect("a plain one");
    assert_eq!(next.task().expect("held").name.as_deref(), Some("plain"));
    assert!(asked.load(Ordering::Relaxed) > 0, "the deeper one comes first and is asked about");
    next.release().expect("held");
    open.store(true, Ordering::Relaxed);
    let next = worker.claim_next().expect("its surface is free");
    assert_eq!(next.task().expect("held").name.as_deref(), Some("deep"));
}

#[test]
fn a_waiter_with_a_gate_finds_out_that_a_surface_came_free() {
    let (sandbox, table) = table();
    sandbox.ok(["complete", "plain"]);
    let open = Arc::new(AtomicBool::new(false));
    let waiter = std::thread::spawn({
        let open = Arc::clone(&open);
        move || {
            let worker =
                table.worker("w").expect("a name").with_gate(Arc::new(move |_: &str| open.load(Ordering::Relaxed)));
            let claim = worker.wait_claim_next(&ClaimOptions::default(), Some(20_000));
            claim.map(|claim| claim.task().expect("held").name)
        }
    });
    // Long enough that it sleeps; nothing in the table changes from here on.
    std::thread::sleep(Duration::from_millis(300));
    assert!(!waiter.is_finished());
    let freed = Instant::now();
    open.store(true, Ordering::Relaxed);
    assert_eq!(waiter.join().expect("no panic").expect("a claim").as_deref(), Some("deep"));
    assert!(freed.elapsed() < SOON, "{:?}", freed.elapsed());
}

#[test]
fn a_surface_comes_back_from_a_snapshot_and_an_import_and_is_cleared() {
    let (sandbox, table) = table();
    sandbox.ok(["snapshot"]);
    sandbox.ok(["upsert", "deep", "--surface", ""]);
    assert!(sandbox.one(["get", "deep"])["surface"].is_null());
    assert_eq!(sandbox.ok(["claim-next", "--holder", "a"]), "deep gen=1");
    sandbox.ok(["restore", "--force"]);
    assert_eq!(sandbox.one(["get", "deep"])["surface"], "repo#docs");
    let worker = table.worker("b").expect("a name");
    assert_eq!(worker.claim_next().expect("plain").task().expect("held").name.as_deref(), Some("plain"));
    assert!(matches!(table.worker("c").expect("a name").claim_next(), Err(Refusal::NothingReady)));
    let exported = sandbox.ok(["export"]);
    assert!(exported.contains(r#""surface":"repo#docs""#), "{exported}");
    let other = Sandbox::new();
    std::fs::write(other.dir().join("graph.jsonl"), exported).expect("room");
    other.ok(["import", other.dir().join("graph.jsonl").to_str().expect("a plain path")]);
    assert_eq!(other.one(["get", "deep"])["surface"], "repo#docs");
    sandbox.run(["upsert", "deep", "--surface", &"x".repeat(1_025)]).refused(2, "1024");
}
