//! The packed words and what each value of them means. Pure: no atomics, no I/O.
//!
//! Each field states its width and the field below it; shift, mask and maximum follow, so fields cannot overlap, and
//! the sum of the widths is checked to be 64 where the word is declared.
//!
//! | word | fields, high to low | meaning |
//! |---|---|---|
//! | [`NodeWord`] open | `generation 38, guard 11, 0, status 3` | nobody holds it; the guard moves when its readiness may have gone |
//! | [`NodeWord`] claimed | `generation 38, guard 11, holder 12, status 3` | `holder` has it; the generation is the fence |
//! | [`NodeWord`] ended | `generation 38, text 23, status 3` | done, failed, cancelled, archived or not; `text` overrides the record |
//! | [`HolderWord`] | `node 12, generation 38, epoch 14` | "this holder may hold `node` at `generation`": read through the node's word |
//! | [`LeaseWord`] | `tag 24, deadline 40` | the lease of the claim with this generation tag; deadline 0 is *closed* |
//! | [`LengthWord`] | `generation 38, length 26` | the length of that claim's lease, when it is not the table's |
//! | [`EndWord`] | `tag 24, time 40` | when the generation with this tag ended |
//! | [`RootWord`] | `number 46, current 8, next 8, phase 2` | which version of the graph is in force, and the change under way |
//! | [`OwnerWord`] | `pid 22, start 42` | the process that writes into a buffer or block; 0 is nobody |
//! | [`TextRef`] | `kind 1, index 12, head 16, stamp 35` | whose text it is, where it begins, and which writing of it |
//! | [`ChangeWord`] | `kind 3, index 12` | one step of a change of the graph |

use crate::node::{Outcome, Status};
use crate::sync::Bits;

/// A bit field of a 64-bit word.
#[derive(Clone, Copy)]
struct Field {
    shift: u32,
    width: u32,
}

impl Field {
    /// The lowest field of a word.
    const fn lowest(width: u32) -> Field {
        Field { shift: 0, width }
    }

    /// The field directly above `below`.
    const fn above(below: Field, width: u32) -> Field {
        Field { shift: below.shift + below.width, width }
    }

    const fn max(self) -> u64 {
        (1 << self.width) - 1
    }

    const fn end(self) -> u32 {
        self.shift + self.width
    }

    const fn get(self, word: u64) -> u64 {
        (word >> self.shift) & self.max()
    }

    /// The field's bits for `value`; bits that do not fit are dropped, so callers check limits where they can be exceeded.
    const fn put(self, value: u64) -> u64 {
        (value & self.max()) << self.shift
    }
}

macro_rules! word {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::NoUninit, bytemuck::Zeroable)]
        #[repr(transparent)]
        pub(crate) struct $name(u64);

        impl Bits for $name {
            fn bits(self) -> u64 {
                self.0
            }
            fn from_bits(bits: u64) -> Self {
                $name(bits)
            }
        }
    };
}

/// Bits of a generation, wherever one is stored whole.
const GENERATION_BITS: u32 = 38;

/// The last generation of a slot. A slot that comes near it takes no more claims and no more nodes; nothing wraps.
pub(crate) const GENERATION_MAX: u64 = (1 << GENERATION_BITS) - 1;

/// A claim is refused above this, so that a release, a reclaim or a reopen after it still has a generation to move to.
pub(crate) const GENERATION_CLAIMABLE_MAX: u64 = GENERATION_MAX - 16;

word! {
    /// The state of one node slot; see [`State`] for its unpacked form.
    NodeWord
}

/// A [`NodeWord`], unpacked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct State {
    pub(crate) generation: u64,
    pub(crate) phase: Phase,
}

/// What the node is, with the fields that only this phase has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Open,
    Claimed {
        holder: u16,
    },
    Ended {
        outcome: Outcome,
        archived: bool,
        /// Head block of the record that replaced the node's record when it ended, if any.
        text: Option<u16>,
    },
}

impl NodeWord {
    const STATUS: Field = Field::lowest(3);
    const HOLDER: Field = Field::above(NodeWord::STATUS, 12);
    const GUARD: Field = Field::above(NodeWord::HOLDER, 11);
    const GENERATION: Field = Field::above(NodeWord::GUARD, GENERATION_BITS);
    /// Where an ended node keeps its text: the bits of holder and guard, which it no longer needs.
    const TEXT: Field = Field::above(NodeWord::STATUS, 23);

    const OPEN: u64 = 0;
    const CLAIMED: u64 = 1;
    /// The three ends, then the same three archived.
    const ENDED: [(Outcome, bool); 6] = [
        (Outcome::Done, false),
        (Outcome::Failed, false),
        (Outcome::Cancelled, false),
        (Outcome::Done, true),
        (Outcome::Failed, true),
        (Outcome::Cancelled, true),
    ];

    /// A word with guard 0. The generation must be at most [`GENERATION_MAX`].
    pub(crate) fn new(state: State) -> NodeWord {
        let rest = match state.phase {
            Phase::Open => NodeWord::STATUS.put(NodeWord::OPEN),
            Phase::Claimed { holder } => {
                NodeWord::STATUS.put(NodeWord::CLAIMED) | NodeWord::HOLDER.put(u64::from(holder))
            }
            Phase::Ended { outcome, archived, text } => {
                let status = 2 + outcome as u64 + if archived { 3 } else { 0 };
                let text = text.map_or(0, |head| u64::from(head) + 1);
                NodeWord::STATUS.put(status) | NodeWord::TEXT.put(text)
            }
        };
        NodeWord(NodeWord::GENERATION.put(state.generation) | rest)
    }

    /// Every word is some state: a text number that no block has reads as none.
    pub(crate) fn state(self) -> State {
        let phase = match NodeWord::STATUS.get(self.0) {
            NodeWord::OPEN => Phase::Open,
            NodeWord::CLAIMED => Phase::Claimed { holder: NodeWord::HOLDER.get(self.0) as u16 },
            ended => {
                let (outcome, archived) = NodeWord::ENDED[(ended - 2) as usize % 6];
                let text = NodeWord::TEXT.get(self.0).checked_sub(1).and_then(|head| u16::try_from(head).ok());
                Phase::Ended { outcome, archived, text }
            }
        };
        State { generation: self.generation(), phase }
    }

    pub(crate) fn generation(self) -> u64 {
        NodeWord::GENERATION.get(self.0)
    }

    pub(crate) fn status(self) -> Status {
        match self.state().phase {
            Phase::Open => Status::Open,
            Phase::Claimed { .. } => Status::Claimed,
            Phase::Ended { outcome, .. } => outcome.status(),
        }
    }

    #[inline]
    pub(crate) fn is_open(self) -> bool {
        NodeWord::STATUS.get(self.0) == NodeWord::OPEN
    }

    #[inline]
    pub(crate) fn is_done(self) -> bool {
        matches!(NodeWord::STATUS.get(self.0), 2 | 5)
    }

    #[inline]
    pub(crate) fn is_ended(self) -> bool {
        NodeWord::STATUS.get(self.0) >= 2
    }

    /// The holder, when it is claimed.
    #[inline]
    pub(crate) fn holder(self) -> Option<u16> {
        (NodeWord::STATUS.get(self.0) == NodeWord::CLAIMED).then(|| NodeWord::HOLDER.get(self.0) as u16)
    }

    /// Open -> claimed: the generation moves, and with it the fence.
    #[inline]
    pub(crate) fn claimed_by(self, holder: u16) -> NodeWord {
        NodeWord(
            NodeWord::GENERATION.put(self.generation() + 1)
                | NodeWord::HOLDER.put(u64::from(holder))
                | NodeWord::STATUS.put(NodeWord::CLAIMED),
        )
    }

    /// Claimed or ended -> open: the generation moves, and nothing else is kept. `None` at the last generation.
    pub(crate) fn opened(self) -> Option<NodeWord> {
        let generation = self.next_generation()?;
        Some(NodeWord::new(State { generation, phase: Phase::Open }))
    }

    /// Ended -> the same end, archived or not, with the text kept: the generation moves. `None` at the last one.
    pub(crate) fn archived(self, archived: bool) -> Option<NodeWord> {
        let Phase::Ended { outcome, text, .. } = self.state().phase else { return None };
        let generation = self.next_generation()?;
        Some(NodeWord::new(State { generation, phase: Phase::Ended { outcome, archived, text } }))
    }

    fn next_generation(self) -> Option<u64> {
        (self.generation() < GENERATION_MAX).then(|| self.generation() + 1)
    }

    /// Claimed or open -> ended: the generation stays.
    pub(crate) fn ended(self, outcome: Outcome, text: Option<u16>) -> NodeWord {
        NodeWord::new(State { generation: self.generation(), phase: Phase::Ended { outcome, archived: false, text } })
    }

    /// The same node with its guard moved by one, so that a swap from the word read before it can only fail.
    ///
    /// The guard of an open node carries into the generation, so the pair never repeats. The generation of a claimed
    /// node is somebody's fence and may not move: `None` when its guard is used up. An ended node has no guard.
    pub(crate) fn bumped(self) -> Option<NodeWord> {
        let guard = NodeWord::GUARD.get(self.0);
        let fits = match self.state().phase {
            Phase::Open => guard < NodeWord::GUARD.max() || self.generation() < GENERATION_CLAIMABLE_MAX,
            Phase::Claimed { .. } => guard < NodeWord::GUARD.max(),
            Phase::Ended { .. } => false,
        };
        fits.then(|| NodeWord(self.0 + (1 << NodeWord::GUARD.shift)))
    }
}

word! {
    /// What a holder may hold, to be read through the node's word.
    HolderWord
}

impl HolderWord {
    const EPOCH: Field = Field::lowest(14);
    const GENERATION: Field = Field::above(HolderWord::EPOCH, GENERATION_BITS);
    const NODE: Field = Field::above(HolderWord::GENERATION, 12);

    pub(crate) fn node(self) -> u16 {
        HolderWord::NODE.get(self.0) as u16
    }

    pub(crate) fn generation(self) -> u64 {
        HolderWord::GENERATION.get(self.0)
    }

    /// Reserved for `node` at `generation`; the epoch stays.
    #[inline]
    pub(crate) fn reserving(self, node: u16, generation: u64) -> HolderWord {
        HolderWord(
            HolderWord::NODE.put(u64::from(node))
                | HolderWord::GENERATION.put(generation)
                | HolderWord::EPOCH.put(self.0),
        )
    }

    /// Evicted: names nothing, in the next epoch. An epoch wraps after 16,384 evictions of one slot; a claim in flight
    /// would have to sleep through exactly so many, and then still finds its name gone from the version it reads.
    pub(crate) fn evicted(self) -> HolderWord {
        HolderWord(HolderWord::EPOCH.put(HolderWord::EPOCH.get(self.0) + 1))
    }
}

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
    const LENGTH: Field = Field::lowest(26);
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

    /// The time, whatever the tag: archiving moves the generation and not the end.
    pub(crate) fn time_ms(self) -> u64 {
        EndWord::TIME.get(self.0)
    }
}

word! {
    /// Which version of the graph is in force.
    RootWord
}

impl RootWord {
    const PHASE: Field = Field::lowest(2);
    const NEXT: Field = Field::above(RootWord::PHASE, 8);
    const CURRENT: Field = Field::above(RootWord::NEXT, 8);
    const NUMBER: Field = Field::above(RootWord::CURRENT, 46);

    /// Version `number` in buffer `current` is in force and no change is under way.
    pub(crate) fn settled(number: u64, current: u8) -> RootWord {
        RootWord(RootWord::NUMBER.put(number) | RootWord::CURRENT.put(u64::from(current)))
    }

    /// Version `number`, now in buffer `next`, takes the place of the one in `current` once its steps are done.
    pub(crate) fn pending(number: u64, current: u8, next: u8) -> RootWord {
        RootWord(
            RootWord::NUMBER.put(number)
                | RootWord::CURRENT.put(u64::from(current))
                | RootWord::NEXT.put(u64::from(next))
                | RootWord::PHASE.put(1),
        )
    }

    pub(crate) fn number(self) -> u64 {
        RootWord::NUMBER.get(self.0)
    }

    pub(crate) fn current(self) -> u8 {
        RootWord::CURRENT.get(self.0) as u8
    }

    pub(crate) fn next(self) -> Option<u8> {
        self.is_pending().then(|| RootWord::NEXT.get(self.0) as u8)
    }

    #[inline]
    pub(crate) fn is_pending(self) -> bool {
        RootWord::PHASE.get(self.0) != 0
    }
}

word! {
    /// The process that has a buffer or block for itself; [`OwnerWord::NOBODY`] is all zero.
    OwnerWord
}

impl OwnerWord {
    const START: Field = Field::lowest(42);
    /// Linux gives out no pid above 2^22.
    const PID: Field = Field::above(OwnerWord::START, 22);

    pub(crate) const NOBODY: OwnerWord = OwnerWord(0);

    /// `start` is the process's start time in clock ticks since boot.
    pub(crate) fn new(pid: u32, start: u64) -> OwnerWord {
        OwnerWord(OwnerWord::PID.put(u64::from(pid)) | OwnerWord::START.put(start))
    }

    pub(crate) fn pid(self) -> u32 {
        OwnerWord::PID.get(self.0) as u32
    }

    pub(crate) fn start(self) -> u64 {
        OwnerWord::START.get(self.0)
    }
}

/// Whose text a block belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TextOf {
    Node(u16),
    Holder(u16),
}

word! {
    /// Names one writing of one text: every block of it carries this word. All zero is no text.
    TextRef
}

impl TextRef {
    const STAMP: Field = Field::lowest(35);
    const HEAD: Field = Field::above(TextRef::STAMP, 16);
    const INDEX: Field = Field::above(TextRef::HEAD, 12);
    const KIND: Field = Field::above(TextRef::INDEX, 1);

    pub(crate) const NONE: TextRef = TextRef(0);

    /// The stamp is cut to 35 bits and never 0, so that no text is [`TextRef::NONE`].
    pub(crate) fn new(of: TextOf, head: u16, stamp: u64) -> TextRef {
        let (kind, index) = match of {
            TextOf::Node(index) => (0, index),
            TextOf::Holder(index) => (1, index),
        };
        let stamp = stamp % TextRef::STAMP.max() + 1;
        TextRef(
            TextRef::KIND.put(kind)
                | TextRef::INDEX.put(u64::from(index))
                | TextRef::HEAD.put(u64::from(head))
                | TextRef::STAMP.put(stamp),
        )
    }

    pub(crate) fn of(self) -> TextOf {
        let index = TextRef::INDEX.get(self.0) as u16;
        if TextRef::KIND.get(self.0) == 0 { TextOf::Node(index) } else { TextOf::Holder(index) }
    }

    pub(crate) fn head(self) -> u16 {
        TextRef::HEAD.get(self.0) as u16
    }

    pub(crate) fn is_none(self) -> bool {
        self == TextRef::NONE
    }
}

/// One step of a change of the graph; every step is idempotent and anyone may take it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Move the guard of this node; if it has ended, the change is off.
    Touch(u16),
    /// Move the guard of this node if it is open: it may lose its readiness.
    Unready(u16),
    /// Open this node if it has ended: a reopen, or a free slot made fit for a new node.
    Open(u16),
    /// Evict this holder; if it holds something, the change is off.
    Evict(u16),
}

word! {
    /// A [`Step`], packed.
    ChangeWord
}

impl ChangeWord {
    const INDEX: Field = Field::lowest(12);
    const KIND: Field = Field::above(ChangeWord::INDEX, 3);

    pub(crate) fn new(step: Step) -> ChangeWord {
        let (kind, index) = match step {
            Step::Touch(index) => (1, index),
            Step::Unready(index) => (2, index),
            Step::Open(index) => (3, index),
            Step::Evict(index) => (4, index),
        };
        ChangeWord(ChangeWord::KIND.put(kind) | ChangeWord::INDEX.put(u64::from(index)))
    }

    /// `None` for a kind that is never written.
    pub(crate) fn step(self) -> Option<Step> {
        let index = ChangeWord::INDEX.get(self.0) as u16;
        match ChangeWord::KIND.get(self.0) {
            1 => Some(Step::Touch(index)),
            2 => Some(Step::Unready(index)),
            3 => Some(Step::Open(index)),
            4 => Some(Step::Evict(index)),
            _ => None,
        }
    }
}

const _: () = {
    assert!(NodeWord::GENERATION.end() == 64);
    assert!(
        NodeWord::TEXT.end() == NodeWord::GENERATION.shift,
        "an ended node's text fills the bits below its generation"
    );
    assert!(HolderWord::NODE.end() == 64);
    assert!(LeaseWord::TAG.end() == 64);
    assert!(LengthWord::GENERATION.end() == 64);
    assert!(EndWord::TAG.end() == 64);
    assert!(RootWord::NUMBER.end() == 64);
    assert!(OwnerWord::PID.end() == 64);
    assert!(TextRef::KIND.end() == 64);
    assert!(GENERATION_MAX == NodeWord::GENERATION.max());
};

#[cfg(all(test, not(tenure_loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_phase() -> impl Strategy<Value = Phase> {
        prop_oneof![
            Just(Phase::Open),
            (0..4096u16).prop_map(|holder| Phase::Claimed { holder }),
            (0..6usize, proptest::option::of(any::<u16>())).prop_map(|(i, text)| {
                let (outcome, archived) = NodeWord::ENDED[i];
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
            prop_assert_eq!(h.evicted().reserving(node, generation).bits() & 3, 2);
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
        assert_eq!((bumps, held.generation()), (2047, 7));
        assert_eq!(NodeWord::new(State { generation: top, phase: Phase::Claimed { holder: 1 } }).opened(), None);
        let mut open = NodeWord::new(State { generation: top, phase: Phase::Open });
        while let Some(next) = open.bumped() {
            open = next;
        }
        assert_eq!(open.generation(), top);
    }
}
