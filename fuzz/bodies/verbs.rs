//! Every verb once, on a table that may hold anything. Answers do not matter; that there is one does.

use std::time::Duration;

use tenure::formats::{dot, jsonl, mermaid};
use tenure::{ClaimOptions, Completion, Filter, NodeId, NodeSpec, Outcome, Refusal, SnapshotError, Table};

use super::within;

const EVERYTHING: Filter = Filter { terminal: true, archived: true };

/// The verbs that said that the table is damaged.
pub fn all(table: &Table) -> Vec<String> {
    let mut damaged = Vec::new();
    looks(table, &mut damaged);
    claims(table, &mut damaged);
    edits(table, &mut damaged);
    looks(table, &mut damaged);
    files(table, &mut damaged);
    damaged
}

fn did<T>(damaged: &mut Vec<String>, what: &str, act: impl FnOnce() -> Result<T, Refusal>) -> Option<T> {
    match within(what, act) {
        Ok(answer) => Some(answer),
        Err(refusal) => {
            assert!(!refusal.to_string().is_empty());
            if matches!(refusal, Refusal::Damaged(_) | Refusal::Contended { .. }) {
                damaged.push(format!("{what}: {refusal}"));
            }
            None
        }
    }
}

fn id(name: &str) -> NodeId {
    NodeId::of_name(name)
}

const NAMES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "not there"];

fn looks(table: &Table, damaged: &mut Vec<String>) {
    did(damaged, "stats", || table.stats());
    did(damaged, "ready", || table.ready());
    did(damaged, "groups", || table.groups());
    did(damaged, "blocked", || table.list(Filter::default()));
    if let Some(nodes) = did(damaged, "list", || table.list(EVERYTHING)) {
        let _ = within("dot", || dot::write(&nodes, &mut Vec::new()));
        let _ = within("mermaid", || mermaid::write(&nodes, &mut Vec::new()));
        let _ = within("jsonl", || jsonl::write(&nodes, &mut Vec::new()));
    }
    for name in NAMES {
        did(damaged, "get", || table.get(id(name)));
        did(damaged, "why", || table.why(id(name)));
    }
}

fn claims(table: &Table, damaged: &mut Vec<String>) {
    let resume = ClaimOptions { resume: true, lease_ms: Some(50), ..ClaimOptions::default() };
    for holder in ["w1", "w2", "w3"] {
        let Some(worker) = did(damaged, "worker", || table.worker(holder)) else { continue };
        did(damaged, "current", || worker.current().map(|claim| claim.map(|claim| claim.generation())));
        did(damaged, "wait", || {
            worker.wait_claim_next(&ClaimOptions::default(), Some(1)).map(|claim| claim.generation())
        });
        did(damaged, "claim-next", || {
            let claim = worker.claim_next_with(&resume)?;
            let _ = claim.task();
            claim.renew()
        });
        for name in NAMES {
            did(damaged, "claim", || worker.claim(id(name)).map(|claim| claim.generation()));
            did(damaged, "renew", || table.renew(id(name), holder, None, Some(1_000)));
            did(damaged, "release", || table.release(id(name), holder, None));
        }
    }
    for (i, name) in NAMES.iter().enumerate() {
        let outcome = [Outcome::Done, Outcome::Failed, Outcome::Cancelled][i % 3];
        let completion =
            Completion { outcome, generation: None, holder: None, summary: Some("ended ".repeat(30 * (i % 2))) };
        did(damaged, "complete", || table.complete(id(name), &completion));
    }
    did(damaged, "release --force", || table.release_forced(id("a"), None));
    did(damaged, "reclaim", || table.reclaim(None));
    did(damaged, "reclaim --lease 0", || table.reclaim(Some(0)));
}

fn edits(table: &Table, damaged: &mut Vec<String>) {
    let spec =
        |name: &str| NodeSpec { name: Some(name.into()), summary: Some("new ".repeat(40)), ..NodeSpec::default() };
    for name in NAMES {
        did(damaged, "reopen", || table.reopen(id(name)));
        did(damaged, "upsert", || table.upsert(&spec(name), true));
        did(damaged, "archive", || table.archive(id(name)));
        did(damaged, "unarchive", || table.unarchive(id(name)));
    }
    did(damaged, "upsert new", || table.upsert(&NodeSpec { group: Some("g".into()), ..spec("new") }, false));
    did(damaged, "import", || table.import(&[spec("x"), spec("y"), spec("z")]));
    for (parent, child) in [("a", "b"), ("c", "a"), ("x", "y"), ("e", "new")] {
        did(damaged, "link", || table.link(id(parent), id(child)));
        did(damaged, "unlink", || table.unlink(id(parent), id(child)));
    }
    did(damaged, "group", || table.set_group("g", 3));
    did(damaged, "group new", || table.set_group("h", 1));
    within("wake", || table.wake_all());
}

fn files(table: &Table, damaged: &mut Vec<String>) {
    let mut told = |what: &str, error: SnapshotError| {
        if let SnapshotError::Refused(refusal @ (Refusal::Damaged(_) | Refusal::Contended { .. })) = error {
            damaged.push(format!("{what}: {refusal}"));
        }
    };
    match within("snapshot", || table.snapshot(Duration::from_secs(5), || {})) {
        // What was written of a table that may hold anything is a snapshot all the same.
        Ok(_) => assert!(tenure::Snapshot::read(table.snapshot_path()).is_ok(), "a snapshot that cannot be read"),
        Err(error) => told("snapshot", error),
    }
    if let Err(error) = within("restore", || table.restore(None, true)) {
        told("restore", error);
    }
}
