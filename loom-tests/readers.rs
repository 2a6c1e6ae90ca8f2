//! Versions, texts and notes that are written again under whoever still reads them.

use crate::node::Outcome;
use crate::sync::{Bits, Ordering};
use crate::table::claim::Attempt;
use crate::table::finish::{Back, By, End};
use crate::table::lease::Lease;
use crate::word::{OwnerWord, TextOf, TextRef};
use crate::world::{World, explore, lease, race, who};

#[test]
fn a_version_that_was_written_over_is_not_taken_for_whole() {
    explore(|| {
        let world = World::new(1, &[]);
        let seen = world.settled().root;
        // The next two changes take the other two buffers, the third the one that is read.
        world.set_cost(0, 7);
        world.set_cost(0, 7);
        let (whole, ()) = race(
            &world,
            move |w| {
                let seen = w.as_if_in_force(seen);
                let cost = seen.version.nodes[0].parent_and_cost.load(Ordering::Relaxed);
                seen.is_whole().then_some(cost)
            },
            |w| w.set_cost(0, 9),
        );
        assert!(whole.is_none_or(|cost| cost == 1), "{whole:?}");
    });
}

#[test]
fn whoever_sees_the_root_sees_its_version() {
    explore(|| {
        let world = World::new(1, &[]);
        let (seen, ()) = race(
            &world,
            |w| {
                let seen = w.core().in_force().unwrap();
                let cost = seen.version.nodes[0].parent_and_cost.load(Ordering::Relaxed);
                seen.is_whole().then_some((seen.root.number(), cost))
            },
            |w| w.set_cost(0, 7),
        );
        if let Some((number, cost)) = seen {
            assert_eq!(cost, if number == 2 { 1 } else { 7 });
        }
    });
}

/// A block whose text nobody refers to any more is taken for another while somebody still reads the first.
#[test]
fn a_text_that_is_written_over_is_read_whole_or_not_at_all() {
    explore(|| {
        let world = World::new(1, &[]);
        let old = world.core().draft().write(TextOf::Node(0), b"the first text..").unwrap();
        world.begin_with_block(0);
        let (read, _) = race(
            &world,
            move |w| w.core().read_text(old).unwrap(),
            move |w| {
                let new = w.core().draft().write(TextOf::Node(0), b"another text of.").unwrap();
                assert_eq!(new.head(), old.head());
                w.core().read_text(new).unwrap()
            },
        );
        assert!(read.as_deref().is_none_or(|bytes| bytes == b"the first text.."), "{read:?}");
    });
}

#[test]
fn whoever_sees_a_text_named_sees_it_written() {
    explore(|| {
        let world = World::new(1, &[]);
        let (read, ()) = race(
            &world,
            |w| {
                // The block alone, as those see it who look for a free one or for the text of an ended node.
                let text = w.core().fixed.blocks[0].text.load(Ordering::Relaxed);
                if text.is_none() { None } else { w.core().read_text(text).unwrap() }
            },
            |w| {
                w.core().draft().write(TextOf::Node(0), b"a text").unwrap();
            },
        );
        assert!(read.as_deref().is_none_or(|bytes| bytes == b"a text"), "{read:?}");
    });
}

#[test]
fn a_block_that_a_node_refers_to_is_not_taken_for_another_text() {
    explore(|| {
        let world = World::new(1, &[]);
        let (head, ()) = race(
            &world,
            |w| {
                let mut draft = w.core().draft();
                let text = draft.write(TextOf::Node(0), b"what came of it").unwrap();
                let end = w.core().try_end(0, Outcome::Done, By::Anyone, None, Some(text.head()), &w.settled());
                assert!(matches!(end.unwrap(), End::Ended { .. }));
                text.head()
            },
            |w| {
                w.core().draft().write(TextOf::Node(0), b"another").unwrap();
            },
        );
        assert_eq!(world.core().read_end_text(head).unwrap().as_deref(), Some(&b"what came of it"[..]));
    });
}

#[test]
fn two_writers_never_have_one_block() {
    explore(|| {
        let world = World::new(1, &[]);
        let write = |w: &World, bytes: &[u8]| {
            let mut draft = w.core().draft();
            let text = draft.write(TextOf::Node(0), bytes).unwrap();
            // Kept: its blocks are marked until the model ends.
            std::mem::forget(draft);
            text
        };
        let (a, b) = race(&world, move |w| write(w, b"a"), move |w| write(w, b"b"));
        assert_ne!(a.head(), b.head());
        let read = |text: TextRef| world.core().read_text(text).unwrap().unwrap();
        assert_eq!((read(a), read(b)), (b"a".to_vec(), b"b".to_vec()));
    });
}

#[test]
fn a_lease_is_never_read_with_the_length_of_another() {
    explore(|| {
        let world = World::new(1, &[]);
        world.make_claimed(1, 0);
        let (quiet_ms, ()) = race(
            &world,
            |w| w.core().quiet_ms(0, 1_000).unwrap(),
            |w| {
                let short = Lease { lease_ms: 500, now_ms: 1_000 };
                w.core().start_lease(1, 0, 1, short).unwrap();
            },
        );
        assert_eq!(quiet_ms, 0, "it was heard of at this very moment");
    });
}

#[test]
fn a_renewal_with_another_length_never_makes_a_holder_look_quieter_than_it_is() {
    for (first_ms, then_ms) in [(500, 2_000), (2_000, 500)] {
        explore(move || {
            let world = World::new(1, &[]);
            world.make_claimed(1, 0);
            let lease = |lease_ms, now_ms| Lease { lease_ms, now_ms };
            world.core().start_lease(1, 0, 1, lease(first_ms, 3_000)).unwrap();
            let (quiet_ms, renewed) = race(
                &world,
                |w| w.core().quiet_ms(0, 3_000).unwrap(),
                move |w| w.core().renew_lease(0, w.word(0), lease(then_ms, 3_000)).unwrap(),
            );
            assert!(renewed);
            assert_eq!(quiet_ms, 0);
        });
    }
}

#[test]
fn a_late_start_of_a_lease_leaves_a_later_claim_alone() {
    explore(|| {
        let world = World::new(1, &[]);
        world.make_claimed(1, 0);
        let ((), later) = race(
            &world,
            |w| {
                let short = Lease { lease_ms: 500, now_ms: 1 };
                w.core().start_lease(1, 0, 1, short).unwrap();
            },
            |w| {
                let back = w.core().release(0, By::Holder(who(1)), Some(1), &w.settled()).unwrap();
                assert!(matches!(back, Back::Went { .. }));
                let long = Lease { lease_ms: 50_000, now_ms: 1 };
                w.core().try_claim(who(2), 0, None, long, &w.settled()).unwrap()
            },
        );
        assert_eq!(later, crate::table::claim::Attempt::Won { generation: 3 });
        assert!(world.core().node(0).unwrap().lease.load(Ordering::Acquire).is_of(3), "its lease was started");
        assert!(world.core().reclaim(0, 9_000, None).unwrap().is_none(), "it has fifty seconds");
        assert_eq!(world.core().length_ms(0, 3).unwrap(), 50_000);
    });
}

#[test]
fn a_late_start_of_a_lease_keeps_what_a_renewal_was_promised() {
    explore(|| {
        let world = World::new(1, &[]);
        world.make_claimed(1, 0);
        let (renewed, ()) = race(
            &world,
            // The same holder once more, which asked again and was answered with its claim.
            |w| w.core().renew_lease(0, w.word(0), Lease { lease_ms: 1_000, now_ms: 600 }).unwrap(),
            |w| w.core().start_lease(1, 0, 1, Lease { lease_ms: 1_000, now_ms: 1 }).unwrap(),
        );
        assert!(renewed);
        assert!(world.core().reclaim(0, 1_500, None).unwrap().is_none(), "it was renewed until 1600");
    });
}

#[test]
fn a_lease_is_started_for_its_claimer_only_if_nobody_has() {
    explore(|| {
        let world = World::new(1, &[]);
        world.make_claimed(1, 0);
        let (taken, renewed) = race(
            &world,
            |w| w.core().reclaim(0, 1, None).unwrap(),
            |w| w.core().renew_lease(0, w.word(0), Lease { lease_ms: 1_000, now_ms: 600 }).unwrap(),
        );
        assert!(taken.is_none() && renewed);
        assert!(world.core().reclaim(0, 1_500, None).unwrap().is_none(), "it was renewed until 1600");
    });
}

#[test]
fn a_process_is_named_for_its_own_claim_whoever_is_late() {
    explore(|| {
        let world = World::new(1, &[]);
        world.make_claimed(1, 0);
        let ((), ()) = race(
            &world,
            |w| w.core().name_process(0, 1, OwnerWord::new(1, 1)).unwrap(),
            |w| {
                let back = w.core().release(0, By::Holder(who(1)), Some(1), &w.settled()).unwrap();
                assert!(matches!(back, Back::Went { .. }));
                w.make_claimed(2, 0);
                w.core().name_process(0, 3, OwnerWord::new(2, 2)).unwrap();
            },
        );
        assert!(world.core().node(0).unwrap().process.load(Ordering::Acquire).is_of(3), "the later claim's");
    });
}

#[test]
fn a_late_note_of_a_delay_leaves_that_of_a_later_attempt_alone() {
    explore(|| {
        let world = World::with_delay(3_600_000);
        world.make_claimed(1, 0);
        world.core().start_lease(1, 0, 1, lease(1)).unwrap();
        // Long after both delays, whatever the clock says.
        let (claimed_ms, lost_ms) = (1 << 36, 1 << 37);
        let ((), _) = race(
            &world,
            move |w| {
                w.core().reclaim(0, 5_000, None).unwrap();
                let again = Lease { lease_ms: 1_000, now_ms: claimed_ms };
                let won = w.core().try_claim(who(2), 0, None, again, &w.settled()).unwrap();
                assert!(matches!(won, Attempt::Won { generation: 3 }), "{won:?}");
                w.core().reclaim(0, lost_ms, None).unwrap();
            },
            |w| w.core().reclaim(0, 5_000, None).unwrap(),
        );
        let word = world.word(0);
        assert!(word.is_delayed() && word.generation() == 4, "{word:?}");
        let until_ms = world.core().node(0).unwrap().left_alone_until_ms(word);
        assert!(until_ms.is_some(), "it is not left alone");
    });
}

#[test]
fn a_look_through_the_leases_is_not_put_off_past_a_deadline() {
    explore(|| {
        let world = World::new(1, &[]);
        world.core().fixed.header.next_scan_ms.store(u64::from_bits(5_000), Ordering::Relaxed);
        let ((), ()) =
            race(&world, |w| w.core().expect_deadline(1_100).unwrap(), |w| w.core().expect_deadline(1_200).unwrap());
        assert_eq!(world.core().next_scan_ms(), 1_100);
    });
}

/// The lease is there before its deadline is told of, so a look that begins after that finds it, and one that began before
/// has its own word on the next look refused.
#[test]
fn a_look_through_the_leases_keeps_a_deadline_that_it_came_too_early_for() {
    explore(|| {
        let world = World::new(1, &[]);
        world.core().fixed.header.next_scan_ms.store(100, Ordering::Relaxed);
        world.make_claimed(1, 0);
        let (taken, ()) = race(
            &world,
            |w| w.core().reclaim_all(2, None).unwrap(),
            |w| {
                w.core().start_lease(1, 0, 1, Lease { lease_ms: 3, now_ms: 2 }).unwrap();
                w.core().expect_deadline(5).unwrap();
            },
        );
        assert!(
            taken.is_empty() && world.core().next_scan_ms() <= 5,
            "it is put off to {}",
            world.core().next_scan_ms()
        );
    });
}

#[test]
fn a_lease_that_was_closed_stays_closed() {
    explore(|| {
        let world = World::new(1, &[]);
        world.make_claimed(1, 0);
        world.core().start_lease(1, 0, 1, lease(1)).unwrap();
        let (taken, ()) = race(
            &world,
            |w| w.core().reclaim(0, 5_000, None).unwrap(),
            // The claimer, late: its lease was started on its behalf and has run out.
            |w| w.core().start_lease(1, 0, 1, lease(5_000)).unwrap(),
        );
        let lease = world.core().node(0).unwrap().lease.load(Ordering::Acquire);
        assert_eq!(taken.is_some(), lease.is_closed());
    });
}
