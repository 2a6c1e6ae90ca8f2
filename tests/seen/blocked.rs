//! Blocked nodes: what failed, the chain that leads there, and the list of all of them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure::{NodeId, NodeSpec, Reason, Seen, Table};

use crate::support::Sandbox;

/// A chain `n0`, `n1`, ... in which each waits for the one before.
fn chain(table: &Table, count: usize) {
    let spec = |n: usize| NodeSpec {
        name: Some(format!("n{n}")),
        needs: n.checked_sub(1).map(|before| NodeId::of_name(&format!("n{before}")).into()).into_iter().collect(),
        ..NodeSpec::default()
    };
    table.import(&(0..count).map(spec).collect::<Vec<_>>()).expect("room for the chain");
}

fn diamond() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "build"]);
    sandbox.ok(["upsert", "pack", "--needs", "build"]);
    sandbox.ok(["upsert", "docs"]);
    sandbox.ok(["upsert", "ship", "--needs", "pack", "--needs", "docs"]);
    sandbox
}

#[test]
fn directly_and_through_one_other() {
    let sandbox = diamond();
    sandbox.ok(["complete", "build", "--status", "failed", "--summary", "it does not link"]);
    assert_eq!(
        sandbox.ok(["why", "pack"]),
        "pack is blocked: it waits for build, which failed (\"it does not link\").\n\
         `tenure reopen build` tries again.\n\
         1 node waits for it."
    );
    assert_eq!(
        sandbox.ok(["why", "ship"]),
        "ship is blocked: build failed (\"it does not link\"); ship waits for pack, pack waits for build.\n\
         `tenure reopen build` tries again.\n\
         Besides, it waits for\n  docs  ready, not claimed yet"
    );
    let why = sandbox.one(["why", "ship"]);
    let failed = &why["reasons"][0];
    assert_eq!((&why["status"], &failed["reason"]), (&json!("blocked"), &json!("failed")));
    assert_eq!(failed["chain"], json!(["ship", "pack", "build"]));
    let root = &failed["node"];
    assert_eq!((&root["name"], &root["status"]), (&json!("build"), &json!("failed")));
    assert_eq!(root["summary"], "it does not link");
    // Trying again is what the answer says, and it helps.
    sandbox.ok(["reopen", "build"]);
    assert_eq!(sandbox.status("ship"), "todo");
    assert!(sandbox.ok(["why", "ship"]).starts_with("ship is todo"));
}

#[test]
fn cancelled_is_told_apart_from_failed_and_several_are_all_named() {
    let sandbox = diamond();
    sandbox.ok(["complete", "build", "--status", "failed"]);
    sandbox.ok(["complete", "docs", "--status", "cancelled", "--summary", "not wanted"]);
    let text = sandbox.ok(["why", "ship"]);
    assert!(text.starts_with("ship is blocked by 2 nodes that failed or were cancelled:\n"), "{text}");
    assert!(text.contains("\n  it waits for docs, which was cancelled (\"not wanted\").\n"), "{text}");
    assert!(text.contains("\n  build failed; ship waits for pack, pack waits for build.\n"), "{text}");
    let why = sandbox.one(["why", "ship"]);
    let roots: Vec<&Value> = why["reasons"].as_array().expect("reasons").iter().map(|r| &r["node"]["name"]).collect();
    assert_eq!(roots[..2], [&json!("docs"), &json!("build")], "the nearest first: {why}");
}

#[test]
fn a_shortest_chain_is_told() {
    let sandbox = Sandbox::new();
    let table = Table::open(sandbox.dir()).expect("a table");
    chain(&table, 50);
    table.link(NodeId::of_name("n3"), NodeId::of_name("n49")).expect("no loop");
    sandbox.ok(["complete", "n3", "--status", "failed"]);
    assert_eq!(sandbox.one(["why", "n49"])["reasons"][0]["chain"], json!(["n49", "n3"]));
    // What the failed node itself waited for does not matter to those behind it.
    sandbox.ok(["complete", "n0", "--status", "failed"]);
    assert_eq!(sandbox.one(["why", "n49"])["reasons"].as_array().expect("reasons").len(), 2, "n3 and the wait for n48");
}

#[test]
fn through_the_longest_chain_there_can_be() {
    let sandbox = Sandbox::new();
    let table = Table::open(sandbox.dir()).expect("a table");
    chain(&table, 4_096);
    sandbox.ok(["complete", "n0", "--status", "failed", "--summary", "no"]);
    let began = Instant::now();
    let why = table.why(NodeId::of_name("n4095")).expect("an answer");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let Some(Reason::Failed { node, chain }) = why.reasons.first() else { panic!("{:?}", why.reasons.first()) };
    assert_eq!((node.name.as_deref(), node.status), (Some("n0"), Seen::Failed));
    let wanted: Vec<String> = (0..4_096).rev().map(|n| format!("n{n}")).collect();
    assert_eq!(*chain, wanted);
    let text = sandbox.ok(["why", "n4095"]);
    assert!(text.starts_with("n4095 is blocked: n0 failed (\"no\"); n4095 waits for n4094, "), "{text}");
    assert!(text.contains(", and so on through 4089 more, until n3 waits for n2, n2 waits for n1, n1 waits for n0."));
    assert_eq!(table.why(NodeId::of_name("n0")).expect("an answer").holds_up, 4_095);
}

#[test]
fn very_many_failures_far_away_make_no_endless_answer() {
    let sandbox = Sandbox::new();
    let table = Table::open(sandbox.dir()).expect("a table");
    // A chain of 2,000, and 2,000 failures that its far end waits for.
    chain(&table, 2_000);
    let failures: Vec<NodeSpec> =
        (0..2_000).map(|n| NodeSpec { name: Some(format!("f{n}")), ..NodeSpec::default() }).collect();
    let needs = failures.iter().map(|spec| NodeId::of_name(spec.name.as_deref().expect("a name")).into()).collect();
    table.import(&failures).expect("room");
    table.upsert(&NodeSpec { name: Some("n0".into()), needs, ..NodeSpec::default() }, true).expect("linked");
    for spec in &failures {
        let completion =
            tenure::Completion { outcome: tenure::Outcome::Failed, generation: None, holder: None, summary: None };
        table.complete(NodeId::of_name(spec.name.as_deref().expect("a name")), &completion).expect("ended");
    }
    let why = table.why(NodeId::of_name("n1999")).expect("an answer");
    let chains: Vec<&Vec<String>> = why
        .reasons
        .iter()
        .filter_map(|reason| if let Reason::Failed { chain, .. } = reason { Some(chain) } else { None })
        .collect();
    assert_eq!(chains.len(), 2_000, "every failure is named");
    assert_eq!(chains[0].len(), 2_001);
    let labels: usize = chains.iter().map(|chain| chain.len()).sum();
    assert!(labels <= tenure::CHAIN_LABELS_MAX, "{labels}");
    let text = sandbox.ok(["why", "n1999"]);
    assert!(text.contains("blocked by 2000 nodes") && text.contains("and 1992 more"), "{text}");
}

#[test]
fn list_blocked_shows_all_of_them_and_nothing_else() {
    let sandbox = diamond();
    assert_eq!(sandbox.run(["list", "--blocked"]).err.trim(), "nothing is blocked");
    assert!(sandbox.json(["list", "--blocked"]).is_empty());
    sandbox.ok(["complete", "build", "--status", "failed"]);
    let rows = sandbox.json(["list", "--blocked"]);
    let names: Vec<&Value> = rows.iter().map(|row| &row["name"]).collect();
    assert_eq!(names, ["pack", "ship"]);
    assert!(rows.iter().all(|row| row["status"] == "blocked"), "{rows:?}");
    let text = sandbox.ok(["list", "--blocked"]);
    assert_eq!(text.lines().count(), 3, "{text}");
    for more in ["--all", "--terminal", "--archived"] {
        sandbox.run(["list", "--blocked", more]).refused(2, "--blocked");
    }
}

#[test]
fn refusals_point_to_why() {
    let sandbox = diamond();
    let ran = sandbox.run(["claim", "ship", "--holder", "w"]);
    ran.refused(1, "ship is todo");
    assert!(ran.err.contains("`tenure why ship`"), "{ran:?}");
    sandbox.ok(["complete", "docs", "--status", "failed"]);
    let ran = sandbox.run(["claim", "ship", "--holder", "w"]);
    ran.refused(1, "ship is blocked");
    assert!(ran.err.contains("`tenure why ship`"), "{ran:?}");
}
