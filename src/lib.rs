//! skeleton
pub mod error;
pub mod id;
pub mod node;
pub mod verbs;
pub use error::{Damaged, NameError, OpenError, Refusal};
pub use id::NodeId;
pub use node::*;
pub use verbs::{Claim, CreateOptions, Location, Table, Worker};
