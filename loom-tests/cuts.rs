//! Cuts through the nodes' words, taken while claims, ends and changes go on.

use crate::node::Outcome;
use crate::table::finish::{Back, By, End};
use crate::word::NodeWord;
use crate::world::{World, claim, explore, race, who};

/// The words of the first two nodes as a snapshot reads them in this order. `None`: the graph changed meanwhile.
fn cut(world: &World, order: [u16; 2]) -> Option<Vec<NodeWord>> {
    let root = world.core().settled_root().unwrap();
    world.core().cut_words(root, &order, 2).unwrap().map(|cut| cut.words)
}

fn finish(world: &World, slot: u16) {
    let end = world.core().try_end(slot, Outcome::Done, By::Holder(who(1)), None, None, &world.settled()).unwrap();
    assert!(matches!(end, End::Ended { .. }));
}

#[test]
fn no_node_of_a_cut_is_ahead_of_what_it_waits_for() {
    explore(|| {
        let world = World::new(2, &[(0, 1)]);
        let ((), words) = race(
            &world,
            |w| {
                let _ = claim(w, 1, 0);
                finish(w, 0);
                let _ = claim(w, 1, 1);
                finish(w, 1);
            },
            |w| cut(w, [1, 0]),
        );
        let words = words.expect("nobody changes the graph");
        let begun = words[1].holder().is_some() || words[1].is_done();
        assert!(words[0].is_done() || !begun, "{words:?}");
    });
}

#[test]
fn no_holder_of_a_cut_has_two_claims() {
    for order in [[0, 1], [1, 0]] {
        explore(move || {
            let world = World::new(2, &[]);
            let ((), words) = race(
                &world,
                |w| {
                    let _ = claim(w, 1, 0);
                    let back = w.core().release(0, By::Holder(who(1)), None, &w.settled()).unwrap();
                    assert!(matches!(back, Back::Went { .. }));
                    let _ = claim(w, 1, 1);
                },
                move |w| cut(w, order),
            );
            let words = words.expect("nobody changes the graph");
            let held = words.iter().filter(|word| word.holder() == Some(1)).count();
            assert!(held <= 1, "{words:?}");
        });
    }
}

#[test]
fn a_cut_is_of_one_version() {
    explore(|| {
        let world = World::new(2, &[(0, 1)]);
        for slot in [0, 1] {
            let end = world.core().try_end(slot, Outcome::Done, By::Anyone, None, None, &world.settled()).unwrap();
            assert!(matches!(end, End::Ended { .. }));
        }
        let (_, words) = race(&world, |w| w.reopen(&[0, 1]), |w| cut(w, [1, 0]));
        if let Some(words) = words {
            assert_eq!(words[0].is_done(), words[1].is_done(), "{words:?}");
        }
    });
}
