//! Every crash point and every pause point, on a table so small that each access is one of them.
//!
//! `scripts/crash` builds this with `--cfg tenure_crash`; without the cfg there is nothing here. Verbs are written as
//! words, so that a scenario reads as a script: see `World::run`.
//!
//! * `crash(setup, verb)`: the process dies before its k-th write of a shared word, for every k. Another process must
//!   then find the verb done or not done, nothing reserved, and must be able to do everything.
//!   What "done or not done" covers is said in `points::Promise`.
//! * `matrix`: that for every verb of the library in every one of several states, also ones that another death left.
//! * `programs`: that for every verb of the command line, with real processes and SIGKILL.
//! * `system_calls`: SIGKILL at the k-th system call while a table is made, a snapshot written or restored.
//! * `pause(setup, verb, others)`: the process is stopped before its k-th access (reads too), for every k; others run a
//!   script meanwhile; then it goes on. What all were answered and what the table holds must be what *some* order gives:
//!   `verb` before, between or after the others.
#![cfg(tenure_crash)]

macro_rules! scenario {
    ($name:ident, $kind:ident, $($arg:expr),+) => {
        #[test]
        fn $name() {
            report($kind($($arg),+));
        }
    };
}

mod crashes;
mod full;
mod matrix;
mod newer;
mod pairs;
mod points;
mod programs;
mod suspicions;
mod system_calls;
mod threads;
mod verbs;
mod waiters;
mod world;
