//! The words of a claim: a node's state, and what a holder may hold.

use super::{Field, OwnerWord};
use crate::node::{Outcome, Status};
use crate::sync::Bits;

/// Bits of a generation, wherever one is stored whole.
pub(super) const GENERATION_BITS: u32 = 36;

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

/// What the statuses from 2 on mean: the three ends, then the same three archived.
pub(super) const ENDED: [(Outcome, bool); 6] = [
    (Outcome::Done, false),
    (Outcome::Failed, false),
    (Outcome::Cancelled, false),
    (Outcome::Done, true),
    (Outcome::Failed, true),
    (Outcome::Cancelled, true),
];

impl NodeWord {
    const STATUS: Field = Field::lowest(3);
    const HOLDER: Field = Field::above(NodeWord::STATUS, 12);
    const GUARD: Field = Field::above(NodeWord::HOLDER, 13);
    const GENERATION: Field = Field::above(NodeWord::GUARD, GENERATION_BITS);
    /// Whether an open node was handed back to be left alone for a while.
    const DELAYED: Field = Field::above(NodeWord::STATUS, 1);
    /// The guard of an open node takes the rest of the holder's bits as well, which it does not need.
    const OPEN_GUARD: Field = Field::above(NodeWord::DELAYED, 24);
    /// Where an ended node keeps its text: the bits of holder and guard, which it no longer needs.
    const TEXT: Field = Field::above(NodeWord::STATUS, 25);

    const OPEN: u64 = 0;
    const CLAIMED: u64 = 1;

    /// What no node's word is ever set to: only a slot that was never used has it.
    pub(crate) const NEVER: NodeWord = NodeWord(0);

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
                let (outcome, archived) = ENDED[(ended - 2) as usize % 6];
                let text = NodeWord::TEXT.get(self.0).checked_sub(1).and_then(|head| u16::try_from(head).ok());
                Phase::Ended { outcome, archived, text }
            }
        };
        State { generation: self.generation(), phase }
    }

    /// Whether some transition makes this word. Of an ended one the number of the text may be none that exists.
    pub(crate) fn is_one_that_is_written(self) -> bool {
        !self.is_ended() || NodeWord::new(self.state()).0 == self.0
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

    /// The same open node, to be left alone for a while. It is said here and not only beside the word: whoever notes how long
    /// may lose against a release, which asks for no delay.
    pub(crate) fn delayed(self) -> NodeWord {
        NodeWord(self.0 | NodeWord::DELAYED.put(u64::from(self.is_open())))
    }

    #[inline]
    pub(crate) fn is_delayed(self) -> bool {
        self.is_open() && NodeWord::DELAYED.get(self.0) != 0
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
    /// The guard of an open node carries into the generation, so the pair never repeats; by two, since attempts are
    /// counted as pairs of a claim and its end, so 16,777,216 moves without a claim among them count as one attempt. The
    /// generation of a claimed node is somebody's fence and may not move: `None` when its guard is used up. An ended node
    /// has no guard.
    pub(crate) fn bumped(self) -> Option<NodeWord> {
        let guard = match NodeWord::STATUS.get(self.0) {
            NodeWord::OPEN => NodeWord::OPEN_GUARD,
            NodeWord::CLAIMED => NodeWord::GUARD,
            _ => return None,
        };
        if guard.get(self.0) < guard.max() {
            return Some(NodeWord(self.0 + (1 << guard.shift)));
        }
        let carries = self.is_open() && self.generation() < GENERATION_CLAIMABLE_MAX;
        carries.then(|| NodeWord::new(State { generation: self.generation() + 2, phase: Phase::Open }))
    }

    /// How many claims there were since the generation was `base`, the one that stands included.
    ///
    /// From there on a node only moves by claims and their ends, one generation each, and by twos; see `bumped`. Once it has
    /// ended, also when it is archived or shown again; see `EndWord::moves_to`.
    pub(crate) fn attempts_since(self, base: u64) -> u64 {
        (self.generation() + 1).saturating_sub(base) / 2
    }
}

word! {
    /// What a holder may hold, to be read through the node's word.
    HolderWord
}

impl HolderWord {
    const CALLED_OFF: Field = Field::lowest(1);
    const EPOCH: Field = Field::above(HolderWord::CALLED_OFF, 15);
    const GENERATION: Field = Field::above(HolderWord::EPOCH, GENERATION_BITS);
    const NODE: Field = Field::above(HolderWord::GENERATION, 12);

    pub(crate) fn node(self) -> u16 {
        HolderWord::NODE.get(self.0) as u16
    }

    pub(crate) fn generation(self) -> u64 {
        HolderWord::GENERATION.get(self.0)
    }

    /// Reserved for `node` at `generation`, in the next epoch: so the word names this one reservation, also when another
    /// of the same pair takes its place. An epoch wraps after 32,768 reservations of one holder.
    #[inline]
    pub(crate) fn reserving(self, node: u16, generation: u64) -> HolderWord {
        HolderWord(
            HolderWord::NODE.put(u64::from(node))
                | HolderWord::GENERATION.put(generation)
                | HolderWord::EPOCH.put(HolderWord::EPOCH.get(self.0) + 1),
        )
    }

    /// Nobody begins to make this reservation into a claim any more.
    pub(crate) fn called_off(self) -> HolderWord {
        HolderWord(self.0 | HolderWord::CALLED_OFF.put(1))
    }

    #[inline]
    pub(crate) fn is_called_off(self) -> bool {
        HolderWord::CALLED_OFF.get(self.0) != 0
    }

    /// Whether the two are one reservation, called off or not.
    #[inline]
    pub(crate) fn is_same_as(self, other: HolderWord) -> bool {
        self.called_off() == other.called_off()
    }

    /// Evicted: names nothing, in the next epoch.
    pub(crate) fn evicted(self) -> HolderWord {
        HolderWord(HolderWord::EPOCH.put(HolderWord::EPOCH.get(self.0) + 1))
    }
}

const _: () = {
    assert!(NodeWord::GENERATION.end() == 64);
    assert!(
        NodeWord::TEXT.end() == NodeWord::GENERATION.shift,
        "an ended node's text fills the bits below its generation"
    );
    assert!(NodeWord::OPEN_GUARD.end() == NodeWord::GENERATION.shift, "and so does an open node's guard");
    assert!(GENERATION_MAX == NodeWord::GENERATION.max());
    assert!(HolderWord::NODE.end() == 64);
};

word! {
    /// The process that a claim stands and falls with, under the claim's generation.
    ProcessWord
}

impl ProcessWord {
    const START: Field = Field::lowest(16);
    const PID: Field = Field::above(ProcessWord::START, 22);
    const TAG: Field = Field::above(ProcessWord::PID, 26);

    /// The start time is cut to 16 bits: of 65,536 processes that get the pid of a dead one, one is taken for it, and
    /// then the lease decides alone.
    pub(crate) fn new(generation: u64, process: OwnerWord) -> ProcessWord {
        ProcessWord(
            ProcessWord::TAG.put(generation)
                | ProcessWord::PID.put(u64::from(process.pid()))
                | ProcessWord::START.put(process.start()),
        )
    }

    pub(crate) fn is_of(self, generation: u64) -> bool {
        ProcessWord::TAG.get(self.0) == generation & ProcessWord::TAG.max() && self.pid() != 0
    }

    pub(crate) fn pid(self) -> u32 {
        ProcessWord::PID.get(self.0) as u32
    }

    /// Whether a process with this start time may be the one.
    pub(crate) fn started_at(self, start: u64) -> bool {
        ProcessWord::START.get(self.0) == start & ProcessWord::START.max()
    }
}

word! {
    /// The latest claim in a group, or the one on its way; see `table::group`.
    GroupWord
}

impl GroupWord {
    const TAG: Field = Field::lowest(24);
    const NODE: Field = Field::above(GroupWord::TAG, 12);
    const HOLDER: Field = Field::above(GroupWord::NODE, 12);
    const EPOCH: Field = Field::above(GroupWord::HOLDER, 16);

    /// Names the claim that `holder` has reserved: this one reservation, and no other of the same pair.
    pub(crate) fn naming(holder: u16, reserved: HolderWord) -> GroupWord {
        GroupWord(
            GroupWord::EPOCH.put(HolderWord::EPOCH.get(reserved.0))
                | GroupWord::HOLDER.put(u64::from(holder))
                | GroupWord::NODE.put(u64::from(reserved.node()))
                | GroupWord::TAG.put(reserved.generation()),
        )
    }

    /// The holder whose claim it names; 0: it names none.
    pub(crate) fn holder(self) -> u16 {
        GroupWord::HOLDER.get(self.0) as u16
    }
}

const _: () = assert!(ProcessWord::TAG.end() == 64 && GroupWord::EPOCH.end() == 64);
