//! SIGKILL at the k-th system call of a program that makes a table, or writes or restores a snapshot.
//!
//! strace delivers the signal. Without strace this fails: what was not tried must not look as if it was right.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tenure::Snapshot;

use crate::points::{aftermath, report, tried};
use crate::world::{World, fresh_dir};

/// Nobody may need longer than this to go on after a death; the machine may be busy, and one second is what it should be.
const AT_ONCE: Duration = Duration::from_secs(20);

fn program(dir: &Path, args: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command.args(args.split(' '));
    quiet(&mut command, dir);
    command
}

fn quiet(command: &mut Command, dir: &Path) {
    command.env("TENURE_DIR", dir).env_remove("TENURE_KILL_AT");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
}

/// Runs the program and kills it as it enters its k-th system call. False: it came to its end before that.
fn killed_at(dir: &Path, args: &str, k: usize) -> bool {
    let mut command = Command::new("strace");
    command.args([
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "trace=all",
        "-e",
        &format!("inject=all:signal=SIGKILL:when={k}"),
    ]);
    command.arg(env!("CARGO_BIN_EXE_tenure")).args(args.split(' '));
    quiet(&mut command, dir);
    let status = match command.status() {
        Ok(status) => status,
        Err(e) => panic!("strace cannot be started ({e}): install it, so that deaths at system calls can be tried"),
    };
    // strace ends as its program did; a shell's way of saying so is allowed too.
    let killed = status.signal() == Some(9) || status.code() == Some(137);
    assert!(killed || status.code() == Some(0), "{args}: {status}");
    killed
}

/// What is in the directory before, the call, and what must be so after a death of it.
struct Scenario {
    prepare: fn(&Path),
    call: &'static str,
    /// Checked before anybody else does anything.
    at_once: fn(&Path) -> Result<(), String>,
    /// What the next one does; it must succeed at once.
    next: &'static str,
}

fn nothing(_: &Path) {}

fn a_table(dir: &Path) {
    for args in ["upsert a", "upsert b --needs a", "claim a --holder w", "snapshot", "upsert c --summary later"] {
        assert!(program(dir, args).status().unwrap().success(), "{args}");
    }
}

/// A table of another boot and its snapshot.
fn a_stale_table(dir: &Path) {
    a_table(dir);
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("table-") {
            let stale = dir.join("table-00000000-0000-4000-8000-000000000000");
            std::fs::rename(entry.path(), stale).unwrap();
        }
    }
}

fn fine(_: &Path) -> Result<(), String> {
    Ok(())
}

fn a_whole_snapshot(dir: &Path) -> Result<(), String> {
    let snapshot = Snapshot::read(dir.join("snapshot")).map_err(|e| e.to_string())?;
    match snapshot.nodes.len() {
        2 | 3 => Ok(()),
        other => Err(format!("{other} nodes")),
    }
}

const MAKE: Scenario = Scenario { prepare: nothing, call: "init", at_once: fine, next: "upsert z" };
const MAKE_FROM: Scenario =
    Scenario { prepare: a_stale_table, call: "upsert n", at_once: a_whole_snapshot, next: "upsert z" };
const SNAPSHOT: Scenario = Scenario { prepare: a_table, call: "snapshot", at_once: a_whole_snapshot, next: "snapshot" };
const RESTORE: Scenario =
    Scenario { prepare: a_table, call: "restore --force", at_once: a_whole_snapshot, next: "restore --force" };

fn crash(scenario: &Scenario, step: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut points = 0;
    for k in (1..).step_by(step) {
        let dir = fresh_dir();
        (scenario.prepare)(dir.path());
        if !killed_at(dir.path(), scenario.call, k) {
            break;
        }
        points += 1;
        let mut bad = |what: String| found.push(format!("tenure {} killed at system call {k}: {what}", scenario.call));
        if let Err(what) = (scenario.at_once)(dir.path()) {
            bad(what);
        }
        let began = Instant::now();
        let next = program(dir.path(), scenario.next).status().unwrap();
        if !next.success() || began.elapsed() > AT_ONCE {
            bad(format!("then {}: {next} after {:?}", scenario.next, began.elapsed()));
            continue;
        }
        leftovers(dir.path(), scenario).into_iter().for_each(&mut bad);
        aftermath(&World::found_in(Rc::clone(&dir))).into_iter().for_each(&mut bad);
    }
    assert!(points > 0, "no system call was a point");
    tried(&format!("system calls: {}", scenario.call), points);
    found
}

/// Temporary files that nobody removed. The name that a table was made under may stay beside its own: it is the same file.
fn leftovers(dir: &Path, scenario: &Scenario) -> Vec<String> {
    use std::os::unix::fs::MetadataExt;
    let entries: Vec<_> = std::fs::read_dir(dir).unwrap().flatten().collect();
    let table = entries.iter().find(|entry| entry.file_name().to_string_lossy().starts_with("table-"));
    let table = table.and_then(|entry| entry.metadata().ok()).map(|meta| meta.ino());
    let is_left = |entry: &&std::fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let same = entry.metadata().is_ok_and(|meta| Some(meta.ino()) == table);
        // What a dead snapshotter left goes with the next snapshot.
        let later = name.starts_with(".new-snapshot-") && scenario.next != "snapshot";
        name.starts_with(".new-") && !same && !later
    };
    entries.iter().filter(is_left).map(|entry| format!("left over: {:?}", entry.file_name())).collect()
}

#[test]
fn quick_some_system_calls() {
    report([MAKE, MAKE_FROM, SNAPSHOT, RESTORE].iter().flat_map(|scenario| crash(scenario, 23)).collect());
}

#[test]
fn making_a_table_dies_at_every_system_call() {
    report(crash(&MAKE, 1));
}

#[test]
fn making_a_table_from_a_snapshot_dies_at_every_system_call() {
    report(crash(&MAKE_FROM, 1));
}

#[test]
fn writing_a_snapshot_dies_at_every_system_call() {
    report(crash(&SNAPSHOT, 1));
}

#[test]
fn restoring_a_snapshot_dies_at_every_system_call() {
    report(crash(&RESTORE, 1));
}
