//! Waiting for a node: asleep in the kernel until one may be ready.
//!
//! The doorbell is one 32-bit word: a count in the upper 31 bits, and in the lowest whether somebody may sleep on it.
//!
//! * A waiter sets the low bit, looks for a node *after that*, and sleeps only if the word still is what it was.
//! * Whoever makes a node ready sets its hint and looks at the word *after that*. If the low bit is not set it is done,
//!   without a system call. Otherwise it moves the count and wakes one waiter that fits.
//! * A ringer that woke nobody takes the low bit away, and wakes all who fell asleep over it meanwhile.
//!
//! Of a waiter that looks and a ringer that sets a hint, one sees what the other did, as in `hints`. A waiter that was woken
//! and leaves without the node rings again. One that is killed on the way does not; for that, and for leases that run out
//! while everybody sleeps, one waiter is the *watcher*: it sleeps only until the next look through the leases is due, and
//! all others sleep long. Who finds the watcher gone takes its place.

use crate::sync::Ordering;
use crate::table::{Core, Stop, TRIES};
use crate::word::OwnerWord;

/// The longest sleep of a waiter that is not the watcher: how late the death of the watcher is noticed.
pub(crate) const SLEEP_MS_MAX: u64 = 10_000;

/// The bit of waiters that take nodes without a role, which every waiter does.
const ANY_ROLE: u32 = 1;

/// The bit of a role. Roles share bits, so a ring may wake a waiter in vain; it passes the ring on.
fn role_bit(role: u64) -> u32 {
    if role == 0 { ANY_ROLE } else { 2 << (role % 31) }
}

/// The bits of a waiter that offers these roles.
pub(crate) fn waiter_bits(roles: &[u64]) -> u32 {
    roles.iter().fold(ANY_ROLE, |bits, &role| bits | role_bit(role))
}

impl Core<'_> {
    /// Says that somebody is about to sleep; what it has to find unchanged to do so. Followed by a look for a node.
    pub(crate) fn prepare_to_sleep(&self) -> u32 {
        let bell = &self.fixed.header.bell;
        let mut seen = bell.load(Ordering::SeqCst);
        for _ in 0..TRIES {
            if seen & 1 == 1 {
                break;
            }
            // SeqCst: before the look for a node, in the one order with a ringer's hint and its look at this word.
            match bell.compare_exchange(seen, seen | 1, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return seen | 1,
                Err(now) => seen = now,
            }
        }
        seen
    }

    /// A node that asks for `role` (0: any) may be ready.
    #[inline]
    pub(crate) fn ring(&self, role: u64) {
        if self.fixed.header.bell.load(Ordering::SeqCst) & 1 == 1 {
            self.ring_sleepers(role_bit(role), 1);
        }
    }

    /// Rings on for nodes that a waiter was woken for because its roles share a bit with another's: once for each, since
    /// there may be nobody who offers that role.
    pub(crate) fn pass_on(&self, roles: &[u64], passed_on: &mut Vec<(u16, u64)>) -> Result<(), Stop> {
        let bits = waiter_bits(roles) & !ANY_ROLE;
        if bits == 0 {
            return Ok(());
        }
        let seen = self.in_force()?;
        for (slot, _) in seen.hinted() {
            let role = seen.role(slot);
            let once = (slot, self.node(slot)?.word.load(Ordering::Acquire).generation());
            if role_bit(role) & bits != 0 && !roles.contains(&role) && !passed_on.contains(&once) {
                passed_on.push(once);
                self.ring(role);
            }
        }
        Ok(())
    }

    /// Wakes a waiter for each role that a hinted node asks for and the watcher, who offers `roles`, does not, and for nodes
    /// that name a surface: the one that was woken when the node became ready may have been killed since.
    pub(crate) fn ring_for_others(&self, roles: &[u64]) -> Result<(), Stop> {
        let seen = self.in_force()?;
        let mut rung = Vec::new();
        for (slot, _) in seen.hinted() {
            let role = seen.role(slot);
            let may_be_anothers = (role != 0 && !roles.contains(&role)) || seen.policy(slot).is_gated();
            if may_be_anothers && !rung.contains(&role) && !self.is_group_full(slot, &seen)? {
                rung.push(role);
                self.ring(role);
            }
        }
        Ok(())
    }

    /// Wakes everybody to look again.
    pub(crate) fn ring_all(&self) {
        if self.fixed.header.bell.load(Ordering::SeqCst) & 1 == 1 {
            self.ring_sleepers(u32::MAX, u32::MAX >> 1);
        }
    }

    #[cold]
    fn ring_sleepers(&self, bits: u32, count: u32) {
        let bell = &self.fixed.header.bell;
        let mut seen = bell.load(Ordering::SeqCst);
        for _ in 0..TRIES {
            if seen & 1 == 0 {
                return;
            }
            // Whoever is about to sleep over the old count does not.
            match bell.compare_exchange(seen, seen.wrapping_add(2), Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        let moved = seen.wrapping_add(2);
        // Only a ring that could have woken anybody and woke nobody says that nobody sleeps.
        if self.wake(bits, count) == 0 && bits & ANY_ROLE != 0 {
            let quiet = bell.compare_exchange(moved, moved.wrapping_add(2) & !1, Ordering::SeqCst, Ordering::SeqCst);
            if quiet.is_ok() {
                self.wake(u32::MAX, u32::MAX >> 1);
            }
        }
    }

    /// Becomes the watcher if there is none. True: this process's thread is the watcher from now on.
    pub(crate) fn become_watcher(&self) -> bool {
        let watcher = &self.fixed.header.watcher;
        // SeqCst: of this look, after the waiter has said that it will sleep, and the look at the bell of whoever leaves the watch
        // one sees the other.
        let seen = watcher.load(Ordering::SeqCst);
        let Ok(me) = self.me() else { return false };
        let vacant = seen == OwnerWord::NOBODY || (seen != me && crate::process::is_gone(seen));
        vacant && watcher.compare_exchange(seen, me, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Leaves the watch, and wakes somebody who takes it over.
    pub(crate) fn leave_watch(&self) {
        let watcher = &self.fixed.header.watcher;
        let Ok(me) = self.me() else { return };
        // SeqCst, and the bell after it: see `become_watcher`.
        let left = watcher.compare_exchange(me, OwnerWord::NOBODY, Ordering::SeqCst, Ordering::Relaxed);
        if left.is_ok() && self.fixed.header.bell.load(Ordering::SeqCst) & 1 == 1 {
            self.ring_sleepers(u32::MAX, 1);
        }
    }

    /// When the next look through the leases is due, on the lease clock.
    pub(crate) fn next_scan_ms(&self) -> u64 {
        self.fixed.header.next_scan_ms.load(Ordering::Acquire)
    }
}

#[cfg(not(any(tenure_loom, tenure_crash)))]
mod kernel {
    use std::num::NonZeroU32;

    use rustix::thread::futex;
    use rustix::time::Timespec;

    use super::*;

    impl Core<'_> {
        /// Sleeps until it is rung, until `deadline_ms` on the lease clock, or not at all when the bell has moved.
        ///
        /// The futex is not private: it is found by the page of the file, so processes wake each other.
        pub(crate) fn sleep(&self, seen: u32, bits: u32, deadline_ms: u64) {
            let deadline =
                Timespec { tv_sec: (deadline_ms / 1_000) as i64, tv_nsec: (deadline_ms % 1_000 * 1_000_000) as i64 };
            let bits = NonZeroU32::new(bits).unwrap_or(NonZeroU32::MAX);
            // Whatever wakes it, the caller looks again.
            let bell = self.fixed.header.bell.futex();
            let _ = futex::wait_bitset(bell, futex::Flags::empty(), seen, Some(&deadline), bits);
        }

        /// How many waiters were woken.
        pub(super) fn wake(&self, bits: u32, count: u32) -> usize {
            let bits = NonZeroU32::new(bits).unwrap_or(NonZeroU32::MAX);
            futex::wake_bitset(self.fixed.header.bell.futex(), futex::Flags::empty(), count, bits).unwrap_or(0)
        }
    }
}

/// One thread plays all processes: whoever sleeps can only be woken by what the probe runs in its sleep.
#[cfg(all(tenure_crash, not(tenure_loom)))]
impl Core<'_> {
    pub(crate) fn sleep(&self, seen: u32, bits: u32, deadline_ms: u64) {
        if self.fixed.header.bell.load(Ordering::SeqCst) == seen {
            crate::sync::probe::sleep(bits, deadline_ms);
        }
    }

    fn wake(&self, bits: u32, _count: u32) -> usize {
        crate::sync::probe::wake(bits)
    }
}

#[cfg(tenure_loom)]
impl Core<'_> {
    /// Nobody sleeps in a model.
    fn wake(&self, _bits: u32, _count: u32) -> usize {
        0
    }
}
