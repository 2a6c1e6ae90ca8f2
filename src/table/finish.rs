//! The ways out of a claim or an open node that its own word alone decides: complete, release, archive, unarchive.
//!
//! | verb | from | to | generation |
//! |---|---|---|---|
//! | complete | open, claimed | done, failed, cancelled | stays |
//! | release | claimed | open | moves |
//! | archive, unarchive | done, failed, cancelled | the same, hidden or shown | moves |

use crate::clock;
use crate::node::Outcome;
use crate::sync::Ordering;
use crate::table::claim::Who;
use crate::table::retry::After;
use crate::table::version::InForce;
use crate::table::{Core, Stop, TRIES};
use crate::word::{EndWord, NodeWord, Phase};

/// Who wants to end or hand back a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// It did not say.
    Anyone,
    /// This holder, if its name still is in its slot.
    Holder(Who),
    /// A name that no holder has.
    Stranger,
    /// Whoever it is, it takes the node from its holder.
    Force,
}

/// How an attempt to end a node went.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It has ended. `out_of_order`: before its dependencies, so the chains above it have become shorter.
    Ended { out_of_order: bool },
    /// It failed after so many attempts, and is open again for another.
    ToRetry { word: NodeWord, attempts: u64 },
    /// It had ended this way already.
    Already,
    /// It had ended another way.
    OtherWay(NodeWord),
    /// It is not at the wanted generation.
    OtherGeneration(NodeWord),
    /// The caller does not hold it.
    NotHolder(NodeWord),
    /// A dependency is not done.
    NotReady(NodeWord),
    /// The graph has changed: look again.
    Moved,
}

/// How an attempt to hand back, archive or unarchive a node went.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Back {
    /// From this word to that one.
    Went { from: NodeWord, to: NodeWord },
    /// It is not at the wanted generation.
    OtherGeneration(NodeWord),
    /// Not held, or not by the caller; or, to be archived, not ended.
    Refused(NodeWord),
    /// The graph has changed: look again.
    Moved,
}

impl Core<'_> {
    /// Ends `slot`. `text` is the head of the record that takes the place of the node's record with the same swap.
    pub(crate) fn try_end(
        &self,
        slot: u16,
        outcome: Outcome,
        by: By,
        wanted: Option<u64>,
        text: Option<u16>,
        seen: &InForce<'_>,
    ) -> Result<End, Stop> {
        let node = self.node(slot)?;
        for _ in 0..TRIES {
            // Before the word: a time that was noted for a later end is not overwritten.
            let noted = node.end.load(Ordering::Acquire);
            let old = node.word.load(Ordering::Acquire);
            if self.fixed.header.root.load(Ordering::Acquire) != seen.root {
                return Ok(End::Moved);
            }
            if wanted.is_some_and(|wanted| wanted != old.generation()) {
                return Ok(End::OtherGeneration(old));
            }
            match (old.state().phase, by) {
                (Phase::Ended { outcome: already, .. }, _) if already == outcome => return Ok(End::Already),
                (Phase::Ended { .. }, _) => return Ok(End::OtherWay(old)),
                (Phase::Claimed { holder }, By::Holder(me)) if holder == me.slot && seen.knows(me) => {}
                // The right generation of a held node is known to its holder alone.
                (Phase::Claimed { .. }, By::Anyone) if wanted.is_some() => {}
                (Phase::Open, By::Anyone) => {}
                (_, By::Force) => {}
                _ => return Ok(End::NotHolder(old)),
            }
            let in_order = self.all_satisfied(seen, slot)?;
            let fails = outcome == Outcome::Failed && old.holder().is_some() && seen.policy(slot).max_attempts() > 0;
            let after = if fails { Some((seen.after_attempt(slot, old), seen.attempts(slot, old))) } else { None };
            let matters = outcome != Outcome::Done && self.failure_matters(seen, slot);
            if !seen.is_whole() {
                return Ok(End::Moved);
            }
            if outcome == Outcome::Done && !in_order {
                return Ok(End::NotReady(old));
            }
            if let Some((again @ After::Again { .. }, attempts)) = after {
                match self.hand_back(slot, old, again, seen)? {
                    Some(word) => return Ok(End::ToRetry { word, attempts }),
                    None => continue,
                }
            }
            // Before the swap, so that an ended node always has a time; nobody looks at it until the swap.
            let ends = EndWord::new(old.generation(), clock::lease_now_coarse_ms());
            if node.end.compare_exchange(noted, ends, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                continue;
            }
            // SeqCst: one order of all ends, see `hints`. Its Release pairs with every Acquire of a node's word: whoever
            // sees the end sees the text and the time, and what the worker did.
            let swap = node.word.compare_exchange(old, old.ended(outcome, text), Ordering::SeqCst, Ordering::Relaxed);
            if swap.is_ok() {
                // It has ended whatever comes of this: hints are found again.
                let _ = self.announce(slot, seen);
                if matters {
                    // Others may be skipped now, and those behind them satisfied: more than the neighbours.
                    let _ = self.refresh_hints();
                }
                self.ring_group(slot, seen);
                return Ok(End::Ended { out_of_order: !in_order || matters });
            }
        }
        Err(Stop::Contended)
    }

    /// Hands back the claim of `slot`: open again, the generation moved.
    pub(crate) fn release(&self, slot: u16, by: By, wanted: Option<u64>, seen: &InForce<'_>) -> Result<Back, Stop> {
        let node = self.node(slot)?;
        for _ in 0..TRIES {
            let old = node.word.load(Ordering::Acquire);
            if self.fixed.header.root.load(Ordering::Acquire) != seen.root {
                return Ok(Back::Moved);
            }
            if wanted.is_some_and(|wanted| wanted != old.generation()) {
                return Ok(Back::OtherGeneration(old));
            }
            match (old.holder(), by) {
                (Some(holder), By::Holder(me)) if holder == me.slot && seen.knows(me) => {}
                (Some(_), By::Force) => {}
                _ => return Ok(Back::Refused(old)),
            }
            // On purpose, so at once: no delay.
            if let Some(new) = self.hand_back(slot, old, After::Again { delay_ms: 0 }, seen)? {
                return Ok(Back::Went { from: old, to: new });
            }
        }
        Err(Stop::Contended)
    }

    /// A claim is over without success: the node is open again, or has failed when that was its last attempt. `None`: its
    /// word has changed since it was `old`.
    pub(crate) fn hand_back(
        &self,
        slot: u16,
        old: NodeWord,
        after: After,
        seen: &InForce<'_>,
    ) -> Result<Option<NodeWord>, Stop> {
        let new = self.word_after(slot, old, after, clock::lease_now_coarse_ms())?;
        let Some(new) = new else { return Err(Stop::Exhausted { slot, what: "generations" }) };
        let word = &self.node(slot)?.word;
        // SeqCst: see `hints`. Its Release lets the next holder see what this one left.
        if word.compare_exchange(old, new, Ordering::SeqCst, Ordering::Relaxed).is_err() {
            return Ok(None);
        }
        match after {
            // It is handed back whatever comes of this: hints are found again.
            After::Again { .. } => drop(self.hint(slot)),
            After::Failed => {
                let _ = self.announce(slot, seen);
                if self.failure_matters(seen, slot) {
                    let _ = self.refresh_hints();
                }
            }
        }
        self.ring_group(slot, seen);
        Ok(Some(new))
    }

    /// Hides or shows an ended node. Already so: from and to are the same word.
    pub(crate) fn archive(&self, slot: u16, hide: bool, seen: &InForce<'_>) -> Result<Back, Stop> {
        let node = self.node(slot)?;
        for _ in 0..TRIES {
            let old = node.word.load(Ordering::Acquire);
            if self.fixed.header.root.load(Ordering::Acquire) != seen.root {
                return Ok(Back::Moved);
            }
            let Phase::Ended { archived, .. } = old.state().phase else { return Ok(Back::Refused(old)) };
            if archived == hide {
                return Ok(Back::Went { from: old, to: old });
            }
            let Some(new) = old.archived(hide) else { return Err(Stop::Exhausted { slot, what: "generations" }) };
            // AcqRel: as every swap of a node's word.
            if node.word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return Ok(Back::Went { from: old, to: new });
            }
        }
        Err(Stop::Contended)
    }
}
