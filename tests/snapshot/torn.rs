//! Snapshots that are not whole: refused with the reason, and left alone (P2, P3, cases 18 and 19, F13).

use std::path::Path;

use tenure::{CreateOptions, SnapshotError, Table};

use super::crew::fresh_table;
use super::help::{names, node, reboot, take, tenure};

/// The bytes of a small snapshot, and an empty table elsewhere to restore into.
fn small() -> (Vec<u8>, tempfile::TempDir, Table) {
    let (dir, table) = fresh_table();
    table.import(&[node("a"), node("b")]).expect("room");
    let _ = table.worker("w").expect("a name").claim_next().expect("a node");
    take(&table);
    let bytes = std::fs::read(dir.path().join("snapshot")).expect("a snapshot");
    let (other, empty) = fresh_table();
    (bytes, other, empty)
}

fn put(dir: &Path, bytes: &[u8]) {
    std::fs::write(dir.join("snapshot"), bytes).expect("a file");
}

#[test]
fn every_flipped_bit_is_refused_and_nothing_changes() {
    let (bytes, dir, empty) = small();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        put(dir.path(), &flipped);
        let refused = empty.restore(None, false).expect_err("a flipped bit");
        assert!(
            matches!(
                refused,
                SnapshotError::Damaged { .. } | SnapshotError::NotASnapshot { .. } | SnapshotError::OtherVersion { .. }
            ),
            "bit {bit}: {refused}"
        );
        assert_eq!(std::fs::read(dir.path().join("snapshot")).expect("still there"), flipped);
    }
    assert_eq!(empty.stats().expect("counts").nodes, 0);
    put(dir.path(), &bytes);
    assert_eq!(empty.restore(None, false).expect("the whole one").nodes, 2);
}

#[test]
fn what_is_no_snapshot_is_said_and_left_alone() {
    let (bytes, dir, _) = small();
    let newer = [&bytes[..8], &9u32.to_le_bytes(), &bytes[12..]].concat();
    let cases: [(&[u8], &str, &str); 6] = [
        (b"", "not_a_snapshot", "empty"),
        (&bytes[..bytes.len() / 2], "damaged_snapshot", "bytes long"),
        (&bytes[..9], "damaged_snapshot", "cut short"),
        (&[0; 4_096], "not_a_snapshot", "first eight bytes"),
        (b"{\"name\":\"a\"}\n", "not_a_snapshot", "first eight bytes"),
        (&newer, "other_version", "format 9"),
    ];
    for (content, code, words) in cases {
        put(dir.path(), content);
        let (exit, _, err) = tenure(dir.path(), &["restore"]);
        assert_eq!(exit, Some(5), "{err}");
        assert!(err.contains(words), "no {words:?} in {err:?}");
        let (exit, _, err) = tenure(dir.path(), &["restore", "--json", "--force"]);
        assert_eq!(exit, Some(5), "{err}");
        assert!(err.starts_with(&format!("{{\"error\":\"{code}\"")), "{err}");
        assert_eq!(std::fs::read(dir.path().join("snapshot")).expect("still there"), content);
    }
    std::fs::remove_file(dir.path().join("snapshot")).expect("it was there");
    let (exit, _, err) = tenure(dir.path(), &["restore"]);
    assert_eq!(exit, Some(5));
    assert!(err.contains("there is no snapshot"), "{err}");
}

#[test]
fn after_a_reboot_a_torn_snapshot_is_said_and_the_next_one_does_not_overwrite_it() {
    for content in [&b""[..], b"half of a snap"] {
        let (dir, table) = fresh_table();
        table.upsert(&node("a"), false).expect("room");
        drop(table);
        reboot(dir.path());
        put(dir.path(), content);
        let (exit, out, err) = tenure(dir.path(), &["upsert", "b"]);
        assert_eq!((exit, out.trim_end()), (Some(0), "b"));
        assert!(err.contains("before the last reboot") && err.contains("cannot be used"), "{err}");
        assert_eq!(std::fs::read(dir.path().join("snapshot")).expect("left alone"), content);
        for _ in 0..2 {
            assert_eq!(tenure(dir.path(), &["snapshot"]).0, Some(0));
            assert_eq!(names(dir.path()), ["snapshot", "snapshot.lock", "snapshot.unreadable"]);
            assert_eq!(std::fs::read(dir.path().join("snapshot.unreadable")).expect("moved"), content);
        }
        // A second one that cannot be read does not take the first one's place either.
        put(dir.path(), b"another");
        assert_eq!(tenure(dir.path(), &["snapshot"]).0, Some(0));
        assert_eq!(std::fs::read(dir.path().join("snapshot.unreadable")).expect("still there"), content);
        assert_eq!(names(dir.path()).len(), 4);
    }
}

#[test]
fn a_table_cannot_be_restored_from_a_table_and_not_opened_from_a_snapshot() {
    let (dir, table) = fresh_table();
    take(&table);
    let file = super::help::table_file(dir.path());
    let refused = table.restore(Some(&file), false).expect_err("a table");
    assert!(matches!(refused, SnapshotError::NotASnapshot { .. }), "{refused}");
    drop(table);
    std::fs::copy(dir.path().join("snapshot"), &file).expect("a copy over the table");
    assert!(Table::open_or_create(dir.path(), &CreateOptions::default()).is_err());
}
