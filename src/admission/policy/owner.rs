//! With no policy file: the ledger's own user may start anything, and nobody else may start anything.

use crate::admission::facts::{Decision, Facts, Policy, Subject};

use super::{allowed, denied};

/// One subject that may do everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerOnly {
    owner: Subject,
}

impl OwnerOnly {
    /// The ledger belongs to `owner`.
    pub fn new(owner: Subject) -> OwnerOnly {
        OwnerOnly { owner }
    }
}

impl Policy for OwnerOnly {
    fn epoch(&self) -> u64 {
        xxhash_rust::xxh3::xxh3_64(format!("owner only {}", self.owner).as_bytes())
    }

    fn evaluate(&self, facts: &Facts) -> Decision {
        if facts.subject == self.owner {
            return allowed(self.epoch());
        }
        let owner = &self.owner;
        denied(
            self.epoch(),
            format!("the ledger belongs to {owner}, and without a policy file nobody else may start anything"),
        )
    }
}
