//! The public API: [`Table`], [`Worker`], [`Claim`].

use std::path::{Path, PathBuf};

use crate::error::{OpenError, Refusal};
use crate::id::NodeId;
use crate::node::*;

/// How a table is made.
#[derive(Clone, Debug, Default)]
pub struct CreateOptions {
    /// Lease of claims that name none, in milliseconds; `None` is [`LEASE_MS_DEFAULT`].
    pub lease_ms: Option<u64>,
    /// Refuse completions that name no generation.
    pub require_fence: bool,
}

/// Lease of a claim when neither it nor the table names one: five minutes.
pub const LEASE_MS_DEFAULT: u64 = 300_000;
/// The longest lease, a little over 18 hours.
pub const LEASE_MS_MAX: u64 = (1 << 26) - 1;

/// The directory of a table, and whether the caller named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub(crate) dir: PathBuf,
    pub(crate) named: bool,
}

impl Location {
    /// `dir` if given, else the first of `TENURE_DIR`, `$XDG_RUNTIME_DIR/tenure`, `$XDG_STATE_HOME/tenure`,
    /// `~/.local/state/tenure`, `/tmp/tenure-UID`.
    pub fn from_env(dir: Option<PathBuf>) -> Location {
        let _ = dir;
        todo!()
    }
    /// A directory used as given.
    pub fn named(dir: impl Into<PathBuf>) -> Location {
        Location { dir: dir.into(), named: true }
    }
    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}
impl<P: AsRef<Path>> From<P> for Location {
    fn from(p: P) -> Location {
        Location::named(p.as_ref())
    }
}

/// One shared table, mapped. Cheap to clone; clones share the mapping. `Send + Sync`.
#[derive(Clone)]
pub struct Table {}

#[allow(unused_variables)]
impl Table {
    /// Opens an existing table; never makes one.
    pub fn open(at: impl Into<Location>) -> Result<Table, OpenError> {
        todo!()
    }
    /// Opens the table, making it (and its directory) first if there is none. The flag says whether it was made now;
    /// options apply only then.
    pub fn open_or_create(at: impl Into<Location>, options: &CreateOptions) -> Result<(Table, bool), OpenError> {
        todo!()
    }
    /// The directory it lives in.
    pub fn dir(&self) -> &Path {
        todo!()
    }
    /// Lease of claims that name none, in milliseconds.
    pub fn default_lease_ms(&self) -> u64 {
        todo!()
    }
    /// A worker called `holder`: registers the name if it is new.
    pub fn worker(&self, holder: &str) -> Result<Worker, Refusal> {
        todo!()
    }

    /// Creates or updates one node. `existing` refuses to create.
    pub fn upsert(&self, spec: &NodeSpec, existing: bool) -> Result<(NodeId, Change), Refusal> {
        todo!()
    }
    /// Creates or updates many nodes with their dependencies, all or nothing; one entry per spec, in order.
    /// `needs` and `parent` may name nodes of the same import or of the table.
    pub fn import(&self, specs: &[NodeSpec]) -> Result<Vec<(NodeId, Change)>, Refusal> {
        todo!()
    }
    /// `child` waits for `parent`. False: it already did.
    pub fn link(&self, parent: NodeId, child: NodeId) -> Result<bool, Refusal> {
        todo!()
    }
    /// `child` no longer waits for `parent`. False: it did not.
    pub fn unlink(&self, parent: NodeId, child: NodeId) -> Result<bool, Refusal> {
        todo!()
    }

    /// One node.
    pub fn get(&self, node: NodeId) -> Result<NodeView, Refusal> {
        todo!()
    }
    /// Nodes, oldest first.
    pub fn list(&self, filter: Filter) -> Result<Vec<NodeView>, Refusal> {
        todo!()
    }
    /// The ready nodes in the order in which they are given out.
    pub fn ready(&self) -> Result<Vec<NodeView>, Refusal> {
        todo!()
    }
    /// Counts.
    pub fn stats(&self) -> Result<Stats, Refusal> {
        todo!()
    }

    /// The holder is alive: its lease starts again (with a new length if given). Answers with the time left in milliseconds.
    pub fn renew(
        &self,
        node: NodeId,
        holder: &str,
        generation: Option<u64>,
        lease_ms: Option<u64>,
    ) -> Result<Granted, Refusal> {
        todo!()
    }
    /// Hands a claim back; answers with the new generation.
    pub fn release(&self, node: NodeId, holder: &str, generation: Option<u64>) -> Result<u64, Refusal> {
        todo!()
    }
    /// Hands a claim back whoever holds it, and says whom it was taken from.
    pub fn release_forced(&self, node: NodeId, generation: Option<u64>) -> Result<Reclaimed, Refusal> {
        todo!()
    }
    /// Ends a node. False: it had already ended this way, and nothing changed.
    pub fn complete(&self, node: NodeId, completion: &Completion) -> Result<bool, Refusal> {
        todo!()
    }
    /// Opens again every claim whose lease has run out, or that has been quiet for `quiet_ms`; longest quiet first.
    pub fn reclaim(&self, quiet_ms: Option<u64>) -> Result<Vec<Reclaimed>, Refusal> {
        todo!()
    }
    /// A terminal node is open again; answers with the new generation.
    pub fn reopen(&self, node: NodeId) -> Result<u64, Refusal> {
        todo!()
    }
    /// Hides a terminal node; answers with its generation (the old one if it was archived already).
    pub fn archive(&self, node: NodeId) -> Result<u64, Refusal> {
        todo!()
    }
    /// Shows an archived node again.
    pub fn unarchive(&self, node: NodeId) -> Result<u64, Refusal> {
        todo!()
    }
}

/// A holder's handle: takes work under one name. Used from one thread at a time per claim; `Send + Sync`.
pub struct Worker {}

#[allow(unused_variables)]
impl Worker {
    /// Offers roles: nodes that name one of them, or none, are taken.
    pub fn with_roles<S: AsRef<str>>(self, roles: impl IntoIterator<Item = S>) -> Result<Worker, Refusal> {
        todo!()
    }
    /// Lease of its claims in milliseconds.
    pub fn with_lease_ms(self, lease_ms: u64) -> Result<Worker, Refusal> {
        todo!()
    }
    /// The holder's name.
    pub fn holder(&self) -> &str {
        todo!()
    }
    /// Claims one node.
    pub fn claim(&self, node: NodeId) -> Result<Claim<'_>, Refusal> {
        todo!()
    }
    /// Claims the ready node with the longest chain of unfinished work below it. `NothingReady` when there is none.
    pub fn claim_next(&self) -> Result<Claim<'_>, Refusal> {
        todo!()
    }
    /// Claims one node, with options.
    pub fn claim_with(&self, node: NodeId, options: &ClaimOptions) -> Result<Claim<'_>, Refusal> {
        todo!()
    }
    /// Claims the next node, with options (`generation` is not used).
    pub fn claim_next_with(&self, options: &ClaimOptions) -> Result<Claim<'_>, Refusal> {
        todo!()
    }
    /// The claim this holder has, if any.
    pub fn current(&self) -> Result<Option<Claim<'_>>, Refusal> {
        todo!()
    }
}

/// A live claim. Carries its fence, so every use of it is fenced. Dropping it does nothing: the lease runs out.
#[must_use]
pub struct Claim<'w> {
    _w: std::marker::PhantomData<&'w Worker>,
}

#[allow(unused_variables)]
impl Claim<'_> {
    /// The node's id.
    pub fn id(&self) -> NodeId {
        todo!()
    }
    /// The fencing token.
    pub fn generation(&self) -> u64 {
        todo!()
    }
    /// True when the holder had it already and `resume` answered with it.
    pub fn resumed(&self) -> bool {
        todo!()
    }
    /// The claim as plain data (reads the name from the table).
    pub fn granted(&self) -> Result<Granted, Refusal> {
        todo!()
    }
    /// The holder is alive: the lease starts again. Answers with its length in milliseconds.
    pub fn renew(&self) -> Result<u64, Refusal> {
        todo!()
    }
    /// Ends the node. On refusal the claim is given back only in the error's meaning: it was lost.
    pub fn complete(self, outcome: Outcome) -> Result<(), Refusal> {
        todo!()
    }
    /// Ends the node and replaces its summary in the same step.
    pub fn complete_with(self, outcome: Outcome, summary: &str) -> Result<(), Refusal> {
        todo!()
    }
    /// Hands the node back; answers with its new generation.
    pub fn release(self) -> Result<u64, Refusal> {
        todo!()
    }
}
