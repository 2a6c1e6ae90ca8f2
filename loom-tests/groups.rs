//! Claims in one group, of which no more nodes may be claimed at once than its limit says.

use crate::node::Outcome;
use crate::table::claim::Attempt;
use crate::table::finish::{By, End};
use crate::world::{World, claim, explore, race, who};

fn won(attempt: &Attempt) -> bool {
    matches!(attempt, Attempt::Won { .. })
}

#[test]
fn of_two_claims_in_a_group_of_one_seat_one_wins() {
    explore(|| {
        let world = World::in_group(2, &[], 1);
        let (a, b) = race(&world, |w| claim(w, 1, 0), |w| claim(w, 2, 1));
        assert!(won(&a) != won(&b), "{a:?} {b:?}");
        assert!(a == Attempt::GroupFull || b == Attempt::GroupFull, "{a:?} {b:?}");
        world.check();
    });
}

#[test]
fn a_seat_that_comes_free_is_taken_once() {
    explore(|| {
        let world = World::in_group(2, &[], 1);
        assert!(won(&claim(&world, 1, 0)));
        let (end, attempt) = race(
            &world,
            |w| w.core().try_end(0, Outcome::Done, By::Holder(who(1)), Some(1), None, &w.settled()).unwrap(),
            |w| claim(w, 2, 1),
        );
        assert!(matches!(end, End::Ended { .. }));
        match attempt {
            Attempt::Won { .. } => assert_eq!(world.word(1).holder(), Some(2)),
            Attempt::GroupFull => assert!(world.word(1).is_open()),
            other => panic!("{other:?}"),
        }
        world.check();
    });
}

#[test]
fn a_claim_that_is_called_off_does_not_count() {
    explore(|| {
        let world = World::in_group(2, &[], 1);
        let (a, b) = race(&world, |w| claim(w, 1, 0), |w| claim(w, 2, 1));
        let open = if won(&a) { 1 } else { 0 };
        assert!(won(&a) != won(&b), "{a:?} {b:?}");
        assert_eq!((world.word(open).is_open(), world.word(open).attempts_since(0)), (true, 0));
        assert_eq!(world.word(1 - open).attempts_since(0), 1);
    });
}

#[test]
fn two_calls_of_one_holder_and_a_third_party_share_one_seat() {
    explore(|| {
        let world = World::in_group(2, &[], 1);
        world.leave_reserved(1, 0);
        let (a, b) = race(&world, |w| claim(w, 1, 0), |w| claim(w, 2, 1));
        assert_eq!(world.count_claimed(), 1, "{a:?} {b:?}");
        world.check();
    });
}

/// The group's word goes on naming a claim that was called off. A later one of the same holder, node and generation is
/// another: somebody may have passed over the old one already.
#[test]
fn a_claim_that_was_called_off_and_is_tried_again_takes_its_seat_anew() {
    explore(|| {
        let world = World::in_group(2, &[], 1);
        let reserved = world.leave_seated(1, 0);
        world.core().call_off(1, reserved).unwrap();
        let (a, b) = race(&world, |w| claim(w, 1, 0), |w| claim(w, 2, 1));
        assert_eq!(world.count_claimed(), 1, "{a:?} {b:?}");
        world.check();
    });
}

/// A claim that is passed over because its node is not ready must not be made later under the same name: the node may be
/// ready again before the group's word names another.
#[test]
fn a_claim_that_was_passed_over_takes_its_seat_anew() {
    explore(|| {
        let world = World::in_group(3, &[(0, 1)], 1);
        world.end(0, Outcome::Done);
        world.leave_seated(1, 1);
        assert!(world.reopen_unready(0, 1));
        let (a, b) = race(
            &world,
            |w| {
                w.end(0, Outcome::Done);
                claim(w, 1, 1)
            },
            |w| claim(w, 2, 2),
        );
        assert_eq!(world.count_claimed(), 1, "{a:?} {b:?}");
        world.check();
    });
}

/// A node that goes to another group takes its claim's seat there, whoever makes the claim.
#[test]
fn a_claim_of_a_node_that_left_the_group_is_not_made_for_it() {
    explore(|| {
        let world = World::in_group(3, &[], 1);
        world.leave_seated(1, 0);
        world.go_to_group(2, 2);
        assert!(won(&claim(&world, 2, 2)));
        world.go_to_group(0, 2);
        let (a, b) = race(&world, |w| claim(w, 3, 1), |w| claim(w, 1, 0));
        assert!(won(&a), "{a:?}");
        assert_eq!(b, Attempt::GroupFull);
        assert!(world.word(0).is_open());
        world.check();
    });
}

#[test]
fn a_group_is_full_only_if_all_its_seats_were_taken_at_once() {
    explore(|| {
        let world = World::in_group_of(3, &[], 1, 2);
        assert!(won(&claim(&world, 1, 0)));
        // At no moment are two of the two seats taken.
        let (full, ()) = race(
            &world,
            |w| {
                let seen = w.settled();
                w.core().is_group_full(2, &seen).unwrap()
            },
            |w| {
                let end = w.core().try_end(0, Outcome::Done, By::Holder(who(1)), Some(1), None, &w.settled()).unwrap();
                assert!(matches!(end, End::Ended { .. }));
                assert!(won(&claim(w, 2, 1)));
            },
        );
        assert!(!full);
    });
}
