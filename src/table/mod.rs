//! The transitions: every change of a shared word is one named function here with its compare-and-swap in it.
//!
//! Who may change what:
//! 1. `NodeSlot::word` — anyone, by the transitions of `claim`, `finish`, `lease` and the steps of `change`. Every one
//!    of them reads the word first, then the root (doing the change under way first, if there is one), then whatever it
//!    decides from, then swaps. So a swap that succeeds says that nothing it decided from had changed: what can take a
//!    node's readiness away moves the guard in its word before it takes effect.
//! 2. `HolderSlot::word` — a claim (reserve), and the step of a change that evicts the holder.
//! 3. `NodeSlot::lease` — the claim's holder (start, renew) and reclaimers (close); never from *closed* to running
//!    within one generation.
//! 4. A version buffer or text block — the one process whose mark is in `owner`; once published nobody, until it is
//!    no longer referred to.
//! 5. Hints — anyone, any time; nothing is decided from them but where to look first.

pub(crate) mod change;
pub(crate) mod claim;
pub(crate) mod cut;
pub(crate) mod finish;
pub(crate) mod group;
pub(crate) mod hints;
pub(crate) mod lease;
pub(crate) mod next;
pub(crate) mod retry;
pub(crate) mod text;
pub(crate) mod version;
pub(crate) mod wait;

use crate::error::Damaged;
use crate::layout::{Fixed, HolderSlot, NodeSlot, Version};
use crate::word::OwnerWord;

/// How often a transition starts over before it gives up. Each time means that somebody else's transition succeeded, so
/// on a sound table this is never reached; on a hostile one it is what ends the loop.
pub(crate) const TRIES: u32 = 1 << 20;

/// A table to work on: the mapping, or a few boxed slots in a model.
#[derive(Clone, Copy)]
pub(crate) struct Core<'m> {
    pub(crate) fixed: &'m Fixed,
    #[cfg(not(tenure_loom))]
    pub(crate) region: &'m crate::region::Region,
    #[cfg(tenure_loom)]
    pub(crate) versions: &'m [Version],
    /// The mark that this process puts on buffers it writes into.
    #[cfg(tenure_loom)]
    pub(crate) me: OwnerWord,
}

impl<'m> Core<'m> {
    #[inline]
    pub(crate) fn node(&self, slot: u16) -> Result<&'m NodeSlot, Damaged> {
        self.fixed.nodes.get(usize::from(slot)).ok_or(Damaged { what: "a node number past the last slot" })
    }

    #[inline]
    pub(crate) fn holder(&self, slot: u16) -> Result<&'m HolderSlot, Damaged> {
        self.fixed.holders.get(usize::from(slot)).ok_or(Damaged { what: "a holder number past the last slot" })
    }

    #[cfg(not(tenure_loom))]
    #[inline]
    pub(crate) fn version(&self, i: u8) -> Result<&'m Version, Damaged> {
        self.region.version(i)
    }

    #[cfg(tenure_loom)]
    pub(crate) fn version(&self, i: u8) -> Result<&'m Version, Damaged> {
        self.versions.get(usize::from(i)).ok_or(Damaged { what: "a version buffer past the last" })
    }

    /// The mark that this process puts on what it writes into. Asked for when it is needed: most verbs write into nothing
    /// but words, and asking the kernel costs as much as ten claims.
    #[cfg(not(tenure_loom))]
    pub(crate) fn me(&self) -> Result<OwnerWord, Damaged> {
        self.region.me().ok_or(Damaged { what: "when this process started is not to be read in /proc" })
    }

    #[cfg(tenure_loom)]
    pub(crate) fn me(&self) -> Result<OwnerWord, Damaged> {
        Ok(self.me)
    }

    /// Lease of claims that name none, in milliseconds.
    pub(crate) fn default_lease_ms(&self) -> u64 {
        let lease = self.fixed.header.lease_ms.load(crate::sync::Ordering::Relaxed);
        lease.clamp(1, crate::word::LEASE_MS_MAX)
    }
}

/// Why a transition did not happen, for the verbs to put into words.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The mapping holds a value that cannot be.
    Damaged(Damaged),
    /// It started over [`TRIES`] times.
    Contended,
    /// No room for this many more of something.
    NoRoom { what: &'static str, limit: u64 },
    /// A counter of this node is at its end.
    Exhausted { slot: u16, what: &'static str },
}

impl From<Damaged> for Stop {
    fn from(damaged: Damaged) -> Stop {
        Stop::Damaged(damaged)
    }
}
