//! Who may start what: a policy looks at the facts of one start and answers yes or no, with a reason.
//!
//! It is asked anew on every send, resend, attach and start (A17); a stored admission is no proof of permission (A18). It
//! is asked before anything is written, never inside a transaction, so its answer goes with the epoch it was made in:
//! whoever writes compares that with the epoch then, and asks again when the policy has changed in between.

mod command;
mod file;
mod installed;
mod owner;

use super::facts::Decision;
use super::names::is_invisible;

pub use command::{HOOK_PATIENCE, Hook};
pub use file::{FilePolicy, POLICY_BYTES_MAX, PolicyFileError};
pub use installed::Installed;
pub use owner::OwnerOnly;

/// Longest reason that is kept, in bytes; what a hook says beyond that is cut.
pub const REASON_BYTES_MAX: usize = 500;

/// How a reason begins when nobody could decide.
pub const UNAVAILABLE: &str = "policy_unavailable";

const fn allowed(epoch: u64) -> Decision {
    Decision { denied: None, epoch }
}

/// No, because of a rule.
fn denied(epoch: u64, reason: impl AsRef<str>) -> Decision {
    Decision { denied: Some(one_line(reason.as_ref())), epoch }
}

/// No, because nobody could decide.
fn unavailable(epoch: u64, why: impl AsRef<str>) -> Decision {
    denied(epoch, format!("{UNAVAILABLE}: {}", one_line(why.as_ref())))
}

/// The first line, without control characters and no longer than a row of refusals should be.
fn one_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no reason was given");
    let mut kept = String::new();
    for c in harmless(line).chars() {
        if kept.len() + c.len_utf8() > REASON_BYTES_MAX {
            break;
        }
        kept.push(c);
    }
    kept
}

/// The text with a mark for each character that a terminal obeys or that nobody sees.
fn harmless(text: &str) -> String {
    text.chars().map(|c| if is_invisible(c) { '\u{fffd}' } else { c }).collect()
}

#[cfg(all(test, not(tenure_loom)))]
mod tests;
