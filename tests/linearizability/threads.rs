//! Histories of threads.

use std::sync::Barrier;
use std::time::Instant;

use tenure::{CreateOptions, Outcome, Table};

use crate::checker::check;
use crate::clock::{Clock, MOVES, with_pause};
use crate::depth;
use crate::history::{Answer, Call, Dice, Event, HOLDERS, Names, begin, now_ns};

/// Calls of one thread in one history.
const CALLS: usize = 5;
/// Histories in one table: few, so that what the table holds stays small. In a build whose clock moves a table has room for
/// the nodes and the holders of one.
pub const HISTORIES: u64 = if MOVES { 1 } else { 40 };
/// Where the clock stands still, a lease that is over after every history is.
pub const LEASE_MS: u64 = if MOVES { 1_000 } else { 3_600_000 };

pub fn fresh_table() -> (tempfile::TempDir, Table) {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory");
    let options = CreateOptions { lease_ms: Some(LEASE_MS), ..CreateOptions::default() };
    let (table, _) = Table::open_or_create(dir.path(), &options).expect("a table");
    (dir, table)
}

/// One thread's part: calls, with the generation of its last claim in mind.
pub fn play(
    (table, clock): (&Table, &Clock),
    names: &Names,
    holder: u8,
    dice: &mut Dice,
    calls: usize,
    with_next: bool,
    mut said: impl FnMut(Event),
) {
    let mut last = None;
    for _ in 0..calls {
        let call = dice.call(names, holder, last, with_next);
        let began = now_ns();
        let now_ms = clock.read();
        said(Event { call: call.clone(), now_ms, began, ended: None });
        let answer = with_pause(dice, || call.make(table, clock, names));
        let ended = now_ns();
        match &answer {
            Answer::Got { node, generation, .. } => {
                last = (0..crate::history::NODES).find(|&n| names.node(n) == *node).map(|n| (n, *generation));
            }
            Answer::At(_) | Answer::Did(_)
                if !matches!(call, Call::Renew { .. } | Call::Upsert { .. } | Call::Advance | Call::Limit { .. }) =>
            {
                last = None
            }
            _ => {}
        }
        said(Event { call, now_ms, began, ended: Some((ended, answer)) });
    }
}

/// Puts calls and their ends together.
pub fn merged(said: Vec<Event>) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for event in said {
        match events.last_mut() {
            Some(last) if last.ended.is_none() && last.began == event.began => *last = event,
            _ => events.push(event),
        }
    }
    events
}

/// Ends what is left of a history, so that the next one in the table meets nothing of it.
fn clear(table: &Table, names: &Names) {
    for node in 0..crate::history::NODES {
        let _ = table.release_forced(names.id(node), None);
        let cancelled =
            tenure::Completion { outcome: Outcome::Cancelled, generation: None, holder: None, summary: None };
        let _ = table.complete(names.id(node), &cancelled);
    }
}

#[test]
fn histories_of_threads_have_an_order() {
    let until = Instant::now() + depth();
    let seed = std::env::var("TENURE_LINEARIZE_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(now_ns);
    let (mut histories, mut calls) = (0u64, 0usize);
    while Instant::now() < until || histories == 0 {
        let (dir, table) = fresh_table();
        let clock = Clock::of(dir.path());
        for _ in 0..HISTORIES {
            let names = Names { history: histories };
            clock.read();
            begin(&table, &names);
            let together = Barrier::new(HOLDERS.into());
            let events: Vec<Event> = std::thread::scope(|scope| {
                let play = |holder: u8| {
                    let (table, clock, names, together) = (&table, &clock, &names, &together);
                    let mut dice = Dice::new(seed ^ (histories << 8) ^ u64::from(holder));
                    scope.spawn(move || {
                        // Its name is known before the race begins, every other time.
                        if histories % 2 == 0 {
                            table.worker(&names.holder(holder)).expect("a name");
                        }
                        let mut said = Vec::new();
                        together.wait();
                        play((table, clock), names, holder, &mut dice, CALLS, true, |event| said.push(event));
                        merged(said)
                    })
                };
                let threads: Vec<_> = (0..HOLDERS).map(play).collect();
                threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
            });
            calls += events.len();
            if let Err(why) = check(&events, &names) {
                panic!("history {histories} of seed {seed}: {why}");
            }
            histories += 1;
            clear(&table, &names);
        }
    }
    eprintln!("linearize: {histories} histories of {HOLDERS} threads, {calls} calls (seed {seed})");
}

/// The checker would see it if the table did what it must not: here a node's word is put back to an older value, which
/// is what a write that does not compare would do.
#[test]
fn a_table_whose_words_go_back_is_rejected() {
    let (dir, table) = fresh_table();
    let (names, clock) = (Names { history: 0 }, Clock::of(dir.path()));
    clock.read();
    begin(&table, &names);
    let mut said = Vec::new();
    let mut make = |call: Call| {
        let began = now_ns();
        let now_ms = clock.read();
        let answer = call.make(&table, &clock, &names);
        said.push(Event { call, now_ms, began, ended: Some((now_ns(), answer)) });
    };
    make(Call::Claim { node: 0, holder: 0, generation: None, resume: false, length: 0 });
    let file = std::fs::read_dir(dir.path())
        .expect("the directory")
        .flatten()
        .find(|entry| entry.file_name().to_string_lossy().starts_with("table-"));
    let file = std::fs::OpenOptions::new().write(true).open(file.expect("the table").path()).expect("opened");
    // The word of the first slot; see docs/layout.md.
    std::os::unix::fs::FileExt::write_all_at(&file, &[0; 8], 4_096).expect("written");
    make(Call::Claim { node: 0, holder: 1, generation: None, resume: false, length: 0 });
    let why = check(&said, &names).expect_err("two holders of one node");
    assert!(why.contains("Claim"), "{why}");
}

/// A stand-in that looks and then acts, with others in between, as a table without compare-and-swap would: it must be
/// found out within a few histories.
#[test]
fn a_table_that_looks_before_it_writes_is_rejected() {
    let names = Names { history: 0 };
    let rejected = (0..400).any(|round| {
        let held: [std::sync::Mutex<Option<(u8, u64)>>; 1] = [std::sync::Mutex::new(None)];
        let together = Barrier::new(HOLDERS.into());
        let events: Vec<Event> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..HOLDERS)
                .map(|holder| {
                    let (held, together, names) = (&held[0], &together, &names);
                    scope.spawn(move || {
                        together.wait();
                        let began = now_ns();
                        let seen = *held.lock().expect("no panic");
                        (0..(round % 7) * 3).for_each(|_| std::thread::yield_now());
                        let answer = match seen {
                            Some((by, generation)) => Answer::No {
                                code: "held".into(),
                                node: Some(names.node(0)),
                                holder: Some(names.holder(by)),
                                generation: Some(generation),
                                status: None,
                            },
                            None => {
                                *held.lock().expect("no panic") = Some((holder, 1));
                                Answer::Got { node: names.node(0), generation: 1, resumed: false }
                            }
                        };
                        let call = Call::Claim { node: 0, holder, generation: None, resume: false, length: 0 };
                        Event { call, now_ms: 0, began, ended: Some((now_ns(), answer)) }
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        check(&events, &names).is_err()
    });
    assert!(rejected, "four hundred races, and none was seen");
}
