//! Claiming the next node: the first in the order of the version in force that is ready and fits the worker.

use crate::error::Damaged;
use crate::record::Record;
use crate::sync::Ordering;
use crate::table::claim::{Attempt, Holding, Who};
use crate::table::hints::Place;
use crate::table::lease::Lease;
use crate::table::version::InForce;
use crate::table::{Core, Stop, TRIES};

/// Answers whether work may start on a workspace surface, named by its key.
pub(crate) type Gate<'g> = &'g (dyn Fn(&str) -> bool + 'g);

/// What a worker takes.
#[derive(Clone, Copy)]
pub(crate) struct Offer<'g> {
    /// Hashes of the roles that it offers.
    pub(crate) roles: &'g [u64],
    /// Whom to ask about nodes that name a surface; without one they are passed over.
    pub(crate) gate: Option<Gate<'g>>,
}

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
    /// Claims the next node for `who` that fits its offer.
    ///
    /// First opens what has run out, if it is time to look. A pass that finds nothing sets the hints anew and passes
    /// once more, so that a hint lost with a dead process costs time and never a node.
    pub(crate) fn claim_next(&self, who: Who, offer: Offer<'_>, lease: Lease) -> Result<Next, Stop> {
        if self.is_scan_due(lease.now_ms) {
            self.look_through(lease.now_ms)?;
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
            match self.pass(who, offer, lease, &seen)? {
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

    /// Opens what has run out, and mends what a dead process may have left undone.
    #[cold]
    fn look_through(&self, now_ms: u64) -> Result<(), Stop> {
        self.reclaim_all(now_ms, None)?;
        self.rerank()?;
        self.refresh_hints()
    }

    /// Tries the hinted nodes in order, those that have waited long before all others.
    #[inline]
    fn pass(&self, who: Who, offer: Offer<'_>, lease: Lease, seen: &InForce<'m>) -> Result<Pass, Stop> {
        if seen.has_aged() {
            match self.pass_over(seen.aged().into_iter(), who, offer, lease, seen)? {
                Pass::NothingHinted => {}
                pass => return Ok(pass),
            }
        }
        self.pass_over(seen.hinted(), who, offer, lease, seen)
    }

    #[inline]
    fn pass_over(
        &self,
        places: impl Iterator<Item = (u16, Place)>,
        who: Who,
        offer: Offer<'_>,
        lease: Lease,
        seen: &InForce<'m>,
    ) -> Result<Pass, Stop> {
        let mut full_groups = Vec::new();
        for (slot, place) in places {
            let (role, policy) = (seen.role(slot), seen.policy(slot));
            let asks_nothing = role == 0 && policy.group() == 0 && !policy.is_gated();
            if !asks_nothing && !self.fits(slot, offer, &full_groups, seen)? {
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
                    full_groups.push(policy.group());
                }
                Attempt::NotBefore { .. } | Attempt::NotOpen(_) | Attempt::OtherGeneration(_) | Attempt::NotReady => {
                    self.hint(slot)?
                }
            }
        }
        Ok(if self.fixed.header.root.load(Ordering::Acquire) == seen.root { Pass::NothingHinted } else { Pass::Moved })
    }

    /// Whether a node is for this worker: its role, its group, of which one may have been seen full, and its surface.
    #[cold]
    fn fits(&self, slot: u16, offer: Offer<'_>, full_groups: &[u8], seen: &InForce<'m>) -> Result<bool, Stop> {
        let (role, policy) = (seen.role(slot), seen.policy(slot));
        if role != 0 && !offer.roles.contains(&role) {
            return Ok(false);
        }
        if policy.group() != 0 && full_groups.contains(&policy.group()) {
            return Ok(false);
        }
        Ok(!policy.is_gated() || self.is_startable(slot, offer.gate, seen)?)
    }

    /// Whether the gate lets work start on the surface that a node names.
    #[cold]
    fn is_startable(&self, slot: u16, gate: Option<Gate<'_>>, seen: &InForce<'m>) -> Result<bool, Stop> {
        let Some(gate) = gate else { return Ok(false) };
        // Text that is gone is of a version that is no longer in force: the pass finds that out at its end.
        let Some(bytes) = self.read_text(seen.text(slot))? else { return Ok(false) };
        let record = Record::decode(&bytes).ok_or(Damaged { what: "a node's record does not decode" })?;
        Ok(gate(&record.surface))
    }

    /// Whether a node that names a surface is ready: nothing in the table tells when its surface comes free.
    pub(crate) fn has_gated_hint(&self) -> Result<bool, Stop> {
        let seen = self.in_force()?;
        Ok(seen.hinted().any(|(slot, _)| seen.policy(slot).is_gated()))
    }
}
