//! Whether a version is a graph, and what is kept beside it follows from it. Works on a copy, so nothing changes meanwhile.

use std::collections::BTreeMap;
use std::ops::Range;

use super::raw::Raw;
use super::{Code, Found};
use crate::graph::index_home;
use crate::id::NodeId;
use crate::layout::{EDGES, HOLDERS, INDEX, NODES, STEPS, edge_bits, edge_parts};
use crate::word::{GENERATION_MAX, TextOf, TextRef};

/// Creation numbers begin with the milliseconds since the boot, so half of them last for seventeen years.
const NEXT_BORN_MAX: u64 = u64::MAX / 2;

/// The highest mode that an edge has.
const MODE_MAX: u16 = 2;

/// Checks a copied version.
pub(super) fn check(raw: &Raw, found: &mut Found) {
    bounds(raw, found);
    ids(raw, found);
    owners_of_texts(raw, found);
    let parents = parents(raw, found);
    let edges = edges(raw, found);
    children(raw, &edges, found);
    a_loop(raw, &parents, &edges, found);
    order(raw, found);
    births(raw, found);
    groups(raw, found);
}

fn about(slot: usize) -> String {
    format!("node slot {slot}")
}

fn bounds(raw: &Raw, found: &mut Found) {
    let counts = [
        ("node slots in use", raw.high, NODES as u64),
        ("edges", raw.edge_count, EDGES as u64),
        ("steps", raw.steps, STEPS as u64),
        ("holder slots in use", raw.holder_high, HOLDERS as u64),
        ("the state of its hints", raw.filled, 2),
        ("the generation that new nodes begin at", raw.floor, GENERATION_MAX),
    ];
    for (what, count, most) in counts {
        if count > most {
            found.add(Code::VersionBounds, "version", format!("{what}: {count}, and the most there can be is {most}"));
        }
    }
}

fn ids(raw: &Raw, found: &mut Found) {
    let mut known: BTreeMap<u128, usize> = BTreeMap::new();
    for slot in raw.nodes() {
        if let Some(other) = known.insert(raw.id[slot], slot) {
            let message = format!("its id {} is also that of node slot {other}", NodeId(raw.id[slot]));
            found.add(Code::DuplicateId, about(slot), message);
        }
    }
    for slot in raw.nodes().filter(|&slot| known.get(&raw.id[slot]) == Some(&slot)) {
        if lookup(raw, raw.id[slot]) != Some(slot) {
            found.add(Code::Index, about(slot), "it is not found by its id");
        }
    }
    let entries = raw.index.iter().filter_map(|entry| entry.checked_sub(1)).map(usize::from);
    for slot in entries.filter(|&slot| !raw.is_node(slot)) {
        found.add(Code::Index, about(slot), "the index names it, and there is no node in it");
    }
}

fn lookup(raw: &Raw, id: u128) -> Option<usize> {
    let home = index_home(NodeId(id));
    for probe in 0..INDEX {
        let slot = usize::from(raw.index.get((home + probe) % INDEX)?.checked_sub(1)?);
        if raw.is_node(slot) && raw.id[slot] == id {
            return Some(slot);
        }
    }
    None
}

/// Every text says whose it is.
fn owners_of_texts(raw: &Raw, found: &mut Found) {
    let mut look = |what: &str, texts: &[TextRef], owner: fn(u16) -> TextOf| {
        for (slot, text) in texts.iter().enumerate().filter(|(_, text)| !text.is_none()) {
            if text.of() != owner(slot as u16) {
                found.add(Code::TextMisplaced, format!("{what} {slot}"), format!("its text is of {:?}", text.of()));
            }
        }
    };
    look("node slot", &raw.text[..raw.high()], TextOf::Node);
    look("holder", &raw.holders[..holders(raw).end], TextOf::Holder);
    look("group", &raw.groups, TextOf::Group);
    for (what, texts) in [("holder", &raw.holders), ("group", &raw.groups)] {
        if texts.first().is_some_and(|text| !text.is_none()) {
            found.add(Code::TextMisplaced, format!("{what} 0"), "it is never used, and has a name");
        }
    }
}

/// The holder slots that are in use.
pub(super) fn holders(raw: &Raw) -> Range<usize> {
    let high = usize::try_from(raw.holder_high).unwrap_or(HOLDERS).min(HOLDERS);
    1..high.max(1)
}

/// By slot, the parent, where it can be one.
fn parents(raw: &Raw, found: &mut Found) -> Vec<Option<usize>> {
    let mut parents = vec![None; NODES];
    for slot in raw.nodes() {
        let Some(parent) = raw.parent_word(slot).checked_sub(1) else { continue };
        let parent = usize::try_from(parent).unwrap_or(usize::MAX);
        if parent == slot || !raw.is_node(parent) {
            found.add(
                Code::Parent,
                about(slot),
                format!("it belongs under slot {parent}, where there is no other node"),
            );
        } else if let Some(place) = parents.get_mut(slot) {
            *place = Some(parent);
        }
    }
    parents
}

/// A dependency that can be one.
struct Edge {
    child: usize,
    parent: usize,
    bits: u16,
}

fn edges(raw: &Raw, found: &mut Found) -> Vec<Edge> {
    let mut edges = Vec::new();
    let mut from = 0usize;
    for child in 0..raw.high() {
        let range = stands_at(&raw.deps_at, child);
        let Some(own) = raw.deps.get(range.clone()).filter(|_| range.start == from) else {
            let message = format!(
                "its dependencies are to stand at {range:?}, not from {from}, or there are only {}",
                raw.deps.len()
            );
            found.add(Code::Edge, about(child), message);
            return edges;
        };
        from = range.end;
        let mut last = None;
        for &bits in own {
            let parent = usize::from(edge_parts(bits).0);
            let message = if !raw.is_node(child) {
                "it has a dependency, and there is no node in it".to_owned()
            } else if parent == child || !raw.is_node(parent) {
                format!("it waits for slot {parent}, where there is no other node")
            } else if bits >> 12 > MODE_MAX {
                format!("its edge to slot {parent} has the mode {}, which does not exist", bits >> 12)
            } else if last >= Some(parent) {
                format!("its dependencies are not in order at slot {parent}")
            } else {
                last = Some(parent);
                edges.push(Edge { child, parent, bits });
                continue;
            };
            found.add(Code::Edge, about(child), message);
        }
    }
    if from as u64 != raw.edge_count.min(EDGES as u64) {
        let message = format!("it counts {} edges, and its nodes have {from}", raw.edge_count);
        found.add(Code::Edge, "version", message);
    }
    edges
}

/// The children are the edges seen from the other end, in the order of the children.
fn children(raw: &Raw, edges: &[Edge], found: &mut Found) {
    if edges.len() as u64 != raw.edge_count {
        return; // Reported above: there is nothing that they could mirror.
    }
    let mut expected: Vec<Vec<u16>> = vec![Vec::new(); raw.high()];
    for Edge { child, parent, bits } in edges {
        let turned = edge_bits(*child as u16, edge_parts(*bits).1);
        if let Some(list) = expected.get_mut(*parent) {
            list.push(turned);
        }
    }
    let mut from = 0usize;
    for (parent, expected) in expected.iter().enumerate() {
        let range = stands_at(&raw.children_at, parent);
        if range.start != from || raw.children.get(range.clone()) != Some(expected.as_slice()) {
            let message = format!(
                "the nodes that wait for it are {} by their dependencies, and not what it names",
                expected.len()
            );
            found.add(Code::Children, about(parent), message);
            return; // What follows begins where this one ends.
        }
        from = range.end;
    }
}

/// Where a node's entries are said to stand; nothing that is said of it is hidden, as `range_parts` would.
fn stands_at(words: &[u64], slot: usize) -> Range<usize> {
    let bits = words.get(slot).copied().unwrap_or(0);
    (bits >> 32) as usize..bits as u32 as usize
}

/// Takes away what waits for nothing until nothing is left, or nothing can be taken.
fn a_loop(raw: &Raw, parents: &[Option<usize>], edges: &[Edge], found: &mut Found) {
    let mut before = vec![0u32; NODES];
    let mut behind: Vec<Vec<usize>> = vec![Vec::new(); NODES];
    let family = parents.iter().enumerate().filter_map(|(child, parent)| Some((child, (*parent)?)));
    for (child, parent) in edges.iter().map(|edge| (edge.child, edge.parent)).chain(family) {
        before[child] += 1;
        behind[parent].push(child);
    }
    let mut free: Vec<usize> = raw.nodes().filter(|&slot| before[slot] == 0).collect();
    let mut at = 0;
    while let Some(&slot) = free.get(at) {
        at += 1;
        for &next in &behind[slot] {
            before[next] -= 1;
            if before[next] == 0 {
                free.push(next);
            }
        }
    }
    let stuck: Vec<String> = raw.nodes().filter(|&slot| before[slot] > 0).map(|slot| slot.to_string()).collect();
    if !stuck.is_empty() {
        let message = format!("node slots on a loop or behind one: {}", stuck.join(", "));
        found.add(Code::Loop, "version", message);
    }
}

/// Every node once, the most work below first, then the oldest; and the place of each.
fn order(raw: &Raw, found: &mut Found) {
    let mut expected: Vec<usize> = raw.nodes().collect();
    expected.sort_by_key(|&slot| (std::cmp::Reverse(raw.waiting_below[slot]), raw.born[slot]));
    for (place, &slot) in expected.iter().enumerate() {
        let there = raw.order.get(place).map(|&slot| usize::from(slot));
        if there != Some(slot) {
            let message =
                format!("place {place} of the order of work is its, and slot {} is there", there.unwrap_or(NODES));
            found.add(Code::Order, about(slot), message);
            return;
        }
        if raw.rank.get(slot) != Some(&(place as u64)) {
            found.add(
                Code::Order,
                about(slot),
                format!("its place in the order of work is {place}, and it names another"),
            );
        }
    }
}

fn births(raw: &Raw, found: &mut Found) {
    if raw.next_born > NEXT_BORN_MAX {
        found.add(
            Code::CreationNumber,
            "version",
            format!("the next creation number is {}, near the last", raw.next_born),
        );
    }
    let mut known = BTreeMap::new();
    for slot in raw.nodes() {
        if raw.born[slot] >= raw.next_born {
            let message =
                format!("its creation number {} is still to come: the next is {}", raw.born[slot], raw.next_born);
            found.add(Code::CreationNumber, about(slot), message);
        } else if let Some(other) = known.insert(raw.born[slot], slot) {
            found.add(Code::CreationNumber, about(slot), format!("its creation number is also that of slot {other}"));
        }
    }
}

fn groups(raw: &Raw, found: &mut Found) {
    let exists = |group: usize| raw.groups.get(group).is_some_and(|text| !text.is_none());
    for slot in raw.nodes() {
        let group = usize::from(raw.policy[slot].group());
        if group != 0 && !exists(group) {
            found.add(Code::UnknownGroup, about(slot), format!("it is in group {group}, which is not there"));
        }
    }
    for (group, &limit) in raw.group_limit.iter().enumerate().filter(|&(group, _)| exists(group)) {
        if !(1..=NODES as u64).contains(&limit) {
            found.add(Code::GroupLimit, format!("group {group}"), format!("its limit is {limit}"));
        }
    }
}
