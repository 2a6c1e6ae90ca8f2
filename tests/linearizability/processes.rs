//! Histories of processes, one of which is killed.
//!
//! Each worker is this test program again. It goes through many histories, each of which begins at a moment that all know,
//! and writes down every call before it makes it and every answer; so what a killed one was about is known.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tenure::Table;

use crate::checker::check;
use crate::clock::{Clock, MOVES};
use crate::depth;
use crate::history::{Dice, Event, HOLDERS, Names, begin, now_ns};
use crate::threads::{HISTORIES as HISTORIES_A_TABLE, fresh_table, merged, play};

const HISTORIES: u64 = 40;
const TABLES: u64 = HISTORIES / HISTORIES_A_TABLE;
const CALLS: usize = 5;
/// From one history to the next.
const SLOT_NS: u64 = 2_000_000;
/// Writes of shared words that a worker makes on its way through the histories, about.
const WRITES: u64 = 1_000;

const DIRS: &str = "TENURE_TEST_TABLES";
const HOLDER: &str = "TENURE_TEST_HOLDER";
const SEED: &str = "TENURE_TEST_SEED";
const START: &str = "TENURE_TEST_START";

fn number(name: &str) -> u64 {
    std::env::var(name).expect("a worker is told").parse().expect("a number")
}

/// Not a test of its own: what a started worker runs.
#[test]
fn worker_entry() {
    let Some(dirs) = std::env::var_os(DIRS) else { return };
    let dirs: Vec<PathBuf> = std::env::split_paths(&dirs).collect();
    let (holder, seed, start) = (number(HOLDER) as u8, number(SEED), number(START));
    let open = |dir: &PathBuf| (Table::open(dir.as_path()).expect("the parent made it"), Clock::of(dir));
    let tables: Vec<(Table, Clock)> = dirs.iter().map(open).collect();
    let mut log =
        OpenOptions::new().create(true).append(true).open(dirs[0].join(format!("log-{holder}"))).expect("a log");
    let mut dice = Dice::new(seed ^ u64::from(holder));
    for history in 0..HISTORIES {
        // One that is late comes late; the times that count are those of the calls.
        while now_ns() < start + history * SLOT_NS {
            std::hint::spin_loop();
        }
        let (table, clock) = &tables[(history / HISTORIES_A_TABLE) as usize];
        play((table, clock), &Names { history }, holder, &mut dice, CALLS, MOVES, |event| {
            let line = serde_json::to_string(&(history, event)).expect("plain data") + "\n";
            // One write a line: a line is there whole or not at all.
            log.write_all(line.as_bytes()).expect("written");
        });
    }
}

fn worker(dirs: &OsStr, holder: u8, seed: u64, start: u64, dies_at: Option<u64>) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "processes::worker_entry"]);
    command.env(DIRS, dirs).env(HOLDER, holder.to_string()).env(SEED, seed.to_string()).env(START, start.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
    if let Some(write) = dies_at {
        command.env("TENURE_KILL_AT", write.to_string());
    }
    command.spawn().expect("a worker")
}

/// What the workers wrote down about one history.
fn read_logs(dir: &Path) -> Vec<Vec<Event>> {
    let mut histories: Vec<Vec<Event>> = vec![Vec::new(); HISTORIES as usize];
    for holder in 0..HOLDERS {
        let text = std::fs::read_to_string(dir.join(format!("log-{holder}"))).unwrap_or_default();
        let mut said: Vec<Vec<Event>> = vec![Vec::new(); HISTORIES as usize];
        for line in text.lines() {
            let (history, event): (usize, Event) = serde_json::from_str(line).expect("a line is whole");
            said[history].push(event);
        }
        for (history, said) in said.into_iter().enumerate() {
            histories[history].extend(merged(said));
        }
    }
    histories
}

#[test]
fn histories_of_processes_with_kills_have_an_order() {
    let until = Instant::now() + depth();
    let seed = now_ns();
    let mut dice = Dice::new(seed);
    let (mut histories, mut calls, mut kills, mut pending) = (0u64, 0usize, 0u32, 0usize);
    while Instant::now() < until || histories == 0 {
        let tables: Vec<_> = (0..TABLES).map(|_| fresh_table()).collect();
        for history in 0..HISTORIES {
            let (dir, table) = &tables[(history / HISTORIES_A_TABLE) as usize];
            Clock::of(dir.path()).read();
            begin(table, &Names { history });
        }
        let dirs: Vec<&Path> = tables.iter().map(|(dir, _)| dir.path()).collect();
        let joined = std::env::join_paths(&dirs).expect("paths without colons");
        // Long enough for all to have started.
        let start = now_ns() + 60_000_000;
        let victim = dice.below(HOLDERS.into()) as usize;
        let mut workers: Vec<Child> = (0..HOLDERS)
            .map(|holder| {
                // Where a build can do that, it dies in the middle of a call.
                let dies_at = (MOVES && usize::from(holder) == victim).then(|| dice.below(WRITES));
                worker(&joined, holder, seed ^ histories, start, dies_at)
            })
            .collect();
        if !MOVES {
            // One of them dies at a moment of its work.
            let at = start + dice.below(HISTORIES * SLOT_NS);
            std::thread::sleep(Duration::from_nanos(at.saturating_sub(now_ns())));
            workers[victim].kill().expect("SIGKILL");
        }
        for (holder, mut worker) in workers.into_iter().enumerate() {
            let status = worker.wait().expect("its end");
            kills += u32::from(status.signal() == Some(9));
            assert!(holder == victim || status.success(), "a worker failed: {status}");
        }
        for (history, events) in read_logs(dirs[0]).into_iter().enumerate() {
            calls += events.len();
            pending += events.iter().filter(|event| event.ended.is_none()).count();
            histories += 1;
            if let Err(why) = check(&events, &Names { history: history as u64 }) {
                panic!("seed {seed}: {why}");
            }
        }
        for dir in dirs {
            Clock::of(dir).read();
            let report = tenure::check::table(dir).expect("the table is there");
            assert!(report.sound, "{report:#?}");
        }
    }
    assert!(kills > 0, "nobody was killed at work");
    eprintln!(
        "linearize: {histories} histories of {HOLDERS} processes, {calls} calls, {kills} kills, {pending} of them in a call (seed {seed})"
    );
}
