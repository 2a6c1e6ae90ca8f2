//! Leases: the time that a claim has left, kept beside the node's word under the claim's generation.
//!
//! | the lease's word, for a node claimed at `g` | means | goes to |
//! |---|---|---|
//! | tagged with another generation | the claimer has not started it yet, or died before it could | running (anyone) |
//! | running until `t` | nobody takes the node before `t` | running until later (renewal), closed (after `t`) |
//! | closed | a reclaim is under way; whoever sees it finishes it | - |
//!
//! A reclaim closes the lease first and opens the node second. A renewal swaps the lease from the running value it saw,
//! so of a renewal and a closing one fails: a renewal that returned success is never followed by a reclaim before the
//! renewed lease has run out. Completing and releasing move the node's word alone; if they are faster than the second
//! half of a reclaim, they won.

use crate::error::Damaged;
use crate::sync::Ordering;
use crate::table::{Core, Stop, TRIES};
use crate::word::{LeaseWord, LengthWord, NodeWord, OwnerWord, ProcessWord};

/// A lease to give, and the moment it counts from; both in milliseconds, the moment on the lease clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lease {
    pub(crate) lease_ms: u64,
    pub(crate) now_ms: u64,
}

impl Lease {
    #[inline]
    pub(crate) fn deadline_ms(self) -> u64 {
        self.now_ms.saturating_add(self.lease_ms)
    }
}

/// The longest time, in milliseconds, until somebody looks through all leases again.
///
/// The time of the next look is kept no later than the earliest deadline. A claim may read it just before it is put off
/// and be stopped before it claims; its deadline is then noticed at the next look, at most this much late.
pub(crate) const SCAN_MS_MAX: u64 = 500;

/// Generations from one that is jumped to that are looked at for what an earlier life of the slot left behind.
const GENERATIONS_CLEAR: u64 = 64;

/// A claim that was found quiet for too long and is open again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) slot: u16,
    pub(crate) holder: u16,
    pub(crate) generation: u64,
    pub(crate) quiet_ms: u64,
}

impl Core<'_> {
    /// Starts the lease of the claim of `slot` at `generation` by `holder`, as the claimer. What others have started on its
    /// behalf, or renewed under its name, gives way if it is shorter: whoever was told that it has a lease keeps it.
    #[inline]
    pub(crate) fn start_lease(&self, holder: u16, slot: u16, generation: u64, lease: Lease) -> Result<(), Stop> {
        let node = self.node(slot)?;
        if lease.lease_ms != self.default_lease_ms() {
            self.note_length(slot, generation, lease.lease_ms)?;
        }
        let running = LeaseWord::running(generation, lease.deadline_ms());
        for _ in 0..TRIES {
            // The lease first and the node after it: if the claim stands, the lease read is not that of a later one.
            let seen = node.lease.load(Ordering::Acquire);
            let word = node.word.load(Ordering::Acquire);
            let stands = word.generation() == generation && word.holder() == Some(holder);
            let is_enough = seen.is_closed() || seen.deadline_ms() >= running.deadline_ms();
            if !stands || (seen.is_of(generation) && is_enough) {
                return Ok(());
            }
            // Release: pairs with the Acquire of whoever judges the lease, which sees its length.
            if node.lease.compare_exchange(seen, running, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return Ok(());
            }
        }
        Err(Stop::Contended)
    }

    /// Starts the lease of a claim whose claimer has not: it gets the length that was noted, or the table's.
    fn start_for_claimer(&self, slot: u16, generation: u64, now_ms: u64) -> Result<(), Damaged> {
        let node = self.node(slot)?;
        let seen = node.lease.load(Ordering::Acquire);
        let word = node.word.load(Ordering::Acquire);
        if seen.is_of(generation) || word.generation() != generation || word.holder().is_none() {
            return Ok(());
        }
        let lease = Lease { lease_ms: self.length_ms(slot, generation)?, now_ms };
        let running = LeaseWord::running(generation, lease.deadline_ms());
        // Lost: the claimer or another has started it.
        let _ = node.lease.compare_exchange(seen, running, Ordering::AcqRel, Ordering::Relaxed);
        Ok(())
    }

    /// Keeps the length of a lease that is not the table's; never over a later generation's.
    fn note_length(&self, slot: u16, generation: u64, lease_ms: u64) -> Result<(), Damaged> {
        let length = &self.node(slot)?.length;
        let new = LengthWord::new(generation, lease_ms);
        let mut old = length.load(Ordering::Acquire);
        // Each turn means that a later claim, or another renewal of this one, wrote it.
        for _ in 0..TRIES {
            if old.generation() > generation {
                break;
            }
            match length.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break,
                Err(now) => old = now,
            }
        }
        Ok(())
    }

    /// The length of the lease of the claim at `generation`.
    pub(crate) fn length_ms(&self, slot: u16, generation: u64) -> Result<u64, Damaged> {
        let length = self.node(slot)?.length.load(Ordering::Acquire);
        Ok(length.lease_ms(generation).unwrap_or_else(|| self.default_lease_ms()))
    }

    /// The holder is alive: its lease runs from now. False: the claim is over.
    pub(crate) fn renew_lease(&self, slot: u16, claimed: NodeWord, lease: Lease) -> Result<bool, Stop> {
        let node = self.node(slot)?;
        let generation = claimed.generation();
        let Some(holder) = claimed.holder() else { return Ok(false) };
        let is_held = |word: NodeWord| word.generation() == generation && word.holder() == Some(holder);
        for _ in 0..TRIES {
            let old = node.lease.load(Ordering::Acquire);
            if !is_held(node.word.load(Ordering::Acquire)) || (old.is_of(generation) && old.is_closed()) {
                return Ok(false);
            }
            // A shorter length before the deadline that it belongs to and a longer one after it: whoever reads the two in
            // between takes the holder for less quiet than it is.
            let length_ms = self.length_ms(slot, generation)?;
            if lease.lease_ms < length_ms {
                self.note_length(slot, generation, lease.lease_ms)?;
            }
            self.expect_deadline(lease.deadline_ms())?;
            let new = LeaseWord::running(generation, lease.deadline_ms());
            // From the value seen, which was not closed: of this and `close` one fails. AcqRel: as in `start_lease`.
            if node.lease.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                if lease.lease_ms > length_ms {
                    self.note_length(slot, generation, lease.lease_ms)?;
                }
                return Ok(is_held(node.word.load(Ordering::Acquire)));
            }
        }
        Err(Stop::Contended)
    }

    /// Somebody must look through the leases no later than this.
    #[inline]
    pub(crate) fn expect_deadline(&self, deadline_ms: u64) -> Result<(), Stop> {
        let next = &self.fixed.header.next_scan_ms;
        let mut old = next.load(Ordering::Relaxed);
        for _ in 0..TRIES {
            if deadline_ms >= old {
                return Ok(());
            }
            match next.compare_exchange(old, deadline_ms, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => old = now,
            }
        }
        Err(Stop::Contended)
    }

    /// Whether it is time to look through the leases.
    #[inline]
    pub(crate) fn is_scan_due(&self, now_ms: u64) -> bool {
        now_ms >= self.fixed.header.next_scan_ms.load(Ordering::Acquire)
    }

    /// Opens every claim whose lease has run out, or that has been quiet for `quiet_ms`; the longest quiet first.
    pub(crate) fn reclaim_all(&self, now_ms: u64, quiet_ms: Option<u64>) -> Result<Vec<Taken>, Stop> {
        let next = &self.fixed.header.next_scan_ms;
        let before = next.load(Ordering::Acquire);
        let high = self.in_force()?.high();
        let mut earliest = now_ms.saturating_add(SCAN_MS_MAX);
        let mut taken = Vec::new();
        for slot in 0..high {
            if let Some(one) = self.reclaim(slot, now_ms, quiet_ms)? {
                taken.push(one);
            } else if self.node(slot)?.word.load(Ordering::Acquire).holder().is_some() {
                let lease = self.node(slot)?.lease.load(Ordering::Acquire);
                earliest = earliest.min(lease.deadline_ms().max(now_ms));
            }
        }
        // Put off only from the value seen: a claim with an earlier deadline than that has moved it meanwhile.
        let _ = next.compare_exchange(before, earliest, Ordering::AcqRel, Ordering::Relaxed);
        taken.sort_by_key(|one| std::cmp::Reverse(one.quiet_ms));
        Ok(taken)
    }

    /// Opens the claim of `slot` if its lease has run out, or if it has been quiet for `quiet_ms`.
    ///
    /// A claim whose lease was never started gets one now, so that a claimer that died on the way costs one lease.
    pub(crate) fn reclaim(&self, slot: u16, now_ms: u64, quiet_ms: Option<u64>) -> Result<Option<Taken>, Stop> {
        let node = self.node(slot)?;
        for _ in 0..TRIES {
            let word = node.word.load(Ordering::Acquire);
            let Some(holder) = word.holder() else { return Ok(None) };
            let generation = word.generation();
            let lease = node.lease.load(Ordering::Acquire);
            if !lease.is_of(generation) {
                self.start_for_claimer(slot, generation, now_ms)?;
                if quiet_ms != Some(0) {
                    return Ok(None);
                }
                continue;
            }
            let quiet = self.quiet_ms(slot, now_ms)?;
            let is_over = now_ms >= lease.deadline_ms()
                || quiet_ms.is_some_and(|limit| quiet >= limit)
                || self.is_process_gone(slot, generation)?;
            if !is_over {
                return Ok(None);
            }
            if !lease.is_closed() && !self.close(slot, lease, generation)? {
                continue;
            }
            let new = self.open_closed(slot, generation)?;
            return Ok(new.map(|new| Taken { slot, holder, generation: new.generation(), quiet_ms: quiet }));
        }
        Err(Stop::Contended)
    }

    /// Names the process that the claim at `generation` stands and falls with; never over a later claim's.
    pub(crate) fn name_process(&self, slot: u16, generation: u64, process: OwnerWord) -> Result<(), Stop> {
        let node = self.node(slot)?;
        let new = ProcessWord::new(generation, process);
        let mut old = node.process.load(Ordering::Acquire);
        for _ in 0..TRIES {
            if node.word.load(Ordering::Acquire).generation() != generation {
                break;
            }
            match node.process.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break,
                // Another thread of the same claim named one.
                Err(now) if now.is_of(generation) => break,
                // One of an earlier claim, late.
                Err(now) => old = now,
            }
        }
        Ok(())
    }

    /// Whether the claim at `generation` named a process, and that one is gone.
    pub(crate) fn is_process_gone(&self, slot: u16, generation: u64) -> Result<bool, Damaged> {
        let process = self.node(slot)?.process.load(Ordering::Acquire);
        Ok(process.is_of(generation) && crate::process::is_other_or_gone(process))
    }

    /// The first generation from `generation` on that nothing which the slot's earlier life left behind is tagged with: tags
    /// are cut short, so a generation that is jumped to may meet one.
    pub(crate) fn clear_generation(&self, slot: u16, mut generation: u64) -> Result<u64, Damaged> {
        let node = self.node(slot)?;
        let lease = node.lease.load(Ordering::Acquire);
        let process = node.process.load(Ordering::Acquire);
        let not_before = node.not_before.load(Ordering::Acquire);
        let is_tagged = |g: u64| lease.is_of(g) || process.is_of(g) || not_before.is_of(g);
        // Each of the three tags spoils one stretch at most, so the fourth is clear.
        for _ in 0..3 {
            if (generation..generation + GENERATIONS_CLEAR).any(is_tagged) {
                generation += GENERATIONS_CLEAR;
            }
        }
        Ok(generation)
    }

    /// Milliseconds since the holder of `slot` was last heard of.
    pub(crate) fn quiet_ms(&self, slot: u16, now_ms: u64) -> Result<u64, Stop> {
        let node = self.node(slot)?;
        let generation = node.word.load(Ordering::Acquire).generation();
        let mut lease = node.lease.load(Ordering::Acquire);
        for _ in 0..TRIES {
            if !lease.is_of(generation) || lease.is_closed() {
                return Ok(0);
            }
            let length_ms = self.length_ms(slot, generation)?;
            // A renewal may have changed both in between: the length is this deadline's only if that still stands.
            let now = node.lease.load(Ordering::Acquire);
            if now == lease {
                return Ok(now_ms.saturating_sub(lease.deadline_ms().saturating_sub(length_ms)));
            }
            lease = now;
        }
        Err(Stop::Contended)
    }

    /// First half of a reclaim: from now on no renewal of this lease succeeds. False: it was renewed or closed meanwhile.
    fn close(&self, slot: u16, seen: LeaseWord, generation: u64) -> Result<bool, Damaged> {
        let lease = &self.node(slot)?.lease;
        // AcqRel: the Release pairs with the Acquire in `open_closed` of whoever finishes the reclaim.
        Ok(lease.compare_exchange(seen, LeaseWord::closed(generation), Ordering::AcqRel, Ordering::Relaxed).is_ok())
    }

    /// Second half of a reclaim: the node is open again, or has failed when that was its last attempt. `None`: somebody
    /// else finished it, or the holder was faster.
    fn open_closed(&self, slot: u16, generation: u64) -> Result<Option<NodeWord>, Stop> {
        let node = self.node(slot)?;
        for _ in 0..TRIES {
            let old = node.word.load(Ordering::Acquire);
            if old.holder().is_none() || old.generation() != generation {
                return Ok(None);
            }
            // The word first, then the root, as every transition of a node's word: see `table`.
            let seen = self.settled()?;
            let after = seen.after_attempt(slot, old);
            if node.word.load(Ordering::Acquire) != old || !seen.is_whole() {
                continue;
            }
            if let Some(new) = self.hand_back(slot, old, after, &seen)? {
                return Ok(Some(new));
            }
        }
        Err(Stop::Contended)
    }
}
