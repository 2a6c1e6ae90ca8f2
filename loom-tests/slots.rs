//! Slots that change hands: of nodes, of holders, of the hints of a version. Whole versions are written here, so these are
//! the slowest models.

use crate::id::NodeId;
use crate::node::Outcome;
use crate::sync::Ordering;
use crate::table::claim::Attempt;
use crate::table::finish::{Back, By, End};
use crate::table::lease::Lease;
use crate::word::{Phase, State};
use crate::world::{World, claim, explore, lease, race, who};

#[test]
fn a_late_archive_of_a_pruned_node_does_not_touch_the_next_one_in_its_slot() {
    explore(|| {
        let world = World::new(2, &[]);
        world.end(0, Outcome::Done);
        let (base, archived) = race(
            &world,
            |w| {
                let base = w.replace(0);
                w.end(0, Outcome::Done);
                base
            },
            |w| {
                let seen = w.settled();
                if seen.id(0) == NodeId(100) {
                    return Back::Moved;
                }
                w.core().archive(0, true, &seen).unwrap()
            },
        );
        let ended = Phase::Ended { outcome: Outcome::Done, archived: false, text: None };
        assert_eq!(world.word(0).state(), State { generation: base, phase: ended }, "{archived:?}");
        if let Back::Went { to, .. } = archived {
            assert!(to.generation() < base, "a fence of the old node is one of the new");
        }
    });
}

#[test]
fn a_late_claim_and_end_of_a_pruned_node_do_not_touch_the_next_one_in_its_slot() {
    explore(|| {
        let world = World::new(2, &[]);
        let Attempt::Won { generation } = claim(&world, 1, 0) else { panic!("alone") };
        world.end_held(1, 0, generation);
        let (base, (end, attempt)) = race(
            &world,
            |w| w.replace(0),
            move |w| {
                let seen = w.settled();
                let end = w.core().try_end(0, Outcome::Failed, By::Holder(who(1)), Some(generation), None, &seen);
                (end.unwrap(), w.core().try_claim(who(2), 0, Some(generation), lease(1), &seen).unwrap())
            },
        );
        assert!(matches!(end, End::OtherWay(_) | End::Moved | End::OtherGeneration(_)), "{end:?}");
        assert!(!matches!(attempt, Attempt::Won { .. }), "{attempt:?}");
        assert_eq!((world.word(0).is_open(), world.word(0).generation()), (true, base));
    });
}

#[test]
fn two_who_make_a_node_at_once_get_a_slot_each() {
    explore(|| {
        let world = World::new(1, &[]);
        let (a, b) = race(&world, |w| w.create(11), |w| w.create(12));
        assert_ne!(a, b);
        let graph = world.graph().1;
        assert_eq!((graph.slot_of(NodeId(11)), graph.slot_of(NodeId(12))), (Some(a), Some(b)));
    });
}

#[test]
fn a_holder_is_evicted_or_has_its_claim() {
    explore(|| {
        let world = World::new(1, &[]);
        let (evicted, attempt) = race(&world, |w| w.evict(1), |w| claim(w, 1, 0));
        match attempt {
            Attempt::Won { .. } => assert!(!evicted && world.word(0).holder() == Some(1)),
            Attempt::NameGone => assert!(evicted && world.word(0).is_open()),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_holder_whose_claim_was_left_half_way_is_evicted_without_it() {
    explore(|| {
        let world = World::new(2, &[]);
        world.leave_reserved(1, 0);
        let (evicted, attempt) = race(&world, |w| w.evict(1), |w| claim(w, 1, 1));
        assert_eq!(world.count_claimed() == 0, evicted, "{attempt:?}");
    });
}

#[test]
fn a_hint_that_is_set_while_another_version_comes_is_in_that_one() {
    explore(|| {
        let world = World::new(2, &[(0, 1)]);
        world.in_one_order();
        race(&world, |w| w.end(0, Outcome::Done), |w| w.set_cost(0, 7));
        assert!(world.is_hinted(1));
    });
}

/// As above, but the end goes first, so that one preemption has the new version come between its look at the root and its swap.
#[test]
fn a_hint_that_was_set_in_a_version_that_is_replaced_is_set_again() {
    explore(|| {
        let world = World::new(2, &[(0, 1)]);
        world.in_one_order();
        race(&world, |w| w.set_cost(0, 7), |w| w.end(0, Outcome::Done));
        assert!(world.is_hinted(1));
    });
}

#[test]
fn whoever_falls_asleep_has_looked_at_the_version_that_makes_a_node_ready_or_is_rung() {
    explore(|| {
        let world = World::new(2, &[(0, 1)]);
        world.make_claimed(1, 0);
        world.in_one_order();
        let (slept_on, ()) = race(&world, World::look_and_sleep, |w| w.unlink(0, 1));
        world.check_awake(slept_on);
    });
}

#[test]
fn a_helper_and_a_writer_settle_alike() {
    explore(|| {
        let world = World::new(1, &[]);
        world.end(0, Outcome::Done);
        let (became, taken) = race(
            &world,
            |w| w.reopen(&[0]),
            |w| {
                let root = w.core().settled_root().unwrap();
                let lease = Lease { lease_ms: 1_000, now_ms: 1 };
                (root.is_pending(), w.core().try_claim(who(1), 0, None, lease, &w.settled()).unwrap())
            },
        );
        assert!(became && !taken.0);
        assert!(world.word(0).generation() >= 1);
        world.check();
    });
}

/// Three changes, so that the buffer that was in force is written over.
#[test]
fn a_slow_reader_is_not_told_that_the_table_is_damaged() {
    explore(|| {
        let world = World::new(1, &[]);
        // The reader goes first, so that one preemption makes it slow.
        race(
            &world,
            |w| (7..10).for_each(|n| w.set_cost(0, n)),
            |w| w.core().in_force().map(|seen| seen.root).unwrap(),
        );
    });
}

/// Two buffers, so that the second change takes the reader's. With a third one the zero would come behind the fence of a change
/// that was made after the root had moved, and would need no Release of its own.
#[test]
fn a_slow_reader_whose_buffer_is_taken_at_once_is_not_told_that_the_table_is_damaged() {
    explore(|| {
        let world = World::new(1, &[]);
        world.count_buffers(2);
        race(&world, |w| (7..9).for_each(|n| w.set_cost(0, n)), |w| w.core().in_force().map(|seen| seen.root).unwrap());
    });
}

#[test]
fn a_slow_reader_never_takes_a_later_version_for_that_of_its_root() {
    explore(|| {
        let world = World::new(1, &[]);
        let first = world.settled().root.number();
        let ((), seen) = race(
            &world,
            |w| (7..10).for_each(|n| w.set_cost(0, n)),
            |w| {
                let seen = w.core().in_force().unwrap();
                let cost = seen.version.nodes[0].parent_and_cost.load(Ordering::Relaxed);
                seen.is_whole().then_some((seen.root.number(), cost))
            },
        );
        if let Some((number, cost)) = seen {
            assert_eq!(cost, if number == first { 1 } else { 6 + number - first });
        }
    });
}

#[test]
fn a_buffer_that_is_in_force_is_not_written_over() {
    explore(|| {
        let world = World::new(2, &[]);
        race(&world, |w| w.set_cost(0, 7), |w| w.set_cost(1, 9));
        let graph = world.graph().1;
        let costs = [0, 1].map(|slot| graph.node(slot).unwrap().cost);
        assert_eq!(costs, [7, 9], "a change is lost");
    });
}

/// Two who find every buffer marked and have room made for one more: what is counted twice has no blocks in the file.
#[test]
fn a_buffer_that_two_make_room_for_is_counted_once() {
    explore(|| {
        let world = World::new(1, &[]);
        world.count_buffers(2);
        let (a, b) = race(&world, |w| w.core().grow(2), |w| w.core().grow(2));
        assert_eq!((a, b, world.core().version_count()), (Ok(()), Ok(()), Ok(3)));
    });
}
