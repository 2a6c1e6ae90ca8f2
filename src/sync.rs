//! The only place that knows what an atomic is.
//!
//! Every shared word of the table is a [`Shared<T>`]: 64 bits, native, never a lock below. In an ordinary build it is
//! the `atomic` crate's `Atomic<T>`, built without its lock fallback and checked to be lock-free at compile time. Under
//! `--cfg tenure_loom` it is loom's, so that the transition functions themselves can be explored.

/// What crash-point builds (`--cfg tenure_crash`) do before every access.
#[cfg(tenure_crash)]
#[path = "sync/probe.rs"]
pub mod probe;

/// A counter that belongs to this process alone and is never mapped.
#[cfg(not(tenure_loom))]
pub(crate) use std::sync::atomic::AtomicUsize as LocalCounter;

/// A pointer that belongs to this process alone and is never mapped.
#[cfg(not(tenure_loom))]
pub(crate) use std::sync::atomic::AtomicPtr as LocalPointer;

/// A word that belongs to this process alone and is never mapped.
#[cfg(not(tenure_loom))]
pub(crate) use std::sync::atomic::AtomicU64 as LocalWord;

pub(crate) use imp::{Ordering, Shared, Shared32, fence};

/// What can live in a [`Shared`]: a transparent wrapper of `u64` for which every bit pattern is a value.
pub(crate) trait Bits: Copy + Eq + bytemuck::NoUninit + bytemuck::Zeroable {
    /// The raw word.
    fn bits(self) -> u64;
    /// The value of a raw word; total, since hostile files hold anything.
    fn from_bits(bits: u64) -> Self;
}

impl Bits for u64 {
    fn bits(self) -> u64 {
        self
    }
    fn from_bits(bits: u64) -> u64 {
        bits
    }
}

#[cfg(not(tenure_loom))]
mod imp {
    use atomic::Atomic;
    pub(crate) use atomic::{Ordering, fence};

    use super::Bits;

    /// A 64-bit word that any number of processes read and write.
    #[repr(transparent)]
    pub(crate) struct Shared<T: Bits>(Atomic<T>);

    impl<T: Bits> Shared<T> {
        const LOCK_FREE: () = assert!(Atomic::<T>::is_lock_free() && size_of::<Atomic<T>>() == 8);

        #[inline]
        pub(crate) fn load(&self, order: Ordering) -> T {
            const { Self::LOCK_FREE };
            #[cfg(tenure_crash)]
            super::probe::before(false);
            self.0.load(order)
        }

        #[inline]
        pub(crate) fn store(&self, value: T, order: Ordering) {
            #[cfg(tenure_crash)]
            if !super::probe::before(true) {
                return;
            }
            self.0.store(value, order);
        }

        /// One attempt; the strong form, for transitions that decide anew from the value seen.
        #[inline]
        pub(crate) fn compare_exchange(&self, old: T, new: T, ok: Ordering, lost: Ordering) -> Result<T, T> {
            #[cfg(tenure_crash)]
            if !super::probe::before(true) {
                return Err(self.0.load(Ordering::Relaxed));
            }
            self.0.compare_exchange(old, new, ok, lost)
        }
    }

    /// The one 32-bit word: what the kernel's futex compares.
    #[repr(transparent)]
    pub(crate) struct Shared32(std::sync::atomic::AtomicU32);

    impl Shared32 {
        #[inline]
        pub(crate) fn load(&self, order: Ordering) -> u32 {
            #[cfg(tenure_crash)]
            super::probe::before(false);
            self.0.load(order)
        }

        pub(crate) fn compare_exchange(&self, old: u32, new: u32, ok: Ordering, lost: Ordering) -> Result<u32, u32> {
            #[cfg(tenure_crash)]
            if !super::probe::before(true) {
                return Err(self.0.load(Ordering::Relaxed));
            }
            self.0.compare_exchange(old, new, ok, lost)
        }

        /// For the system call alone.
        #[cfg(not(tenure_crash))]
        pub(crate) fn futex(&self) -> &std::sync::atomic::AtomicU32 {
            &self.0
        }
    }

    impl Shared<u64> {
        #[inline]
        pub(crate) fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
            #[cfg(tenure_crash)]
            if !super::probe::before(true) {
                return 0;
            }
            self.0.fetch_or(bits, order)
        }

        #[inline]
        pub(crate) fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
            #[cfg(tenure_crash)]
            if !super::probe::before(true) {
                return 0;
            }
            self.0.fetch_and(bits, order)
        }

        #[inline]
        pub(crate) fn fetch_add(&self, n: u64, order: Ordering) -> u64 {
            #[cfg(tenure_crash)]
            if !super::probe::before(true) {
                return 0;
            }
            self.0.fetch_add(n, order)
        }
    }
}

#[cfg(tenure_loom)]
mod imp {
    use std::marker::PhantomData;

    use loom::sync::atomic::{AtomicU32, AtomicU64};
    pub(crate) use loom::sync::atomic::{Ordering, fence};

    use super::Bits;

    /// The same word inside a loom model. It is never laid over mapped bytes: loom's atomics hold an index into its own
    /// store.
    ///
    /// Loom remembers only the latest access to a word, whoever made it. So of a thread that reads a word and swaps it it
    /// overlooks the schedules in which another thread's read comes before the first and its next step after the second.
    /// Every access here therefore also swaps a word beside it, relaxed: that orders nothing, and shows loom every pair
    /// of accesses that could come the other way round.
    pub(crate) struct Shared<T: Bits> {
        word: AtomicU64,
        beside: AtomicU64,
        holds: PhantomData<T>,
    }

    impl<T: Bits> Shared<T> {
        pub(crate) fn new(value: T) -> Self {
            Shared { word: AtomicU64::new(value.bits()), beside: AtomicU64::new(0), holds: PhantomData }
        }

        fn touched(&self) -> &AtomicU64 {
            self.beside.fetch_add(1, Ordering::Relaxed);
            &self.word
        }

        pub(crate) fn load(&self, order: Ordering) -> T {
            T::from_bits(self.touched().load(order))
        }

        pub(crate) fn store(&self, value: T, order: Ordering) {
            self.touched().store(value.bits(), order);
        }

        pub(crate) fn compare_exchange(&self, old: T, new: T, ok: Ordering, lost: Ordering) -> Result<T, T> {
            let word = self.touched();
            word.compare_exchange(old.bits(), new.bits(), ok, lost).map(T::from_bits).map_err(T::from_bits)
        }
    }

    /// The doorbell's word inside a model; there is no kernel to sleep in.
    pub(crate) struct Shared32 {
        word: AtomicU32,
        beside: AtomicU64,
    }

    impl Shared32 {
        pub(crate) fn new(value: u32) -> Self {
            Shared32 { word: AtomicU32::new(value), beside: AtomicU64::new(0) }
        }

        fn touched(&self) -> &AtomicU32 {
            self.beside.fetch_add(1, Ordering::Relaxed);
            &self.word
        }

        pub(crate) fn load(&self, order: Ordering) -> u32 {
            self.touched().load(order)
        }

        pub(crate) fn store(&self, value: u32, order: Ordering) {
            self.touched().store(value, order);
        }

        pub(crate) fn compare_exchange(&self, old: u32, new: u32, ok: Ordering, lost: Ordering) -> Result<u32, u32> {
            self.touched().compare_exchange(old, new, ok, lost)
        }
    }

    impl Shared<u64> {
        pub(crate) fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
            self.touched().fetch_or(bits, order)
        }

        pub(crate) fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
            self.touched().fetch_and(bits, order)
        }

        pub(crate) fn fetch_add(&self, n: u64, order: Ordering) -> u64 {
            self.touched().fetch_add(n, order)
        }
    }
}
