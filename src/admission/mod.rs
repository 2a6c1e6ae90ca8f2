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
//! | `rules` | what is decided, pure |
//! | [`ledger`] | every verb, as a trait |
//! | [`digest`] | what a request asks for, as one number |
//! | [`policy`] | policies: a file, a program, or the owner alone |
//! | [`keys`] | who this machine is, and what credentials are made with |
//! | [`token`] | credentials as tokens |
//! | [`outbox`] | what is to be sent stays there until it is taken |
//! | [`home`] | where all of it is kept on this machine |
//! | [`runs`] | the files that a command finds |
//! | [`open`] | opening a ledger with all of this |

pub mod credential;
pub mod digest;
pub mod facts;
pub mod home;
pub mod keys;
pub mod ledger;
pub mod names;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub mod open;
pub mod outbox;
pub mod policy;
#[cfg(feature = "postgres")]
mod postgres;
pub mod private;
pub mod record;
pub mod refusal;
pub mod request;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod rules;
pub mod runs;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod store;
pub mod token;

pub use credential::{CREDENTIAL_MS_DEFAULT, Credential, Grant, Seal};
pub use digest::Content;
pub use facts::{Decision, Entrance, Facts, Occasion, Policy, Subject, Work};
pub use home::Home;
pub use keys::{Identity, KeyError, SealKeys};
pub use ledger::{
    Answer, EXPIRES_AFTER_MS, Fault, Ledger, Migrated, Overlap, Pickup, Placed, Stop, SurfaceAdded, Waiting,
};
pub use names::{
    AdmId, Attempt, BadName, Digest, Generation, MachineId, MachineLabel, MachineRef, Place, RequestId, SurfaceKey,
};
pub use outbox::Outbox;
#[cfg(feature = "postgres")]
pub use postgres::open_postgres;
pub use record::{
    AttemptKey, Destination, Input, Kind, LegacyOwner, MachineView, Phase, Placement, Record, Refused, SurfaceView,
};
pub use refusal::{LedgerError, Refusal};
pub use request::{Append, By, Closing, History, IfWaiting, Placing, Request};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use sql::{Moment, Probe};
#[cfg(feature = "sqlite")]
pub use sqlite::{LEDGER_FILE, ledger_path, open_sqlite};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use store::{Clock, Options, WAIT_MS_DEFAULT};
