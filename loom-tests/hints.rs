//! Hints, and the doorbell: no node is ready with nobody told.
//!
//! Loom takes an access as sequentially consistent only against stores that are so themselves; others it treats as acquire
//! and release. These models therefore begin with `in_one_order`, and leave out what the library does to the same words with
//! less. They show that the accesses named SeqCst suffice, and fail when one of them is less.

use crate::graph::Edge;
use crate::node::{OnFailure, Outcome};
use crate::table::claim::Attempt;
use crate::table::finish::{Back, By};
use crate::world::{World, claim, edge, explore, race, who};

#[test]
fn of_two_dependencies_that_end_at_once_the_last_one_hints_the_child() {
    explore(|| {
        let world = World::new(3, &[(0, 2), (1, 2)]);
        world.in_one_order();
        race(&world, |w| w.end(0, Outcome::Done), |w| w.end(1, Outcome::Done));
        assert!(world.is_hinted(2));
    });
}

#[test]
fn a_watched_dependency_that_ends_at_once_is_not_missed() {
    explore(|| {
        let world = World::new(4, &[(0, 3), (1, 3), (2, 3)]);
        world.in_one_order();
        world.end(0, Outcome::Done);
        race(&world, |w| w.end(1, Outcome::Done), |w| w.end(2, Outcome::Done));
        assert!(world.is_hinted(3));
    });
}

#[test]
fn whoever_falls_asleep_has_looked_after_the_ringer_or_is_rung() {
    explore(|| {
        let world = World::new(2, &[(0, 1)]);
        world.in_one_order();
        let (slept_on, ()) = race(&world, World::look_and_sleep, |w| w.end(0, Outcome::Done));
        world.check_awake(slept_on);
    });
}

#[test]
fn a_ringer_that_wakes_nobody_leaves_no_sleeper_behind() {
    explore(|| {
        let world = World::new(2, &[(0, 1)]);
        world.in_one_order();
        // Somebody slept once and has gone.
        let _ = world.core().prepare_to_sleep();
        let (slept_on, ()) = race(&world, World::look_and_sleep, |w| {
            w.core().ring(0);
            w.end(0, Outcome::Done);
            // Another waiter, which finds the node.
            let _ = w.core().prepare_to_sleep();
        });
        world.check_awake(slept_on);
    });
}

#[test]
fn whoever_takes_a_hint_in_vain_sets_it_again_if_the_node_is_ready() {
    explore(|| {
        let world = World::new(1, &[]);
        world.make_claimed(1, 0);
        world.in_one_order();
        world.set_hint(0);
        race(
            &world,
            |w| {
                let seen = w.settled();
                let Some((slot, place)) = seen.hinted().next() else { return };
                if seen.take(place) {
                    // What `pass` does with a node that somebody has.
                    match claim(w, 2, slot) {
                        Attempt::Won { .. } => {}
                        _ => w.core().hint(slot).unwrap(),
                    }
                }
            },
            |w| {
                let back = w.core().release(0, By::Holder(who(1)), Some(1), &w.settled()).unwrap();
                assert!(matches!(back, Back::Went { .. }));
            },
        );
        assert!(world.is_hinted(0) || world.word(0).holder() == Some(2));
    });
}

/// Not a race: the dependency that is watched lets go of the child without ending.
#[test]
fn a_dependency_that_is_skipped_keeps_no_child_that_goes_on_without_it() {
    explore(|| {
        let world = World::new(4, &[]);
        let mode = |parent, child, on_failure| Edge { parent, child, on_failure };
        // 0 is skipped when 1 fails; 3 waits for 0, whatever comes of it, and for 2.
        world.link_all(&[mode(1, 0, OnFailure::Skip), mode(0, 3, OnFailure::Continue), edge(2, 3)]);
        world.watch(3, 0);
        world.end(1, Outcome::Failed);
        world.end(2, Outcome::Done);
        assert!(world.is_hinted(3));
    });
}

#[test]
fn of_two_who_wait_one_watches() {
    explore(|| {
        let world = World::new(1, &[]);
        world.in_one_order();
        let (a, b) = race(&world, |w| w.core().become_watcher(), |w| w.core().become_watcher());
        assert_ne!(a, b);
    });
}

#[test]
fn a_watch_that_is_left_is_taken_by_whoever_is_about_to_sleep() {
    explore(|| {
        let world = World::new(1, &[]);
        world.in_one_order();
        assert!(world.core().become_watcher());
        let (slept_on, ()) = race(
            &world,
            |w| {
                let bell = w.core().prepare_to_sleep();
                (!w.core().become_watcher()).then_some(bell)
            },
            |w| w.core().leave_watch(),
        );
        // Rung, it looks again and finds the watch vacant.
        world.check_awake(slept_on);
    });
}
