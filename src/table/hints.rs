//! Where to look first: a bit per node, in the order in which nodes are given out, for *may be ready*.
//!
//! Nothing is decided from a hint. A claim checks the dependencies themselves, and a hint that was lost with the process
//! that should have set it is set again by [`Core::refresh_hints`], which runs after every change of the graph, with
//! every look through the leases, and whenever somebody looks for work and finds none.
//!
//! A node becomes ready by the end of its last dependency. Of several that end at once each looks at the others *after*
//! its own end, so the last one in the order of all ends finds the rest done. That order has to be one for all: the
//! swaps that end or open a node, and the reads and swaps here, are therefore `SeqCst`. (On x86-64 this costs nothing
//! over AcqRel: the swaps are locked instructions and the reads plain ones either way.)
//!
//! A bit is cleared before the claim that it is cleared for, and whoever cleared one and did not get the node looks at
//! the node once more and sets the bit back if it is ready. So no bit is cleared over one that was set for a later state.

use crate::clock;
use crate::layout::{HINT_WORDS, edge_parts, get16};
use crate::node::OnFailure;
use crate::sync::{Ordering, Shared};
use crate::table::version::InForce;
use crate::table::{Core, Stop, TRIES};
use crate::word::NodeWord;

/// A node that has been ready for this long goes before those with more work below them.
pub(crate) const AGE_MS: u64 = 30_000;

/// Bits of a creation number below the moment of creation.
pub(crate) const BORN_COUNT_BITS: u32 = 24;

/// Every ready node has its hint, and none has been ready for [`AGE_MS`].
const FILLED: u64 = 1;
/// Every ready node has its hint, and some have been ready for long.
const FILLED_AGED: u64 = 2;

/// A place in the order of one version.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    word: usize,
    bit: u64,
}

impl InForce<'_> {
    /// The place of a slot.
    fn place_of(&self, slot: u16) -> Option<Place> {
        let rank = self.facts(slot)?.rank.load(Ordering::Relaxed) as usize;
        (rank / 64 < HINT_WORDS).then_some(Place { word: rank / 64, bit: 1 << (rank % 64) })
    }

    /// Sets the bit of a place. False: it was set. SeqCst: the node's word was swapped before this look; whoever takes the
    /// bit looks at the node's word after it. One of the two must see what the other did.
    fn set(&self, place: Place) -> bool {
        self.version.hints.get(place.word).is_some_and(|word| {
            word.load(Ordering::SeqCst) & place.bit == 0 && word.fetch_or(place.bit, Ordering::SeqCst) & place.bit == 0
        })
    }

    /// Hash of the role that a worker must offer for this node; 0 is any.
    #[inline]
    pub(crate) fn role(&self, slot: u16) -> u64 {
        self.facts(slot).map_or(0, |facts| facts.role.load(Ordering::Relaxed))
    }

    /// Clears the bit of a place. False: somebody else did. SeqCst: see `set`.
    pub(crate) fn take(&self, place: Place) -> bool {
        let word = self.version.hints.get(place.word);
        word.is_some_and(|word| word.fetch_and(!place.bit, Ordering::SeqCst) & place.bit != 0)
    }

    /// Sets the bit of a place again that was taken in vain.
    pub(crate) fn put_back(&self, place: Place) {
        self.set(place);
    }

    /// Whether some node was seen ready for [`AGE_MS`].
    #[inline]
    pub(crate) fn has_aged(&self) -> bool {
        self.version.filled.load(Ordering::Relaxed) == FILLED_AGED
    }

    /// The hinted slots that have been ready for [`AGE_MS`], the oldest node first. They go before all others, so that
    /// leaves beside an endless deep chain start at all.
    #[cold]
    pub(crate) fn aged(&self) -> Vec<(u16, Place)> {
        let is_aged = |place: &Place| {
            let word = self.version.aged.get(place.word);
            word.is_some_and(|word| word.load(Ordering::Relaxed) & place.bit != 0)
        };
        let mut aged: Vec<(u16, Place)> = self.hinted().filter(|(_, place)| is_aged(place)).collect();
        aged.sort_by_key(|&(slot, _)| self.born(slot));
        aged
    }

    /// Creation number of a node: the moment on the lease clock in its upper 40 bits, so that older is smaller.
    fn born(&self, slot: u16) -> u64 {
        self.facts(slot).map_or(0, |facts| facts.born.load(Ordering::Relaxed))
    }

    fn set_aged(&self, slot: u16, is_aged: bool) {
        let Some(place) = self.place_of(slot) else { return };
        let Some(word) = self.version.aged.get(place.word) else { return };
        if (word.load(Ordering::Relaxed) & place.bit != 0) != is_aged {
            match is_aged {
                true => word.fetch_or(place.bit, Ordering::AcqRel),
                false => word.fetch_and(!place.bit, Ordering::AcqRel),
            };
        }
    }

    /// The slots whose bits are set, in the order in which they are given out. A bit is looked at when it is reached.
    #[inline]
    pub(crate) fn hinted(&self) -> Hinted<'_> {
        Hinted { order: &self.version.order, rest: &self.version.hints, next_word: 0, left: 0 }
    }
}

/// See [`InForce::hinted`].
pub(crate) struct Hinted<'m> {
    order: &'m [Shared<u64>],
    /// The words from `next_word` on.
    rest: &'m [Shared<u64>],
    next_word: usize,
    /// Bits of the word before the next one that were not reached yet.
    left: u64,
}

impl Hinted<'_> {
    /// Passes over empty words, eight at a time: most are, and every claim passes over all that stand before its node.
    #[inline]
    fn pass_over_empty(&mut self) {
        while let Some((eight, rest)) = self.rest.split_first_chunk::<8>() {
            // SeqCst: see `next`.
            if eight.iter().fold(0, |any, word| any | word.load(Ordering::SeqCst)) != 0 {
                break;
            }
            self.rest = rest;
            self.next_word += 8;
        }
    }
}

impl Iterator for Hinted<'_> {
    type Item = (u16, Place);

    #[inline]
    fn next(&mut self) -> Option<(u16, Place)> {
        if self.left == 0 {
            self.pass_over_empty();
        }
        while self.left == 0 {
            let (word, rest) = self.rest.split_first()?;
            // SeqCst: whoever is about to sleep, or frees a seat, sees what was set before the other looked for it.
            self.left = word.load(Ordering::SeqCst);
            self.rest = rest;
            self.next_word += 1;
        }
        let bit = self.left & self.left.wrapping_neg();
        self.left ^= bit;
        let word = self.next_word - 1;
        let rank = word * 64 + bit.trailing_zeros() as usize;
        Some((get16(self.order, rank)?, Place { word, bit }))
    }
}

impl Core<'_> {
    /// Whether every dependency of `slot` lets it go. Decides claims, so it reads the dependencies themselves.
    #[inline]
    pub(crate) fn all_satisfied(&self, seen: &InForce<'_>, slot: u16) -> Result<bool, Stop> {
        Ok(self.first_unsatisfied(seen, slot)?.is_none())
    }

    #[inline]
    fn first_unsatisfied(&self, seen: &InForce<'_>, slot: u16) -> Result<Option<u16>, Stop> {
        for i in seen.deps(slot) {
            let (dep, on_failure) = edge_parts(get16(&seen.version.deps, i).unwrap_or(0));
            let word = self.node(dep)?.word.load(Ordering::SeqCst);
            let lets_go = word.is_done() || (on_failure == OnFailure::Continue && self.is_over(seen, dep, word)?);
            if !lets_go {
                return Ok(Some(dep));
            }
        }
        Ok(None)
    }

    /// Whether a node has ended or is skipped.
    fn is_over(&self, seen: &InForce<'_>, slot: u16, word: NodeWord) -> Result<bool, Stop> {
        Ok(word.is_ended() || (word.is_open() && self.is_skipped(seen, slot)?))
    }

    /// Whether an open node is skipped: behind an edge of mode `Skip` stands a node that failed, was cancelled, or is
    /// skipped itself. Walks up such edges only; each node once.
    pub(crate) fn is_skipped(&self, seen: &InForce<'_>, slot: u16) -> Result<bool, Stop> {
        let mut met = Vec::new();
        let mut left = vec![slot];
        while let Some(at) = left.pop() {
            for i in seen.deps(at) {
                let (dep, on_failure) = edge_parts(get16(&seen.version.deps, i).unwrap_or(0));
                if on_failure != OnFailure::Skip {
                    continue;
                }
                let word = self.node(dep)?.word.load(Ordering::SeqCst);
                if word.is_ended() && !word.is_done() {
                    return Ok(true);
                }
                if word.is_open() && !met.contains(&dep) {
                    met.push(dep);
                    left.push(dep);
                }
            }
        }
        Ok(false)
    }

    /// Whether `slot` can be claimed now, as far as its own word and its dependencies tell.
    fn is_ready(&self, seen: &InForce<'_>, slot: u16) -> Result<bool, Stop> {
        let node = self.node(slot)?;
        let word = node.word.load(Ordering::SeqCst);
        Ok(word.is_open()
            && !seen.text(slot).is_none()
            && self.all_satisfied(seen, slot)?
            && node.left_alone_until_ms(word).is_none_or(|until| clock::lease_now_ms() >= until))
    }

    /// `slot` may be ready: it was handed back or reclaimed, or a bit was cleared too soon.
    #[inline(never)]
    pub(crate) fn hint(&self, slot: u16) -> Result<(), Stop> {
        self.in_steady_version(self.in_force()?, |seen| {
            if self.is_ready(seen, slot)? {
                self.set_hint(seen, slot);
            }
            Ok(())
        })
    }

    /// `slot` has ended: hint those that waited for it and for nothing else any more.
    ///
    /// A child's `watch` names a dependency that was seen undone: while it is, the child need not be looked at. Whoever
    /// ends the watched one looks for another to watch. That makes the sum of all looks linear in the edges, also for a
    /// child with thousands of dependencies (the watched literals of Moskewicz et al., DAC 2001).
    ///
    /// `seen` is the version that the end was decided from.
    pub(crate) fn announce(&self, slot: u16, seen: &InForce<'_>) -> Result<(), Stop> {
        self.in_steady_version(*seen, |seen| {
            for i in seen.children(slot) {
                let (child, _) = edge_parts(get16(&seen.version.children, i).unwrap_or(0));
                let watch = seen.version.watch.get(usize::from(child)).map_or(0, |watch| watch.load(Ordering::SeqCst));
                let watched = watch.checked_sub(1).and_then(|w| u16::try_from(w).ok());
                if let Some(node) = watched.filter(|&w| w != slot).and_then(|w| self.node(w).ok())
                    && !node.word.load(Ordering::SeqCst).is_ended()
                {
                    continue;
                }
                match self.first_unsatisfied(seen, child)? {
                    Some(undone) => self.watch(seen, child, undone),
                    None if self.is_ready(seen, child)? => self.set_hint(seen, child),
                    None => {}
                }
            }
            Ok(())
        })
    }

    /// `child` waits for `undone` and need not be looked at until that one ends. One that may be skipped is not watched: it
    /// lets go of a child that goes on without it, and does not end by that.
    pub(crate) fn watch(&self, seen: &InForce<'_>, child: u16, undone: u16) {
        let bits = |i| get16(&seen.version.deps, i).unwrap_or(0);
        let may_be_skipped = seen.deps(undone).any(|i| edge_parts(bits(i)).1 == OnFailure::Skip);
        let watched = if may_be_skipped { 0 } else { u64::from(undone) + 1 };
        if let Some(watch) = seen.version.watch.get(usize::from(child)) {
            watch.store(watched, Ordering::SeqCst);
        }
    }

    /// Whether the failure of `slot` is more to some child than a dependency that stays undone.
    pub(crate) fn failure_matters(&self, seen: &InForce<'_>, slot: u16) -> bool {
        let bits = |i| get16(&seen.version.children, i).unwrap_or(0);
        seen.children(slot).any(|i| edge_parts(bits(i)).1 != OnFailure::Block)
    }

    /// Sets the bit of a node that was seen ready, and wakes a waiter for it if any sleeps.
    fn set_hint(&self, seen: &InForce<'_>, slot: u16) {
        if let Some(place) = seen.place_of(slot)
            && seen.set(place)
        {
            self.ring(seen.role(slot));
        }
    }

    /// Sets the bit of every ready node, and notes which have been ready for long. Linear in nodes and edges.
    #[cold]
    pub(crate) fn refresh_hints(&self) -> Result<(), Stop> {
        self.refresh_hints_at(clock::lease_now_coarse_ms())
    }

    /// As [`refresh_hints`](Core::refresh_hints), at this moment of the lease clock.
    pub(crate) fn refresh_hints_at(&self, now_ms: u64) -> Result<(), Stop> {
        self.in_steady_version(self.in_force()?, |seen| {
            let mut filled = FILLED;
            for slot in 0..seen.high() {
                if self.is_ready(seen, slot)? {
                    let is_aged = now_ms.saturating_sub(self.ready_since_ms(seen, slot)?) >= AGE_MS;
                    seen.set_aged(slot, is_aged);
                    filled = if is_aged { FILLED_AGED } else { filled };
                    self.set_hint(seen, slot);
                }
            }
            // Release: whoever sees the flag sees the bits. Pairs with the Acquire in `claim_next`.
            seen.version.filled.store(filled, Ordering::Release);
            Ok(())
        })
    }

    /// When a ready node became ready, on the lease clock: when it was made, or its last dependency ended. Time that it
    /// was held in between counts as waiting: what is handed back does not go to the end of the queue.
    fn ready_since_ms(&self, seen: &InForce<'_>, slot: u16) -> Result<u64, Stop> {
        let mut since_ms = seen.born(slot) >> BORN_COUNT_BITS;
        for i in seen.deps(slot) {
            let (dep, _) = edge_parts(get16(&seen.version.deps, i).unwrap_or(0));
            since_ms = since_ms.max(self.node(dep)?.end.load(Ordering::Relaxed).time_ms());
        }
        Ok(since_ms)
    }

    /// Sets hints in the version `seen`, and in the one in force for as long as that is not the one they were set in: whoever
    /// published it may have filled its hints before it could see what these hints are about.
    #[inline]
    fn in_steady_version<'v>(
        &self,
        mut seen: InForce<'v>,
        set: impl Fn(&InForce<'v>) -> Result<(), Stop>,
    ) -> Result<(), Stop>
    where
        Self: 'v,
    {
        for _ in 0..TRIES {
            let done = set(&seen);
            let root = self.fixed.header.root.load(Ordering::SeqCst);
            if root.current() == seen.root.current() && seen.is_whole() {
                return done;
            }
            seen = self.in_force()?;
        }
        Err(Stop::Contended)
    }
}
