//! Admissions to start: one gate before anything runs in a place, and at most one unfinished admission per surface.
//!
//! | module | holds |
//! |---|---|
//! | [`names`] | ids, keys and paths with one spelling each |
//! | [`facts`] | what a policy is asked, and the policy as a trait |
//! | [`record`] | what the ledger keeps |
//! | [`request`] | what callers send |
//! | [`refusal`] | why they are refused |
//! | [`credential`] | what a credential says |
//! | [`ledger`] | every verb, as a trait |

pub mod credential;
pub mod facts;
pub mod ledger;
pub mod names;
pub mod record;
pub mod refusal;
pub mod request;

pub use credential::{CREDENTIAL_MS_DEFAULT, Credential, Grant, Seal};
pub use facts::{Decision, Entrance, Facts, Occasion, Policy, Subject, Work};
pub use ledger::{Answer, EXPIRES_AFTER_MS, Fault, Ledger, Overlap, Pickup, Placed, Stop, SurfaceAdded, Waiting};
pub use names::{AdmId, Attempt, BadName, Digest, Generation, MachineId, MachineLabel, Place, RequestId, SurfaceKey};
pub use record::{
    AttemptKey, Destination, Input, Kind, LegacyOwner, MachineView, Phase, Placement, Record, Refused, SurfaceView,
};
pub use refusal::{LedgerError, Refusal};
pub use request::{Append, By, Closing, History, IfWaiting, Placing, Request};
