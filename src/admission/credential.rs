//! What a credential says, and who makes and reads it. How it is written down is not known here.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::names::{AdmId, Generation, MachineId};
use super::refusal::Refusal;

/// How long a credential is good unless the ledger was told otherwise (A33).
pub const CREDENTIAL_MS_DEFAULT: u64 = 300_000;

/// What a credential says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// For which admission.
    pub admission: AdmId,
    /// For which machine.
    pub machine: MachineId,
    /// Under which placement.
    pub generation: Generation,
    /// Its number; only the newest is good.
    pub attach_number: u64,
    /// Policy epoch of the decision behind it.
    pub policy_epoch: u64,
    /// When it was made, on the ledger's clock.
    pub issued_ms: u64,
    /// Until when it is good, on the ledger's clock.
    pub deadline_ms: u64,
}

/// The token as handed to an execution. Never on a command line; `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// What the holder presents.
    pub token: String,
    /// Until when it is good, on the ledger's clock.
    pub deadline_ms: u64,
    /// Its number.
    pub attach_number: u64,
}

impl Credential {
    /// A credential that the caller has only the token of.
    pub fn from_token(token: impl Into<String>) -> Credential {
        Credential { token: token.into(), deadline_ms: 0, attach_number: 0 }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credential(number {}, good until {})", self.attach_number, self.deadline_ms)
    }
}

/// Makes tokens from grants and reads them back.
pub trait Seal: Send + Sync {
    /// The token that says this. Called after the commit, so whatever can fail should fail when the seal is made; a
    /// failure here is [`Refusal::Credential`], and `attach` tries again.
    fn seal(&self, grant: &Grant) -> Result<Credential, Refusal>;

    /// What a token says, if it is one of ours. Its deadline is not looked at: the ledger does that, by its own clock.
    fn open(&self, token: &str) -> Result<Grant, Refusal>;
}
