//! The words of the graph: the version in force, the steps of a change, and whose a buffer or text is.

use super::Field;
use crate::sync::Bits;

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
    Group(u16),
}

word! {
    /// Names one writing of one text: every block of it carries this word. All zero is no text.
    TextRef
}

impl TextRef {
    const STAMP: Field = Field::lowest(34);
    const HEAD: Field = Field::above(TextRef::STAMP, 16);
    const INDEX: Field = Field::above(TextRef::HEAD, 12);
    const KIND: Field = Field::above(TextRef::INDEX, 2);

    pub(crate) const NONE: TextRef = TextRef(0);

    /// The stamp is cut to 34 bits and never 0, so that no text is [`TextRef::NONE`].
    pub(crate) fn new(of: TextOf, head: u16, stamp: u64) -> TextRef {
        let (kind, index) = match of {
            TextOf::Node(index) => (0, index),
            TextOf::Holder(index) => (1, index),
            TextOf::Group(index) => (2, index),
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
        match TextRef::KIND.get(self.0) {
            0 => TextOf::Node(index),
            1 => TextOf::Holder(index),
            _ => TextOf::Group(index),
        }
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
    /// Move the guard of this node unless it has ended: it may lose its readiness, or may no longer be done.
    Unready(u16),
    /// Evict this holder; if it holds something, the change is off.
    Evict(u16),
    /// Set this node's word to the version's target for it; if its generation has come that far otherwise, the change is off.
    Become(u16),
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
            Step::Evict(index) => (3, index),
            Step::Become(index) => (4, index),
        };
        ChangeWord(ChangeWord::KIND.put(kind) | ChangeWord::INDEX.put(u64::from(index)))
    }

    /// `None` for a kind that is never written.
    pub(crate) fn step(self) -> Option<Step> {
        let index = ChangeWord::INDEX.get(self.0) as u16;
        match ChangeWord::KIND.get(self.0) {
            1 => Some(Step::Touch(index)),
            2 => Some(Step::Unready(index)),
            3 => Some(Step::Evict(index)),
            4 => Some(Step::Become(index)),
            _ => None,
        }
    }
}

word! {
    /// How a node is tried again, the group it belongs to, and whether it names a surface.
    PolicyWord
}

impl PolicyWord {
    const DELAY: Field = Field::lowest(32);
    const MAX_ATTEMPTS: Field = Field::above(PolicyWord::DELAY, 16);
    const GROUP: Field = Field::above(PolicyWord::MAX_ATTEMPTS, 8);
    const GATED: Field = Field::above(PolicyWord::GROUP, 1);

    pub(crate) fn new(max_attempts: u16, retry_delay_ms: u32, group: u8) -> PolicyWord {
        PolicyWord(
            PolicyWord::DELAY.put(u64::from(retry_delay_ms))
                | PolicyWord::MAX_ATTEMPTS.put(u64::from(max_attempts))
                | PolicyWord::GROUP.put(u64::from(group)),
        )
    }

    /// The same for a node that names a surface, or for one that does not.
    pub(crate) fn gated(self, gated: bool) -> PolicyWord {
        PolicyWord(self.0 & !PolicyWord::GATED.put(1) | PolicyWord::GATED.put(u64::from(gated)))
    }

    /// Whether the node's text names a surface.
    #[inline]
    pub(crate) fn is_gated(self) -> bool {
        PolicyWord::GATED.get(self.0) != 0
    }

    /// 0: no limit.
    pub(crate) fn max_attempts(self) -> u16 {
        PolicyWord::MAX_ATTEMPTS.get(self.0) as u16
    }

    pub(crate) fn retry_delay_ms(self) -> u32 {
        PolicyWord::DELAY.get(self.0) as u32
    }

    /// 0: none.
    #[inline]
    pub(crate) fn group(self) -> u8 {
        PolicyWord::GROUP.get(self.0) as u8
    }
}

const _: () = {
    assert!(RootWord::NUMBER.end() == 64);
    assert!(OwnerWord::PID.end() == 64);
    assert!(TextRef::KIND.end() == 64);
};
