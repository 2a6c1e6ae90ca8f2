//! What a node is to the outside: the fields to write it with, and the view that readers get.

use serde::Serialize;

use crate::id::NodeId;

/// Longest summary, in bytes of UTF-8. Longer is refused, never cut.
pub const SUMMARY_BYTES_MAX: usize = 1_024;

/// Longest `run` command, in bytes of UTF-8. Longer is refused, never cut.
pub const RUN_BYTES_MAX: usize = 4_096;

/// Longest key of a workspace surface that a node may name, in bytes of UTF-8. Longer is refused, never cut.
pub const SURFACE_BYTES_MAX: usize = 1_024;

/// The status a node *has*. Readiness is not among them: it is derived, see [`Seen`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Nobody holds it and it has not ended.
    Open,
    /// One holder has it, under a lease.
    Claimed,
    /// Ended well.
    Done,
    /// Ended badly.
    Failed,
    /// Given up.
    Cancelled,
}

/// How a node can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Ended well; needs every dependency to be done.
    Done,
    /// Ended badly.
    Failed,
    /// Given up.
    Cancelled,
}

impl Outcome {
    /// The terminal status that this outcome leads to.
    pub const fn status(self) -> Status {
        match self {
            Outcome::Done => Status::Done,
            Outcome::Failed => Status::Failed,
            Outcome::Cancelled => Status::Cancelled,
        }
    }
}

/// What a node does when a dependency of it ends failed or cancelled. A property of the edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// It cannot become ready by itself.
    #[default]
    Block = 0,
    /// It is skipped: seen as cancelled until the dependency is reopened.
    Skip = 1,
    /// The dependency counts as satisfied.
    Continue = 2,
}

/// What a reader sees of a node: its status, and for an open one what its dependencies make of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Seen {
    /// Open, and every dependency is done.
    Ready,
    /// Open, and some dependency is still unfinished.
    Todo,
    /// Open, and some dependency, directly or through others, failed or was cancelled.
    Blocked,
    /// Held by somebody.
    Claimed,
    /// Ended well.
    Done,
    /// Ended badly.
    Failed,
    /// Given up.
    Cancelled,
}

impl Seen {
    /// The word used for it everywhere: on the command line, in JSON, in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Seen::Ready => "ready",
            Seen::Todo => "todo",
            Seen::Blocked => "blocked",
            Seen::Claimed => "claimed",
            Seen::Done => "done",
            Seen::Failed => "failed",
            Seen::Cancelled => "cancelled",
        }
    }

    /// Whether the node has ended.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Seen::Done | Seen::Failed | Seen::Cancelled)
    }
}

/// What `upsert` and `import` write. A field that is `None` is left as it is; an empty one is cleared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSpec {
    /// Which node; `None` with a `name` means the id of that name, `None` without one makes a fresh id.
    pub id: Option<NodeId>,
    /// Its name, at most 64 bytes. A node cannot be renamed: the id follows from the name.
    pub name: Option<String>,
    /// A word for people and filters, at most 64 bytes.
    pub kind: Option<String>,
    /// Only a worker that offers this role is given the node; at most 64 bytes.
    pub role: Option<String>,
    /// The node it belongs under, for people; `Some(None)` clears it.
    pub parent: Option<Option<NodeId>>,
    /// Estimated milliseconds of work; a new node has 1.
    pub cost: Option<u32>,
    /// The one open text field, at most 1,024 bytes.
    pub summary: Option<String>,
    /// The shell command that `run` starts for it, at most 4,096 bytes.
    pub run: Option<String>,
    /// Dependencies to add: the node waits for each of these. None is ever removed by this.
    pub needs: Vec<Need>,
    /// The most attempts, 1 to 65,535: the last one that is lost or fails ends the node as failed. 0: a lost attempt is
    /// never the last, and the first that fails is.
    pub max_attempts: Option<u16>,
    /// Milliseconds that the node is left alone after an attempt was lost or failed; doubled with each, at most an hour.
    pub retry_delay_ms: Option<u32>,
    /// The group it belongs to, at most 64 bytes; empty is none. The group must have been set before.
    pub group: Option<String>,
    /// The workspace surface that its work is tied to, at most 1,024 bytes; empty is none. Such a node is given only to a
    /// worker that can say whether the surface is free; see [`Worker::with_gate`](crate::Worker::with_gate).
    pub surface: Option<String>,
}

/// A dependency to add.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Need {
    /// The node to wait for.
    pub node: NodeId,
    /// What to do when that one fails; `None` leaves the mode of an edge that exists, and is `Block` for a new one.
    pub on_failure: Option<OnFailure>,
}

impl From<NodeId> for Need {
    fn from(node: NodeId) -> Need {
        Need { node, on_failure: None }
    }
}

/// What came of an upsert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// The node is new.
    Created,
    /// It existed and something changed.
    Updated,
    /// It existed and already was as asked.
    Unchanged,
}

/// A node as a reader sees it at one moment.
///
/// `depends_on` and `parent` name nodes by name where they have one, else by id.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeView {
    /// 128-bit id.
    pub id: NodeId,
    /// The unique name, when it has one.
    pub name: Option<String>,
    /// What the reader sees: status, with readiness derived.
    pub status: Seen,
    /// The generation: a holder presents it as fencing token.
    pub generation: u64,
    /// Who holds it, when claimed.
    pub holder: Option<String>,
    /// Milliseconds until the lease runs out, when claimed; negative when it has and nobody reclaimed it yet.
    pub lease_left_ms: Option<i64>,
    /// Word for people and filters.
    pub kind: Option<String>,
    /// Role that a worker must offer.
    pub role: Option<String>,
    /// The node it belongs under.
    pub parent: Option<String>,
    /// The nodes it waits for.
    pub depends_on: Vec<String>,
    /// What it does when one of those fails, in the order of `depends_on`.
    pub on_failure: Vec<OnFailure>,
    /// The failed dependency that skips it, when it is cancelled by that alone.
    pub skipped_by: Option<String>,
    /// How many times it was claimed since it was made or reopened, a claim that stands included.
    pub attempts: u64,
    /// The most attempts; 0 is no limit.
    pub max_attempts: u16,
    /// Milliseconds that it is left alone after a lost or failed attempt; doubled with each.
    pub retry_delay_ms: u32,
    /// Milliseconds until it can be claimed again after the last attempt.
    pub retry_in_ms: Option<u64>,
    /// The group it belongs to.
    pub group: Option<String>,
    /// The workspace surface that its work is tied to.
    pub surface: Option<String>,
    /// Whether work could start on its surface now, where somebody has asked; the table itself does not know.
    pub startable: Option<bool>,
    /// Estimated milliseconds of work.
    pub cost: u32,
    /// Cost of the longest chain of unfinished nodes below it, its own cost not included.
    pub waiting_below: u64,
    /// Free text.
    pub summary: Option<String>,
    /// Shell command.
    pub run: Option<String>,
    /// Hidden from ordinary lists.
    pub archived: bool,
    /// Wall clock, milliseconds since 1970; for display only.
    pub created_at_ms: u64,
    /// Wall clock of the last change of its fields or edges.
    pub updated_at_ms: u64,
    /// Wall clock of its end, when it has ended.
    pub finished_at_ms: Option<u64>,
}

impl NodeView {
    /// The name if it has one, else the id: what every verb accepts and prints.
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.id.to_string())
    }
}

/// Which nodes `list` shows, besides the live (open and claimed) ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Show terminal nodes that are not archived.
    pub terminal: bool,
    /// Show archived nodes.
    pub archived: bool,
}

/// How a claim is to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimOptions {
    /// Refuse unless the node is at this generation.
    pub generation: Option<u64>,
    /// Lease in milliseconds; `None` takes the table's.
    pub lease_ms: Option<u64>,
    /// When the holder already has a claim, answer with that one instead of `busy`.
    pub resume: bool,
    /// The process that the claim stands and falls with: when it is gone the lease counts as run out.
    pub pid: Option<u32>,
}

/// A claim as plain data: what a caller keeps to renew, complete or release it later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Granted {
    /// Which node.
    pub id: NodeId,
    /// Its name, when it has one.
    pub name: Option<String>,
    /// The fencing token.
    pub generation: u64,
    /// Milliseconds until the lease runs out.
    pub lease_left_ms: i64,
    /// True when it was held already and `resume` answered with it.
    pub resumed: bool,
}

/// What a claimed node asks of its holder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Task {
    /// Which node.
    pub id: NodeId,
    /// Its name, when it has one.
    pub name: Option<String>,
    /// Estimated milliseconds of work.
    pub cost: u32,
    /// Shell command.
    pub run: Option<String>,
    /// The workspace surface that the work is tied to.
    pub surface: Option<String>,
}

impl Task {
    /// The name if it has one, else the id: what every verb accepts and prints.
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.id.to_string())
    }
}

/// How a node is to be completed from outside a [`Claim`](crate::Claim).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The end it comes to.
    pub outcome: Outcome,
    /// The fence; `None` skips the check (refused by a table made with `require_fence`).
    pub generation: Option<u64>,
    /// Who completes it; a held node can only be completed by its holder.
    pub holder: Option<String>,
    /// Replaces the summary in the same step; empty clears it.
    pub summary: Option<String>,
}

/// What came of completing a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It has ended.
    Now,
    /// It had ended this way already, and nothing changed.
    Already,
    /// It failed, and is open again for another attempt.
    ToRetry {
        /// Its new generation.
        generation: u64,
        /// How many attempts it has had.
        attempts: u64,
    },
}

/// A claim that `reclaim` or a forced `release` ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reclaimed {
    /// Which node.
    pub id: NodeId,
    /// Its name, when it has one.
    pub name: Option<String>,
    /// Who held it.
    pub holder: String,
    /// Its new generation.
    pub generation: u64,
    /// Milliseconds since the holder was last heard of.
    pub quiet_ms: u64,
}

/// How many nodes there are of each kind, as a reader sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Open nodes whose dependencies are all done.
    pub ready: u32,
    /// Open nodes with an unfinished dependency.
    pub todo: u32,
    /// Open nodes behind a failed or cancelled one.
    pub blocked: u32,
    /// Held nodes.
    pub claimed: u32,
    /// Nodes that ended well.
    pub done: u32,
    /// Nodes that ended badly.
    pub failed: u32,
    /// Nodes that were given up.
    pub cancelled: u32,
}

/// Counts of everything that the table holds; all derived from the table, none stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Node slots in the table.
    pub capacity: u32,
    /// Nodes, of any status.
    pub nodes: u32,
    /// Open nodes whose dependencies are all done.
    pub ready: u32,
    /// Open nodes with an unfinished dependency.
    pub todo: u32,
    /// Open nodes behind a failed or cancelled one.
    pub blocked: u32,
    /// Held nodes.
    pub claimed: u32,
    /// Nodes that ended well.
    pub done: u32,
    /// Nodes that ended badly.
    pub failed: u32,
    /// Nodes that were given up.
    pub cancelled: u32,
    /// Archived among the terminal ones.
    pub archived: u32,
    /// Milliseconds since the ready node that has waited longest could first have been claimed: since it was made, its last
    /// dependency ended, or the delay after its last attempt was over, whichever came latest. Other claims and hand-backs
    /// in between do not start it anew. `None`: nothing is ready.
    pub oldest_ready_ms: Option<u64>,
    /// Milliseconds until the first lease runs out; negative when it has and nobody has taken the node back yet. `None`:
    /// nothing is claimed.
    pub shortest_lease_ms: Option<i64>,
    /// Claims with less than a third of their lease left, not run out. Whoever renews every third of the lease, as `run`
    /// does, is among them only after two renewals were missed.
    pub leases_ending_soon: u32,
    /// Claims whose lease has run out, or whose process is gone, and that nobody has taken back yet.
    pub leases_run_out: u32,
    /// Dependency edges.
    pub edges: u32,
    /// The most edges the table can hold.
    pub edges_max: u32,
    /// Holder names known.
    pub holders: u32,
    /// Holders that hold a node.
    pub holders_busy: u32,
    /// The most holder names known at once.
    pub holders_max: u32,
    /// Text blocks that a node or a holder uses.
    pub text_blocks: u32,
    /// Text blocks that some process has reserved and not published.
    pub text_blocks_reserved: u32,
    /// Text blocks in the table.
    pub text_blocks_max: u32,
    /// Buffers for versions of the graph.
    pub versions: u32,
    /// Buffers that some process has reserved and not published.
    pub versions_reserved: u32,
    /// The number of the current version of the graph.
    pub version: u64,
}
