//! `fsck` as a caller meets it. What it finds is tried in `src/check/tests`, a table spoiled for every code.

#[path = "../cli/support.rs"]
#[allow(dead_code)]
mod support;

use std::os::unix::fs::{FileExt, PermissionsExt};

use serde_json::Value;
use support::Sandbox;

/// Where the options stand in the file; see docs/layout.md.
const OPTIONS_AT: u64 = 80;
const LEASE_AT: u64 = 72;

fn spoil(path: &std::path::Path, at: u64, value: u64) {
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("the table's file");
    file.write_all_at(&value.to_le_bytes(), at).expect("written");
}

#[test]
fn a_sound_table_is_zero_and_says_what_was_looked_at() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "a"]);
    sandbox.ok(["upsert", "b", "--needs", "a"]);
    sandbox.ok(["claim", "a", "--holder", "w"]);
    let out = sandbox.ok(["fsck"]);
    assert!(out.contains("2 nodes, 1 edge, 1 claim, 1 holder"), "{out}");
    assert!(out.ends_with("nothing is wrong"), "{out}");
    let report = sandbox.one(["fsck"]);
    assert_eq!((&report["sound"], &report["kind"]), (&Value::from(true), &Value::from("table")));
    assert_eq!(report["findings"], serde_json::json!([]));
    assert_eq!(report["counts"]["nodes"], 2);
}

#[test]
fn all_that_is_wrong_is_listed_and_the_exit_is_five() {
    let sandbox = Sandbox::new();
    spoil(&sandbox.file(), OPTIONS_AT, 6);
    spoil(&sandbox.file(), LEASE_AT, 0);
    let ran = sandbox.run(["fsck"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.out.contains("(unknown_option)") && ran.out.contains("(default_lease)"), "{ran:?}");
    assert!(ran.err.starts_with("tenure: the table ") && ran.err.contains("2 things are wrong"), "{ran:?}");
    assert!(ran.err.contains("hint: "), "{ran:?}");
    let ran = sandbox.run(["fsck", "--json"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let report: Value = serde_json::from_str(&ran.out).expect("one object");
    let codes: Vec<&Value> = report["findings"].as_array().expect("a list").iter().map(|f| &f["code"]).collect();
    assert_eq!(codes, ["default_lease", "unknown_option"]);
    let complaint: Value = serde_json::from_str(&ran.err).expect("one object");
    assert_eq!((&complaint["error"], &complaint["wrong"]), (&Value::from("damaged"), &Value::from(2)));
}

#[test]
fn a_named_file_is_a_table_or_a_snapshot_by_its_bytes() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "a"]);
    sandbox.ok(["snapshot"]);
    let snapshot = sandbox.dir().join("snapshot");
    assert_eq!(sandbox.one(["fsck".as_ref(), snapshot.as_os_str()])["kind"], "snapshot");
    let copy = sandbox.root().join("copy \u{1b}[31m");
    std::fs::copy(&snapshot, &copy).expect("copied");
    spoil(&copy, 40, 7);
    let ran = sandbox.run(["fsck".as_ref(), copy.as_os_str()]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.out.contains("checksum") && ran.out.contains("(snapshot_frame)"), "{ran:?}");
    assert!(!ran.out.contains('\u{1b}') && !ran.err.contains('\u{1b}'), "{ran:?}");
    let copy = sandbox.root().join("table");
    std::fs::copy(sandbox.file(), &copy).expect("copied");
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o400)).expect("read-only");
    assert_eq!(sandbox.one(["fsck".as_ref(), copy.as_os_str()])["sound"], true, "a file that cannot be written");
}

#[test]
fn what_cannot_be_looked_into_is_five_with_the_reason() {
    let sandbox = Sandbox::empty();
    sandbox.run(["fsck"]).refused(5, "tenure init");
    let ran = sandbox.run(["fsck", "/dev/null"]);
    ran.refused(5, "not a regular file");
    assert!(!ran.err.contains("--dir"), "no other directory helps with a file that was named: {ran:?}");
    let text = sandbox.root().join("text");
    std::fs::write(&text, "hello").expect("written");
    sandbox.run(["fsck".as_ref(), text.as_os_str()]).refused(5, "shorter than a header");
    sandbox.run(["fsck".as_ref(), sandbox.root().as_os_str()]).refused(2, "is a directory");
    sandbox.run(["fsck", "a", "b"]).refused(2, "unexpected argument");
}
