//! The rules that a finding can be about.

use serde::Serialize;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Which rule a finding breaks. The names are stable; in JSON they are written `in_this_way`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// All of them.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];
        }
    };
}

codes! {
    /// The header's `ready` was never stored.
    Unfinished,
    /// The file's name is of one boot and its content of another.
    BootMismatch,
    /// The default lease is zero or longer than a lease can be.
    DefaultLease,
    /// An option that no build of this layout has.
    UnknownOption,
    /// The count of version buffers is out of range, or the file is shorter than it says.
    VersionCount,
    /// The leases would not be looked through for longer than half a second.
    ScanTooLate,
    /// The root names no version that can be.
    Root,
    /// The version's own number does not fit the root's.
    VersionNumber,
    /// A change under way has a step that does not exist.
    Step,
    /// A count of the version is larger than its arrays.
    VersionBounds,
    /// A text that belongs to something else than refers to it.
    TextMisplaced,
    /// Two nodes have one id.
    DuplicateId,
    /// A node is not found by its id, or the index names a node that is not there.
    Index,
    /// A node belongs under none or under itself.
    Parent,
    /// Dependencies out of order, or with an end that is not there.
    Edge,
    /// The children do not mirror the dependencies.
    Children,
    /// A loop over dependencies and parents.
    Loop,
    /// The order of work is not that of the version.
    Order,
    /// A creation number twice, or one that is still to come.
    CreationNumber,
    /// A node of a group that is not there.
    UnknownGroup,
    /// A limit that no group can have.
    GroupLimit,
    /// A hash that is not that of the name it is for.
    Hash,
    /// Two holders or two groups of one name.
    DuplicateName,
    /// A text that is referred to is not there.
    TextMissing,
    /// A text whose blocks cannot be a text.
    TextBroken,
    /// A node's record does not decode.
    Record,
    /// A name or text that cannot be stored.
    Name,
    /// An id that is not its name's.
    IdMismatch,
    /// A node's word that is never written.
    NodeWord,
    /// A claim of a slot without a node.
    ClaimOfNoNode,
    /// A claim by a holder without a name.
    ClaimOfNobody,
    /// A node is claimed, and its holder's word does not name that claim.
    HolderDisagrees,
    /// One holder has two claims.
    TwoClaims,
    /// A holder's word names a generation that no claim can have yet.
    HolderAhead,
    /// Attempts are counted from a generation that is still to come.
    AttemptsAhead,
    /// A claim at a generation that leaves no room for its end.
    GenerationLimit,
    /// A lease that runs for longer than a lease can.
    LeaseTooLong,
    /// The length of a lease is noted for a generation that is still to come.
    LengthAhead,
    /// A node ended at a moment that is still to come.
    EndAhead,
    /// A node is left alone for longer than it can be.
    DelayTooLong,
    /// The text that a node ended with is not there.
    EndText,
    /// A snapshot whose first bytes, length or checksum are wrong.
    SnapshotFrame,
    /// Something in a snapshot that no table could hold.
    SnapshotContent,
}

impl Code {
    /// The name as it is written in JSON.
    pub fn name(self) -> String {
        let mut name = String::new();
        for c in format!("{self:?}").chars() {
            if c.is_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.extend(c.to_lowercase());
        }
        name
    }
}
