//! Names and records: everything that a version refers to is there, is a text, and says what it must.

use std::collections::BTreeMap;

use super::raw::Raw;
use super::version::holders;
use super::{Code, Found};
use crate::error::NameError;
use crate::id::{NodeId, check_name};
use crate::layout::GROUPS;
use crate::record::{Record, name_hash};
use crate::sync::Ordering;
use crate::table::Core;
use crate::table::version::InForce;
use crate::word::{NodeWord, TextRef};

/// How often a text is looked at again because the version has changed meanwhile.
const TRIES: u32 = 100;

/// What became of a text.
pub(super) enum Text {
    Is(Vec<u8>),
    Wrong(Code, String),
    /// Nothing refers to it any more.
    Gone,
}

/// Checks the texts of a version. What is not referred to any more is left to the next check.
pub(super) fn check(core: &Core<'_>, raw: &Raw, found: &mut Found) {
    for slot in raw.nodes() {
        let text = raw.text[slot];
        match read(core, text, |seen| seen.text(slot as u16), found) {
            Text::Is(bytes) => record(raw, slot, &bytes, found),
            Text::Wrong(code, message) => found.add(code, format!("node slot {slot}"), message),
            Text::Gone => {}
        }
    }
    let mut known = BTreeMap::new();
    for slot in holders(raw).filter(|&slot| !raw.holders[slot].is_none()) {
        let text = read(core, raw.holders[slot], |seen| seen.holder_name(slot as u16), found);
        let about = format!("holder {slot}");
        found.report.counts.holders += 1;
        name("holder", &about, text, raw.holder_hash[slot], &mut known, found);
    }
    let mut known = BTreeMap::new();
    for group in (1..GROUPS).filter(|&group| !raw.groups[group].is_none()) {
        let text = read(core, raw.groups[group], |seen| seen.group_name(group as u16), found);
        let about = format!("group {group}");
        found.report.counts.groups += 1;
        name("group", &about, text, raw.group_hash[group], &mut known, found);
    }
}

/// Reads a text that `referred` still names; if that changes while it is read, it is nobody's fault.
fn read(core: &Core<'_>, text: TextRef, referred: impl Fn(&InForce<'_>) -> TextRef, found: &mut Found) -> Text {
    for _ in 0..TRIES {
        let Ok(seen) = core.in_force() else { return Text::Gone };
        if referred(&seen) != text {
            return Text::Gone;
        }
        let bytes = core.read_text(text);
        if let Ok(Some(bytes)) = bytes {
            found.report.counts.text_blocks += blocks(bytes.len());
            return Text::Is(bytes);
        }
        if core.fixed.header.root.load(Ordering::Acquire) == seen.root && seen.is_whole() {
            return match bytes {
                Err(damaged) => Text::Wrong(Code::TextBroken, damaged.what.to_owned()),
                Ok(_) => Text::Wrong(Code::TextMissing, "its text is not in the blocks that it names".to_owned()),
            };
        }
    }
    found.report.counts.unjudged += 1;
    Text::Gone
}

/// Text blocks of a text of this length.
pub(super) fn blocks(len: usize) -> u32 {
    len.div_ceil(crate::layout::BLOCK_BYTES).max(1) as u32
}

/// The record of the node in a slot.
fn record(raw: &Raw, slot: usize, bytes: &[u8], found: &mut Found) {
    let about = format!("node slot {slot}");
    let Some(record) = Record::decode(bytes) else {
        found.add(Code::Record, about, "its record does not decode");
        return;
    };
    if let Err(why) = record.check() {
        found.add(Code::Name, &about, why.to_string());
    }
    if !record.name.is_empty() && NodeId::of_name(&record.name).0 != raw.id[slot] {
        let (name, id) = (&record.name, NodeId(raw.id[slot]));
        found.add(Code::IdMismatch, &about, format!("its name is {name:?} and its id {id}, which is not that name's"));
    }
    let hash = if record.role.is_empty() { 0 } else { name_hash(&record.role) };
    if raw.role[slot] != hash {
        found.add(Code::Hash, about, format!("its role is {:?}, and it is looked for under another", record.role));
    }
}

/// The name of a holder or group: one that can be, found by its hash, and nobody else's.
fn name(
    field: &'static str,
    about: &str,
    text: Text,
    hash: u64,
    known: &mut BTreeMap<String, String>,
    found: &mut Found,
) {
    let bytes = match text {
        Text::Is(bytes) => bytes,
        Text::Wrong(code, message) => return found.add(code, about, message),
        Text::Gone => return,
    };
    let Ok(name) = String::from_utf8(bytes) else {
        return found.add(Code::Name, about, "its name is not UTF-8");
    };
    match check_name(field, &name) {
        Err(NameError::LooksLikeAnId { .. }) if field == "group" => {}
        Err(why) => found.add(Code::Name, about, why.to_string()),
        Ok(()) => {}
    }
    if name_hash(&name) != hash {
        found.add(Code::Hash, about, format!("its name is {name:?}, and it is looked for under another"));
    }
    if let Some(other) = known.insert(name, about.to_owned()) {
        found.add(Code::DuplicateName, about, format!("{other} has the same name"));
    }
}

/// The text that the word of an ended node names; the word is looked at again before anything is said.
pub(super) fn end_text(core: &Core<'_>, slot: u16, head: u16, word: NodeWord, found: &mut Found) {
    let bytes = core.read_end_text(head);
    let owner = core.fixed.blocks.get(usize::from(head)).map(|block| block.text.load(Ordering::Acquire).of());
    if core.node(slot).map_or(true, |node| node.word.load(Ordering::Acquire) != word) {
        return;
    }
    let message = match bytes {
        Err(damaged) => damaged.what,
        Ok(None) => "the text that it ended with is not in the block that it names",
        Ok(Some(_)) if owner != Some(crate::word::TextOf::Node(slot)) => "the text that it ended with is another's",
        Ok(Some(bytes)) => match Record::decode(&bytes).map(|record| record.check()) {
            Some(Ok(())) => {
                found.report.counts.text_blocks += blocks(bytes.len());
                return;
            }
            _ => "the text that it ended with is no record",
        },
    };
    found.add(Code::EndText, format!("node slot {slot}"), message);
}
