//! The lease clock of the histories: it moves when a call of a history moves it, and for all processes at once. And pauses.
//!
//! Only crash-point builds have a clock that a test can set, one for each thread. So every call first sets it to the time that
//! all share: the length of a file, to which an `advance` adds a byte. In an ordinary build that clock stands still, and the
//! leases are far longer than a history.
//!
//! Such a build can also stop a call between any two accesses to the table. That is where the others' calls, and those that
//! move the clock, find it half done far more often than by chance.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
#[cfg(tenure_crash)]
use std::time::Duration;

use crate::history::Dice;

/// Whether the clock can be moved in this build.
pub const MOVES: bool = cfg!(tenure_crash);

/// By how much one `advance` moves it: more than a half of a lease.
pub const STEP_MS: u64 = 600;

const START_MS: u64 = 1_000_000;

pub struct Clock {
    file: File,
}

impl Clock {
    /// The clock of a table, which is in its directory.
    pub fn of(dir: &Path) -> Clock {
        let file = OpenOptions::new().create(true).append(true).open(dir.join("clock"));
        Clock { file: file.expect("a file beside the table") }
    }

    /// What it says now; the calls of this thread go by that until it is read again.
    pub fn read(&self) -> u64 {
        let steps = self.file.metadata().expect("a file that is open").len();
        let now_ms = START_MS + steps * STEP_MS;
        #[cfg(tenure_crash)]
        tenure::probe::set_now_ms(now_ms);
        now_ms
    }

    pub fn advance(&self) {
        (&self.file).write_all(b".").expect("room for a byte");
    }
}

/// The longest pause in the middle of a call, in microseconds: several calls of the others.
#[cfg(tenure_crash)]
const PAUSE_US_MAX: u64 = 100;
/// Accesses to the table that most calls have.
#[cfg(tenure_crash)]
const ACCESSES: u64 = 120;

/// Makes a call that stops for a moment somewhere on its way, in half of the cases.
#[cfg(tenure_crash)]
pub fn with_pause<T>(dice: &mut Dice, call: impl FnOnce() -> T) -> T {
    if dice.below(2) == 0 {
        let pause = Duration::from_micros(dice.below(PAUSE_US_MAX));
        tenure::probe::arm(dice.below(ACCESSES), false, move || std::thread::sleep(pause));
    }
    let answer = call();
    tenure::probe::disarm();
    answer
}

#[cfg(not(tenure_crash))]
pub fn with_pause<T>(_: &mut Dice, call: impl FnOnce() -> T) -> T {
    call()
}
