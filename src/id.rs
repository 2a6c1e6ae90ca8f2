//! Node ids: 128 bits, shown as 32 lowercase hex digits; the id of a named node is a hash of its name.

use std::fmt;

use xxhash_rust::xxh3::xxh3_128;

use crate::error::NameError;

/// Longest node name, kind, role or holder name, in bytes of UTF-8.
pub const NAME_BYTES_MAX: usize = 64;

/// The identity of a node.
///
/// A named node's id is the XXH3-128 of its name, so turning a name into an id needs no table, and adding the same
/// name twice is the same node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u128);

impl NodeId {
    /// The id of the node called `name`.
    pub fn of_name(name: &str) -> NodeId {
        NodeId(xxh3_128(name.as_bytes()))
    }

    /// A fresh id for a node without a name: a version 7 UUID, so later ids sort later.
    pub fn fresh() -> NodeId {
        NodeId(uuid::Uuid::now_v7().as_u128())
    }

    /// Reads what a person typed: 32 lowercase hex digits are an id, anything else is a name.
    ///
    /// # Errors
    /// [`NameError`] when it is neither an id nor a name that a node may have.
    pub fn resolve(text: &str) -> Result<NodeId, NameError> {
        if let Some(id) = parse_hex(text) {
            return Ok(id);
        }
        check_name("name", text)?;
        Ok(NodeId::of_name(text))
    }
}

/// The id that `text` spells, if it is 32 lowercase hex digits.
fn parse_hex(text: &str) -> Option<NodeId> {
    let digits = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if text.len() != 32 || !digits {
        return None;
    }
    u128::from_str_radix(text, 16).ok().map(NodeId)
}

/// Checks a node's or holder's name: not empty, at most [`NAME_BYTES_MAX`] bytes, not spelled like an id, no NUL.
///
/// Control characters other than NUL are allowed and are escaped wherever they are printed.
///
/// # Errors
/// [`NameError`] that says which rule is broken; `field` names the field in its message.
pub fn check_name(field: &'static str, text: &str) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty { field });
    }
    if text.len() > NAME_BYTES_MAX {
        return Err(NameError::TooLong { field, bytes: text.len(), limit: NAME_BYTES_MAX });
    }
    if text.contains('\0') {
        return Err(NameError::Nul { field });
    }
    if parse_hex(text).is_some() {
        return Err(NameError::LooksLikeAnId { field });
    }
    Ok(())
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeId({self})")
    }
}

impl serde::Serialize for NodeId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
