//! Changes of the graph against each other and against claims.

use crate::node::Outcome;
use crate::table::claim::Attempt;
use crate::table::finish::{Back, By, End};
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
                assert!(matches!(end, End::NotReady(_)), "{end:?}");
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
            End::NotReady(_) => assert!(linked == Ok(()) && has_edge),
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

#[test]
fn a_reader_sees_a_change_of_words_whole_or_not_at_all() {
    explore(|| {
        let world = World::new(2, &[]);
        for slot in [0, 1] {
            let end = world.core().try_end(slot, Outcome::Done, By::Anyone, None, None, &world.settled()).unwrap();
            assert!(matches!(end, End::Ended { .. }));
        }
        let (became, seen) = race(&world, |w| w.reopen(&[0, 1]), World::look);
        assert!(became);
        if let Some(seen) = seen {
            assert_eq!(seen[0].is_open(), seen[1].is_open(), "{seen:?}");
        }
    });
}

#[test]
fn a_change_of_words_is_called_off_when_a_word_has_come_that_far() {
    explore(|| {
        let world = World::new(1, &[]);
        let end = world.core().try_end(0, Outcome::Done, By::Anyone, None, None, &world.settled()).unwrap();
        assert!(matches!(end, End::Ended { .. }));
        let (became, archived) = race(
            &world,
            |w| w.reopen(&[0]),
            |w| loop {
                match w.core().archive(0, true, &w.settled()).unwrap() {
                    Back::Moved => {}
                    other => return matches!(other, Back::Went { .. }),
                }
            },
        );
        // Either order is one; a change that was planned before the other and done after it is none.
        assert_eq!(world.word(0).generation(), u64::from(became) + u64::from(archived));
        assert!(became && (!archived || world.word(0).generation() == 2));
    });
}

#[test]
fn two_who_do_the_steps_of_one_change_note_what_was_there_before() {
    explore(|| {
        let world = World::new(1, &[]);
        let end = world.core().try_end(0, Outcome::Done, By::Anyone, None, None, &world.settled()).unwrap();
        assert!(matches!(end, End::Ended { .. }));
        let pending = world.leave_pending_reopen(0);
        let (seen, _) = race(
            &world,
            move |w| {
                let seen = w.core().seen_word(pending, 0).unwrap();
                (w.core().in_force().unwrap().root == pending).then_some(seen)
            },
            |w| w.core().settled_root().unwrap(),
        );
        // Under the pending root it is as it was.
        assert!(seen.is_none_or(|word| word.is_done()), "{seen:?}");
        assert!(world.word(0).is_open());
    });
}

#[test]
fn a_late_helper_does_not_undo_what_came_after_the_change() {
    explore(|| {
        let world = World::new(1, &[]);
        world.end(0, Outcome::Done);
        let pending = world.leave_pending_reopen(0);
        let target = world.word(0).opened().unwrap();
        let (_, ()) = race(
            &world,
            |w| w.core().settled_root().unwrap(),
            |w| {
                w.core().settled_root().unwrap();
                // The buffer is another version's from now on.
                assert!(w.reopen_again(0));
            },
        );
        assert!(pending.is_pending());
        let word = world.word(0);
        assert_eq!((word.is_open(), word.generation()), (true, target.generation() + 1));
    });
}

/// A step of a change that is over, in a buffer that holds another one by now, and that one is called off.
#[test]
fn a_late_helper_does_not_take_a_step_of_a_change_that_was_called_off() {
    explore(|| {
        let world = World::new(2, &[]);
        world.end(0, Outcome::Done);
        world.end(1, Outcome::Done);
        let pending = world.leave_pending_reopen(0);
        race(
            &world,
            |w| {
                w.core().settled_root().unwrap();
                w.end(0, Outcome::Done);
                // The other two buffers; the next is that of the change that was pending.
                w.set_cost(0, 7);
                w.set_cost(0, 8);
                w.reopen_in_vain(0, 1);
            },
            move |w| w.core().settled_root().unwrap(),
        );
        assert!(pending.is_pending());
        assert!(world.word(0).is_ended(), "{:?}", world.word(0));
    });
}
