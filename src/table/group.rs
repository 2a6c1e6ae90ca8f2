//! Groups: at most so many nodes of a group are claimed at once, exactly, under any race.
//!
//! How many are is counted from the nodes' words whenever it matters and stored nowhere. So that two claims do not both
//! count the same free seat, claims of one group go one behind the other: each names itself in the group's word before it
//! swaps the node's, and whoever meets a name whose claim is not made yet makes it first, or finds that it cannot be made
//! any more. Nobody waits for the one who began.
//!
//! | the group's word names holder `h`'s reservation of `n` at `g`, and | then that claim |
//! |---|---|
//! | `h`'s word still is that reservation, node `n` is open at `g - 1` and ready | is on its way: make it |
//! | the same, but `n` is not ready, or has gone to another group, or the reservation is being called off, see `claim` | may still be made: call it off first |
//! | anything else | is made, or can only fail |
//!
//! It names the *reservation*, with its epoch: whoever has found that one can only fail swaps the group's word without
//! looking again, so a later reservation of the same node at the same generation must not go by the old name.

use crate::error::Damaged;
use crate::layout::GroupSlot;
use crate::sync::Ordering;
use crate::table::lease::Lease;
use crate::table::version::InForce;
use crate::table::{Core, Stop, TRIES};
use crate::word::{GroupWord, HolderWord};

/// Whether a claim may go on to its node's word.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seat {
    /// The node has no group, or the group's word names this claim.
    Taken,
    /// As many nodes of the group are claimed as may be.
    Full,
    /// The graph has changed.
    Moved,
}

impl Core<'_> {
    fn group(&self, group: u8) -> Result<&GroupSlot, Damaged> {
        self.fixed.groups.get(usize::from(group)).ok_or(Damaged { what: "a group number past the last" })
    }

    /// Names a claim that `holder` has reserved in its node's group's word, if there is a seat.
    #[inline]
    pub(crate) fn take_seat(
        &self,
        holder: u16,
        reserved: HolderWord,
        lease: Lease,
        seen: &InForce<'_>,
    ) -> Result<Seat, Stop> {
        match seen.policy(reserved.node()).group() {
            0 => Ok(Seat::Taken),
            group => self.take_seat_of(group, holder, reserved, lease, seen),
        }
    }

    #[cold]
    fn take_seat_of(
        &self,
        group: u8,
        holder: u16,
        reserved: HolderWord,
        lease: Lease,
        seen: &InForce<'_>,
    ) -> Result<Seat, Stop> {
        let slot = reserved.node();
        let word = &self.group(group)?.word;
        let mine = GroupWord::naming(holder, reserved);
        for _ in 0..TRIES {
            // Acquire: pairs with the swap below; the reservation it was made under is visible.
            let named = word.load(Ordering::Acquire);
            if named == mine {
                return Ok(Seat::Taken);
            }
            if named.holder() != 0 && self.make_named(group, named, lease, seen)? {
                continue;
            }
            let full = self.is_group_full(slot, seen)?;
            if self.fixed.header.root.load(Ordering::Acquire) != seen.root || !seen.is_whole() {
                return Ok(Seat::Moved);
            }
            if full {
                return Ok(Seat::Full);
            }
            // From the word that was read before counting: a claim that was made since has changed it.
            if word.compare_exchange(named, mine, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return Ok(Seat::Taken);
            }
        }
        Err(Stop::Contended)
    }

    /// Makes the claim that a group's word names, or calls it off. False: it is made, can only fail, or the graph has
    /// changed, for which the caller looks before it decides anything.
    fn make_named(&self, group: u8, named: GroupWord, lease: Lease, seen: &InForce<'_>) -> Result<bool, Stop> {
        let holder = named.holder();
        // Acquire: a reservation that is not there any more was called off after its node's guard had moved.
        let reserved = self.holder(holder)?.word.load(Ordering::Acquire);
        if GroupWord::naming(holder, reserved) != named {
            return Ok(false);
        }
        let (slot, generation) = (reserved.node(), reserved.generation());
        let word = self.node(slot)?.word.load(Ordering::Acquire);
        if !(word.is_open() && word.generation() + 1 == generation) {
            return Ok(false);
        }
        // A node that went to another group has no seat there yet.
        let belongs = seen.policy(slot).group() == group && !seen.text(slot).is_none();
        let makeable = belongs && !reserved.is_called_off() && self.all_satisfied(seen, slot)?;
        if self.fixed.header.root.load(Ordering::Acquire) != seen.root || !seen.is_whole() {
            return Ok(false);
        }
        if !makeable {
            // Not just passed over: it could be ready again before the group's word names another.
            self.call_off(holder, reserved)?;
        } else if self.make_reserved(holder, reserved, word)? {
            let lease = Lease { lease_ms: self.default_lease_ms(), ..lease };
            self.start_lease(holder, slot, generation, lease)?;
        }
        Ok(true)
    }

    /// Whether as many nodes of the group of `slot` are claimed as may be at once. Full is only what was so at one moment.
    #[inline]
    pub(crate) fn is_group_full(&self, slot: u16, seen: &InForce<'_>) -> Result<bool, Stop> {
        match seen.policy(slot).group() {
            0 => Ok(false),
            group => self.is_full(group, seen),
        }
    }

    #[cold]
    fn is_full(&self, group: u8, seen: &InForce<'_>) -> Result<bool, Stop> {
        let limit = seen.version.group_limit.get(usize::from(group)).map_or(0, |l| l.load(Ordering::Relaxed));
        for _ in 0..TRIES {
            let mut claimed = Vec::new();
            for other in (0..seen.high()).filter(|&other| seen.policy(other).group() == group) {
                if claimed.len() as u64 >= limit {
                    break;
                }
                if seen.text(other).is_none() {
                    continue;
                }
                // SeqCst: of this look for a free seat and the look of whoever frees one for a hint, one sees the other.
                let node = &self.node(other)?.word;
                let word = node.load(Ordering::SeqCst);
                if word.holder().is_some() {
                    claimed.push((node, word));
                }
            }
            if (claimed.len() as u64) < limit {
                return Ok(false);
            }
            // Read one after the other; between the two looks all of them were claimed.
            if claimed.iter().all(|(node, word)| node.load(Ordering::Acquire) == *word) {
                return Ok(true);
            }
        }
        Err(Stop::Contended)
    }

    /// A claim of `slot` is over: wakes a waiter for each role that a ready node of its group asks for, since of a node
    /// whose role nobody offers and one behind it that anybody may take the second gets the seat.
    #[inline]
    pub(crate) fn ring_group(&self, slot: u16, seen: &InForce<'_>) {
        match seen.policy(slot).group() {
            0 => {}
            group => self.ring_members(group, seen),
        }
    }

    #[cold]
    fn ring_members(&self, group: u8, seen: &InForce<'_>) {
        let mut rung = Vec::new();
        for (next, _) in seen.hinted().filter(|&(next, _)| seen.policy(next).group() == group) {
            let role = seen.role(next);
            if !rung.contains(&role) {
                rung.push(role);
                self.ring(role);
            }
        }
    }
}
