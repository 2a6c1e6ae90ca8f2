//! Claiming: a node goes from open to claimed, and a holder from idle to holding, in one swap that both can be read from.
//!
//! A holder's word names the node it may hold and at which generation; whether it does is read off the node's word:
//!
//! | the holder names `(n, g)`, and node `n` is | then the holder |
//! |---|---|
//! | claimed by it at `g` | holds `n` |
//! | open at `g - 1` | is about to: a claim is under way, or its process died on the way |
//! | anything else | is idle |
//!
//! So a claim first reserves in the holder's word, then swaps the node's word, and **that swap is the claim**. Ending a
//! claim in any way moves the node's word alone, and the holder is idle by that. A reservation that somebody left is
//! finished by whoever meets it, with the swap its maker would have made. A claim that is refused after it has reserved
//! moves the node two generations on, so that nobody makes it later. Each reservation has an epoch of its own in the
//! holder's word: of several calls under one name only the one whose reservation stands there says that it won.

use crate::error::Damaged;
use crate::sync::{Ordering, Shared};
use crate::table::group::Seat;
use crate::table::lease::Lease;
use crate::table::version::InForce;
use crate::table::{Core, Stop, TRIES};
use crate::word::{GENERATION_CLAIMABLE_MAX, HolderWord, NodeWord, TextRef};

/// A holder as a version knows it: its slot is its own as long as the version in force has this name there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) slot: u16,
    pub(crate) name: TextRef,
}

/// What a holder's word says when it is read through the node's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holding {
    Idle,
    UnderWay { node: u16, word: NodeWord },
    Holds { node: u16, generation: u64 },
}

/// How an attempt to claim went.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The node is the holder's, at this generation.
    Won { generation: u64 },
    /// The holder has another claim, or this one already.
    Busy { node: u16, generation: u64 },
    /// The node is claimed or has ended.
    NotOpen(NodeWord),
    /// The node is not at the wanted generation.
    OtherGeneration(NodeWord),
    /// A dependency does not let it go.
    NotReady,
    /// It was handed back and is left alone until this moment of the lease clock.
    NotBefore { until_ms: u64 },
    /// As many nodes of its group are claimed as may be at once.
    GroupFull,
    /// The version in force no longer has the holder's name: register it again.
    NameGone,
    /// The graph has changed: look again.
    Moved,
}

impl<'m> Core<'m> {
    /// Reads a holder's word through the node's.
    #[inline]
    pub(crate) fn judge(&self, holder: u16, word: HolderWord) -> Result<Holding, Damaged> {
        let (node, generation) = (word.node(), word.generation());
        if generation == 0 {
            return Ok(Holding::Idle);
        }
        let seen = self.node(node)?.word.load(Ordering::Acquire);
        Ok(if seen.generation() == generation && seen.holder() == Some(holder) {
            Holding::Holds { node, generation }
        } else if seen.is_open() && seen.generation() + 1 == generation {
            Holding::UnderWay { node, word: seen }
        } else {
            Holding::Idle
        })
    }

    /// What the holder holds at this moment.
    pub(crate) fn holding(&self, holder: u16) -> Result<Holding, Damaged> {
        self.judge(holder, self.holder(holder)?.word.load(Ordering::Acquire))
    }

    /// Claims `slot` for `who`, if it is open, ready and at the generation `wanted`.
    ///
    /// `seen` must be of a settled root. The words are read before the root is looked at again, so that everything that
    /// a later change does to them makes one of the two swaps fail.
    pub(crate) fn try_claim(
        &self,
        who: Who,
        slot: u16,
        wanted: Option<u64>,
        lease: Lease,
        seen: &InForce<'m>,
    ) -> Result<Attempt, Stop> {
        let holder = &self.holder(who.slot)?.word;
        let node = &self.node(slot)?.word;
        let mut seen = *seen;
        let mut mine = None;
        for _ in 0..TRIES {
            // Acquire: pairs with the swaps below and in `change`; what they were made from is visible.
            let reserved = holder.load(Ordering::Acquire);
            match self.judge(who.slot, reserved)? {
                // This call's own reservation, made into a claim by somebody who met it.
                Holding::Holds { generation, .. } if mine == Some(reserved) => {
                    self.start_lease(who.slot, slot, generation, lease)?;
                    return Ok(Attempt::Won { generation });
                }
                Holding::Holds { node, generation } => {
                    return Ok(self.name_refused(who, &seen).unwrap_or(Attempt::Busy { node, generation }));
                }
                Holding::UnderWay { node, word } if mine != Some(reserved) => {
                    match self.help_claim(who, node, word, lease, &seen)? {
                        Helped::Settled => continue,
                        Helped::Moved => return Ok(Attempt::Moved),
                        // Its swap can only fail, since the guard has moved: the reservation may be overwritten.
                        Helped::NotReady => {}
                    }
                }
                Holding::UnderWay { .. } | Holding::Idle => {}
            }
            let old = node.load(Ordering::Acquire);
            if let Some(refused) = self.refused(who, slot, old, wanted, lease, &seen)? {
                // A reservation of this call that is not followed up must not be made into a claim by somebody later.
                let left = mine == Some(reserved) && old.is_open() && old.generation() + 1 == reserved.generation();
                if left && refused == Attempt::Moved {
                    // The same node in the version that is in force now: goes on with what is reserved.
                    let now = self.settled()?;
                    if now.id(slot) == seen.id(slot) && !now.text(slot).is_none() && now.is_whole() {
                        seen = now;
                        continue;
                    }
                }
                if left && !self.void(slot, old)? {
                    continue;
                }
                return Ok(refused);
            }
            let generation = old.generation() + 1;
            let reserving = reserved.reserving(slot, generation);
            if holder.compare_exchange(reserved, reserving, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                continue;
            }
            mine = Some(reserving);
            if self.take_seat(who.slot, slot, old, lease, &seen)? != Seat::Taken {
                // Begins anew: `refused` finds out why, and the reservation is called off.
                continue;
            }
            self.expect_deadline(lease.deadline_ms())?;
            // Lost: the loop finds out whether somebody made this reservation into a claim.
            if swap_to_claimed(node, old, who.slot).is_ok() {
                self.start_lease(who.slot, slot, generation, lease)?;
                return Ok(Attempt::Won { generation });
            }
        }
        Err(Stop::Contended)
    }

    /// Whether the holder's slot is not its own any more, or the version not in force. Asked after the words were read:
    /// a name that is there under its old reference was there all the time.
    fn name_refused(&self, who: Who, seen: &InForce<'_>) -> Option<Attempt> {
        let is_there = seen.holder_name(who.slot) == who.name;
        if self.fixed.header.root.load(Ordering::Acquire) != seen.root || !seen.is_whole() {
            return Some(Attempt::Moved);
        }
        (!is_there).then_some(Attempt::NameGone)
    }

    /// What `who` holds, if its slot still is its own; `None` when it is not, or the version has changed.
    pub(crate) fn holding_of(&self, who: Who, seen: &InForce<'_>) -> Result<Option<Holding>, Damaged> {
        let holding = self.holding(who.slot)?;
        Ok(if self.name_refused(who, seen).is_none() { Some(holding) } else { None })
    }

    /// Moves an open node two generations on, so that no reservation of it can be followed up. False: it has moved.
    fn void(&self, slot: u16, old: NodeWord) -> Result<bool, Stop> {
        let new = old.voided().ok_or(Stop::Exhausted { slot, what: "generations" })?;
        // AcqRel: as every swap of a node's word.
        let word = &self.node(slot)?.word;
        let voided = word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if voided {
            let _ = self.hint(slot);
        }
        Ok(voided)
    }

    /// Why a node in this state cannot be claimed, if it cannot. The word was read before: the root is looked at first.
    fn refused(
        &self,
        who: Who,
        slot: u16,
        word: NodeWord,
        wanted: Option<u64>,
        lease: Lease,
        seen: &InForce<'_>,
    ) -> Result<Option<Attempt>, Stop> {
        if self.fixed.header.root.load(Ordering::Acquire) != seen.root {
            return Ok(Some(Attempt::Moved));
        }
        let refused = if seen.holder_name(who.slot) != who.name {
            Some(Attempt::NameGone)
        } else if wanted.is_some_and(|wanted| wanted != word.generation()) {
            Some(Attempt::OtherGeneration(word))
        } else if !word.is_open() {
            Some(Attempt::NotOpen(word))
        } else if word.generation() > GENERATION_CLAIMABLE_MAX {
            return Err(Stop::Exhausted { slot, what: "generations" });
        } else if seen.text(slot).is_none() || !self.all_satisfied(seen, slot)? {
            // A free slot is no node, whatever a stale hint says.
            Some(Attempt::NotReady)
        } else if let Some(until_ms) = self.node(slot)?.left_alone_until_ms(word).filter(|&t| lease.now_ms < t) {
            Some(Attempt::NotBefore { until_ms })
        } else if self.is_group_full(slot, seen)? {
            Some(Attempt::GroupFull)
        } else {
            None
        };
        // What was read from an overwritten buffer decides nothing.
        Ok(if seen.is_whole() { refused } else { Some(Attempt::Moved) })
    }

    /// Finishes a claim that somebody reserved and did not make yet, if the node is still ready.
    fn help_claim(
        &self,
        who: Who,
        node: u16,
        word: NodeWord,
        lease: Lease,
        seen: &InForce<'_>,
    ) -> Result<Helped, Stop> {
        if self.fixed.header.root.load(Ordering::Acquire) != seen.root {
            return Ok(Helped::Moved);
        }
        let known = !seen.text(node).is_none() && seen.holder_name(who.slot) == who.name;
        let ready = known && self.all_satisfied(seen, node)?;
        if !seen.is_whole() {
            return Ok(Helped::Moved);
        }
        if !ready {
            return Ok(Helped::NotReady);
        }
        match self.take_seat(who.slot, node, word, lease, seen)? {
            Seat::Taken => {}
            Seat::Moved => return Ok(Helped::Moved),
            // It is ready, so nothing has made its maker's swap fail: this does.
            Seat::Full => {
                self.void(node, word)?;
                return Ok(Helped::Settled);
            }
        }
        if swap_to_claimed(&self.node(node)?.word, word, who.slot).is_ok() {
            self.start_lease(who.slot, node, word.generation() + 1, lease)?;
        }
        Ok(Helped::Settled)
    }
}

/// What became of a reservation that somebody else left.
enum Helped {
    /// Made, called off, or moved on by somebody: judge again.
    Settled,
    /// The graph has changed.
    Moved,
    NotReady,
}

/// **The claim.** AcqRel: the Release pairs with every Acquire of a node's word, so that whoever sees the claim sees
/// the reservation that it was made under; the Acquire makes what the last holder left visible to the new one.
#[inline]
pub(crate) fn swap_to_claimed(node: &Shared<NodeWord>, old: NodeWord, holder: u16) -> Result<(), NodeWord> {
    node.compare_exchange(old, old.claimed_by(holder), Ordering::AcqRel, Ordering::Acquire).map(drop)
}
