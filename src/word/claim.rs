//! The words of a claim: a node's state, and what a holder may hold.

use super::Field;
use crate::node::{Outcome, Status};
use crate::sync::Bits;

/// Bits of a generation, wherever one is stored whole.
pub(super) const GENERATION_BITS: u32 = 38;

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
    const GUARD: Field = Field::above(NodeWord::HOLDER, 11);
    const GENERATION: Field = Field::above(NodeWord::GUARD, GENERATION_BITS);
    /// Where an ended node keeps its text: the bits of holder and guard, which it no longer needs.
    const TEXT: Field = Field::above(NodeWord::STATUS, 23);

    const OPEN: u64 = 0;
    const CLAIMED: u64 = 1;

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

const _: () = {
    assert!(NodeWord::GENERATION.end() == 64);
    assert!(
        NodeWord::TEXT.end() == NodeWord::GENERATION.shift,
        "an ended node's text fills the bits below its generation"
    );
    assert!(GENERATION_MAX == NodeWord::GENERATION.max());
    assert!(HolderWord::NODE.end() == 64);
};
