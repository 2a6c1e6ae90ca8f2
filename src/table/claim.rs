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
//! claim in any way moves the node's word alone, and the holder is idle by that. Each reservation has an epoch of its own:
//! of several calls under one name only the one whose reservation stands there says that it won.
//!
//! A reservation that somebody left is finished by whoever meets it, with the swap its maker would have made, or it is
//! *called off*: marked so in the holder's word, then the node's guard is moved, then the holder's word is cleared, each
//! step by anybody. Whoever makes a claim that another reserved reads the node's word first and then looks whether the
//! reservation stands unmarked. So what it read is older than the mark, and its swap fails once the guard has moved; if
//! the swap was faster than that, the claim stands and there is nothing to call off. A reservation is never overwritten
//! while the node's word says that it may still be made.

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
                Holding::Holds { generation, .. } if mine.is_some_and(|mine| reserved.is_same_as(mine)) => {
                    self.start_lease(who.slot, slot, generation, lease)?;
                    return Ok(Attempt::Won { generation });
                }
                Holding::Holds { node, generation } => {
                    return Ok(self.name_refused(who, &seen).unwrap_or(Attempt::Busy { node, generation }));
                }
                Holding::UnderWay { node, word } if mine != Some(reserved) => {
                    match self.help_claim(who, reserved, node, word, lease, &seen)? {
                        Helped::Settled => continue,
                        Helped::Moved => return Ok(Attempt::Moved),
                    }
                }
                Holding::UnderWay { .. } | Holding::Idle => {}
            }
            let old = node.load(Ordering::Acquire);
            if mine == Some(reserved) && old.holder() == Some(who.slot) && old.generation() == reserved.generation() {
                // Made into a claim since the holder's word was judged.
                continue;
            }
            if let Some(refused) = self.refused(who, slot, old, wanted, lease, &seen)? {
                // Refused for what the node is while the holder was what it was judged to be, and not what it has become.
                if holder.load(Ordering::Acquire) != reserved {
                    continue;
                }
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
                if left {
                    // Made meanwhile, or called off: in the next turn it is neither.
                    self.call_off(who.slot, reserved)?;
                    if self.judge(who.slot, holder.load(Ordering::Acquire))? != Holding::Idle {
                        continue;
                    }
                }
                return Ok(refused);
            }
            let generation = old.generation() + 1;
            // What this call has reserved stays reserved: another reservation of the same claim would have to be seated anew,
            // and whoever makes the first one could still do so.
            let stands = mine == Some(reserved) && (reserved.node(), reserved.generation()) == (slot, generation);
            let reserving = if stands { reserved } else { reserved.reserving(slot, generation) };
            if !stands && holder.compare_exchange(reserved, reserving, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                continue;
            }
            mine = Some(reserving);
            if self.take_seat(who.slot, reserving, lease, &seen)? != Seat::Taken {
                // Begins anew: `refused` finds out why, and the reservation is called off.
                continue;
            }
            self.expect_deadline(lease.deadline_ms())?;
            // Reserved after the node's word was read, nobody has called it off since with that word; otherwise look.
            let made = match stands {
                false => swap_to_claimed(node, old, who.slot).is_ok(),
                true => self.make_reserved(who.slot, reserving, old)?,
            };
            // Lost: the loop finds out whether somebody made this reservation into a claim.
            if made {
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

    /// Calls a reservation off, unless it is made first: afterwards the holder's word is clear of it, or has changed.
    #[cold]
    pub(crate) fn call_off(&self, holder: u16, reserved: HolderWord) -> Result<(), Stop> {
        let slot = reserved.node();
        let (holder, node) = (&self.holder(holder)?.word, &self.node(slot)?.word);
        let marked = reserved.called_off();
        // AcqRel, and before the node's word is read: a maker that has not seen the mark read the node's word before this.
        if !reserved.is_called_off()
            && holder.compare_exchange(reserved, marked, Ordering::AcqRel, Ordering::Acquire).is_err()
        {
            return Ok(());
        }
        for _ in 0..TRIES {
            let old = node.load(Ordering::Acquire);
            if !(old.is_open() && old.generation() + 1 == reserved.generation()) {
                // Made, or the node has gone on; either way the word names what it should.
                return Ok(());
            }
            let new = old.bumped().ok_or(Stop::Exhausted { slot, what: "generations" })?;
            // AcqRel: as every swap of a node's word. Pairs with the swap of whoever still wants to make the claim.
            if node.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                // Lost: somebody else has cleared it.
                let _ = holder.compare_exchange(marked, marked.evicted(), Ordering::AcqRel, Ordering::Relaxed);
                let _ = self.hint(slot);
                return Ok(());
            }
        }
        Err(Stop::Contended)
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
            // The seats were counted after the word was read: by now the node itself may have one of them.
            let stands = self.node(slot)?.word.load(Ordering::Acquire) == word;
            Some(if stands { Attempt::GroupFull } else { Attempt::Moved })
        } else {
            None
        };
        // What was read from an overwritten buffer decides nothing.
        Ok(if seen.is_whole() { refused } else { Some(Attempt::Moved) })
    }

    /// Finishes a claim that somebody reserved and did not make yet, or calls it off if the node is not ready any more.
    #[cold]
    fn help_claim(
        &self,
        who: Who,
        reserved: HolderWord,
        node: u16,
        word: NodeWord,
        lease: Lease,
        seen: &InForce<'_>,
    ) -> Result<Helped, Stop> {
        if self.fixed.header.root.load(Ordering::Acquire) != seen.root {
            return Ok(Helped::Moved);
        }
        let known = !seen.text(node).is_none() && seen.holder_name(who.slot) == who.name;
        let ready = known && !reserved.is_called_off() && self.all_satisfied(seen, node)?;
        if !seen.is_whole() {
            return Ok(Helped::Moved);
        }
        let seat = if ready { self.take_seat(who.slot, reserved, lease, seen)? } else { Seat::Full };
        match seat {
            Seat::Moved => return Ok(Helped::Moved),
            Seat::Full => self.call_off(who.slot, reserved)?,
            Seat::Taken => {
                if self.make_reserved(who.slot, reserved, word)? {
                    self.start_lease(who.slot, node, word.generation() + 1, lease)?;
                }
            }
        }
        Ok(Helped::Settled)
    }

    /// Makes a claim that another call reserved, from the node's word that was read before. False: it was called off, made
    /// by somebody else, or the node has changed.
    pub(crate) fn make_reserved(&self, holder: u16, reserved: HolderWord, word: NodeWord) -> Result<bool, Stop> {
        // Acquire, and after the node's word was read: see `call_off`.
        let stands = self.holder(holder)?.word.load(Ordering::Acquire) == reserved && !reserved.is_called_off();
        Ok(stands && swap_to_claimed(&self.node(reserved.node())?.word, word, holder).is_ok())
    }
}

/// What became of a reservation that somebody else left.
enum Helped {
    /// Made, called off, or moved on by somebody: judge again.
    Settled,
    /// The graph has changed.
    Moved,
}

/// **The claim.** AcqRel: the Release pairs with every Acquire of a node's word, so that whoever sees the claim sees
/// the reservation that it was made under; the Acquire makes what the last holder left visible to the new one.
#[inline]
pub(crate) fn swap_to_claimed(node: &Shared<NodeWord>, old: NodeWord, holder: u16) -> Result<(), NodeWord> {
    node.compare_exchange(old, old.claimed_by(holder), Ordering::AcqRel, Ordering::Acquire).map(drop)
}
