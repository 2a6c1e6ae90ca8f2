//! The public API: [`Table`], [`Worker`], [`Claim`].
//!
//! | file | verbs |
//! |---|---|
//! | `table` | open; holders' names |
//! | `create` | open or create, also from a snapshot |
//! | `edit` | link, unlink, reopen, and what all changes of the graph have in common |
//! | `upsert` | upsert, import |
//! | `groups` | how many nodes of a group may be claimed at once |
//! | `room` | what is pruned when the table is full |
//! | `worker` | claim, claim next |
//! | `claim` | what can be done with a claim |
//! | `by_name` | renew, release, complete, reclaim, archive for callers that only kept a name and a generation |
//! | `cut` | one consistent look at the whole table |
//! | `glance` | get |
//! | `view` | list, ready, stats |
//! | `ages` | for stats: how long what is ready has waited, and how long leases still run |
//! | `why` | what stands between a node and its start |
//! | `snapshot`, `restore` | the whole table to a file and back |

mod ages;
mod by_name;
mod claim;
mod create;
mod cut;
mod edit;
mod glance;
mod groups;
mod restore;
mod room;
mod snapshot;
mod table;
mod upsert;
mod view;
mod why;
mod worker;

pub use claim::Claim;
pub use groups::GroupView;
pub use restore::Restored;
pub use snapshot::{SNAPSHOT_PATIENCE, Snapshotted};
pub use table::{CreateOptions, LEASE_MS_DEFAULT, LEASE_MS_MAX, Table};
pub use why::{CHAIN_LABELS_MAX, Reason, Upstream, Why};
pub use worker::{Gate, Worker};
