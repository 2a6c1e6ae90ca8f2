//! The two clocks: the lease clock, which nobody can set, and the wall clock, which is only for display.

#[cfg(not(tenure_crash))]
use rustix::time::{ClockId, clock_gettime};

/// Milliseconds on the lease clock: the kernel's monotonic clock, the same for every process of the host.
///
/// A step of the wall clock does not move it, and it stands still while the machine is suspended, as do the holders.
#[inline]
pub(crate) fn lease_now_ms() -> u64 {
    #[cfg(tenure_crash)]
    return crate::sync::probe::now_ms();
    #[cfg(not(tenure_crash))]
    ms(clock_gettime(ClockId::Monotonic))
}

/// The same clock in nanoseconds: which of two snapshots is the older one.
pub(crate) fn lease_now_ns() -> u64 {
    #[cfg(tenure_crash)]
    return crate::sync::probe::now_ms() * 1_000_000;
    #[cfg(not(tenure_crash))]
    ns(clock_gettime(ClockId::Monotonic))
}

/// The same clock as of the last timer tick, a few milliseconds old at most and several times cheaper: good enough for
/// the time a node ended, which is shown and used to prune the oldest first.
#[inline]
pub(crate) fn lease_now_coarse_ms() -> u64 {
    #[cfg(tenure_crash)]
    return crate::sync::probe::now_ms();
    #[cfg(not(tenure_crash))]
    ms(clock_gettime(ClockId::MonotonicCoarse))
}

/// Wall clock, milliseconds since 1970.
pub(crate) fn wall_now_ms() -> u64 {
    #[cfg(tenure_crash)]
    return crate::sync::probe::now_ms();
    #[cfg(not(tenure_crash))]
    ms(clock_gettime(ClockId::Realtime))
}

#[cfg(not(tenure_crash))]
fn ns(t: rustix::time::Timespec) -> u64 {
    (t.tv_sec.max(0) as u64) * 1_000_000_000 + t.tv_nsec as u64
}

#[cfg(not(tenure_crash))]
fn ms(t: rustix::time::Timespec) -> u64 {
    (t.tv_sec.max(0) as u64) * 1_000 + (t.tv_nsec as u64) / 1_000_000
}
