//! Two processes that make the table at once; a process that dies while it makes it (T3, case 14).

use std::path::Path;
use std::time::{Duration, Instant};

use tenure::{CreateOptions, Filter, NodeSpec, Table};

use super::crew::{Crew, Dice, Orders, depth, say, scratch};

/// Opens the table, making it if need be, says whether it did, and leaves a node in it.
pub fn create(orders: &Orders) {
    orders.wait_for_start();
    let (table, made) = Table::open_or_create(orders.dir.as_path(), &CreateOptions::default()).expect("a table");
    say(made);
    table.upsert(&NodeSpec { name: Some(orders.word(0).to_owned()), ..NodeSpec::default() }, false).expect("room");
}

fn files_in(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("the directory");
    entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn sixteen_creators_at_once_make_one_table() {
    for _ in 0..depth(12) {
        let top = scratch();
        let dir = top.path().join("not").join("yet");
        let mut crew = Crew::new();
        for i in 0..16 {
            crew.add("create", &dir, &[&format!("from-{i}")]);
        }
        let said: Vec<String> = crew.finish().concat();
        assert_eq!(said.iter().filter(|line| *line == "true").count(), 1, "one of them made it: {said:?}");
        let table = Table::open(dir.as_path()).expect("the table");
        assert_eq!(table.list(Filter::default()).expect("rows").len(), 16, "everybody is in the same table");
        let tables = files_in(&dir).into_iter().filter(|f| f.starts_with("table")).count();
        assert_eq!(tables, 1, "{:?}", files_in(&dir));
    }
}

#[test]
fn a_creator_killed_at_any_moment_leaves_something_that_opens() {
    let mut dice = Dice::new(14);
    let (mut finished, rounds) = (0, depth(200));
    let top = scratch();
    for round in 0..rounds {
        let dir = top.path().join(round.to_string());
        let mut crew = Crew::new();
        crew.add("create", &dir, &[&"killed"]);
        crew.start();
        let wait = Duration::from_micros(dice.below(3_000) as u64);
        let begun = Instant::now();
        while begun.elapsed() < wait {
            std::hint::spin_loop();
        }
        let mut hand = crew.hands.remove(0);
        hand.kill();
        finished += usize::from(hand.hear().is_some());

        let begun = Instant::now();
        let (table, _) =
            Table::open_or_create(dir.as_path(), &CreateOptions::default()).expect("after a killed creator");
        table.upsert(&NodeSpec { name: Some("after".into()), ..NodeSpec::default() }, false).expect("room");
        assert!(begun.elapsed() < Duration::from_secs(1), "took {:?}", begun.elapsed());
        assert!((1..=2).contains(&table.stats().expect("counts").nodes));
        std::fs::remove_dir_all(&dir).expect("the directory goes");
    }
    assert!(finished < rounds, "nobody was killed in time");
}

#[test]
fn killed_creators_do_not_fill_the_directory() {
    let top = scratch();
    let dir = top.path().join("table");
    let mut dice = Dice::new(15);
    for _ in 0..depth(40) {
        let mut crew = Crew::new();
        crew.add("create", &dir, &[&"killed"]);
        crew.start();
        std::thread::sleep(Duration::from_micros(dice.below(1_500) as u64));
        crew.hands.remove(0).kill();
        for file in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            // The table itself goes, so that the next creator begins anew with whatever else is lying about.
            let name = file.file_name().to_string_lossy().into_owned();
            if name == "table" || (name.starts_with("table-") && name.len() == "table-".len() + 36) {
                let _ = std::fs::remove_file(file.path());
            }
        }
    }
    Table::open_or_create(dir.as_path(), &CreateOptions::default()).expect("a table");
    let files = files_in(&dir);
    assert!(files.len() <= 3, "left-overs of the dead are still there: {files:?}");
}
