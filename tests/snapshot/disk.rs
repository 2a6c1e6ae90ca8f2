//! The order on the disk, full disks, and what may be planted in the directory (P2, cases 31 to 33, F15).

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use tenure::{CreateOptions, NodeSpec, Outcome, SnapshotError, Table};

use super::crew::fresh_table;
use super::help::{names, node, read, take, tenure};

/// The system calls of one snapshot that have to do with its order, without their arguments' details.
fn traced(dir: &Path) -> Option<Vec<String>> {
    let log = dir.join("trace");
    let ran = Command::new("strace")
        .args(["-f", "-y", "-e", "trace=fsync,rename,renameat,renameat2,flock", "-o"])
        .arg(&log)
        .arg(env!("CARGO_BIN_EXE_tenure"))
        .args(["snapshot", "--dir"])
        .arg(dir)
        .output();
    if !ran.is_ok_and(|ran| ran.status.success()) {
        return None;
    }
    let text = std::fs::read_to_string(&log).expect("what strace wrote");
    let calls = text.lines().filter(|line| line.contains("snapshot") || line.contains("fsync")).filter_map(|line| {
        let call = line.split_once(' ')?.1.trim_start();
        let name = call.split('(').next()?;
        let on = if call.contains(".new-snapshot-") {
            "temporary"
        } else if call.contains("snapshot.lock") {
            "lock"
        } else {
            "directory"
        };
        Some(format!("{name} {on}"))
    });
    Some(calls.collect())
}

#[test]
fn the_file_is_synced_then_renamed_under_the_lock_then_the_directory_is_synced() {
    let (dir, table) = fresh_table();
    table.upsert(&node("a"), false).expect("room");
    let Some(calls) = traced(dir.path()) else {
        eprintln!(
            "LEFT OUT: strace is not installed or may not trace here; the order of fsync and rename is not checked"
        );
        return;
    };
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    let ["fsync temporary", "flock lock", rename, "fsync directory"] = calls[..] else { panic!("{calls:?}") };
    assert!(rename.starts_with("rename") && rename.ends_with("temporary"), "{calls:?}");
}

/// A file system with room for a table and little more; unmounted again when dropped.
struct Small(tempfile::TempDir);

impl Small {
    fn mount() -> Option<Small> {
        let dir = tempfile::tempdir().expect("a directory");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=20m", "tenure-test"]).arg(dir.path()).output();
        mounted.is_ok_and(|done| done.status.success()).then(|| Small(dir))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).output();
    }
}

#[test]
fn on_a_full_disk_the_last_snapshot_stays_and_work_goes_on() {
    let Some(small) = Small::mount() else {
        eprintln!("LEFT OUT: no tmpfs can be mounted here (not root?); a snapshot on a full disk is not checked");
        return;
    };
    let dir = small.0.path();
    let (table, _) = Table::open_or_create(dir, &CreateOptions::default()).expect("room for a table");
    let text = "s".repeat(1_000);
    let many: Vec<NodeSpec> =
        (0..500).map(|n| NodeSpec { summary: Some(text.clone()), ..node(&format!("n{n}")) }).collect();
    table.import(&many).expect("room");
    take(&table);
    let before = std::fs::read(dir.join("snapshot")).expect("a snapshot");
    // Fills the disk to the last block.
    let mut filler = std::fs::File::create(dir.join("filler")).expect("a file");
    let full = std::io::copy(&mut std::io::repeat(1), &mut filler).expect_err("it is small");
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);

    let refused = table.snapshot(tenure::SNAPSHOT_PATIENCE, || ()).expect_err("no room");
    assert!(matches!(refused, SnapshotError::NoSpace { .. }), "{refused}");
    let (exit, _, err) = tenure(dir, &["snapshot", "--json"]);
    assert_eq!(exit, Some(6), "{err}");
    assert!(err.starts_with("{\"error\":\"no_space\""), "{err}");
    assert_eq!(std::fs::read(dir.join("snapshot")).expect("still there"), before);
    assert_eq!(names(dir), ["filler", "snapshot", "snapshot.lock"], "nothing is left over");
    let worker = table.worker("w").expect("a name");
    worker.claim_next().expect("ready").complete(Outcome::Done).expect("held");
    table.upsert(&node("one more"), false).expect("room in the table");

    drop(filler);
    std::fs::remove_file(dir.join("filler")).expect("it was there");
    assert_eq!(take(&table).nodes, 501);
}

#[test]
fn planted_links_are_not_followed() {
    let (dir, table) = fresh_table();
    let elsewhere = tempfile::tempdir().expect("a directory");
    let target = elsewhere.path().join("target");
    let content = b"somebody's own file";
    for planted in ["snapshot", "snapshot.lock"] {
        std::fs::write(&target, content).expect("a file");
        symlink(&target, dir.path().join(planted)).expect("a link");
        let taken = table.snapshot(tenure::SNAPSHOT_PATIENCE, || ());
        assert_eq!(std::fs::read(&target).expect("still there"), content, "written through {planted}");
        if planted == "snapshot" {
            taken.expect("the link is moved aside");
            assert!(std::fs::symlink_metadata(dir.path().join("snapshot")).expect("there").is_file());
            assert!(std::fs::symlink_metadata(dir.path().join("snapshot.unreadable")).expect("there").is_symlink());
            std::fs::remove_file(dir.path().join("snapshot.lock")).expect("it was there");
        } else {
            assert!(matches!(taken, Err(SnapshotError::NotAFile { .. })), "{taken:?}");
        }
    }
    // A snapshot behind a link is not what the table's own snapshot is, but it is one that can be named.
    let (own, other) = fresh_table();
    let link = own.path().join("snapshot");
    symlink(dir.path().join("snapshot"), &link).expect("a link");
    assert!(matches!(other.restore(None, false), Err(SnapshotError::NotAFile { .. })));
    other.restore(Some(&link), false).expect("named");
}

#[test]
fn names_of_temporary_files_cannot_be_foreseen() {
    let (dir, table) = fresh_table();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..3 {
        let log = dir.path().join("trace");
        let ran = Command::new("strace")
            .args(["-f", "-e", "trace=open,openat", "-o"])
            .arg(&log)
            .arg(env!("CARGO_BIN_EXE_tenure"))
            .args(["snapshot", "--dir"])
            .arg(dir.path())
            .output();
        if !ran.is_ok_and(|ran| ran.status.success()) {
            eprintln!(
                "LEFT OUT: strace is not installed or may not trace here; how temporary files are opened is not checked"
            );
            return;
        }
        let text = std::fs::read_to_string(&log).expect("what strace wrote");
        let open = text.lines().find(|line| line.contains(".new-snapshot-")).expect("it was made");
        for flag in ["O_EXCL", "O_NOFOLLOW", "O_CREAT", "0600"] {
            assert!(open.contains(flag), "{open}");
        }
        let name = open.split('"').nth(1).expect("a path").to_owned();
        assert!(seen.insert(name.clone()), "{name} was chosen twice");
    }
    drop(table);
}

#[test]
fn what_else_may_stand_there_is_refused_or_moved_aside() {
    let (dir, table) = fresh_table();
    std::fs::create_dir(dir.path().join("snapshot")).expect("a directory");
    assert!(matches!(table.restore(None, true), Err(SnapshotError::NotAFile { .. })));
    take(&table);
    assert!(dir.path().join("snapshot.unreadable").is_dir());
    assert_eq!(read(dir.path()).nodes.len(), 0);
    std::fs::remove_file(dir.path().join("snapshot.lock")).expect("it was there");
    let pipe = Command::new("mkfifo").arg(dir.path().join("snapshot.lock")).status().expect("mkfifo");
    assert!(pipe.success());
    let refused = table.snapshot(tenure::SNAPSHOT_PATIENCE, || ()).expect_err("a pipe");
    assert!(matches!(refused, SnapshotError::NotAFile { .. }), "{refused}");
}

#[test]
fn files_are_the_owners_alone_whatever_the_umask() {
    for mask in ["000", "077", "777"] {
        let (dir, table) = fresh_table();
        table.upsert(&node("a"), false).expect("room");
        let script = format!("umask {mask}; exec \"$0\" snapshot --dir \"$1\"");
        let ran = Command::new("sh").args(["-c", &script, env!("CARGO_BIN_EXE_tenure")]).arg(dir.path()).status();
        assert!(ran.expect("a shell").success(), "umask {mask}");
        for name in ["snapshot", "snapshot.lock"] {
            let meta = std::fs::metadata(dir.path().join(name)).expect("there");
            assert_eq!(meta.permissions().mode() & 0o777, 0o600, "{name} under umask {mask}");
            assert_eq!(meta.uid(), rustix::process::geteuid().as_raw());
        }
    }
}
