//! Claiming the next node: the first in the order of the version in force that is ready and fits the worker.

use crate::sync::Ordering;
use crate::table::claim::{Attempt, Holding, Who};
use crate::table::lease::Lease;
use crate::table::version::InForce;
use crate::table::{Core, Stop, TRIES};

/// How the search for a node went.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Won {
        slot: u16,
        generation: u64,
    },
    /// The holder has a claim already.
    Busy {
        node: u16,
        generation: u64,
    },
    /// No node is ready for this worker.
    Nothing,
    /// The version in force no longer has the holder's name: register it again.
    NameGone,
}

/// How one pass over the hints went.
enum Pass {
    Ended(Next),
    /// The graph has changed.
    Moved,
    NothingHinted,
}

impl<'m> Core<'m> {
    /// Claims the next node for `who`, which offers the roles with these hashes.
    ///
    /// First opens what has run out, if it is time to look. A pass that finds nothing sets the hints anew and passes
    /// once more, so that a hint lost with a dead process costs time and never a node.
    pub(crate) fn claim_next(&self, who: Who, roles: &[u64], lease: Lease) -> Result<Next, Stop> {
        if self.is_scan_due(lease.now_ms) {
            self.reclaim_all(lease.now_ms, None)?;
            self.rerank()?;
            self.refresh_hints()?;
        }
        let mut refreshed = None;
        for _ in 0..TRIES {
            let seen = self.settled()?;
            if seen.version.filled.load(Ordering::Acquire) == 0 {
                // Nobody has filled the hints of this version yet; a part of them would give out a later node first.
                self.refresh_hints()?;
            }
            match self.holding_of(who, &seen)? {
                Some(Holding::Holds { node, generation }) => return Ok(Next::Busy { node, generation }),
                Some(Holding::Idle | Holding::UnderWay { .. }) => {}
                None if seen.holder_name(who.slot) != who.name && seen.is_whole() => return Ok(Next::NameGone),
                None => continue,
            }
            match self.pass(who, roles, lease, &seen)? {
                Pass::Ended(next) => return Ok(next),
                Pass::Moved => {}
                Pass::NothingHinted if refreshed == Some(seen.root) => return Ok(Next::Nothing),
                Pass::NothingHinted => {
                    self.refresh_hints()?;
                    refreshed = Some(seen.root);
                }
            }
        }
        Err(Stop::Contended)
    }

    /// Tries the hinted nodes in order.
    #[inline]
    fn pass(&self, who: Who, roles: &[u64], lease: Lease, seen: &InForce<'m>) -> Result<Pass, Stop> {
        let mut full_groups = Vec::new();
        for (slot, place) in seen.aged().into_iter().chain(seen.hinted()) {
            let role = seen.role(slot);
            if role != 0 && !roles.contains(&role) {
                continue;
            }
            let group = seen.policy(slot).group();
            if group != 0 && full_groups.contains(&group) {
                continue;
            }
            // The bit goes to one taker, so that others go on to the next node instead of swapping for the same word.
            if !seen.take(place) {
                continue;
            }
            match self.try_claim(who, slot, None, lease, seen)? {
                Attempt::Won { generation } => return Ok(Pass::Ended(Next::Won { slot, generation })),
                Attempt::Busy { node, generation } => {
                    self.hint(slot)?;
                    return Ok(Pass::Ended(Next::Busy { node, generation }));
                }
                Attempt::NameGone => {
                    self.hint(slot)?;
                    return Ok(Pass::Ended(Next::NameGone));
                }
                Attempt::Moved => {
                    self.hint(slot)?;
                    return Ok(Pass::Moved);
                }
                Attempt::GroupFull => {
                    // Back without ringing: whoever frees a seat rings, if it finds the bit. If it has looked while the
                    // bit was taken, the free seat is seen here.
                    seen.put_back(place);
                    if !self.is_group_full(slot, seen)? {
                        return Ok(Pass::Moved);
                    }
                    full_groups.push(group);
                }
                Attempt::NotBefore { .. } | Attempt::NotOpen(_) | Attempt::OtherGeneration(_) | Attempt::NotReady => {
                    self.hint(slot)?
                }
            }
        }
        Ok(if self.fixed.header.root.load(Ordering::Acquire) == seen.root { Pass::NothingHinted } else { Pass::Moved })
    }
}
