//! Snapshot files: the frame, the fields, and whether the graph in it is one.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::{Code, Found, Kind, Report};
use crate::layout::NODES;
use crate::node::Status;
use crate::snapshot::bytes::{self, Unreadable};
use crate::snapshot::{Snapshot, SnapshotError, file};

/// Whether the file begins as snapshots do. Anything else, also what cannot be read, is left to the reader of tables.
pub(super) fn looks_like_one(path: &Path) -> bool {
    let mut first = [0; 8];
    // Not waiting for somebody to open the other end of a pipe.
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path);
    let is_file = |file: &File| file.metadata().is_ok_and(|meta| meta.is_file());
    let read = file.ok().filter(is_file).map(|mut file| file.read_exact(&mut first));
    let named = path.file_name().is_some_and(|name| name == file::SNAPSHOT);
    named || (matches!(read, Some(Ok(()))) && first == bytes::MAGIC)
}

/// Checks a snapshot file.
///
/// # Errors
/// [`SnapshotError`] when it cannot be read.
pub(super) fn check(path: &Path) -> Result<Report, SnapshotError> {
    let content = file::read_bytes(path, file::Whose::Anybodys)?;
    let mut found = Found::new(path, Kind::Snapshot);
    let (snapshot, frame) = bytes::decode_loosely(&content);
    for problem in frame {
        let message = match problem {
            Unreadable::NotASnapshot(why) | Unreadable::Damaged(why) => why,
            Unreadable::OtherVersion(format) => {
                format!("it is of format {format}, and this program reads format {}", bytes::FORMAT)
            }
        };
        found.add(Code::SnapshotFrame, "file", message);
    }
    if let Some(snapshot) = snapshot {
        content_of(&snapshot, &mut found);
    }
    Ok(found.report)
}

fn content_of(snapshot: &Snapshot, found: &mut Found) {
    let counts = &mut found.report.counts;
    counts.nodes = snapshot.nodes.len() as u32;
    counts.edges = snapshot.edges.len() as u32;
    counts.groups = snapshot.groups.len() as u32;
    counts.claims = snapshot.nodes.iter().filter(|node| node.status == Status::Claimed).count() as u32;
    counts.holders = counts.claims;
    for problem in snapshot.problems() {
        found.add(Code::SnapshotContent, "content", problem);
    }
    a_loop(snapshot, found);
    for group in &snapshot.groups {
        let is_claim =
            |node: &&crate::snapshot::SavedNode| node.status == Status::Claimed && node.group == group.number;
        let claimed = snapshot.nodes.iter().filter(is_claim).count();
        if claimed > group.limit as usize {
            found.note(format!(
                "group {:?} has {claimed} claims and a limit of {}: it was lowered",
                group.name, group.limit
            ));
        }
    }
}

/// Dependencies and parents as one graph.
fn a_loop(snapshot: &Snapshot, found: &mut Found) {
    let family = snapshot.nodes.iter().filter_map(|node| Some((node.slot, node.parent?)));
    let ends: Vec<(u16, u16)> = snapshot.edges.iter().map(|edge| (edge.child, edge.parent)).chain(family).collect();
    let fits = |slot: u16| usize::from(slot) < NODES;
    let mut before = vec![0u32; NODES];
    let mut behind: Vec<Vec<u16>> = vec![Vec::new(); NODES];
    for &(child, parent) in ends.iter().filter(|&&(child, parent)| fits(child) && fits(parent)) {
        before[usize::from(child)] += 1;
        behind[usize::from(parent)].push(child);
    }
    let mut free: Vec<u16> = (0..NODES as u16).filter(|&slot| before[usize::from(slot)] == 0).collect();
    let mut at = 0;
    while let Some(&slot) = free.get(at) {
        at += 1;
        for &next in &behind[usize::from(slot)] {
            before[usize::from(next)] -= 1;
            if before[usize::from(next)] == 0 {
                free.push(next);
            }
        }
    }
    let stuck: Vec<String> = (0..NODES).filter(|&slot| before[slot] > 0).map(|slot| slot.to_string()).collect();
    if !stuck.is_empty() {
        found.add(Code::Loop, "content", format!("nodes on a loop or behind one: {}", stuck.join(", ")));
    }
}
