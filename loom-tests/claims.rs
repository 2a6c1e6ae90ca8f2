//! Claims against claims, reclaims, renewals and ends.

use crate::node::Outcome;
use crate::sync::Ordering;
use crate::table::claim::{Attempt, Holding};
use crate::table::finish::{By, End};
use crate::world::{World, claim, explore, lease, race, who};

fn won(attempt: &Attempt) -> bool {
    matches!(attempt, Attempt::Won { .. })
}

#[test]
fn of_two_holders_that_claim_one_node_one_wins() {
    explore(|| {
        let world = World::new(1, &[]);
        let (a, b) = race(&world, |w| claim(w, 1, 0), |w| claim(w, 2, 0));
        assert!(won(&a) != won(&b), "{a:?} {b:?}");
        let winner = if won(&a) { 1 } else { 2 };
        assert_eq!((world.word(0).holder(), world.word(0).generation()), (Some(winner), 1));
        world.check();
    });
}

#[test]
fn one_holder_that_claims_two_nodes_at_once_gets_one() {
    explore(|| {
        let world = World::new(2, &[]);
        let (a, b) = race(&world, |w| claim(w, 1, 0), |w| claim(w, 1, 1));
        // A claim that was helped to its end by the other thread is that holder's claim: both may say so.
        let held: Vec<u16> = (0..2).filter(|&n| world.word(n).holder() == Some(1)).collect();
        assert_eq!(held.len(), 1);
        assert!(won(&a) != won(&b), "{a:?} {b:?}");
        assert_eq!(won(&a), held == [0]);
        world.check();
    });
}

#[test]
fn a_claim_that_another_call_made_is_the_callers() {
    explore(|| {
        let world = World::new(2, &[]);
        // Calling off another's reservation moves the node's word under the claim, which looks at it again: meanwhile the
        // second call of its holder may make the claim.
        let left = world.leave_reserved(2, 0);
        let (b, a) = race(
            &world,
            move |w| {
                w.core().call_off(2, left).unwrap();
                claim(w, 1, 1)
            },
            |w| claim(w, 1, 0),
        );
        assert!(won(&a) != won(&b), "{a:?} {b:?}");
        assert_eq!(won(&a), world.word(0).holder() == Some(1));
        world.check();
    });
}

#[test]
fn one_holder_that_claims_one_node_twice_has_it_once() {
    explore(|| {
        let world = World::new(1, &[]);
        let (a, b) = race(&world, |w| claim(w, 1, 0), |w| claim(w, 1, 0));
        assert!(won(&a) || won(&b));
        assert_eq!((world.word(0).holder(), world.word(0).generation()), (Some(1), 1));
        world.check();
    });
}

#[test]
fn a_claim_that_was_left_half_way_is_finished_or_overwritten() {
    explore(|| {
        let world = World::new(2, &[]);
        world.leave_reserved(1, 0);
        let (a, b) = race(&world, |w| claim(w, 1, 1), |w| claim(w, 2, 0));
        match a {
            Attempt::Busy { node: 0, generation: 1 } => assert!(!won(&b)),
            Attempt::Won { .. } => assert!(won(&b)),
            other => panic!("{other:?}"),
        }
        world.check();
    });
}

#[test]
fn a_reservation_is_made_or_called_off_and_not_both() {
    explore(|| {
        let world = World::new(2, &[]);
        world.leave_reserved(1, 0);
        // One call found the node not ready and calls the claim off, the other finds it ready again and makes it.
        let (a, b) = race(
            &world,
            |w| {
                let reserved = w.core().holder(1).unwrap().word.load(Ordering::Acquire);
                w.core().call_off(1, reserved).unwrap();
                (w.word(0).holder() == Some(1), claim(w, 1, 1))
            },
            |w| claim(w, 1, 1),
        );
        let (made, a) = a;
        assert_eq!(made, world.word(0).holder() == Some(1), "made after it was called off");
        assert!(!(won(&a) && won(&b)), "{a:?} {b:?}");
        let held: Vec<u16> = (0..2).filter(|&n| world.word(n).holder() == Some(1)).collect();
        assert_eq!(held.len(), 1, "{a:?} {b:?}");
        assert_eq!(won(&a) || won(&b), held == [1]);
        world.check();
    });
}

#[test]
fn of_a_claim_and_a_reclaim_the_generation_tells_the_order() {
    explore(|| {
        let world = World::new(1, &[]);
        assert!(won(&claim(&world, 1, 0)));
        let late = 10_000;
        let (b, taken) = race(&world, |w| claim(w, 2, 0), move |w| w.core().reclaim(0, late, None).unwrap());
        let taken = taken.expect("nobody else reclaims");
        assert_eq!((taken.holder, taken.generation), (1, 2));
        match b {
            Attempt::Won { generation } => assert_eq!(generation, 3),
            Attempt::NotOpen(word) => assert_eq!(word.generation(), 1),
            other => panic!("{other:?}"),
        }
        world.check();
    });
}

#[test]
fn two_reclaims_take_a_node_once() {
    explore(|| {
        let world = World::new(1, &[]);
        assert!(won(&claim(&world, 1, 0)));
        let (a, b) = race(
            &world,
            |w| w.core().reclaim(0, 10_000, None).unwrap(),
            |w| w.core().reclaim(0, 10_000, None).unwrap(),
        );
        assert!(a.is_some() != b.is_some());
        assert_eq!((world.word(0).is_open(), world.word(0).generation()), (true, 2));
    });
}

#[test]
fn a_renewal_that_succeeded_is_not_followed_by_a_reclaim() {
    explore(|| {
        let world = World::new(1, &[]);
        assert!(won(&claim(&world, 1, 0)));
        let now = 1_001;
        let (renewed, taken) = race(
            &world,
            move |w| w.core().renew_lease(0, w.word(0), lease(now)).unwrap(),
            move |w| w.core().reclaim(0, now, None).unwrap(),
        );
        assert!(renewed != taken.is_some(), "renewed {renewed}, taken {taken:?}");
        assert_eq!(world.word(0).holder().is_some(), renewed);
    });
}

#[test]
fn of_completing_and_reclaiming_one_wins() {
    explore(|| {
        let world = World::new(1, &[]);
        assert!(won(&claim(&world, 1, 0)));
        let (end, taken) = race(
            &world,
            |w| w.core().try_end(0, Outcome::Done, By::Holder(who(1)), Some(1), None, &w.settled()).unwrap(),
            |w| w.core().reclaim(0, 10_000, None).unwrap(),
        );
        assert!(matches!(end, End::Ended { .. }) != taken.is_some(), "{end:?} {taken:?}");
        assert_eq!(world.word(0).is_done(), taken.is_none());
        assert_eq!(world.core().holding(1).unwrap(), Holding::Idle);
    });
}

#[test]
fn a_claimer_that_died_before_its_lease_costs_one_lease() {
    explore(|| {
        let world = World::new(1, &[]);
        let node = world.core().node(0).unwrap();
        let open = world.word(0);
        let order = crate::sync::Ordering::AcqRel;
        node.word.compare_exchange(open, open.claimed_by(1), order, crate::sync::Ordering::Acquire).unwrap();
        let (early, late) =
            race(&world, |w| w.core().reclaim(0, 5_000, None).unwrap(), |w| w.core().reclaim(0, 5_000, None).unwrap());
        assert!(early.is_none() && late.is_none());
        assert!(world.core().reclaim(0, 5_999, None).unwrap().is_none());
        assert!(world.core().reclaim(0, 6_000, None).unwrap().is_some());
    });
}

#[test]
fn whoever_sees_a_claim_sees_what_it_was_made_under() {
    explore(|| {
        let world = World::new(1, &[]);
        let (a, named) = race(
            &world,
            |w| claim(w, 1, 0),
            |w| {
                let word = w.word(0);
                let names = w.core().holder(1).unwrap().word.load(Ordering::Relaxed);
                word.holder().is_none_or(|_| (names.node(), names.generation()) == (0, word.generation()))
            },
        );
        assert!(won(&a) && named);
    });
}

#[test]
fn a_call_that_goes_on_with_its_reservation_sees_that_it_was_called_off() {
    explore(|| {
        let world = World::new(1, &[]);
        let _ = race(
            &world,
            |w| claim(w, 1, 0),
            |w| {
                // Another change of the node, so that the call begins anew, and another call of the same name.
                let word = w.word(0);
                if let Some(moved) = word.bumped() {
                    let node = &w.core().node(0).unwrap().word;
                    let _ = node.compare_exchange(word, moved, Ordering::AcqRel, Ordering::Relaxed);
                }
                let reserved = w.core().holder(1).unwrap().word.load(Ordering::Acquire);
                if reserved.generation() == 1 {
                    w.core().call_off(1, reserved).unwrap();
                }
            },
        );
        world.check();
    });
}

#[test]
fn a_late_second_half_of_a_reclaim_leaves_a_later_claim_alone() {
    explore(|| {
        let world = World::new(1, &[]);
        assert!(won(&claim(&world, 1, 0)));
        let (taken, (again, later)) = race(
            &world,
            |w| w.core().reclaim(0, 10_000, None).unwrap(),
            |w| {
                let taken = w.core().reclaim(0, 10_000, None).unwrap();
                (taken, w.core().try_claim(who(2), 0, None, lease(10_000), &w.settled()).unwrap())
            },
        );
        assert!(taken.is_none() || again.is_none());
        assert_eq!(later, Attempt::Won { generation: 3 });
        assert_eq!(world.word(0).holder(), Some(2));
    });
}

#[test]
fn a_late_release_leaves_a_later_claim_alone() {
    explore(|| {
        let world = World::new(1, &[]);
        assert!(won(&claim(&world, 1, 0)));
        let (_, later) = race(
            &world,
            |w| w.core().release(0, By::Holder(who(1)), Some(1), &w.settled()).unwrap(),
            |w| {
                let _ = w.core().release(0, By::Holder(who(1)), Some(1), &w.settled()).unwrap();
                claim(w, 1, 0)
            },
        );
        assert_eq!(later, Attempt::Won { generation: 3 });
        assert_eq!((world.word(0).holder(), world.word(0).generation()), (Some(1), 3));
    });
}
