//! SIGSTOP at any moment: a process that stands still in the middle of a verb stops nobody else (G2, G4).

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::crew::{Crew, Dice, depth, fresh_table};
use super::killed::{any_verb, assert_sound};

#[test]
fn workers_stopped_in_the_middle_of_a_verb_hold_nobody_up() {
    let (dir, table) = fresh_table();
    let mut crew = Crew::new();
    for i in 0..4 {
        crew.add("everything", dir.path(), &[&format!("w{i}"), &(i + 1)]);
    }
    crew.start();
    let worker = table.worker("walker").expect("a name");
    let mut dice = Dice::new(3);
    for round in 0..depth(150) {
        std::thread::sleep(Duration::from_micros(dice.below(1_500) as u64));
        crew.hands.iter().for_each(|h| h.signal(Signal::STOP));
        let begun = Instant::now();
        for _ in 0..40 {
            any_verb(&table, &worker, &mut dice);
        }
        assert!(begun.elapsed() < Duration::from_secs(1), "round {round}: forty verbs took {:?}", begun.elapsed());
        assert_sound(&table);
        crew.hands.iter().for_each(|h| h.signal(Signal::CONT));
    }
    for hand in &mut crew.hands {
        assert!(hand.is_running(), "a worker ended by itself: {:?}", hand.hear());
        hand.kill();
    }
}
