//! Changes of the graph against each other and against claims.

use crate::node::Outcome;
use crate::table::claim::Attempt;
use crate::table::finish::{By, End};
use crate::world::{World, claim, explore, race, who};

#[test]
fn a_node_that_got_a_dependency_is_not_claimed_as_ready_afterwards() {
    explore(|| {
        let world = World::new(2, &[]);
        let (linked, attempt) = race(&world, |w| w.link(0, 1), |w| claim(w, 1, 1));
        assert_eq!(linked, Ok(()));
        let seen = world.settled();
        match attempt {
            // The claim came first: it stands, and cannot be completed before the new dependency.
            Attempt::Won { generation } => {
                let end =
                    world.core().try_end(1, Outcome::Done, By::Holder(who(1)), Some(generation), None, &seen).unwrap();
                assert_eq!(end, End::NotReady);
            }
            Attempt::NotReady => assert!(world.word(1).is_open()),
            other => panic!("{other:?}"),
        }
        world.check();
    });
}

#[test]
fn a_node_that_was_open_when_it_got_a_dependency_stays_open() {
    explore(|| {
        let world = World::new(2, &[]);
        let (open_after_link, attempt) = race(
            &world,
            |w| {
                w.link(0, 1).unwrap();
                w.word(1).is_open()
            },
            |w| claim(w, 1, 1),
        );
        if open_after_link {
            assert_eq!(attempt, Attempt::NotReady);
        }
    });
}

#[test]
fn a_done_node_never_got_a_dependency_at_the_same_time() {
    explore(|| {
        let world = World::new(2, &[]);
        let Attempt::Won { generation } = claim(&world, 1, 1) else { panic!("alone") };
        let (linked, end) = race(
            &world,
            |w| w.link(0, 1),
            move |w| loop {
                let end = w.core().try_end(1, Outcome::Done, By::Holder(who(1)), Some(generation), None, &w.settled());
                match end.unwrap() {
                    End::Moved => {}
                    other => return other,
                }
            },
        );
        let has_edge = world.graph().1.edge(0, 1).is_some();
        match end {
            End::Ended { .. } => assert!(linked == Err("ended") && !has_edge),
            End::NotReady => assert!(linked == Ok(()) && has_edge),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn of_two_edges_that_close_a_loop_together_one_is_refused() {
    explore(|| {
        let world = World::new(2, &[]);
        let (a, b) = race(&world, |w| w.link(0, 1), |w| w.link(1, 0));
        assert!(a.is_ok() != b.is_ok(), "{a:?} {b:?}");
        assert_eq!(world.graph().1.edges.len(), 1);
    });
}

#[test]
fn a_claim_is_not_told_busy_with_itself_when_the_node_is_changed_meanwhile() {
    explore(|| {
        let world = World::new(1, &[]);
        let ((), attempt) = race(&world, |w| w.touch(0), |w| claim(w, 1, 0));
        assert_eq!(attempt, Attempt::Won { generation: 1 });
        world.check();
    });
}
