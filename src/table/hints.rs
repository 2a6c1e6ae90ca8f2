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

use crate::layout::{HINT_WORDS, get16};
use crate::sync::Ordering;
use crate::table::version::InForce;
use crate::table::{Core, Stop, TRIES};

/// A place in the order of one version.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    word: usize,
    bit: u64,
}

impl InForce<'_> {
    /// The place of a slot.
    fn place_of(&self, slot: u16) -> Option<Place> {
        let rank = usize::from(get16(&self.version.rank, slot.into())?);
        (rank / 64 < HINT_WORDS).then_some(Place { word: rank / 64, bit: 1 << (rank % 64) })
    }

    /// Sets the bit of a place, unless it is set. SeqCst: the node's word was swapped before this look; whoever takes the
    /// bit looks at the node's word after it. One of the two must see what the other did.
    fn set(&self, place: Place) {
        if let Some(word) = self.version.hints.get(place.word)
            && word.load(Ordering::SeqCst) & place.bit == 0
        {
            word.fetch_or(place.bit, Ordering::SeqCst);
        }
    }

    /// Clears the bit of a place. False: somebody else did. SeqCst: see `set`.
    pub(crate) fn take(&self, place: Place) -> bool {
        let word = self.version.hints.get(place.word);
        word.is_some_and(|word| word.fetch_and(!place.bit, Ordering::SeqCst) & place.bit != 0)
    }

    /// The slots whose bits are set, in the order in which they are given out. A bit is looked at when it is reached.
    #[inline]
    pub(crate) fn hinted(&self) -> impl Iterator<Item = (u16, Place)> + '_ {
        self.version.hints.iter().enumerate().flat_map(move |(word, bits)| {
            let mut left = bits.load(Ordering::Acquire);
            std::iter::from_fn(move || {
                let bit = left & left.wrapping_neg();
                left &= left.wrapping_sub(1);
                let rank = word * 64 + bit.checked_ilog2()? as usize;
                Some((get16(&self.version.order, rank)?, Place { word, bit }))
            })
        })
    }
}

impl Core<'_> {
    /// Whether every dependency of `slot` is done. Decides claims, so it reads the dependencies themselves.
    #[inline]
    pub(crate) fn all_done(&self, seen: &InForce<'_>, slot: u16) -> Result<bool, Stop> {
        Ok(self.first_undone(seen, slot)?.is_none())
    }

    #[inline]
    fn first_undone(&self, seen: &InForce<'_>, slot: u16) -> Result<Option<u16>, Stop> {
        for i in seen.deps(slot) {
            let dep = get16(&seen.version.deps, i).unwrap_or(0);
            if !self.node(dep)?.word.load(Ordering::SeqCst).is_done() {
                return Ok(Some(dep));
            }
        }
        Ok(None)
    }

    /// `slot` may be ready: it was handed back or reclaimed, or a bit was cleared too soon.
    pub(crate) fn hint(&self, slot: u16) -> Result<(), Stop> {
        self.in_steady_version(|seen| {
            let is_ready = self.node(slot)?.word.load(Ordering::SeqCst).is_open() && self.all_done(seen, slot)?;
            if let Some(place) = seen.place_of(slot).filter(|_| is_ready) {
                seen.set(place);
            }
            Ok(())
        })
    }

    /// `slot` has ended: hint those that waited for it and for nothing else any more.
    ///
    /// A child's `watch` names a dependency that was seen undone: while it is, the child need not be looked at. Whoever
    /// ends the watched one looks for another to watch. That makes the sum of all looks linear in the edges, also for a
    /// child with thousands of dependencies (the watched literals of Moskewicz et al., DAC 2001).
    pub(crate) fn announce(&self, slot: u16) -> Result<(), Stop> {
        self.in_steady_version(|seen| {
            for i in seen.children(slot) {
                let child = get16(&seen.version.children, i).unwrap_or(0);
                let Some(watch) = seen.version.watch.get(usize::from(child)) else { continue };
                let watched = watch.load(Ordering::SeqCst).checked_sub(1).and_then(|w| u16::try_from(w).ok());
                if let Some(node) = watched.filter(|&w| w != slot).and_then(|w| self.node(w).ok())
                    && !node.word.load(Ordering::SeqCst).is_done()
                {
                    continue;
                }
                match self.first_undone(seen, child)? {
                    Some(undone) => watch.store(u64::from(undone) + 1, Ordering::SeqCst),
                    None => {
                        let is_open = self.node(child)?.word.load(Ordering::SeqCst).is_open();
                        if let Some(place) = seen.place_of(child).filter(|_| is_open) {
                            seen.set(place);
                        }
                    }
                }
            }
            Ok(())
        })
    }

    /// Sets the bit of every ready node. Linear in nodes and edges.
    pub(crate) fn refresh_hints(&self) -> Result<(), Stop> {
        self.in_steady_version(|seen| {
            for slot in 0..seen.high() {
                let is_open = !seen.text(slot).is_none() && self.node(slot)?.word.load(Ordering::SeqCst).is_open();
                if is_open
                    && self.all_done(seen, slot)?
                    && let Some(place) = seen.place_of(slot)
                {
                    seen.set(place);
                }
            }
            // Release: whoever sees the flag sees the bits. Pairs with the Acquire in `claim_next`.
            seen.version.filled.store(1, Ordering::Release);
            Ok(())
        })
    }

    /// Sets hints in the version in force, and again when another has come into force meanwhile: whoever published that
    /// one may have filled its hints before it could see what these hints are about.
    fn in_steady_version(&self, set: impl Fn(&InForce<'_>) -> Result<(), Stop>) -> Result<(), Stop> {
        for _ in 0..TRIES {
            let seen = self.in_force()?;
            set(&seen)?;
            let root = self.fixed.header.root.load(Ordering::SeqCst);
            if root.current() == seen.root.current() && seen.is_whole() {
                return Ok(());
            }
        }
        Err(Stop::Contended)
    }
}
