//! Packing and unpacking are each other's inverse, and counters end instead of wrapping.

use proptest::prelude::*;

use super::*;
use crate::sync::Bits;

fn any_phase() -> impl Strategy<Value = Phase> {
    prop_oneof![
        Just(Phase::Open),
        (0..4096u16).prop_map(|holder| Phase::Claimed { holder }),
        (0..6usize, proptest::option::of(any::<u16>())).prop_map(|(i, text)| {
            let (outcome, archived) = super::claim::ENDED[i];
            Phase::Ended { outcome, archived, text }
        }),
    ]
}

proptest! {
    #[test]
    fn node_word_unpacks_to_what_was_packed(generation in 0..=GENERATION_MAX, phase in any_phase()) {
        let state = State { generation, phase };
        prop_assert_eq!(NodeWord::new(state).state(), state);
    }

    #[test]
    fn every_bit_pattern_is_some_state(bits in any::<u64>()) {
        let _ = NodeWord::from_bits(bits).state();
        let _ = ChangeWord::from_bits(bits).step();
        let _ = TextRef::from_bits(bits).of();
    }

    #[test]
    fn a_bump_changes_the_word_and_never_a_fence(generation in 0..GENERATION_CLAIMABLE_MAX, holder in 0..4096u16, times in 1..5000u32) {
        let mut open = NodeWord::new(State { generation, phase: Phase::Open });
        let mut held = NodeWord::new(State { generation, phase: Phase::Claimed { holder } });
        prop_assert!(!open.is_delayed() && open.delayed().is_delayed() && !held.delayed().is_delayed());
        prop_assert!(open.delayed().bumped().is_some_and(NodeWord::is_delayed));
        for _ in 0..times {
            if let Some(next) = open.bumped() {
                prop_assert!(next.bits() > open.bits());
                prop_assert!(next.is_open());
                open = next;
            }
            if let Some(next) = held.bumped() {
                prop_assert_eq!(next.generation(), generation);
                prop_assert_eq!(next.holder(), Some(holder));
                held = next;
            }
        }
    }

    #[test]
    fn other_words_unpack_to_what_was_packed(node in 0..4096u16, generation in 0..=GENERATION_MAX, ms in 1..=LEASE_MS_MAX, stamp in any::<u64>()) {
        let h = HolderWord::from_bits(0).evicted().reserving(node, generation);
        prop_assert_eq!((h.node(), h.generation()), (node, generation));
        prop_assert!(h.called_off().is_called_off() && !h.is_called_off() && h.called_off().is_same_as(h));
        let next = h.called_off().evicted().reserving(node, generation);
        prop_assert!(!next.is_called_off() && !next.is_same_as(h));
        prop_assert_eq!(LengthWord::new(generation, ms).lease_ms(generation), Some(ms));
        prop_assert!(LeaseWord::running(generation, ms).is_of(generation));
        prop_assert!(!LeaseWord::running(generation, 0).is_closed());
        prop_assert!(LeaseWord::closed(generation).is_closed());
        let text = TextRef::new(TextOf::Holder(node), 17, stamp);
        prop_assert_eq!((text.of(), text.head(), text.is_none()), (TextOf::Holder(node), 17, false));
    }
}

#[test]
fn a_used_up_guard_refuses_instead_of_wrapping() {
    let top = GENERATION_MAX;
    let mut held = NodeWord::new(State { generation: 7, phase: Phase::Claimed { holder: 1 } });
    let mut bumps = 0;
    while let Some(next) = held.bumped() {
        held = next;
        bumps += 1;
    }
    assert_eq!((bumps, held.generation()), (8191, 7));
    assert_eq!(NodeWord::new(State { generation: top, phase: Phase::Claimed { holder: 1 } }).opened(), None);
    // The last guards of an open node; all of them one by one would take half a minute.
    let near = |generation| {
        let open = NodeWord::new(State { generation, phase: Phase::Open });
        NodeWord::from_bits(open.bits() | ((1 << 24) - 2) << 4).bumped().unwrap()
    };
    assert!(near(7).is_open() && near(7).generation() == 7);
    assert_eq!(near(7).bumped(), Some(NodeWord::new(State { generation: 9, phase: Phase::Open })));
    assert_eq!(near(top).bumped(), None);
}
