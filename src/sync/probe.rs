//! Crash and pause points: every access to a shared word is counted, and before the k-th the thread either dies (a panic,
//! after which its stores do nothing) or lets other verbs run in its place and then goes on.
//!
//! It also has a clock of its own, once somebody sets it, and a sleep that takes no time. All of it belongs to one thread,
//! which plays every process of a scenario.
//!
//! A program of such a build is killed by SIGKILL before its k-th write of a shared word when the environment says so:
//! `TENURE_KILL_AT=K`, counted from 0.

use std::cell::{Cell, RefCell};

/// What a dead thread unwinds with.
pub struct Died;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static AT: Cell<u64> = const { Cell::new(u64::MAX) };
    static WRITES_ONLY: Cell<bool> = const { Cell::new(false) };
    static DEAD: Cell<bool> = const { Cell::new(false) };
    static NOW: Cell<Option<u64>> = const { Cell::new(None) };
    static KILL_AT: Option<u64> = std::env::var("TENURE_KILL_AT").ok().and_then(|at| at.parse().ok());
    static WRITES: Cell<u64> = const { Cell::new(0) };
    static ME: Cell<Option<(u32, u64)>> = const { Cell::new(None) };
    static ASLEEP: Cell<u32> = const { Cell::new(0) };
    static ACTION: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// Arms the probe: `action` runs before access `at`, counted from 0 (of writes only, if so asked).
pub fn arm(at: u64, writes_only: bool, action: impl FnOnce() + 'static) {
    COUNT.set(0);
    AT.set(at);
    WRITES_ONLY.set(writes_only);
    ACTION.with(|a| *a.borrow_mut() = Some(Box::new(action)));
}

/// Disarms it and brings the thread back to life. True: the action has run.
pub fn disarm() -> bool {
    AT.set(u64::MAX);
    DEAD.set(false);
    ASLEEP.set(0);
    ACTION.with(|a| a.borrow_mut().take()).is_none()
}

/// To be the action of [`arm`]: the thread dies here.
pub fn die() {
    DEAD.set(true);
    std::panic::resume_unwind(Box::new(Died));
}

/// The clock of this thread, in milliseconds: the kernel's until somebody sets it.
pub fn now_ms() -> u64 {
    NOW.get().unwrap_or_else(|| {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
    })
}

/// Moves it.
pub fn set_now_ms(now: u64) {
    NOW.set(Some(now));
}

/// From now on it is the kernel's again.
pub fn unset_now() {
    NOW.set(None);
}

/// Tables opened by this thread from now on have this pid and start time as their mark.
pub fn pose_as(owner: Option<(u32, u64)>) {
    ME.set(owner);
}

pub(crate) fn posed() -> Option<(u32, u64)> {
    ME.get()
}

/// Before an access. False: the thread is dead, so nothing may be written.
pub(crate) fn before(write: bool) -> bool {
    if DEAD.get() {
        return false;
    }
    if write && let Some(at) = KILL_AT.with(|at| *at) {
        let count = WRITES.get();
        WRITES.set(count + 1);
        if count == at {
            let me = rustix::process::getpid();
            // Of a process that is killed this does not return.
            let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
        }
    }
    if AT.get() == u64::MAX || (WRITES_ONLY.get() && !write) {
        return true;
    }
    let count = COUNT.get();
    COUNT.set(count + 1);
    if count == AT.get() {
        AT.set(u64::MAX);
        let action = ACTION.with(|a| a.borrow_mut().take());
        if let Some(action) = action {
            action();
        }
    }
    true
}

/// A sleep is a pause point too. Unless somebody wakes the sleeper there, the deadline comes.
pub(crate) fn sleep(bits: u32, deadline_ms: u64) {
    ASLEEP.set(bits);
    before(false);
    if ASLEEP.replace(0) != 0 {
        NOW.set(Some(now_ms().max(deadline_ms)));
    }
}

/// How many sleepers with one of these bits were woken.
pub(crate) fn wake(bits: u32) -> usize {
    let woken = ASLEEP.get() & bits != 0;
    if woken {
        ASLEEP.set(0);
    }
    usize::from(woken)
}
