//! Telling a forked child from the process that opened a table, without a system call.
//!
//! A page of the process's own holds a number that no other process has had. The kernel empties the page in a forked child,
//! before that runs, whatever way it was forked (`MADV_WIPEONFORK`). There is one page a process, for all its tables.

use std::io;
use std::ptr::null_mut;

use memmap2::{MmapOptions, MmapRaw};

use crate::clock;
use crate::sync::{LocalPointer, LocalWord, Ordering};

const PAGE_BYTES: usize = 4096;

/// The page, once somebody asked for it. No lock: one that was held at a fork would be held for ever in the child.
static PAGE: LocalPointer<LocalWord> = LocalPointer::new(null_mut());

/// Remembers the process that it was made in.
pub(crate) struct ForkMark {
    page: &'static LocalWord,
    number: u64,
}

impl ForkMark {
    /// The mark of this process.
    ///
    /// # Errors
    /// The system has no page left, or cannot empty one at a fork (Linux before 4.14).
    pub(crate) fn of_this_process() -> io::Result<ForkMark> {
        let page = page()?;
        // A time at which no earlier process of this page could have taken its own. Odd, so that it is not the empty page's.
        let mine = clock::lease_now_ns() | 1;
        let number = match page.compare_exchange(0, mine, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => mine,
            Err(taken) => taken,
        };
        Ok(ForkMark { page, number })
    }

    /// Whether this is a forked child of the process that the mark was made in.
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        self.page.load(Ordering::Relaxed) != self.number
    }
}

fn page() -> io::Result<&'static LocalWord> {
    // Acquire: pairs with the Release below; the page is mapped.
    let known = PAGE.load(Ordering::Acquire);
    if !known.is_null() {
        // SAFETY: the pointer is the one below, and never changes again.
        return Ok(unsafe { &*known });
    }
    let map = MmapRaw::from(MmapOptions::new().len(PAGE_BYTES).map_anon()?);
    // SAFETY: the page is this mapping's own and nobody else knows it yet. In this process its contents stay; in a forked child
    // they are zero, for which the word in it has a meaning.
    unsafe { rustix::mm::madvise(map.as_mut_ptr().cast(), PAGE_BYTES, rustix::mm::Advice::LinuxWipeOnFork) }?;
    let new = map.as_mut_ptr().cast::<LocalWord>();
    match PAGE.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            // Never unmapped: it is there for as long as the process is.
            std::mem::forget(map);
            // SAFETY: mapped just now for ever, page-aligned, zero, and used as this atomic word alone.
            Ok(unsafe { &*new })
        }
        // Another thread was faster; this page is unmapped with `map`.
        // SAFETY: as above, of the other thread's page.
        Err(known) => Ok(unsafe { &*known }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_one_number_and_is_not_its_own_child() {
        let (first, second) = (ForkMark::of_this_process().unwrap(), ForkMark::of_this_process().unwrap());
        assert_eq!(first.number, second.number);
        assert!(!first.is_forked() && !second.is_forked());
    }
}
