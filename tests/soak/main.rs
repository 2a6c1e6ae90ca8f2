//! Soak: many processes do everything at once on one table, and are killed and stopped at any moment.
//!
//! The test program starts itself again as one of the `hands`; what they did they write down in files of their own, one
//! line a deed, before or after it so that a killed one has at most left one deed unsaid. The `end` reads them: whatever
//! the order was, the rules hold. `scripts/soak SECONDS [PROCESSES]` runs it for longer.

#[path = "../multiprocess/crew.rs"]
#[allow(dead_code)]
mod crew;
mod deeds;
mod end;
mod hands;

use std::path::Path;
use std::time::{Duration, Instant};

use crew::{Crew, Dice};
use rustix::process::Signal;
use tenure::{CreateOptions, Table};

/// Short, so that whoever is stopped for longer loses its claim.
const LEASE_MS: u64 = 300;
/// The longest that a process is stopped for.
const STOP_MS_MAX: usize = 700;

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Not a test of its own: what a started hand runs.
#[test]
fn worker_entry() {
    let Some(role) = crew::role() else { return };
    hands::run(&role, &crew::orders());
}

/// Roles in the order in which they are filled; with few processes there are some of each kind all the same.
const ROLES: [&str; 10] =
    ["importer", "worker", "waiter", "worker", "storm", "snapshotter", "pruner", "member", "reopener", "waiter"];

/// A hand and when it is to go on, if it is stopped.
struct Place {
    role: &'static str,
    crew: Crew,
    stopped_until: Option<Instant>,
}

impl Place {
    fn filled(role: &'static str, dir: &Path, generation: u64) -> Place {
        let mut crew = Crew::new();
        crew.add(role, dir, &[&generation]);
        Place { role, crew, stopped_until: None }
    }
}

#[derive(Default)]
struct Mischief {
    kills: u64,
    stops: u64,
}

#[test]
fn whatever_happens_to_processes_the_rules_hold() {
    let seconds = number("TENURE_SOAK_SECONDS", 12);
    let processes = number("TENURE_SOAK_PROCESSES", 10).max(ROLES.len() as u64);
    let dir = crew::scratch();
    let options = CreateOptions { lease_ms: Some(LEASE_MS), ..CreateOptions::default() };
    let (table, _) = Table::open_or_create(dir.path(), &options).expect("a table");
    for (group, limit) in deeds::GROUPS {
        table.set_group(group, limit).expect("a group");
    }
    std::fs::create_dir(deeds::logs(dir.path())).expect("a directory for what was done");
    let began = Instant::now();
    let mischief = turmoil(dir.path(), Duration::from_secs(seconds), processes);
    let took = began.elapsed();
    assert!(mischief.kills > 0 && mischief.stops > 0, "nobody was harmed");
    let told = end::judge(dir.path(), &table);
    println!(
        "soak: {:.0} s, {processes} processes, {} kills, {} stops; {told}",
        took.as_secs_f64(),
        mischief.kills,
        mischief.stops
    );
}

/// Kills and stops at random until the time is over; then everybody is killed.
fn turmoil(dir: &Path, how_long: Duration, processes: u64) -> Mischief {
    let until = Instant::now() + how_long;
    let mut dice = Dice::new(number("TENURE_SOAK_SEED", crew::now_ns() as u64));
    let mut started = 0;
    let mut fill = |role| {
        started += 1;
        Place::filled(role, dir, started)
    };
    let mut places: Vec<Place> = (0..processes as usize).map(|i| fill(ROLES[i % ROLES.len()])).collect();
    let mut mischief = Mischief::default();
    while Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5 + dice.below(30) as u64));
        for place in &mut places {
            if place.stopped_until.is_some_and(|until| Instant::now() >= until) {
                place.crew.hands[0].signal(Signal::CONT);
                place.stopped_until = None;
            }
            assert!(place.crew.hands[0].is_running(), "a {} ended by itself; what it said stands above", place.role);
        }
        let at = dice.below(places.len());
        if dice.below(2) == 0 {
            places[at].crew.hands[0].kill();
            places[at] = fill(places[at].role);
            mischief.kills += 1;
        } else if places[at].stopped_until.is_none() {
            places[at].crew.hands[0].signal(Signal::STOP);
            places[at].stopped_until = Some(Instant::now() + Duration::from_millis(dice.below(STOP_MS_MAX) as u64));
            mischief.stops += 1;
        }
    }
    mischief
}
