//! Nodes whose work is tied to a workspace surface: nothing of them starts without an admission.
//!
//! A lease is enough for work that anybody may do; on a surface a second start is worse than none. So the command of such a
//! node runs under an admission, which is asked for after the node was claimed and closed by how the command ends. When the
//! claim is lost the command is killed and nobody closes the admission: silence frees no surface, and until somebody does,
//! the node is passed over.

use std::ffi::OsString;
use std::fmt;

use crate::id::NodeId;

/// Whom to ask about nodes that name a surface. Asked only about those.
pub trait Gatekeeper: fmt::Debug + Send + Sync {
    /// Whether work could start on the surface now.
    fn is_startable(&self, surface: &str) -> bool;

    /// The command that asks for the admission, runs `command` under it, and closes it by how that ends.
    fn under_admission(&self, start: &Start<'_>, command: Vec<OsString>) -> Vec<OsString>;

    /// What came of asking, once that command has ended badly.
    fn answer(&self, start: &Start<'_>) -> GateAnswer;
}

/// One start on a surface.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The surface's key, as the node has it.
    pub surface: &'a str,
    /// The node.
    pub node: NodeId,
    /// The generation of the claim.
    pub generation: u64,
    /// The id of the request, at most 83 bytes. Every claim is a request of its own, also in a later table with the same
    /// nodes and generations: the ledger outlives tables. Whether it may begin is for the surface to say.
    pub request: &'a str,
}

/// A request id that no other claim has.
pub(super) fn fresh_request(node: NodeId, generation: u64) -> String {
    // The low bits of a version 7 UUID are random.
    format!("node-{node}-{generation}-{:016x}", NodeId::fresh().0 as u64)
}

/// What came of asking for an admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateAnswer {
    /// It was granted: how the command ended is the command's own doing.
    Admitted,
    /// Somebody else has the surface, or nobody could be asked; later may be another time.
    NotNow {
        /// Why.
        why: String,
    },
    /// It will not be granted as things are.
    Refused {
        /// Why.
        why: String,
    },
}
