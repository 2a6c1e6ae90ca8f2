//! The bytes of a snapshot, and back. Pure.
//!
//! All numbers are little-endian. Every length is bounded and checked before it is used, and of every snapshot there is
//! only one way to write it down, so what decodes also encodes to the same bytes.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `tensnap` and a line end |
//! | 4, 4 | format; options (bit 0: completions must name a generation) |
//! | 8 | length of the file |
//! | 8, 8 | boot id |
//! | 8, 8 | the table: wall clock of its creation; number of the version of the graph |
//! | 8, 8, 8 | the cut: begun and ended, monotonic nanoseconds; wall clock, milliseconds |
//! | 8, 8 | default lease in milliseconds; generation that new nodes begin at |
//! | 4, 4, 4 | groups; nodes; edges |
//! | .. | the groups: number 1, limit 4, length 1 and the name; ascending |
//! | .. | the nodes, by slot: see `put_node` |
//! | 5 each | the edges: slot of the child 2, slot of the parent 2, what the parent's failure does 1; ascending |
//! | 8 | XXH3-64 of everything before |

use xxhash_rust::xxh3::xxh3_64;

use super::{Moment, SavedEdge, SavedGroup, SavedNode, Snapshot};
use crate::error::NameError;
use crate::id::{NAME_BYTES_MAX, NodeId, check_name};
use crate::layout::{EDGES, GROUPS, NODES};
use crate::node::{OnFailure, Status};
use crate::record::{RECORD_BYTES_MAX, Record, check_fields, put_fields};
use crate::word::{GENERATION_MAX, LEASE_MS_MAX};

pub(crate) const MAGIC: [u8; 8] = *b"tensnap\n";

/// Counts up whenever a byte of a snapshot changes its meaning.
pub(crate) const FORMAT: u32 = 2;

const HEADER_BYTES: usize = 108;
const CHECKSUM_BYTES: usize = 8;
/// A node without its texts.
const NODE_BYTES_MIN: usize = 83;
/// A group without its name.
const GROUP_BYTES_MIN: usize = 6;
const EDGE_BYTES: usize = 5;

/// The longest snapshot.
pub(crate) const BYTES_MAX: u64 = (HEADER_BYTES
    + GROUPS * (GROUP_BYTES_MIN + NAME_BYTES_MAX)
    + NODES * (NODE_BYTES_MIN + NAME_BYTES_MAX + RECORD_BYTES_MAX)
    + EDGES * EDGE_BYTES
    + CHECKSUM_BYTES) as u64;

const REQUIRE_FENCE: u32 = 1;
const ARCHIVED: u8 = 0x80;

/// In the order of their numbers.
const STATUSES: [Status; 5] = [Status::Open, Status::Claimed, Status::Done, Status::Failed, Status::Cancelled];
const MODES: [OnFailure; 3] = [OnFailure::Block, OnFailure::Skip, OnFailure::Continue];

/// Why bytes are not a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    NotASnapshot(String),
    OtherVersion(u32),
    Damaged(String),
}

fn damaged<T>(why: impl Into<String>) -> Result<T, Unreadable> {
    Err(Unreadable::Damaged(why.into()))
}

impl Snapshot {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.nodes.len() * 128 + self.edges.len() * EDGE_BYTES);
        bytes.extend(MAGIC);
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend((if self.require_fence { REQUIRE_FENCE } else { 0 }).to_le_bytes());
        let length_at = bytes.len();
        let Moment { boot, table_created_at_ms, version, began_ns, ended_ns, taken_at_ms } = self.taken;
        let numbers = [0, boot.0, boot.1, table_created_at_ms, version, began_ns, ended_ns, taken_at_ms];
        for number in numbers.into_iter().chain([self.lease_ms, self.floor]) {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for count in [self.groups.len(), self.nodes.len(), self.edges.len()] {
            bytes.extend_from_slice(&(count as u32).to_le_bytes());
        }
        for SavedGroup { number, limit, name } in &self.groups {
            bytes.push(*number);
            bytes.extend_from_slice(&limit.to_le_bytes());
            put_short(&mut bytes, name);
        }
        self.nodes.iter().for_each(|node| put_node(&mut bytes, node));
        for SavedEdge { child, parent, on_failure } in &self.edges {
            bytes.extend_from_slice(&child.to_le_bytes());
            bytes.extend_from_slice(&parent.to_le_bytes());
            bytes.push(MODES.iter().position(|mode| mode == on_failure).unwrap_or(0) as u8);
        }
        let length = (bytes.len() + CHECKSUM_BYTES) as u64;
        bytes.iter_mut().skip(length_at).zip(length.to_le_bytes()).for_each(|(to, from)| *to = from);
        bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Snapshot, Unreadable> {
        let content = check_frame(bytes)?;
        let mut from = Bytes(content);
        match from.snapshot() {
            Some(snapshot) if from.0.is_empty() => snapshot.check().map(|()| snapshot),
            Some(_) => damaged("more follows after its last edge"),
            // The checksum was right: whoever wrote it wrote nonsense.
            None => damaged("a length or a field in it cannot be"),
        }
    }
}

/// The bytes between the length and the checksum, once both are found right, behind the options.
fn check_frame(bytes: &[u8]) -> Result<&[u8], Unreadable> {
    if bytes.is_empty() {
        return Err(Unreadable::NotASnapshot("it is empty".into()));
    }
    let mut from = Bytes(bytes);
    if from.array::<8>() != Some(MAGIC) {
        return Err(Unreadable::NotASnapshot("its first eight bytes are not a snapshot's".into()));
    }
    match from.u32() {
        Some(FORMAT) => {}
        Some(other) => return Err(Unreadable::OtherVersion(other)),
        None => return damaged("it was cut short within its first bytes"),
    }
    let behind_format = from.0;
    let length = from.u32().and_then(|_options| from.u64());
    let Some(length) = length.filter(|_| bytes.len() >= HEADER_BYTES + CHECKSUM_BYTES) else {
        return damaged(format!("it is {} bytes long, shorter than an empty one", bytes.len()));
    };
    if length != bytes.len() as u64 {
        return damaged(format!("it is {} bytes long and says that it is {length}", bytes.len()));
    }
    let (Some((content, sum)), Some((behind_format, _))) =
        (bytes.split_last_chunk::<CHECKSUM_BYTES>(), behind_format.split_last_chunk::<CHECKSUM_BYTES>())
    else {
        return damaged("it has no checksum");
    };
    if xxh3_64(content) != u64::from_le_bytes(*sum) {
        return damaged("its checksum does not match its content");
    }
    Ok(behind_format)
}

/// A short text behind its length in one byte.
fn put_short(bytes: &mut Vec<u8>, text: &str) {
    bytes.push(text.len() as u8);
    bytes.extend_from_slice(text.as_bytes());
}

/// A node: id 16, slot 2, generation 8, status 1 (128 added: archived), cost 4, parent slot + 1 (0: none) 2, attempts 2,
/// retry delay 4, group 1, generation that attempts are counted from 8, creation number 8, created, updated and finished
/// (0: not) 8 each, length 1 and name of the holder, length 2 and the texts.
fn put_node(bytes: &mut Vec<u8>, node: &SavedNode) {
    let status = STATUSES.iter().position(|&s| s == node.status).unwrap_or(0) as u8;
    let record = [&node.name, &node.kind, &node.role, &node.summary, &node.run, &node.surface];
    bytes.extend_from_slice(&node.id.0.to_le_bytes());
    bytes.extend_from_slice(&node.slot.to_le_bytes());
    bytes.extend_from_slice(&node.generation.to_le_bytes());
    bytes.push(status | if node.archived { ARCHIVED } else { 0 });
    bytes.extend_from_slice(&node.cost.to_le_bytes());
    bytes.extend_from_slice(&node.parent.map_or(0, |slot| slot + 1).to_le_bytes());
    bytes.extend_from_slice(&node.max_attempts.to_le_bytes());
    bytes.extend_from_slice(&node.retry_delay_ms.to_le_bytes());
    bytes.push(node.group);
    bytes.extend_from_slice(&node.attempts_from.to_le_bytes());
    for number in [node.born, node.created_at_ms, node.updated_at_ms, node.finished_at_ms.unwrap_or(0)] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    put_short(bytes, node.holder.as_deref().unwrap_or(""));
    let length: usize = record.iter().map(|text| 2 + text.len()).sum();
    bytes.extend_from_slice(&(length as u16).to_le_bytes());
    put_fields(bytes, record);
}

/// When a snapshot was taken: reads no more of it than that, once its length and checksum are found right.
pub(crate) fn moment(bytes: &[u8]) -> Result<Moment, Unreadable> {
    let mut from = Bytes(check_frame(bytes)?);
    let taken = from.u32().and_then(|_options| from.u64()).and_then(|_length| from.moment());
    taken.ok_or_else(|| Unreadable::Damaged("it was cut short within its first bytes".into()))
}

/// So many of something, in memory that is asked for once. The count was checked.
fn many<T>(count: usize, mut one: impl FnMut() -> Option<T>) -> Option<Vec<T>> {
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        all.push(one()?);
    }
    Some(all)
}

/// What is left to read. Each reader answers `None` when it does not find what it looks for.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn slice(&mut self, len: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(first)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn moment(&mut self) -> Option<Moment> {
        let boot = (self.u64()?, self.u64()?);
        Some(Moment {
            boot,
            table_created_at_ms: self.u64()?,
            version: self.u64()?,
            began_ns: self.u64()?,
            ended_ns: self.u64()?,
            taken_at_ms: self.u64()?,
        })
    }

    /// Everything behind the format's number.
    fn snapshot(&mut self) -> Option<Snapshot> {
        let options = self.u32()?;
        let _length = self.u64()?;
        let taken = self.moment()?;
        let (lease_ms, floor) = (self.u64()?, self.u64()?);
        let [groups, nodes, edges] = [self.u32()? as usize, self.u32()? as usize, self.u32()? as usize];
        if options & !REQUIRE_FENCE != 0 || groups > GROUPS || nodes > NODES || edges > EDGES {
            return None;
        }
        let groups = many(groups, || self.group())?;
        let nodes = many(nodes, || self.node())?;
        let edges = many(edges, || self.edge())?;
        let require_fence = options & REQUIRE_FENCE != 0;
        Some(Snapshot { taken, lease_ms, require_fence, floor, groups, nodes, edges })
    }

    fn short(&mut self) -> Option<String> {
        let len = usize::from(self.u8()?);
        std::str::from_utf8(self.slice(len)?).ok().map(str::to_owned)
    }

    fn group(&mut self) -> Option<SavedGroup> {
        Some(SavedGroup { number: self.u8()?, limit: self.u32()?, name: self.short()? })
    }

    fn edge(&mut self) -> Option<SavedEdge> {
        let (child, parent) = (self.u16()?, self.u16()?);
        Some(SavedEdge { child, parent, on_failure: *MODES.get(usize::from(self.u8()?))? })
    }

    fn node(&mut self) -> Option<SavedNode> {
        let id = NodeId(u128::from_le_bytes(self.array()?));
        let (slot, generation, status) = (self.u16()?, self.u64()?, self.u8()?);
        let (cost, parent) = (self.u32()?, self.u16()?);
        let (max_attempts, retry_delay_ms, group, attempts_from) = (self.u16()?, self.u32()?, self.u8()?, self.u64()?);
        let [born, created_at_ms, updated_at_ms, finished] = [self.u64()?, self.u64()?, self.u64()?, self.u64()?];
        let holder = self.short()?;
        let record_len = usize::from(self.u16()?);
        let Record { name, kind, role, summary, run, surface } = Record::decode(self.slice(record_len)?)?;
        Some(SavedNode {
            id,
            slot,
            generation,
            status: *STATUSES.get(usize::from(status & !ARCHIVED))?,
            archived: status & ARCHIVED != 0,
            holder: Some(holder).filter(|holder| !holder.is_empty()),
            name,
            kind,
            role,
            summary,
            run,
            surface,
            cost,
            parent: parent.checked_sub(1),
            max_attempts,
            retry_delay_ms,
            group,
            attempts_from,
            born,
            created_at_ms,
            updated_at_ms,
            finished_at_ms: (finished != 0).then_some(finished),
        })
    }
}

impl Snapshot {
    /// Whether a table could hold this. Loops are left to whoever builds the graph.
    pub(crate) fn check(&self) -> Result<(), Unreadable> {
        match self.problems().into_iter().next() {
            Some(why) => Err(Unreadable::Damaged(why)),
            None => Ok(()),
        }
    }

    /// Everything in it that no table could hold, but for loops.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !(1..=LEASE_MS_MAX).contains(&self.lease_ms) {
            problems.push("its default lease is out of range".into());
        }
        if self.floor > GENERATION_MAX {
            problems.push("new nodes begin past the last generation".into());
        }
        self.check_nodes(&mut problems);
        self.check_edges(&mut problems);
        self.check_groups(&mut problems);
        problems
    }

    fn check_nodes(&self, problems: &mut Vec<String>) {
        if self.nodes.windows(2).any(|two| two[0].slot >= two[1].slot) {
            problems.push("its nodes are not in order".into());
        }
        for node in &self.nodes {
            if usize::from(node.slot) >= NODES {
                problems.push(format!("node {}: a number past the last slot", node.id));
            }
            problems.extend(what_is_wrong(node).map(|why| format!("node {}: {why}", node.id)));
        }
        let mut holders: Vec<&String> = self.nodes.iter().filter_map(|node| node.holder.as_ref()).collect();
        holders.sort_unstable();
        if self.has_an_id_twice() {
            problems.push("a node stands in it twice".into());
        }
        if holders.windows(2).any(|two| two[0] == two[1]) {
            problems.push("one holder has two claims in it".into());
        }
    }

    fn check_edges(&self, problems: &mut Vec<String>) {
        let mut present = [false; NODES];
        for node in &self.nodes {
            if let Some(there) = present.get_mut(usize::from(node.slot)) {
                *there = true;
            }
        }
        let is_there = |slot: u16| present.get(usize::from(slot)).copied().unwrap_or(false);
        if self.nodes.iter().any(|node| node.parent.is_some_and(|p| p == node.slot || !is_there(p))) {
            problems.push("a node belongs under none or itself".into());
        }
        if self.edges.iter().any(|e| e.child == e.parent || !is_there(e.child) || !is_there(e.parent)) {
            problems.push("an edge leads nowhere".into());
        }
        if self.edges.windows(2).any(|two| (two[0].child, two[0].parent) >= (two[1].child, two[1].parent)) {
            problems.push("its edges are not in order".into());
        }
    }

    /// Open addressing over the lower bits of the ids, which are hashes or count up; there are at most half as many nodes
    /// as places.
    fn has_an_id_twice(&self) -> bool {
        if self.nodes.len() > NODES {
            // More than there are slots: that is said anyway.
            return false;
        }
        let mut places = vec![0u16; 2 * NODES];
        for (i, node) in self.nodes.iter().enumerate() {
            let home = node.id.0 as usize;
            for probe in 0..places.len() {
                let at = home.wrapping_add(probe) % (2 * NODES);
                let Some(place) = places.get_mut(at) else { return true };
                if *place == 0 {
                    *place = i as u16 + 1;
                    break;
                }
                if self.nodes.get(usize::from(*place) - 1).is_some_and(|other| other.id == node.id) {
                    return true;
                }
            }
        }
        false
    }

    fn check_groups(&self, problems: &mut Vec<String>) {
        let mut known = [false; GROUPS];
        let mut names: Vec<&String> = self.groups.iter().map(|group| &group.name).collect();
        names.sort_unstable();
        if names.windows(2).any(|two| two[0] == two[1]) {
            problems.push("a group stands in it twice".into());
        }
        if self.groups.windows(2).any(|two| two[0].number >= two[1].number) {
            problems.push("its groups are not in order".into());
        }
        for SavedGroup { number, limit, name } in &self.groups {
            let bad_name =
                matches!(check_name("group", name), Err(why) if !matches!(why, NameError::LooksLikeAnId { .. }));
            if *number == 0 || bad_name || !(1..=NODES as u32).contains(limit) {
                problems.push("a group that cannot be".into());
            }
            if let Some(known) = known.get_mut(usize::from(*number)) {
                *known = true;
            }
        }
        let is_known = |number: u8| number == 0 || known.get(usize::from(number)) == Some(&true);
        if !self.nodes.iter().all(|node| is_known(node.group)) {
            problems.push("a node of no known group".into());
        }
    }
}

/// As much of a snapshot as its bytes give, whatever is wrong with them, and what is wrong with its frame: for whoever
/// looks for all that is wrong. Nothing is ever restored from this.
pub(crate) fn decode_loosely(bytes: &[u8]) -> (Option<Snapshot>, Vec<Unreadable>) {
    let mut problems: Vec<Unreadable> = check_frame(bytes).err().into_iter().collect();
    if matches!(problems.first(), Some(Unreadable::NotASnapshot(_) | Unreadable::OtherVersion(_))) {
        return (None, problems);
    }
    let behind_format = bytes.get(MAGIC.len() + 4..).unwrap_or(&[]);
    let content = behind_format.split_last_chunk::<CHECKSUM_BYTES>().map_or(behind_format, |(content, _)| content);
    let mut from = Bytes(content);
    let snapshot = from.snapshot();
    // Of bytes whose checksum is wrong one cannot say which are; that they make no sense either adds nothing.
    if problems.is_empty() {
        match &snapshot {
            None => problems.push(Unreadable::Damaged("a length or a field in it cannot be".into())),
            Some(_) if !from.0.is_empty() => {
                problems.push(Unreadable::Damaged("more follows after its last edge".into()))
            }
            Some(_) => {}
        }
    }
    (snapshot, problems)
}

/// What no node of a table can be.
fn what_is_wrong(node: &SavedNode) -> Option<&'static str> {
    let texts = check_fields([&node.name, &node.kind, &node.role, &node.summary, &node.run, &node.surface]);
    let ended = matches!(node.status, Status::Done | Status::Failed | Status::Cancelled);
    let claimed = node.status == Status::Claimed;
    let wrong = [
        (texts.is_err(), "a text that cannot be stored"),
        (!node.name.is_empty() && node.id != NodeId::of_name(&node.name), "an id that is not its name's"),
        (node.generation > GENERATION_MAX, "a generation past the last"),
        (node.archived && !ended, "archived and not ended"),
        (node.finished_at_ms.is_some() && !ended, "a time of its end, and it has not ended"),
        (node.holder.is_some() != claimed, "a holder and no claim, or the other way round"),
        (node.holder.as_ref().is_some_and(|h| check_name("holder", h).is_err()), "a holder whose name cannot be"),
        (node.attempts_from > node.generation, "attempts that are still to come"),
    ];
    wrong.into_iter().find_map(|(is_so, why)| is_so.then_some(why))
}

#[cfg(all(test, not(tenure_loom)))]
mod tests;
