//! Linearizability (G1): histories of verbs from threads and from processes, also killed ones, against the model.
//!
//! A history is who called what, when the call began, what was answered and when. It is linearizable when the calls can be
//! put into one order, in which no call that had ended comes behind one that began later, and in which the model gives
//! the same answers. A call whose process was killed may stand in that order or not.
//!
//! `history` has calls and answers, `steps` what of a call has an instant of its own, `spec` the model as a judge of one
//! step, `checker` the search for an order, `clock` the time that leases go by, `threads` and `processes` make histories.
//! `scripts/linearize SECONDS` runs them for longer, and once more in a build whose clock moves.
//!
//! Besides what the model says, these freedoms are in `spec`: `claim-next` may give out any ready node, and may find none while
//! another claim is on its way, since it leaves a node alone for half a second that somebody is about to claim. It may notice a
//! lease that has run out half a second late. And a claim that stops half made may be made by another call that meets it (one
//! under the same name, or of its group) and be over before it goes on; then it claims once more, as if it had not been. So does one
//! that resumes with a shorter lease which runs out, and is taken back, before the call returns.

mod checker;
mod clock;
mod history;
#[path = "../model/mod.rs"]
#[allow(unused_imports, reason = "shared with the tests of the model, which use all of it")]
mod model;
mod processes;
mod spec;
mod steps;
mod threads;

use std::time::Duration;

/// How long each maker of histories goes on.
fn depth() -> Duration {
    let seconds = std::env::var("TENURE_LINEARIZE_SECONDS").ok().and_then(|s| s.parse().ok());
    Duration::from_secs(seconds.unwrap_or(3))
}
