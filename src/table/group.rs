//! Groups: at most so many nodes of a group are claimed at once, exactly, under any race.
//!
//! How many are is counted from the nodes' words whenever it matters and stored nowhere. So that two claims do not both
//! count the same free seat, claims of one group go one behind the other: each names itself in the group's word before it
//! swaps the node's, and whoever meets a name whose claim is not made yet makes it first, or finds that it cannot be made
//! any more. Nobody waits for the one who began.
//!
//! | the group's word names `(h, n, g)`, and | then that claim |
//! |---|---|
//! | node `n` is open at `g - 1`, holder `h` still reserves it, and `n` is ready | is on its way: make it |
//! | the same, but the reservation is being called off, see `claim` | may still be made: call it off first |
//! | anything else | is made, or can only fail |

use crate::error::Damaged;
use crate::layout::GroupSlot;
use crate::sync::Ordering;
use crate::table::lease::Lease;
use crate::table::version::InForce;
use crate::table::{Core, Stop, TRIES};
use crate::word::NodeWord;

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

    /// Names the claim of `slot`, open at `old`, in its group's word, if there is a seat. `holder` must have reserved it.
    pub(crate) fn take_seat(
        &self,
        holder: u16,
        slot: u16,
        old: NodeWord,
        lease: Lease,
        seen: &InForce<'_>,
    ) -> Result<Seat, Stop> {
        let group = seen.policy(slot).group();
        if group == 0 {
            return Ok(Seat::Taken);
        }
        let word = &self.group(group)?.word;
        let generation = old.generation() + 1;
        for _ in 0..TRIES {
            // Acquire: pairs with the swap below; the reservation it was made under is visible.
            let named = word.load(Ordering::Acquire);
            if named.is_of(generation) && named.node() == slot && named.holder() == holder {
                return Ok(Seat::Taken);
            }
            if named.holder() != 0 {
                let other = self.node(named.node())?.word.load(Ordering::Acquire);
                let on_its_way = other.is_open() && named.is_of(other.generation() + 1);
                if on_its_way && self.make_named(named.holder(), named.node(), other, lease, seen)? {
                    continue;
                }
            }
            let full = self.is_group_full(slot, seen)?;
            if self.fixed.header.root.load(Ordering::Acquire) != seen.root || !seen.is_whole() {
                return Ok(Seat::Moved);
            }
            if full {
                return Ok(Seat::Full);
            }
            // From the word that was read before counting: a claim that was made since has changed it.
            let new = named.next(holder, slot, generation);
            if word.compare_exchange(named, new, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return Ok(Seat::Taken);
            }
        }
        Err(Stop::Contended)
    }

    /// Makes the claim that a group's word names, or sees that it is called off. False: it cannot be made any more.
    fn make_named(
        &self,
        holder: u16,
        slot: u16,
        word: NodeWord,
        lease: Lease,
        seen: &InForce<'_>,
    ) -> Result<bool, Stop> {
        let reserved = self.holder(holder)?.word.load(Ordering::Acquire);
        let stands = reserved.node() == slot && reserved.generation() == word.generation() + 1;
        if !stands {
            return Ok(false);
        }
        if reserved.is_called_off() {
            self.call_off(holder, reserved)?;
            return Ok(true);
        }
        if !self.all_satisfied(seen, slot)? {
            return Ok(false);
        }
        if self.fixed.header.root.load(Ordering::Acquire) != seen.root || !seen.is_whole() {
            // The caller looks at the root as well before it decides anything.
            return Ok(false);
        }
        if self.make_reserved(holder, reserved, word)? {
            let lease = Lease { lease_ms: self.default_lease_ms(), ..lease };
            self.start_lease(holder, slot, word.generation() + 1, lease)?;
        }
        Ok(true)
    }

    /// Whether as many nodes of the group of `slot` are claimed as may be at once.
    pub(crate) fn is_group_full(&self, slot: u16, seen: &InForce<'_>) -> Result<bool, Stop> {
        let group = seen.policy(slot).group();
        if group == 0 {
            return Ok(false);
        }
        let limit = seen.version.group_limit.get(usize::from(group)).map_or(0, |l| l.load(Ordering::Relaxed));
        let mut claimed = 0;
        for other in (0..seen.high()).filter(|&other| seen.policy(other).group() == group) {
            let here = !seen.text(other).is_none();
            claimed += u64::from(here && self.node(other)?.word.load(Ordering::Acquire).holder().is_some());
            if claimed >= limit {
                return Ok(true);
            }
        }
        Ok(claimed >= limit)
    }

    /// A claim of `slot` is over: wakes a waiter for each role that a ready node of its group asks for, since of a node
    /// whose role nobody offers and one behind it that anybody may take the second gets the seat.
    pub(crate) fn ring_group(&self, slot: u16, seen: &InForce<'_>) {
        let group = seen.policy(slot).group();
        if group == 0 {
            return;
        }
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
