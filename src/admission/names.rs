//! The names that admissions are made of, each with one spelling: what two people write differently and mean the same
//! comes out equal, and what could be read in two ways is refused.
//!
//! | type | looks like |
//! |---|---|
//! | [`AdmId`] | `adm-06bq0h5n2g...`: 26 digits of base32 |
//! | [`RequestId`] | what the submitter chose, such as `deploy-41` |
//! | [`Attempt`] | 1, 2, ... |
//! | [`SurfaceKey`] | `docs`, `team/docs`, `/srv/repo`, `/srv/repo#api` |
//! | [`Place`] | `/srv/repo` |
//! | [`MachineId`] | `m-` and 32 digits of base32: the fingerprint of the machine's public key |
//! | [`MachineLabel`] | what people call the machine |
//! | [`MachineRef`] | one of the two |
//! | [`Generation`] | 1, 2, ...: of a placement |
//! | [`Digest`] | 64 hex digits |

mod surface;
mod text;
mod text_type;

use std::fmt;
use std::str::FromStr;

use data_encoding::{BASE32HEX_NOPAD, HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

pub use surface::{Kinship, PLACE_BYTES_MAX, Place, SURFACE_BYTES_MAX, SurfaceKey};

pub(crate) use text::is_invisible;

/// Longest request id, in bytes.
pub const REQUEST_BYTES_MAX: usize = 128;

/// Longest label of a machine, in bytes; a host name fits.
pub const LABEL_BYTES_MAX: usize = 64;

/// A name that cannot be: which, and why.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the {what} {fault}")]
pub struct BadName {
    /// Which name, such as "request id".
    pub what: &'static str,
    /// What is wrong with it.
    pub fault: Fault,
}

impl BadName {
    /// A fault of the name called `what`.
    pub const fn new(what: &'static str, fault: Fault) -> BadName {
        BadName { what, fault }
    }

    /// Stable code.
    pub const fn code(&self) -> &'static str {
        match self.fault {
            Fault::TooLong { .. } => "too_long",
            _ => "bad_name",
        }
    }
}

/// What is wrong with a name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing in it.
    #[error("is empty")]
    Empty,
    /// More than the limit.
    #[error("is {bytes} bytes long; the limit is {limit}, and nothing is cut")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The longest it may be.
        limit: usize,
    },
    /// A character that it cannot have.
    #[error("contains {found:?}; {allowed}")]
    Character {
        /// The first such character.
        found: char,
        /// What may be in it.
        allowed: &'static str,
    },
    /// Begins in a way that makes it something else.
    #[error("begins with {found:?}; begin with a letter or a digit")]
    Beginning {
        /// The first character.
        found: char,
    },
    /// A path that means something else in another directory.
    #[error("is a relative path, which means another place in every directory; write the whole path, from /")]
    Relative,
    /// `.` or `..` among the parts of a path.
    #[error("has a part {part:?}; write the path without it")]
    Dots {
        /// The part.
        part: &'static str,
    },
    /// Two `#`, a `#` inside a path, or nothing around one.
    #[error("has a # that splits nothing; write KEY#PART once, at the end")]
    Part,
    /// Not spelled as this kind of name is.
    #[error("is not spelled like one: {expected}")]
    Spelling {
        /// How it is spelled.
        expected: &'static str,
    },
    /// A number out of range.
    #[error("must be a whole number from 1 to {most}")]
    Range {
        /// The highest.
        most: u64,
    },
    /// The file system could not be asked what the path leads to.
    #[error("cannot be looked up on this machine ({kind}): {path}")]
    Lookup {
        /// The path.
        path: String,
        /// What the system said.
        kind: std::io::ErrorKind,
    },
    /// The file system spells it otherwise.
    #[error("is spelled {found} on this machine's disk; write it that way")]
    Spelled {
        /// The spelling on the disk.
        found: String,
    },
}

/// Base32 with digits in the order of their values, in lower case, so that texts sort as the bytes do.
fn to_base32(bytes: &[u8]) -> String {
    BASE32HEX_NOPAD.encode(bytes).to_ascii_lowercase()
}

/// The bytes of `prefix` and base32 digits; either letter case is read.
fn from_base32<const N: usize>(text: &str, prefix: &str) -> Option<[u8; N]> {
    let begins = text.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix));
    let digits = text.get(prefix.len()..).filter(|_| begins)?;
    BASE32HEX_NOPAD.decode(digits.to_ascii_uppercase().as_bytes()).ok()?.try_into().ok()
}

/// The name of one admission: a version 7 UUID, so those made later sort later.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AdmId(u128);

impl AdmId {
    /// An id that nobody has.
    pub fn fresh() -> AdmId {
        AdmId(uuid::Uuid::now_v7().as_u128())
    }

    /// The id with these bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> AdmId {
        AdmId(u128::from_be_bytes(bytes))
    }

    /// The id as bytes.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

impl fmt::Display for AdmId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "adm-{}", to_base32(&self.to_bytes()))
    }
}

impl FromStr for AdmId {
    type Err = BadName;

    fn from_str(text: &str) -> Result<AdmId, BadName> {
        let expected = "adm- and 26 digits of base32, as `submit` and `start` print it";
        let spelled = from_base32(text, "adm-").map(AdmId::from_bytes);
        spelled.ok_or(BadName::new("admission id", Fault::Spelling { expected }))
    }
}

text_type::through_text!(AdmId);

/// What the submitter calls a request; an idempotency key. Letter case counts.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(String);

text_type::of_string!(RequestId, |text| {
    let what = "request id";
    text::not_empty(what, text, REQUEST_BYTES_MAX)?;
    text::only(what, text, "letters, digits and . _ : @ + - may be in it", |c| {
        c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '@' | '+' | '-')
    })?;
    text::begins_well(what, text)?;
    Ok(text.to_owned())
});

/// What people call a machine. Lower case, as host names are: `Build-1` and `build-1` are one.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MachineLabel(String);

text_type::of_string!(MachineLabel, |text| {
    let what = "machine label";
    text::not_empty(what, text, LABEL_BYTES_MAX)?;
    text::only(what, text, "letters, digits and . _ - may be in it", |c| {
        c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
    })?;
    text::begins_well(what, text)?;
    if text.parse::<MachineId>().is_ok() {
        return Err(BadName::new(what, Fault::Spelling { expected: "a machine's id is not a label" }));
    }
    Ok(text.to_ascii_lowercase())
});

/// Which machine: the fingerprint of its public key. A new label leaves it as it was (A9).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MachineId([u8; 20]);

impl MachineId {
    /// The machine with this public key.
    pub fn of_public_key(key: &[u8]) -> MachineId {
        let hash: [u8; 32] = Sha256::digest(key).into();
        let mut id = [0; 20];
        for (to, from) in id.iter_mut().zip(hash) {
            *to = from;
        }
        MachineId(id)
    }
}

impl fmt::Display for MachineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m-{}", to_base32(&self.0))
    }
}

impl FromStr for MachineId {
    type Err = BadName;

    fn from_str(text: &str) -> Result<MachineId, BadName> {
        let expected = "m- and 32 digits of base32, the fingerprint of the machine's key";
        from_base32(text, "m-").map(MachineId).ok_or(BadName::new("machine id", Fault::Spelling { expected }))
    }
}

text_type::through_text!(MachineId);

/// A machine as people name it: by its label or by its id.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MachineRef {
    /// By its id, which stays.
    Id(MachineId),
    /// By its label, which may be given to another machine.
    Label(MachineLabel),
}

impl fmt::Display for MachineRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MachineRef::Id(id) => id.fmt(f),
            MachineRef::Label(label) => label.fmt(f),
        }
    }
}

impl FromStr for MachineRef {
    type Err = BadName;

    fn from_str(text: &str) -> Result<MachineRef, BadName> {
        text.parse().map(MachineRef::Id).or_else(|_| text.parse().map(MachineRef::Label))
    }
}

text_type::through_text!(MachineRef);

/// Which try of a request: 1 is the first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Attempt(u32);

impl Attempt {
    /// The first attempt.
    pub const FIRST: Attempt = Attempt(1);

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The attempt before this one, if this is not the first.
    pub const fn previous(self) -> Option<Attempt> {
        if self.0 > 1 { Some(Attempt(self.0 - 1)) } else { None }
    }

    /// The attempt after this one, if there are numbers left.
    pub fn next(self) -> Option<Attempt> {
        self.0.checked_add(1).filter(|n| *n <= Attempt::MAX).map(Attempt)
    }

    /// The highest: what every database's 32-bit number holds.
    const MAX: u32 = i32::MAX as u32;
}

impl TryFrom<u32> for Attempt {
    type Error = BadName;

    fn try_from(n: u32) -> Result<Attempt, BadName> {
        let within = (1..=Attempt::MAX).contains(&n);
        if within { Ok(Attempt(n)) } else { Err(out_of_range("attempt", Attempt::MAX.into())) }
    }
}

impl From<Attempt> for u32 {
    fn from(attempt: Attempt) -> u32 {
        attempt.0
    }
}

impl FromStr for Attempt {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Attempt, BadName> {
        text::number(text)
            .and_then(|n| u32::try_from(n).ok())
            .ok_or_else(|| out_of_range("attempt", Attempt::MAX.into()))
            .and_then(Attempt::try_from)
    }
}

text_type::shown_as_number!(Attempt);

/// How often a surface has been placed. It only grows, so a placement that comes back to an earlier path is another one
/// all the same (A29).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Generation(u64);

impl Generation {
    /// That of the first placement.
    pub const FIRST: Generation = Generation(1);

    /// The highest: what every database's 64-bit number holds.
    const MAX: u64 = i64::MAX as u64;

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The next one, if there are numbers left.
    pub fn next(self) -> Option<Generation> {
        self.0.checked_add(1).filter(|n| *n <= Generation::MAX).map(Generation)
    }
}

impl TryFrom<u64> for Generation {
    type Error = BadName;

    fn try_from(n: u64) -> Result<Generation, BadName> {
        let within = (1..=Generation::MAX).contains(&n);
        if within { Ok(Generation(n)) } else { Err(out_of_range("generation", Generation::MAX)) }
    }
}

impl From<Generation> for u64 {
    fn from(generation: Generation) -> u64 {
        generation.0
    }
}

impl FromStr for Generation {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Generation, BadName> {
        text::number(text).ok_or_else(|| out_of_range("generation", Generation::MAX)).and_then(Generation::try_from)
    }
}

text_type::shown_as_number!(Generation);

fn out_of_range(what: &'static str, most: u64) -> BadName {
    BadName::new(what, Fault::Range { most })
}

/// What was asked for, as 32 bytes; the field calls it the fingerprint of a request. `digest` makes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Digest {
        Digest(bytes)
    }

    /// The digest as bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl FromStr for Digest {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Digest, BadName> {
        let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Digest).ok_or(BadName::new("digest", Fault::Spelling { expected: "64 hex digits" }))
    }
}

text_type::through_text!(Digest);

#[cfg(all(test, not(tenure_loom)))]
mod tests;
