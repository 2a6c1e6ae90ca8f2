//! What a policy is asked, and what it answers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::names::{BadName, Fault, Generation, MachineId, Place, SurfaceKey};

/// Longest name of a subject or a work, in bytes.
pub const SUBJECT_BYTES_MAX: usize = 256;

/// Who asks: a person or a program, as the operating system or the caller names it. Letter case counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Subject(String);

/// The work that a placement belongs to, where there is one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Work(String);

macro_rules! plain_text {
    ($name:ident, $what:literal) => {
        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = BadName;

            fn from_str(text: &str) -> Result<$name, BadName> {
                no_control($what, text).map(|text| $name(text.to_owned()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadName;

            fn try_from(text: String) -> Result<$name, BadName> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }
    };
}

plain_text!(Subject, "subject");
plain_text!(Work, "work");

fn no_control<'a>(what: &'static str, text: &'a str) -> Result<&'a str, BadName> {
    if text.is_empty() {
        return Err(BadName::new(what, Fault::Empty));
    }
    if text.len() > SUBJECT_BYTES_MAX {
        return Err(BadName::new(what, Fault::TooLong { bytes: text.len(), limit: SUBJECT_BYTES_MAX }));
    }
    match text.chars().find(|c| c.is_control()) {
        Some(found) => {
            Err(BadName::new(what, Fault::Character { found, allowed: "control characters may not be in it" }))
        }
        None => Ok(text),
    }
}

/// Which way a start came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entrance {
    /// A command on the destination itself.
    Local,
    /// A row that waits for its destination to pick it up.
    Queue,
    /// More input for work that is already open.
    Append,
}

/// On which occasion the policy is asked. It is asked anew on each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Occasion {
    /// The ledger has no row for the request yet.
    First,
    /// It has one: a resend, or the pickup of a row that waited.
    Resend,
    /// The destination asks for a new credential.
    Attach,
    /// The command is about to run.
    Start,
    /// Somebody frees the surface or cuts the credential of a start that is not theirs to close.
    Operate,
}

/// Everything that a policy may look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Who asks.
    pub subject: Subject,
    /// For which surface.
    pub surface: SurfaceKey,
    /// The destination's machine.
    pub machine: MachineId,
    /// The destination's place.
    pub place: Place,
    /// The generation of that placement.
    pub generation: Generation,
    /// The work that the placement belongs to.
    pub work: Option<Work>,
    /// Which way it came in.
    pub entrance: Entrance,
    /// Why the policy is asked.
    pub occasion: Occasion,
}

/// What a policy answered, and under which epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// `None`: allowed. Otherwise why not.
    pub denied: Option<String>,
    /// The epoch that held when the answer was made.
    pub epoch: u64,
}

/// Says who may start what. Asked before anything is written, and never while a transaction is open.
pub trait Policy: Send + Sync {
    /// Changes whenever an answer may change. Cheap: the ledger compares it again inside its transaction.
    fn epoch(&self) -> u64;

    /// The answer for these facts; its epoch is the one it was made under.
    fn evaluate(&self, facts: &Facts) -> Decision;
}

macro_rules! named {
    ($type:ty, $what:literal: $($variant:path => $name:literal),* $(,)?) => {
        impl $type {
            /// Every value.
            pub const ALL: &'static [$type] = &[$($variant),*];

            /// Stable name, as in JSON and in the ledger.
            pub const fn name(self) -> &'static str {
                match self { $($variant => $name),* }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $type {
            type Err = BadName;

            fn from_str(text: &str) -> Result<$type, BadName> {
                let expected = concat!("one of", $(" ", $name),*);
                Self::ALL.iter().copied().find(|v| v.name() == text)
                    .ok_or(BadName::new($what, Fault::Spelling { expected }))
            }
        }
    };
}
pub(super) use named;

named!(Entrance, "entrance": Entrance::Local => "local", Entrance::Queue => "queue", Entrance::Append => "append");
named!(Occasion, "occasion": Occasion::First => "first", Occasion::Resend => "resend", Occasion::Attach => "attach",
    Occasion::Start => "start", Occasion::Operate => "operate");
