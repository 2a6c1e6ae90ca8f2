//! Snapshots spoiled in one way each.

use super::*;
use crate::snapshot::Snapshot;
use crate::snapshot::{SavedEdge, bytes};

pub(super) const TESTED: &[Code] = &[Code::SnapshotFrame, Code::SnapshotContent, Code::Loop];

fn sample() -> (Sample, PathBuf) {
    let sample = Sample::new();
    sample.table.snapshot(Duration::from_secs(10), || {}).unwrap();
    let path = sample.table.snapshot_path();
    (sample, path)
}

/// What a file of these bytes is found to be.
fn codes(path: &Path, bytes: &[u8]) -> Vec<Code> {
    std::fs::write(path, bytes).unwrap();
    super::file(path).unwrap().findings.iter().map(|finding| finding.code).collect()
}

#[test]
fn bytes_that_are_not_whole_are_one_finding() {
    let (_sample, path) = sample();
    let good = std::fs::read(&path).unwrap();
    assert_eq!(codes(&path, b""), [Code::SnapshotFrame]);
    assert_eq!(codes(&path, b"something else"), [Code::SnapshotFrame]);
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        assert!(codes(&path, &bytes).contains(&Code::SnapshotFrame), "a bit of byte {at}");
        let cut = codes(&path, &good[..at]);
        assert!(cut.contains(&Code::SnapshotFrame), "cut at {at}: {cut:?}");
    }
    assert_eq!(codes(&path, &good), []);
}

#[test]
fn all_that_no_table_could_hold_is_listed_and_not_only_the_first() {
    let (_sample, path) = sample();
    let mut snapshot = Snapshot::read(&path).unwrap();
    snapshot.lease_ms = 0;
    snapshot.nodes[0].generation = u64::MAX;
    snapshot.nodes[1].id = NodeId(1);
    snapshot.groups[0].limit = 0;
    assert_eq!(codes(&path, &snapshot.encode()), [Code::SnapshotContent; 4]);
}

#[test]
fn a_loop_is_found_over_both_kinds_of_edges() {
    let (_sample, path) = sample();
    let mut snapshot = Snapshot::read(&path).unwrap();
    let slot = |name: &str| snapshot.nodes.iter().find(|node| node.name == name).unwrap().slot;
    let (a, c) = (slot("a"), slot("c"));
    let mut deps = snapshot.clone();
    deps.edges.push(SavedEdge { child: a, parent: c, on_failure: OnFailure::Block });
    deps.edges.sort();
    assert_eq!(codes(&path, &deps.encode()), [Code::Loop]);
    snapshot.nodes.iter_mut().find(|node| node.name == "a").unwrap().parent = Some(c);
    assert_eq!(codes(&path, &snapshot.encode()), [Code::Loop]);
}

/// What the strict reader takes the loose one finds nothing in, and the other way round.
#[test]
fn the_loose_reader_and_the_strict_one_agree() {
    let (_sample, path) = sample();
    let good = std::fs::read(&path).unwrap();
    for at in (0..good.len()).step_by(3) {
        for bit in [0, 3, 7] {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << bit;
            let len = bytes.len() - 8;
            let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..len]).to_le_bytes();
            bytes[len..].copy_from_slice(&sum);
            let (loose, frame) = bytes::decode_loosely(&bytes);
            let fine = frame.is_empty() && loose.is_some_and(|snapshot| snapshot.problems().is_empty());
            assert_eq!(fine, Snapshot::decode(&bytes).is_ok(), "bit {bit} of byte {at}");
        }
    }
}
