//! **tenure**: a memory-mapped, lock-free scheduler core.
//!
//! Worker processes on one host share one file. Claiming, renewing and completing a node of a task graph is a
//! compare-and-swap on it: there is no server, no daemon and no lock on that path, and a worker that is killed at any
//! instruction holds nobody up.
//!
//! ```
//! use tenure::{CreateOptions, NodeId, NodeSpec, Outcome, Table};
//!
//! let dir = tempfile::tempdir()?;
//! let (table, _made) = Table::open_or_create(dir.path(), &CreateOptions::default())?;
//! for name in ["fetch", "build"] {
//!     table.upsert(&NodeSpec { name: Some(name.into()), ..NodeSpec::default() }, false)?;
//! }
//! table.link(NodeId::resolve("fetch")?, NodeId::resolve("build")?)?; // build waits for fetch
//!
//! let worker = table.worker("w1")?;
//! let claim = worker.claim_next()?;
//! assert_eq!(claim.id(), NodeId::resolve("fetch")?);
//! claim.renew()?; // still alive
//! claim.complete(Outcome::Done)?;
//! assert_eq!(worker.claim_next()?.id(), NodeId::resolve("build")?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What holds at every moment
//!
//! 1. A node is held by at most one holder, and a holder holds at most one node.
//! 2. A claim is a lease. Renewed in time it is never taken; run out, anybody who looks for work takes it back.
//! 3. Each claim moves the node's generation. The generation is the fence: what is presented under an old one is refused.
//!    It never goes back and is never used again, also not when the slot gets another node.
//! 4. Readiness is derived from the dependencies whenever it matters; nobody can store it.
//! 5. The graph has no loop, over dependencies and parents together, in any version that anybody can see.
//! 6. Whatever instruction a process is stopped at, all others go on with every verb.
//!
//! # How it is built
//!
//! A file may use only what stands above it.
//!
//! | module | holds |
//! |---|---|
//! | `sync` | the atomics, and what stands in for them in models |
//! | `error`, `id`, `node` | what callers see: refusals with stable codes, ids, fields |
//! | `layout` | the bytes of the file |
//! | `word` | the packed words and what each value means |
//! | `clock`, `process`, `fork`, `record` | the two clocks; who is alive; whether this is a forked child; the text fields as bytes |
//! | `derive`, `graph`, `standing` | what follows from a graph; one version of it in private memory; where its nodes stand |
//! | `location`, `region` | where a table lives; making, checking and mapping the file |
//! | `table` | the transitions: every change of a shared word, with its compare-and-swap |
//! | [`snapshot`] | the whole table as one checksummed file |
//! | `verbs` | the API: [`Table`], [`Worker`], [`Claim`] |
//! | [`check`] | everything that must hold of a table or a snapshot, looked at |
//! | [`formats`] | graphs as files: JSON Lines, WfFormat, drawings |
//! | [`run`] | the worker loop around a command |
//! | `admission` | admissions to start: at most one unfinished start per workspace surface |

#[cfg(feature = "admission")]
pub mod admission;
pub mod check;
mod clock;
mod derive;
pub mod error;
mod fork;
pub mod formats;
mod graph;
pub mod id;
mod layout;
mod location;
pub mod node;
mod process;
mod record;
mod region;
pub mod run;
pub mod snapshot;
mod standing;
mod sync;
mod table;
mod verbs;
mod word;

#[cfg(tenure_crash)]
pub use sync::probe;

pub use error::{Damaged, NameError, OpenError, Refusal};
pub use id::NodeId;
pub use location::Location;
pub use node::{
    Change, ClaimOptions, Completion, Counts, Ended, Filter, Granted, Need, NodeSpec, NodeView, OnFailure, Outcome,
    Reclaimed, Seen, Stats, Status, Task,
};
pub use process::is_running;
pub use snapshot::{Snapshot, SnapshotError};
pub use verbs::{
    CHAIN_LABELS_MAX, Claim, CreateOptions, Gate, GroupView, LEASE_MS_DEFAULT, LEASE_MS_MAX, Reason, Restored,
    SNAPSHOT_PATIENCE, Snapshotted, Table, Upstream, Why, Worker,
};
