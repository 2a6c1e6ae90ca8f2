//! What nothing that keeps the same words in a mapped file can be faster than: swaps, a clock read, a futex; no checks,
//! no graph, no refusals.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use super::clock_ns;

const NODES: usize = 4_096;

/// A cache line.
#[repr(C, align(64))]
struct Slot {
    word: AtomicU64,
    lease: AtomicU64,
    left: AtomicU64,
    rest: [AtomicU64; 5],
}

#[repr(C)]
struct Words {
    bits: [AtomicU64; NODES / 64],
    bell: [AtomicU32; 16],
    /// Nodes that the members of a crew have done, as far as they have said.
    done: [AtomicU64; 8],
    slots: [Slot; NODES],
}

/// The same slots in every process that maps the file.
pub struct Floor {
    map: MmapRaw,
}

impl Floor {
    pub fn open(path: &Path) -> std::io::Result<Floor> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        file.set_len(size_of::<Words>() as u64)?;
        Ok(Floor { map: MmapOptions::new().len(size_of::<Words>()).map_raw(&file)? })
    }

    fn words(&self) -> &Words {
        // SAFETY: the mapping is page-aligned, as long as `Words`, lives as long as the borrow, and holds atomics alone,
        // for which any bytes are values; no `&mut` to it is ever made.
        unsafe { &*self.map.as_ptr().cast::<Words>() }
    }

    /// Everything open; a node without dependencies is in the queue.
    pub fn reset(&self, needs: &[Vec<u16>]) {
        let words = self.words();
        words.done[0].store(0, Ordering::Relaxed);
        words.bits.iter().for_each(|b| b.store(0, Ordering::Relaxed));
        for (i, (slot, needs)) in words.slots.iter().zip(needs).enumerate() {
            slot.word.store(0, Ordering::Relaxed);
            slot.left.store(needs.len() as u64, Ordering::Relaxed);
            if needs.is_empty() {
                words.bits[i / 64].fetch_or(1 << (i % 64), Ordering::Release);
            }
        }
    }

    /// Takes the first of the queue, claims and completes it. False: the queue was empty, or another was faster.
    #[inline]
    pub fn work_one(&self, children: &[Vec<u16>]) -> bool {
        let words = self.words();
        let first = words.bits.iter().enumerate().find_map(|(at, word)| {
            let bits = word.load(Ordering::Acquire);
            (bits != 0).then_some((at, word, bits & bits.wrapping_neg()))
        });
        let Some((at, word, bit)) = first else { return false };
        if word.fetch_and(!bit, Ordering::AcqRel) & bit == 0 {
            return false;
        }
        let at = at * 64 + bit.trailing_zeros() as usize;
        let slot = &words.slots[at];
        let now = clock_ns();
        let claimed = slot.word.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        slot.lease.store(now, Ordering::Release);
        let ended = slot.word.compare_exchange(1, 2, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        for &child in children.get(at).map_or(&[][..], Vec::as_slice) {
            let child = usize::from(child);
            if words.slots[child].left.fetch_sub(1, Ordering::AcqRel) == 1 {
                words.bits[child / 64].fetch_or(1 << (child % 64), Ordering::Release);
            }
        }
        claimed && ended
    }

    /// Claims one slot and hands it back.
    pub fn claim_and_release(&self, at: usize) -> bool {
        let Some(slot) = self.words().slots.get(at) else { return false };
        let old = slot.word.load(Ordering::Acquire);
        let claimed = slot.word.compare_exchange(old, old + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        slot.lease.store(clock_ns(), Ordering::Release);
        claimed && slot.word.compare_exchange(old + 1, old + 2, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Moves the lease of one slot.
    pub fn renew(&self, at: usize) -> bool {
        let Some(slot) = self.words().slots.get(at) else { return false };
        let old = slot.lease.load(Ordering::Acquire);
        slot.lease.compare_exchange(old, clock_ns(), Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Reads one slot.
    pub fn read_one(&self, at: usize) -> u64 {
        self.words().slots.get(at).map_or(0, |slot| slot.word.load(Ordering::Acquire))
    }

    /// Adds to what the crew has done; the sum.
    pub fn add_done(&self, count: usize) -> usize {
        self.words().done[0].fetch_add(count as u64, Ordering::AcqRel) as usize + count
    }

    /// A word to sleep on.
    pub fn bell(&self) -> &AtomicU32 {
        &self.words().bell[0]
    }
}
