//! For every code a sound table (or snapshot) that is spoiled in one way, and exactly that finding; and busy tables, of
//! which nothing is said.

mod beside;
mod snapshots;
mod tables;

use std::collections::BTreeSet;
use std::time::Duration;

use super::*;
use crate::node::{Completion, Need, NodeSpec, OnFailure, Outcome};
use crate::verbs::{CreateOptions, Worker};
use crate::{ClaimOptions, NodeId};

/// A table with something of everything, in which nothing is wrong.
struct Sample {
    dir: tempfile::TempDir,
    table: Table,
}

fn id(name: &str) -> NodeId {
    NodeId::of_name(name)
}

fn spec(name: &str, needs: &[(&str, OnFailure)]) -> NodeSpec {
    let needs = needs.iter().map(|&(node, mode)| Need { node: id(node), on_failure: Some(mode) }).collect();
    NodeSpec { name: Some(name.into()), needs, ..NodeSpec::default() }
}

impl Sample {
    /// By slot: `a` is claimed by `w1` (holder 1), `b` waits for it, `c` belongs under `b` and is of the role `r`, `d`
    /// failed with a text and is of group `g` (1), `e` was claimed and lost once and is left alone.
    fn new() -> Sample {
        let dir = tempfile::tempdir().unwrap();
        let (table, _) = Table::open_or_create(dir.path(), &CreateOptions::default()).unwrap();
        table.set_group("g", 1).unwrap();
        table.set_group("other", 2).unwrap();
        let nodes = [
            spec("a", &[]),
            spec("b", &[("a", OnFailure::Block), ("d", OnFailure::Continue)]),
            NodeSpec { parent: Some(Some(id("b"))), role: Some("r".into()), ..spec("c", &[("b", OnFailure::Skip)]) },
            NodeSpec { group: Some("g".into()), summary: Some("long ".repeat(100)), ..spec("d", &[]) },
            NodeSpec { max_attempts: Some(3), retry_delay_ms: Some(60_000), ..spec("e", &[]) },
        ];
        table.import(&nodes).unwrap();
        let claim = |holder: &str, node: &str, lease_ms: Option<u64>| {
            let worker: Worker = table.worker(holder).unwrap();
            let options = ClaimOptions { lease_ms, ..ClaimOptions::default() };
            worker.claim_with(id(node), &options).unwrap().generation()
        };
        claim("w1", "a", Some(200_000));
        claim("w2", "e", None);
        let failed = |holder: Option<&str>, summary: &str| Completion {
            outcome: Outcome::Failed,
            generation: None,
            holder: holder.map(str::to_owned),
            summary: Some(summary.into()),
        };
        table.complete(id("e"), &failed(Some("w2"), "once")).unwrap();
        table.complete(id("d"), &failed(None, &"it broke ".repeat(20))).unwrap();
        Sample { dir, table }
    }

    fn report(&self) -> Report {
        super::table(self.dir.path()).unwrap()
    }

    fn codes(&self) -> Vec<Code> {
        self.report().findings.iter().map(|finding| finding.code).collect()
    }
}

#[test]
fn a_sound_table_is_sound_and_counted() {
    let sample = Sample::new();
    let report = sample.report();
    assert_eq!(report.findings, []);
    assert!(report.sound && report.notes.is_empty() && report.more == 0, "{report:?}");
    let c = &report.counts;
    assert_eq!((c.nodes, c.edges, c.claims, c.holders, c.groups), (5, 3, 1, 2, 2));
    assert_eq!((c.reserved, c.left_over, c.unjudged), (0, 0, 0));
    let stats = sample.table.stats().unwrap();
    // Of a node that ended with a text of its own the one from before is kept as well.
    assert_eq!(c.text_blocks, stats.text_blocks);
}

#[test]
fn every_code_has_its_test_and_its_name() {
    let tested: BTreeSet<Code> = tables::TESTED.iter().chain(snapshots::TESTED).copied().collect();
    let missing: Vec<&Code> = Code::ALL.iter().filter(|code| !tested.contains(code)).collect();
    assert!(missing.is_empty(), "no table is spoiled for {missing:?}");
    for code in Code::ALL {
        assert_eq!(serde_json::to_string(code).unwrap(), format!("\"{}\"", code.name()));
    }
}

#[test]
fn checking_writes_nothing() {
    let sample = Sample::new();
    let path = Region::path_of(&Location::named(sample.dir.path())).unwrap();
    let before = std::fs::read(&path).unwrap();
    assert!(sample.report().sound);
    assert!(std::fs::read(&path).unwrap() == before);
}

#[test]
fn what_is_no_table_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(super::table(dir.path()), Err(CheckError::Open(OpenError::Absent { .. }))));
    let path = dir.path().join("x");
    for bytes in [&b""[..], b"hello", &[0; 5000]] {
        std::fs::write(&path, bytes).unwrap();
        assert!(matches!(super::file(&path), Err(CheckError::Open(OpenError::NotATable { .. }))), "{}", bytes.len());
    }
    assert!(matches!(super::file(dir.path().join("absent")), Err(CheckError::Open(OpenError::Io { .. }))));
    assert!(matches!(super::file(dir.path()), Err(CheckError::Open(OpenError::NotAFile { .. }))));
}

#[test]
fn a_copy_of_a_table_under_any_name_is_checked_and_one_of_another_boot_is_no_fault() {
    let sample = Sample::new();
    let path = Region::path_of(&Location::named(sample.dir.path())).unwrap();
    let copy = sample.dir.path().join("copy");
    std::fs::copy(&path, &copy).unwrap();
    let report = super::file(&copy).unwrap();
    assert!(report.sound && report.notes.is_empty(), "{report:?}");
    let mut bytes = std::fs::read(&copy).unwrap();
    bytes[40] ^= 1;
    std::fs::write(&copy, bytes).unwrap();
    let report = super::file(&copy).unwrap();
    assert!(report.sound, "{report:?}");
    assert!(report.notes[0].contains("another boot"), "{report:?}");
}

#[test]
fn a_snapshot_of_a_sound_table_is_sound() {
    let sample = Sample::new();
    sample.table.snapshot(Duration::from_secs(10), || {}).unwrap();
    let report = super::file(sample.table.snapshot_path()).unwrap();
    assert_eq!((report.kind, report.findings.as_slice(), report.counts.nodes), (Kind::Snapshot, &[][..], 5));
}
