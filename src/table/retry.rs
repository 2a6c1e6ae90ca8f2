//! Attempts that were lost or failed: tried again after a while, or the last one.
//!
//! Attempts are not counted anywhere: a node's generation moves by one with each claim and by one with each end of a claim,
//! so their number follows from the generation that the node had when it was made or reopened.

use crate::layout::NodeSlot;
use crate::node::Outcome;
use crate::sync::{Ordering, Shared};
use crate::table::version::InForce;
use crate::table::{Core, Stop, TRIES};
use crate::word::{EndWord, NodeWord};

/// The longest time that a node is left alone after an attempt: an hour.
pub(crate) const RETRY_DELAY_MS_MAX: u64 = 3_600_000;

/// What becomes of a node whose attempt was lost or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// It is open again, but left alone for so long.
    Again { delay_ms: u64 },
    /// That was the last one: it has failed.
    Failed,
}

impl NodeSlot {
    /// Until when an open node is left alone, if it was handed back with a delay.
    #[inline]
    pub(crate) fn left_alone_until_ms(&self, word: NodeWord) -> Option<u64> {
        if !word.is_delayed() {
            return None;
        }
        let until = self.not_before.load(Ordering::Acquire);
        (until.is_of(word.generation()) && until.time_ms() > 0).then_some(until.time_ms())
    }

    /// Notes a time for what becomes of the claim in `old`, in `noted`, which is this slot's; not if that claim is over.
    ///
    /// What is noted already is read before the word. So whoever was stopped in between and goes on much later takes nothing
    /// from a later claim: that one's note is another value. It may have been faster, and then the later one notes again.
    fn note(&self, noted: &Shared<EndWord>, old: NodeWord, new: EndWord) {
        for _ in 0..TRIES {
            let before = noted.load(Ordering::Acquire);
            // AcqRel: pairs with the Acquire of the same note, here and in `try_end`.
            if self.word.load(Ordering::Acquire) != old
                || noted.compare_exchange(before, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            {
                return;
            }
        }
    }
}

impl InForce<'_> {
    /// What becomes of `slot` if the attempt that `word` says is under way is lost, or fails.
    pub(crate) fn after_attempt(&self, slot: u16, word: NodeWord) -> After {
        let policy = self.policy(slot);
        let attempt = self.attempts(slot, word);
        if policy.max_attempts() > 0 && attempt >= u64::from(policy.max_attempts()) {
            return After::Failed;
        }
        let doublings = attempt.saturating_sub(1).min(32) as u32;
        let delay_ms = u64::from(policy.retry_delay_ms()).saturating_mul(1 << doublings).min(RETRY_DELAY_MS_MAX);
        After::Again { delay_ms }
    }
}

impl Core<'_> {
    /// The word that a claimed node goes to when its attempt is over without success; `None` at the last generation.
    ///
    /// The time of the end, or the delay, is noted before the swap that it is about, under the generation that the swap leads
    /// to, and the word says that there is a delay. What is noted for an attempt that a release ended meanwhile nobody heeds.
    pub(crate) fn word_after(
        &self,
        slot: u16,
        old: NodeWord,
        after: After,
        now_ms: u64,
    ) -> Result<Option<NodeWord>, Stop> {
        let node = self.node(slot)?;
        let delay_ms = match after {
            After::Failed => {
                node.note(&node.end, old, EndWord::new(old.generation(), now_ms));
                return Ok(Some(old.ended(Outcome::Failed, None)));
            }
            After::Again { delay_ms } => delay_ms,
        };
        if delay_ms > 0 {
            let until_ms = now_ms.saturating_add(delay_ms);
            node.note(&node.not_before, old, EndWord::new(old.generation() + 1, until_ms));
            self.expect_deadline(until_ms)?;
        }
        Ok(old.opened().map(|open| if delay_ms > 0 { open.delayed() } else { open }))
    }
}
