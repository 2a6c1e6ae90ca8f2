//! Snapshot files: as they are, or, when the first byte is odd, with length and checksum put right, so that what lies behind
//! them is reached.

use std::cell::RefCell;
use std::time::Duration;

use tenure::check::Code;
use tenure::{CreateOptions, Snapshot, Table};
use xxhash_rust::xxh3::xxh3_64;

use super::{scratch, within};

/// Where a snapshot says how long it is.
const LENGTH_AT: usize = 16;

thread_local! {
    /// One table for many runs: a restore by force replaces all that is in it.
    static TABLE: RefCell<Option<(tempfile::TempDir, Table, u32)>> = const { RefCell::new(None) };
}

pub fn run(bytes: &[u8]) {
    let Some((&first, content)) = bytes.split_first() else { return };
    let mut content = content.to_vec();
    if first % 2 == 1 && content.len() >= LENGTH_AT + 16 {
        let len = content.len();
        content[LENGTH_AT..LENGTH_AT + 8].copy_from_slice(&(len as u64).to_le_bytes());
        let sum = xxh3_64(&content[..len - 8]);
        content[len - 8..].copy_from_slice(&sum.to_le_bytes());
    }
    TABLE.with(|table| {
        let mut table = table.borrow_mut();
        // Generations move far with each restore.
        if table.as_ref().is_none_or(|(_, _, times)| *times > 1_000) {
            let dir = scratch();
            let (made, _) = Table::open_or_create(dir.path(), &CreateOptions::default()).expect("a table");
            *table = Some((dir, made, 0));
        }
        let (dir, table, times) = table.as_mut().expect("just made");
        *times += 1;
        restore(dir.path(), table, &content);
    });
}

fn restore(dir: &std::path::Path, table: &Table, content: &[u8]) {
    let path = dir.join("snapshot");
    std::fs::write(&path, content).expect("written");
    let read = within("reading", || Snapshot::read(&path));
    let report = within("checking", || tenure::check::file(&path)).expect("it can be read");
    let broken = |code: Code| report.findings.iter().any(|finding| finding.code == code);
    assert_eq!(
        read.is_ok(),
        !broken(Code::SnapshotFrame) && !broken(Code::SnapshotContent),
        "the reader says {read:?} and the checker {report:#?}"
    );
    let before = table.stats().expect("a look");
    match within("restoring", || table.restore(None, true)) {
        Ok(restored) => {
            assert!(report.sound, "restored, and the checker says {report:#?}");
            assert_eq!(table.stats().expect("a look").nodes, restored.nodes);
        }
        Err(_) => assert_eq!(table.stats().expect("a look").nodes, before.nodes, "half restored"),
    }
    let report = tenure::check::table(dir).expect("the table is there");
    assert!(report.sound, "{report:#?}");
    assert_eq!(std::fs::read(&path).expect("it is there"), content, "the file was not left alone");
    if read.is_ok() {
        table.snapshot(Duration::from_secs(10), || {}).expect("of a sound table");
        Snapshot::read(&path).expect("of a sound table");
    }
}
