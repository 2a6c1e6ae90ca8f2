//! The 4,097th live node, and how room is made.

use serde_json::json;

use crate::support::Sandbox;

fn fill(sandbox: &Sandbox) {
    let table = tenure::Table::open(sandbox.dir()).expect("a table");
    let spec = |n: usize| tenure::NodeSpec { name: Some(format!("n{n}")), ..tenure::NodeSpec::default() };
    table.import(&(0..4_096).map(spec).collect::<Vec<_>>()).expect("room for 4,096 nodes");
}

#[test]
fn six_the_table_is_full() {
    let sandbox = Sandbox::new();
    fill(&sandbox);
    let ran = sandbox.run(["upsert", "one-more"]);
    ran.refused(6, "4096");
    assert!(ran.err.contains("hint:"), "{ran:?}");
    let object = sandbox.run(["upsert", "--json"]).refused_json(6, "full");
    assert_eq!((&object["live"], &object["capacity"]), (&json!(4_096), &json!(4_096)));
    sandbox.run(["get", "one-more"]).refused(4, "one-more");
    // What is there can still be worked on.
    sandbox.ok(["upsert", "n7", "--cost", "9"]);
    sandbox.ok(["claim", "n7", "--holder", "w"]);
    sandbox.ok(["complete", "n7", "--holder", "w"]);
    assert_eq!(sandbox.ok(["upsert", "one-more"]), "one-more", "a node that has ended makes room");
    sandbox.run(["get", "n7"]).refused(4, "n7");
}

#[test]
fn a_full_table_is_listed_whole() {
    let sandbox = Sandbox::new();
    fill(&sandbox);
    assert_eq!(sandbox.json(["list"]).len(), 4_096);
    assert_eq!(sandbox.ok(["list"]).lines().count(), 4_097);
}
