//! Nodes whose work is tied to a place: their commands run under an admission, and a lost claim frees no surface.

use std::process::Stdio;
use std::time::Instant;

use serde_json::Value;

use crate::support::{PATIENCE, Sandbox, await_that, finish};

/// A table with these nodes, and the surface `docs` placed in `place`.
fn placed(lines: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new(lines);
    std::fs::create_dir(sandbox.path("place")).expect("room");
    for args in [
        &["import", "graph.jsonl"][..],
        &["adm", "surface", "add", "docs"],
        &["adm", "place", "docs", "--path", "place"],
    ] {
        let ran = tenure(&sandbox, args);
        assert_eq!(ran.0, Some(0), "{args:?}: {ran:?}");
    }
    sandbox
}

/// Runs the program with the ledger in the scratch directory: exit code, output, errors.
fn tenure(sandbox: &Sandbox, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = sandbox.command(args);
    command.env("TENURE_STATE_DIR", sandbox.path("state")).env_remove("TENURE_LEDGER");
    let ran = finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts"));
    (ran.code, ran.out, ran.err)
}

fn json(sandbox: &Sandbox, args: &[&str]) -> Vec<Value> {
    let (code, out, err) = tenure(sandbox, &[args, &["--json"]].concat());
    assert_eq!(code, Some(0), "{args:?}: {err}");
    out.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
}

#[test]
fn commands_run_in_the_place_one_after_the_other_each_under_an_admission_of_its_own() {
    let script =
        r#"mkdir lock && echo "$TENURE_NODE $TENURE_SURFACE $TENURE_ADMISSION" >> $LOG; sleep 0.2; rmdir lock"#;
    let lines: Vec<String> = ["a", "b", "c"]
        .iter()
        .map(|n| serde_json::json!({"name": n, "surface": "docs", "run": script}).to_string())
        .collect();
    let sandbox = placed(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    let (code, out, err) = tenure(&sandbox, &["work", "--holder", "w", "-j", "3", "--drain"]);
    assert_eq!(code, Some(0), "{out} {err}");
    let log = sandbox.log();
    assert_eq!(log.len(), 3, "two at once would not both have the lock: {log:?}");
    let history = json(&sandbox, &["adm", "history", "docs"]);
    let granted: Vec<&Value> = history.iter().filter(|row| row["closing"] == "succeeded").collect();
    assert_eq!((history.len(), granted.len()), (3, 3), "{history:?}");
    for row in &history {
        let id = row["admission"].as_str().expect("an id");
        assert!(log.iter().any(|line| line.contains(id) && line.contains(" docs ")), "{id} {log:?}");
    }
}

#[test]
fn ready_says_what_is_startable_and_claim_next_passes_over_the_rest() {
    let sandbox = placed(&[
        r#"{"name":"here","surface":"docs"}"#,
        r#"{"name":"nowhere","surface":"elsewhere"}"#,
        r#"{"name":"plain"}"#,
    ]);
    let startable = |sandbox: &Sandbox| -> Vec<(String, bool)> {
        let rows = json(sandbox, &["ready"]);
        rows.iter().map(|row| (row["name"].as_str().unwrap().into(), row["startable"].as_bool().unwrap())).collect()
    };
    assert_eq!(startable(&sandbox), [("here".into(), true), ("nowhere".into(), false), ("plain".into(), true)]);
    assert!(tenure(&sandbox, &["ready"]).1.contains("ready, not startable"));
    assert_eq!(tenure(&sandbox, &["adm", "legacy", "take", "docs", "somebody"]).0, Some(0));
    assert_eq!(startable(&sandbox), [("here".into(), false), ("nowhere".into(), false), ("plain".into(), true)]);
    assert_eq!(tenure(&sandbox, &["claim-next", "--holder", "w"]).1, "plain gen=1\n");
    assert_eq!(tenure(&sandbox, &["claim-next", "--holder", "v"]).0, Some(3));
    assert_eq!(tenure(&sandbox, &["adm", "legacy", "drop", "docs", "somebody"]).0, Some(0));
    assert_eq!(tenure(&sandbox, &["claim-next", "--holder", "v"]).1, "here gen=1\n");
}

#[test]
fn a_lost_claim_frees_no_surface_until_a_person_does() {
    let sandbox = placed(&[r#"{"name":"a","surface":"docs","run":"echo $$ >> $LOG; sleep 600"}"#]);
    let mut command = sandbox.command(&["work", "--holder", "w", "--drain"]);
    command.env("TENURE_STATE_DIR", sandbox.path("state"));
    let mut worker = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
    await_that("the command", || !sandbox.log().is_empty());
    worker.kill().expect("it runs");
    worker.wait().expect("it was started here");
    let (began, mut ready) = (Instant::now(), Vec::new());
    // The node comes back with its launcher; the surface does not.
    while ready.is_empty() {
        assert!(began.elapsed() < PATIENCE, "the node does not come back");
        tenure(&sandbox, &["reclaim"]);
        ready = json(&sandbox, &["ready"]);
    }
    // Startable by whoever goes on with the admission, which is this user's on this machine; nobody starts anew.
    assert_eq!(ready[0]["startable"], true, "{ready:?}");
    let (code, out, _) = tenure(&sandbox, &["work", "--holder", "v", "--drain"]);
    assert_eq!(code, Some(1), "{out}");
    assert_eq!(sandbox.log().len(), 1, "nothing was started a second time");
    let open = json(&sandbox, &["adm", "history", "docs"]);
    assert_eq!((open.len(), &open[0]["closing"]), (1, &Value::Null), "{open:?}");
    let id = open[0]["admission"].as_str().expect("an id");
    assert_eq!(tenure(&sandbox, &["adm", "release", id, "--reason", "its runner was killed", "--yes"]).0, Some(0));
    assert_eq!(tenure(&sandbox, &["upsert", "a", "--run", "true"]).0, Some(0));
    let (code, out, err) = tenure(&sandbox, &["work", "--holder", "v", "--drain"]);
    assert_eq!(code, Some(0), "{out} {err}");
}

#[test]
fn the_same_graph_in_another_table_starts_under_requests_of_its_own() {
    let sandbox = placed(&[r#"{"name":"a","surface":"docs","run":"echo ran >> $LOG"}"#]);
    for dir in ["one", "two"] {
        let table = sandbox.path(dir);
        let dir = table.to_str().expect("a plain path");
        // The ledger stays where it is.
        let mut command = sandbox.command(&["run", "graph.jsonl"]);
        command.env("TENURE_DIR", dir).env("TENURE_STATE_DIR", sandbox.path("state"));
        let ran = finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    assert_eq!(sandbox.log(), ["ran", "ran"]);
}

#[test]
fn a_table_without_surfaces_opens_no_ledger() {
    let sandbox = Sandbox::new(&[r#"{"name":"a","run":"true"}"#]);
    for args in [&["run", "graph.jsonl"][..], &["ready"], &["work", "--holder", "w", "--drain"]] {
        assert_eq!(tenure(&sandbox, args).0, Some(0), "{args:?}");
    }
    assert!(!sandbox.path("state").exists());
}
