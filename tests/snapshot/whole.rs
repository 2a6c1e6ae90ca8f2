//! What comes back, and under which generation (P3, C6).

use tenure::{
    Completion, CreateOptions, Filter, Need, NodeId, NodeSpec, NodeView, OnFailure, Outcome, Refusal, Seen,
    SnapshotError, Status, Table,
};

use super::crew::{fresh_table, scratch};
use super::help::{id, names, node, read, take};

const ALL: Filter = Filter { terminal: true, archived: true };

fn end(table: &Table, name: &str, outcome: Outcome, summary: Option<&str>) {
    let completion = Completion { outcome, generation: None, holder: None, summary: summary.map(str::to_owned) };
    table.complete(id(name), &completion).expect("it can end");
}

/// One node of every kind.
fn fill(table: &Table) {
    let full = NodeSpec {
        kind: Some("test".into()),
        role: Some("writer".into()),
        cost: Some(70),
        summary: Some("two\nlines \u{202e}".into()),
        run: Some("x".repeat(4_096)),
        parent: Some(Some(id("top"))),
        needs: vec![id("done").into(), Need { on_failure: Some(OnFailure::Skip), ..id("failed").into() }],
        max_attempts: Some(5),
        retry_delay_ms: Some(0),
        group: Some("gpu".into()),
        ..node("full")
    };
    table.set_group("gpu", 2).expect("room");
    table.set_group("unused", 7).expect("room");
    let nodes = ["top", "done", "failed", "cancelled", "hidden", "held"].map(node);
    let child = NodeSpec { needs: vec![id("full").into()], ..node("child") };
    let nameless = NodeSpec { id: Some(NodeId(7)), ..NodeSpec::default() };
    let all: Vec<NodeSpec> = nodes.into_iter().chain([full, child, nameless]).collect();
    table.import(&all).expect("room");
    end(table, "done", Outcome::Done, Some("what it came to"));
    end(table, "failed", Outcome::Failed, None);
    end(table, "cancelled", Outcome::Cancelled, Some(""));
    end(table, "hidden", Outcome::Done, None);
    table.archive(id("hidden")).expect("it has ended");
    let _ = table.worker("ann").expect("a name").claim(id("held")).expect("it is ready");
}

/// What must be the same before and after.
fn lasting(view: &NodeView) -> NodeView {
    let mut view = view.clone();
    view.generation = 0;
    view.finished_at_ms = view.finished_at_ms.map(|_| 0);
    if view.status == Seen::Claimed {
        view.status = Seen::Ready;
        (view.holder, view.lease_left_ms) = (None, None);
    }
    view
}

#[test]
fn everything_comes_back_into_an_empty_table_and_no_fence_of_before_fits() {
    let (dir, table) = fresh_table();
    fill(&table);
    let taken = take(&table);
    assert_eq!((taken.nodes, taken.edges, taken.covered), (9, 3, false));
    assert_eq!(names(dir.path()), ["snapshot", "snapshot.lock"]);
    let before = table.list(ALL).expect("rows");
    let other = scratch();
    let (empty, _) = Table::open_or_create(other.path(), &CreateOptions::default()).expect("a directory");
    let restored = empty.restore(Some(&dir.path().join("snapshot")), false).expect("an empty table");
    assert_eq!((restored.nodes, restored.edges, restored.handed_back), (9, 3, 1));
    let after = empty.list(ALL).expect("rows");
    assert_eq!(before.iter().map(lasting).collect::<Vec<_>>(), after.iter().map(lasting).collect::<Vec<_>>());
    assert_eq!(table.groups().expect("groups"), empty.groups().expect("groups"));
    for (before, after) in before.iter().zip(&after) {
        assert!(
            after.generation > before.generation + 1_000,
            "{}: {} after {}",
            after.label(),
            after.generation,
            before.generation
        );
        let (then, now) = (before.finished_at_ms.unwrap_or(0), after.finished_at_ms.unwrap_or(0));
        assert!(then.abs_diff(now) < 1_000, "{} ended at {then}, now at {now}", after.label());
    }
    // It is a table like any other: what is ready is claimed, in the order that the graph says.
    let worker = empty.worker("bob").expect("a name").with_roles(["writer"]).expect("a role");
    let order: Vec<String> = empty.ready().expect("rows").iter().map(NodeView::label).collect();
    assert_eq!(order, ["top", "held", &NodeId(7).to_string()]);
    let claim = worker.claim(id("held")).expect("it was handed back");
    claim.renew().expect("the lease has begun");
    assert!(table.get(id("held")).expect("there").generation < claim.generation());
    claim.complete(Outcome::Done).expect("held");
}

#[test]
fn attempts_are_counted_on_and_the_last_one_is_lost_with_its_boot() {
    let (_dir, table) = fresh_table();
    let spec = |name: &str| NodeSpec { max_attempts: Some(3), ..node(name) };
    table.import(&[spec("second"), spec("third"), spec("open")]).expect("room");
    let lost = |name: &str, holder: &str, times: usize| {
        let worker = table.worker(holder).expect("a name");
        for _ in 0..times {
            worker.claim(id(name)).expect("ready").release().expect("held");
        }
        let _ = worker.claim(id(name)).expect("ready");
    };
    lost("second", "ann", 1);
    lost("third", "bob", 2);
    let eve = table.worker("eve").expect("a name");
    eve.claim(id("open")).expect("ready").release().expect("held");
    take(&table);
    for _ in 0..2 {
        let restored = table.restore(None, true).expect("by force");
        assert_eq!(restored.handed_back, 2);
        let of = |name: &str| table.get(id(name)).map(|v| (v.status, v.attempts)).expect("there");
        assert_eq!([of("second"), of("third"), of("open")], [(Seen::Ready, 2), (Seen::Failed, 3), (Seen::Ready, 1)]);
    }
    let claim = eve.claim(id("second")).expect("one attempt is left");
    assert_eq!(table.get(id("second")).expect("there").attempts, 3);
    claim.complete(Outcome::Failed).expect("held");
    assert_eq!(table.get(id("second")).expect("there").status, Seen::Failed);
}

#[test]
fn what_is_in_a_snapshot_can_be_read_without_a_table() {
    let (dir, table) = fresh_table();
    fill(&table);
    take(&table);
    let snapshot = read(dir.path());
    let of = |name: &str| snapshot.nodes.iter().find(|n| n.name == name).expect("it is there");
    assert_eq!((of("held").status, of("held").holder.as_deref()), (Status::Claimed, Some("ann")));
    assert_eq!((of("done").status, of("done").summary.as_str()), (Status::Done, "what it came to"));
    assert_eq!((of("hidden").status, of("hidden").archived), (Status::Done, true));
    assert_eq!(of("full").parent, Some(of("top").slot));
    assert_eq!(snapshot.lease_ms, table.default_lease_ms());
}

#[test]
fn a_table_that_has_nodes_is_replaced_only_by_force_and_then_whole() {
    let (_dir, table) = fresh_table();
    fill(&table);
    take(&table);
    let ann = table.worker("ann").expect("a name");
    let held = ann.current().expect("a look").expect("a claim");
    table.upsert(&node("later"), false).expect("room");
    let eve = table.worker("eve").expect("a name");
    let later = eve.claim(id("later")).expect("it is ready");
    end(&table, "top", Outcome::Done, None);
    assert!(matches!(table.restore(None, false), Err(SnapshotError::NotEmpty { nodes: 10 })));
    later.renew().expect("nothing has changed");

    let highest = table.list(ALL).expect("rows").iter().map(|v| v.generation).max().expect("rows");
    table.restore(None, true).expect("by force");
    let after = table.list(ALL).expect("rows");
    assert_eq!(after.len(), 9, "what came later is gone");
    assert!(after.iter().all(|view| view.generation > highest), "a generation was given out before");
    assert_eq!(table.get(id("top")).expect("there").status, Seen::Ready);
    for lost in [held.renew(), later.renew()] {
        assert!(matches!(lost, Err(Refusal::GenerationMismatch { .. })), "{lost:?}");
    }
    assert!(held.complete(Outcome::Done).is_err() && later.release().is_err());
    // Both names hold nothing now and can claim again.
    let again = eve.claim(id("held")).expect("it was handed back");
    assert!(again.generation() > held.generation());
    let _ = ann.claim(id("top")).expect("it is ready");
}

#[test]
fn a_node_that_was_pruned_and_comes_back_never_gets_an_old_generation() {
    let (_dir, table) = fresh_table();
    table.import(&(0..4_096).map(|n| node(&format!("n{n}"))).collect::<Vec<_>>()).expect("room");
    take(&table);
    let worker = table.worker("w").expect("a name");
    let mut last = 0;
    for _ in 0..5 {
        let claim = worker.claim(id("n9")).expect("ready");
        last = claim.generation();
        claim.release().expect("held");
    }
    end(&table, "n9", Outcome::Cancelled, None);
    table.upsert(&node("new"), false).expect("n9 makes room");
    assert!(table.get(id("n9")).is_err());
    table.restore(None, true).expect("by force");
    assert!(table.get(id("n9")).expect("back").generation > last);
    assert!(worker.claim(id("n9")).expect("ready").generation() > last);
}

#[test]
fn restoring_again_and_again_always_moves_on() {
    let (_dir, table) = fresh_table();
    table.import(&[node("a"), NodeSpec { needs: vec![id("a").into()], ..node("b") }]).expect("room");
    take(&table);
    let worker = table.worker("w").expect("a name");
    let mut last = 0;
    // Past the 2^24 generations after which the tags of leases begin anew.
    for _ in 0..40 {
        let claim = worker.claim(id("a")).expect("it is open");
        assert!(claim.generation() > last);
        last = claim.generation();
        claim.renew().expect("its lease is its own");
        assert!(table.reclaim(None).expect("a look").is_empty(), "a fresh claim was taken back");
        claim.complete(Outcome::Done).expect("held");
        table.restore(None, true).expect("by force");
    }
}

#[test]
fn an_empty_table_has_a_snapshot_too() {
    let (_dir, table) = fresh_table();
    assert_eq!(take(&table).nodes, 0);
    assert_eq!(table.restore(None, false).expect("nothing to lose").nodes, 0);
    table.upsert(&node("a"), false).expect("room");
    assert_eq!(table.restore(None, true).expect("by force").nodes, 0);
    assert!(table.list(ALL).expect("rows").is_empty());
}

#[test]
fn the_largest_table_goes_and_comes_back() {
    let (_dir, table) = fresh_table();
    let named = |n: usize| format!("node number {n}");
    let all: Vec<NodeSpec> = (0..4_096usize)
        .map(|n| NodeSpec {
            summary: Some("s".repeat(1_024)),
            needs: (1..=60).filter_map(|d| n.checked_sub(d * 7)).map(|p| id(&named(p)).into()).collect(),
            ..node(&named(n))
        })
        .collect();
    table.import(&all).expect("room");
    let before = table.list(ALL).expect("rows");
    let taken = take(&table);
    assert_eq!((taken.nodes, taken.edges), (4_096, table.stats().expect("counts").edges));
    table.restore(None, true).expect("by force");
    let after = table.list(ALL).expect("rows");
    assert_eq!(before.iter().map(lasting).collect::<Vec<_>>(), after.iter().map(lasting).collect::<Vec<_>>());
    let stats = table.stats().expect("counts");
    assert_eq!((stats.text_blocks_reserved, stats.versions_reserved), (0, 0));
}
