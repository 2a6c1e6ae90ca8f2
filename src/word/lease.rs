//! The words of a lease: until when, how long, and when a node ended.

use super::Field;
use super::claim::GENERATION_BITS;
use crate::sync::Bits;

/// Bits of a time in milliseconds: 34 years of uptime.
const TIME_BITS: u32 = 40;
/// Bits of a generation that a lease is tagged with.
const TAG_BITS: u32 = 24;

const fn tag(generation: u64) -> u64 {
    generation & ((1 << TAG_BITS) - 1)
}

word! {
    /// The lease of the claim whose generation has this tag.
    LeaseWord
}

impl LeaseWord {
    const DEADLINE: Field = Field::lowest(TIME_BITS);
    const TAG: Field = Field::above(LeaseWord::DEADLINE, TAG_BITS);

    /// A running lease. A deadline past the end of the field is kept at its end, and 0 (closed) is never made.
    #[inline]
    pub(crate) fn running(generation: u64, deadline_ms: u64) -> LeaseWord {
        let deadline = if deadline_ms == 0 { 1 } else { deadline_ms.min(LeaseWord::DEADLINE.max()) };
        LeaseWord(LeaseWord::TAG.put(tag(generation)) | LeaseWord::DEADLINE.put(deadline))
    }

    /// The lease of `generation` is over and a reclaim is under way.
    pub(crate) fn closed(generation: u64) -> LeaseWord {
        LeaseWord(LeaseWord::TAG.put(tag(generation)))
    }

    #[inline]
    pub(crate) fn is_of(self, generation: u64) -> bool {
        LeaseWord::TAG.get(self.0) == tag(generation)
    }

    pub(crate) fn is_closed(self) -> bool {
        LeaseWord::DEADLINE.get(self.0) == 0
    }

    /// When it runs out, on the lease clock; 0 when closed.
    pub(crate) fn deadline_ms(self) -> u64 {
        LeaseWord::DEADLINE.get(self.0)
    }
}

word! {
    /// The length of one claim's lease, when it is not the table's.
    LengthWord
}

impl LengthWord {
    const LENGTH: Field = Field::lowest(28);
    const GENERATION: Field = Field::above(LengthWord::LENGTH, GENERATION_BITS);

    pub(crate) fn new(generation: u64, lease_ms: u64) -> LengthWord {
        LengthWord(LengthWord::GENERATION.put(generation) | LengthWord::LENGTH.put(lease_ms))
    }

    pub(crate) fn generation(self) -> u64 {
        LengthWord::GENERATION.get(self.0)
    }

    /// The length for `generation`, if this word is about it.
    pub(crate) fn lease_ms(self, generation: u64) -> Option<u64> {
        let length = LengthWord::LENGTH.get(self.0);
        (LengthWord::GENERATION.get(self.0) == generation && length > 0).then_some(length)
    }
}

/// The longest lease that a [`LengthWord`] can keep.
pub(crate) const LEASE_MS_MAX: u64 = LengthWord::LENGTH.max();

word! {
    /// When a generation ended.
    EndWord
}

impl EndWord {
    const TIME: Field = Field::lowest(TIME_BITS);
    const TAG: Field = Field::above(EndWord::TIME, TAG_BITS);

    #[inline]
    pub(crate) fn new(generation: u64, time_ms: u64) -> EndWord {
        EndWord(EndWord::TAG.put(tag(generation)) | EndWord::TIME.put(time_ms))
    }

    /// Whether the time is about this generation.
    pub(crate) fn is_of(self, generation: u64) -> bool {
        EndWord::TAG.get(self.0) == tag(generation)
    }

    /// How often a node that ended then and is at this generation was archived or shown again since: each moved the
    /// generation by one. 0 for the end of a later generation.
    pub(crate) fn moves_to(self, generation: u64) -> u64 {
        let moves = tag(generation.wrapping_sub(EndWord::TAG.get(self.0)));
        if moves <= EndWord::TAG.max() / 2 { moves } else { 0 }
    }

    /// The time, whatever the tag: archiving moves the generation and not the end.
    pub(crate) fn time_ms(self) -> u64 {
        EndWord::TIME.get(self.0)
    }
}

const _: () = {
    assert!(LeaseWord::TAG.end() == 64);
    assert!(LengthWord::GENERATION.end() == 64);
    assert!(EndWord::TAG.end() == 64);
};
