//! The library as a newcomer would use it.

use tenure::{Claim, Completion, CreateOptions, Filter, NodeId, NodeSpec, Outcome, Refusal, Seen, Table};

fn table() -> (tempfile::TempDir, Table) {
    let dir = tempfile::tempdir().unwrap();
    let (table, made) = Table::open_or_create(dir.path(), &CreateOptions::default()).unwrap();
    assert!(made);
    (dir, table)
}

fn node(name: &str) -> NodeSpec {
    NodeSpec { name: Some(name.into()), ..NodeSpec::default() }
}

fn id(name: &str) -> NodeId {
    NodeId::of_name(name)
}

#[test]
fn a_chain_is_worked_from_its_head_to_its_end() {
    let (_dir, table) = table();
    for name in ["a", "b", "c"] {
        table.upsert(&node(name), false).unwrap();
    }
    assert!(table.link(id("a"), id("b")).unwrap());
    assert!(table.link(id("b"), id("c")).unwrap());
    assert!(!table.link(id("b"), id("c")).unwrap());
    assert_eq!(table.link(id("c"), id("a")).unwrap_err().code(), "cycle");
    let ready: Vec<_> = table.ready().unwrap().into_iter().map(|v| (v.label(), v.waiting_below)).collect();
    assert_eq!(ready, [("a".to_string(), 2)]);
    let worker = table.worker("w1").unwrap();
    assert_eq!(worker.claim(id("b")).unwrap_err().code(), "not_ready");
    for name in ["a", "b", "c"] {
        let claim = worker.claim_next().unwrap();
        assert_eq!(claim.id(), id(name));
        assert_eq!(claim.generation(), 1);
        assert_eq!(worker.claim_next().unwrap_err().code(), "busy");
        claim.renew().unwrap();
        claim.complete(Outcome::Done).unwrap();
    }
    assert_eq!(worker.claim_next().unwrap_err().code(), "nothing_ready");
    let all = table.list(Filter { terminal: true, archived: true }).unwrap();
    assert!(all.iter().all(|v| v.status == Seen::Done && v.finished_at_ms.is_some()));
    let stats = table.stats().unwrap();
    assert_eq!((stats.nodes, stats.done, stats.edges, stats.holders), (3, 3, 2, 1));
    assert_eq!((stats.text_blocks, stats.text_blocks_reserved, stats.versions_reserved), (4, 0, 0));
}

#[test]
fn an_expired_claim_is_taken_over_and_its_holder_is_fenced_off() {
    let (_dir, table) = table();
    table.upsert(&node("a"), false).unwrap();
    let slow = table.worker("slow").unwrap().with_lease_ms(20).unwrap();
    let lost: Claim<'_> = slow.claim_next().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(30));
    let quick = table.worker("quick").unwrap();
    let claim = quick.claim_next().unwrap();
    assert_eq!(claim.generation(), 3);
    assert!(matches!(lost.renew(), Err(Refusal::GenerationMismatch { .. })));
    assert!(matches!(lost.complete(Outcome::Done), Err(Refusal::GenerationMismatch { .. })));
    let late = Completion { outcome: Outcome::Done, generation: None, holder: Some("slow".into()), summary: None };
    assert_eq!(table.complete(id("a"), &late).unwrap_err().code(), "not_holder");
    claim.complete_with(Outcome::Failed, "it broke").unwrap();
    let view = table.get(id("a")).unwrap();
    assert_eq!((view.status, view.summary.as_deref()), (Seen::Failed, Some("it broke")));
    assert_eq!(table.reopen(id("a")).unwrap(), 4);
    assert_eq!(table.get(id("a")).unwrap().summary.as_deref(), Some("it broke"));
}
