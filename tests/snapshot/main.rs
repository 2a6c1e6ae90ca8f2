//! Snapshots from outside: what is in them while others change the table, and what comes back of them.
//!
//! As in `multiprocess`, the test binary starts itself again as a worker with a role.

mod beside;
#[path = "../multiprocess/crew.rs"]
#[allow(dead_code, reason = "these tests need a part of it")]
mod crew;
mod disk;
mod killed;
mod live;
mod locked;
mod reboot;
mod run;
mod torn;
mod whole;

/// Not a test of its own: what a started worker runs. Without a role in the environment there is nothing to do.
#[test]
fn worker_entry() {
    let Some(role) = crew::role() else { return };
    let role: fn(&crew::Orders) = match role.as_str() {
        "change_at_full_rate" => beside::change_at_full_rate,
        "snapshot_again_and_again" => beside::snapshot_again_and_again,
        "read_again_and_again" => beside::read_again_and_again,
        "hold_the_lock" => locked::hold_the_lock,
        "work_and_reopen" => live::work_and_reopen,
        other => panic!("no role is called {other}"),
    };
    role(&crew::orders());
}

/// Helpers of several files.
mod help {
    use std::path::{Path, PathBuf};

    use tenure::{NodeId, NodeSpec, SNAPSHOT_PATIENCE, Snapshot, Snapshotted, Table};

    pub fn id(name: &str) -> NodeId {
        NodeId::of_name(name)
    }

    pub fn node(name: &str) -> NodeSpec {
        NodeSpec { name: Some(name.into()), ..NodeSpec::default() }
    }

    /// Takes a snapshot that has to wait for nobody.
    pub fn take(table: &Table) -> Snapshotted {
        table.snapshot(SNAPSHOT_PATIENCE, || panic!("nobody else is replacing it")).expect("a snapshot")
    }

    pub fn read(dir: &Path) -> Snapshot {
        Snapshot::read(dir.join("snapshot")).expect("a whole snapshot")
    }

    /// The names in a directory, without those of tables.
    pub fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).expect("the directory").map(|e| e.expect("an entry").file_name());
        let mut names: Vec<String> = entries.map(|n| n.into_string().expect("plain names")).collect();
        names.retain(|name| !name.starts_with("table"));
        names.sort();
        names
    }

    /// The file of the table in a directory.
    pub fn table_file(dir: &Path) -> PathBuf {
        let files = std::fs::read_dir(dir).expect("the directory").map(|e| e.expect("an entry").path());
        let tables: Vec<PathBuf> =
            files.filter(|p| p.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"table"))).collect();
        assert_eq!(tables.len(), 1, "{tables:?}");
        tables.into_iter().next().expect("just counted")
    }

    /// Makes the table look as if the machine had been started anew since.
    pub fn reboot(dir: &Path) {
        let of_another_boot = dir.join("table-00000000-0000-4000-8000-000000000001");
        std::fs::rename(table_file(dir), of_another_boot).expect("a table to grow old");
    }

    /// Runs the program on a directory: exit code, standard output, standard error.
    pub fn tenure(dir: &Path, args: &[&str]) -> (Option<i32>, String, String) {
        let done = std::process::Command::new(env!("CARGO_BIN_EXE_tenure"))
            .args(args)
            .env("TENURE_DIR", dir)
            .env_remove("TENURE_HOLDER")
            .output()
            .expect("the program starts");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8 output");
        (done.status.code(), text(done.stdout), text(done.stderr))
    }
}
