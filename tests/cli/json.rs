//! The objects that `--json` prints: their keys are a promise.

use serde_json::{Value, json};

use crate::support::Sandbox;

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().expect("an object").keys().map(String::as_str).collect()
}

/// Every key must be there; more may come with later versions.
#[track_caller]
fn has(object: &Value, wanted: &[&str]) {
    for key in wanted {
        assert!(object.get(key).is_some(), "no {key} in {object}");
    }
}

#[test]
fn init() {
    let sandbox = Sandbox::empty();
    let made = sandbox.one(["init", "--lease", "1.5"]);
    assert_eq!(made["created"], true);
    assert_eq!((&made["lease_ms"], &made["require_fence"]), (&json!(1_500), &json!(false)));
    assert_eq!(made["dir"], sandbox.dir().to_str().expect("UTF-8"));
    assert_eq!(sandbox.one(["init"])["created"], false);
}

#[test]
fn upsert_says_what_came_of_it() {
    let sandbox = Sandbox::new();
    let made = sandbox.one(["upsert", "n", "--cost", "3"]);
    assert_eq!((&made["name"], &made["change"]), (&json!("n"), &json!("created")));
    assert_eq!(made["id"].as_str().map(str::len), Some(32));
    assert_eq!(sandbox.one(["upsert", "n", "--cost", "3"])["change"], "unchanged");
    assert_eq!(sandbox.one(["upsert", "n", "--cost", "4"])["change"], "updated");
    let unnamed = sandbox.one(["upsert"]);
    assert!(unnamed["name"].is_null(), "{unnamed}");
}

#[test]
fn nodes_have_the_names_of_the_rust_fields() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "a"]);
    sandbox.ok(["upsert", "n", "--needs", "a"]);
    sandbox.ok(["claim", "a", "--holder", "w", "--lease", "60"]);
    let node = sandbox.one(["get", "n"]);
    has(
        &node,
        &["id", "name", "status", "generation", "holder", "lease_left_ms", "kind", "role", "parent", "depends_on"],
    );
    has(
        &node,
        &["cost", "waiting_below", "summary", "run", "archived", "created_at_ms", "updated_at_ms", "finished_at_ms"],
    );
    assert_eq!(node["status"], "todo");
    assert_eq!(node["depends_on"], json!(["a"]));
    let held = sandbox.one(["get", "a"]);
    assert_eq!((&held["status"], &held["holder"], &held["waiting_below"]), (&json!("claimed"), &json!("w"), &json!(1)));
    let left = held["lease_left_ms"].as_i64().expect("a number");
    assert!((1..=60_000).contains(&left), "{left}");
    let rows = sandbox.json(["list"]);
    assert_eq!(rows.len(), 2);
    assert_eq!(keys(&rows[0]), keys(&node), "list and get show the same object");
}

#[test]
fn link_and_unlink_tell_whether_anything_changed() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "a"]);
    sandbox.ok(["upsert", "b"]);
    assert_eq!(sandbox.one(["link", "a", "b"]), json!({"parent": "a", "child": "b", "changed": true}));
    assert_eq!(sandbox.one(["link", "a", "b"])["changed"], false);
    assert_eq!(sandbox.one(["unlink", "a", "b"])["changed"], true);
    assert_eq!(sandbox.one(["unlink", "a", "b"])["changed"], false);
}

#[test]
fn a_life_in_objects() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    let claim = sandbox.one(["claim", "n", "--holder", "w", "--lease", "30"]);
    has(&claim, &["id", "name", "generation", "lease_left_ms", "resumed"]);
    assert_eq!((&claim["name"], &claim["resumed"]), (&json!("n"), &json!(false)));
    let generation = claim["generation"].as_u64().expect("a number");
    let resumed = sandbox.one(["claim-next", "--holder", "w", "--resume"]);
    assert_eq!((&resumed["resumed"], &resumed["generation"]), (&json!(true), &json!(generation)));
    let renewed = sandbox.one(["renew", "n", "--holder", "w", "--lease", "50"]);
    assert_eq!(renewed["generation"], generation);
    assert!(renewed["lease_left_ms"].as_i64().is_some_and(|left| left > 30_000), "{renewed}");
    let released = sandbox.one(["release", "n", "--holder", "w"]);
    assert!(released["generation"].as_u64() > Some(generation), "{released}");
    has(&released, &["id", "name"]);
    let ended = sandbox.one(["complete", "n", "--status", "failed"]);
    assert_eq!((&ended["name"], &ended["status"], &ended["changed"]), (&json!("n"), &json!("failed"), &json!(true)));
    assert_eq!(sandbox.one(["complete", "n", "--status", "failed"])["changed"], false);
    for verb in ["archive", "unarchive", "reopen"] {
        has(&sandbox.one([verb, "n"]), &["id", "name", "generation"]);
    }
}

#[test]
fn reclaim_and_a_forced_release_name_the_holder() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    assert!(sandbox.json(["reclaim"]).is_empty());
    sandbox.ok(["claim", "n", "--holder", "w", "--lease", "0.02"]);
    std::thread::sleep(std::time::Duration::from_millis(60));
    let reclaimed = sandbox.one(["reclaim"]);
    has(&reclaimed, &["id", "name", "holder", "generation", "quiet_ms"]);
    assert_eq!(reclaimed["holder"], "w");
    sandbox.ok(["claim", "n", "--holder", "v"]);
    assert_eq!(sandbox.one(["release", "n", "--force"])["holder"], "v");
}

#[test]
fn stats() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    let stats = sandbox.one(["stats"]);
    has(
        &stats,
        &["capacity", "nodes", "ready", "todo", "blocked", "claimed", "done", "failed", "cancelled", "archived"],
    );
    assert_eq!((&stats["capacity"], &stats["nodes"], &stats["ready"]), (&json!(4096), &json!(1), &json!(1)));
}
