//! The text fields of one node as bytes: what a text in the table holds. Pure.

use crate::error::NameError;
use crate::id::{NAME_BYTES_MAX, check_name};
use crate::node::{RUN_BYTES_MAX, SUMMARY_BYTES_MAX, SURFACE_BYTES_MAX};

/// The text fields of a node. Empty is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) role: String,
    pub(crate) summary: String,
    pub(crate) run: String,
    pub(crate) surface: String,
}

/// Longest record in bytes: every field at its limit, and two bytes of length each.
pub(crate) const RECORD_BYTES_MAX: usize =
    3 * NAME_BYTES_MAX + SUMMARY_BYTES_MAX + RUN_BYTES_MAX + SURFACE_BYTES_MAX + 6 * 2;

impl Record {
    /// # Errors
    /// [`NameError`] for the first field that cannot be stored.
    pub(crate) fn check(&self) -> Result<(), NameError> {
        let Record { name, kind, role, summary, run, surface } = self;
        check_fields([name, kind, role, summary, run, surface])
    }

    /// Each field behind its length in two bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        let Record { name, kind, role, summary, run, surface } = self;
        put_fields(&mut bytes, [name, kind, role, summary, run, surface]);
        bytes
    }

    /// `None` when the bytes are not what [`encode`](Record::encode) makes of some record.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Record> {
        let mut rest = bytes;
        let mut field = |limit: usize| {
            let (len, behind) = rest.split_first_chunk::<2>()?;
            let len = usize::from(u16::from_le_bytes(*len));
            let text = behind.get(..len).filter(|_| len <= limit)?;
            rest = behind.get(len..)?;
            String::from_utf8(text.to_vec()).ok()
        };
        let record = Record {
            name: field(NAME_BYTES_MAX)?,
            kind: field(NAME_BYTES_MAX)?,
            role: field(NAME_BYTES_MAX)?,
            summary: field(SUMMARY_BYTES_MAX)?,
            run: field(RUN_BYTES_MAX)?,
            surface: field(SURFACE_BYTES_MAX)?,
        };
        rest.is_empty().then_some(record)
    }
}

/// Names and limits of the fields, in their order.
const FIELDS: [(&str, usize); 6] = [
    ("name", NAME_BYTES_MAX),
    ("kind", NAME_BYTES_MAX),
    ("role", NAME_BYTES_MAX),
    ("summary", SUMMARY_BYTES_MAX),
    ("run command", RUN_BYTES_MAX),
    ("surface", SURFACE_BYTES_MAX),
];

/// As [`Record::check`], for whoever has the texts of a record and no record.
pub(crate) fn check_fields(texts: [&String; 6]) -> Result<(), NameError> {
    for (text, (field, limit)) in texts.into_iter().zip(FIELDS) {
        if text.len() > limit {
            return Err(NameError::TooLong { field, bytes: text.len(), limit });
        }
        if text.contains('\0') {
            return Err(NameError::Nul { field });
        }
    }
    let [name, ..] = texts;
    if name.is_empty() { Ok(()) } else { check_name("name", name) }
}

/// The texts of a record, each behind its length in two bytes.
pub(crate) fn put_fields(bytes: &mut Vec<u8>, fields: [&String; 6]) {
    for text in fields {
        bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
}

/// What a role or a holder is found by; never 0, which is no role.
pub(crate) fn name_hash(name: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(name.as_bytes()).max(1)
}

#[cfg(all(test, not(tenure_loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_record_comes_back_as_it_went(name in "\\PC{0,16}", kind in ".{0,16}", role in "[a-z]{0,8}", summary in ".{0,200}", run in ".{0,300}", surface in ".{0,40}") {
            let record = Record { name, kind, role, summary, run, surface };
            prop_assert_eq!(Record::decode(&record.encode()), Some(record));
        }

        #[test]
        fn any_bytes_decode_or_do_not(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(record) = Record::decode(&bytes) {
                prop_assert_eq!(record.encode(), bytes);
            }
        }
    }

    #[test]
    fn the_longest_record_is_as_long_as_stated() {
        let long = |n| "x".repeat(n);
        let record = Record {
            name: long(NAME_BYTES_MAX),
            kind: long(NAME_BYTES_MAX),
            role: long(NAME_BYTES_MAX),
            summary: long(SUMMARY_BYTES_MAX),
            run: long(RUN_BYTES_MAX),
            surface: long(SURFACE_BYTES_MAX),
        };
        assert_eq!(record.check(), Ok(()));
        assert_eq!(record.encode().len(), RECORD_BYTES_MAX);
    }
}
