//! The words of nodes and holders, each read together with those that it must agree with.
//!
//! A node's word never comes back to an old value. So what is read between two looks that find the same word was so while
//! the node was in that state, and with the root looked at as well also while that version was in force.

use std::collections::{BTreeMap, BTreeSet};

use super::header::Clocks;
use super::raw::Raw;
use super::{Code, Found, texts};
use crate::clock;
use crate::layout::{HOLDERS, NODES, NodeSlot};
use crate::sync::{Bits, Ordering};
use crate::table::Core;
use crate::table::retry::RETRY_DELAY_MS_MAX;
use crate::table::version::InForce;
use crate::word::{GENERATION_CLAIMABLE_MAX, LEASE_MS_MAX, NodeWord, Phase};

/// How often a word is looked at again because it has changed meanwhile.
const TRIES: u32 = 100;

/// What is wrong with a node as it stands.
type Wrong = Vec<(Code, String)>;

/// Checks every node slot and every holder slot.
pub(super) fn check(core: &Core<'_>, raw: &Raw, clocks: Clocks, found: &mut Found) {
    let twice = two_claims(core, found);
    for slot in 0..NODES as u16 {
        let Ok(node) = core.node(slot) else { continue };
        let wrong = stable(core, node, found, |word, seen| one(core, node, slot, word, seen, clocks));
        for (code, message) in wrong {
            if code == Code::HolderDisagrees && twice.contains(&slot) {
                continue; // The other claim says it already.
            }
            found.add(code, format!("node slot {slot}"), message);
        }
        let word = node.word.load(Ordering::Acquire);
        let is_node = raw.is_node(slot.into());
        match word.state().phase {
            Phase::Claimed { .. } => found.report.counts.claims += u32::from(is_node),
            Phase::Ended { text: Some(head), .. } if is_node => texts::end_text(core, slot, head, word, found),
            _ => {}
        }
    }
    holders(core, found);
    groups(core, raw, found);
}

/// Looks at a node until nothing has changed while it was looked at.
fn stable(
    core: &Core<'_>,
    node: &NodeSlot,
    found: &mut Found,
    look: impl Fn(NodeWord, &InForce<'_>) -> Wrong,
) -> Wrong {
    for _ in 0..TRIES {
        let Ok(seen) = core.in_force() else { return Vec::new() };
        let word = node.word.load(Ordering::Acquire);
        let wrong = look(word, &seen);
        let same = node.word.load(Ordering::Acquire) == word;
        if wrong.is_empty() || (same && core.fixed.header.root.load(Ordering::Acquire) == seen.root && seen.is_whole())
        {
            return wrong;
        }
    }
    found.report.counts.unjudged += 1;
    Vec::new()
}

/// One node's words.
fn one(core: &Core<'_>, node: &NodeSlot, slot: u16, word: NodeWord, seen: &InForce<'_>, clocks: Clocks) -> Wrong {
    let mut wrong = Wrong::new();
    let is_node = slot < seen.high() && !seen.text(slot).is_none();
    if !word.is_one_that_is_written() {
        wrong.push((Code::NodeWord, format!("its word is {:#x}, which is never written", word.bits())));
    }
    if let Some(holder) = word.holder() {
        claim(core, slot, word, holder, seen, is_node, &mut wrong);
    }
    let base = seen.base(slot);
    if is_node && base > word.generation() {
        let message = format!("attempts are counted from generation {base}, and it is at {}", word.generation());
        wrong.push((Code::AttemptsAhead, message));
    }
    let length = node.length.load(Ordering::Acquire);
    if length.generation() > word.generation() {
        let message = format!(
            "a lease's length is noted for generation {}, and it is at {}",
            length.generation(),
            word.generation()
        );
        wrong.push((Code::LengthAhead, message));
    }
    if clocks == Clocks::Shared && is_node {
        times(node, word, &mut wrong);
    }
    wrong
}

fn claim(
    core: &Core<'_>,
    slot: u16,
    word: NodeWord,
    holder: u16,
    seen: &InForce<'_>,
    is_node: bool,
    wrong: &mut Wrong,
) {
    let generation = word.generation();
    if !is_node {
        wrong.push((Code::ClaimOfNoNode, format!("holder {holder} has claimed it, and there is no node in it")));
    }
    if generation > GENERATION_CLAIMABLE_MAX + 1 {
        wrong.push((Code::GenerationLimit, format!("it is claimed at generation {generation}, too near the last")));
    }
    if holder == 0 || seen.holder_name(holder).is_none() {
        wrong.push((Code::ClaimOfNobody, format!("it is claimed by holder {holder}, who has no name")));
        return;
    }
    let Ok(of_holder) = core.holder(holder) else { return };
    let names = of_holder.word.load(Ordering::Acquire);
    if (names.node(), names.generation()) != (slot, generation) {
        let message = format!(
            "it is claimed by holder {holder} at generation {generation}, and that one's word names slot {} at {}",
            names.node(),
            names.generation()
        );
        wrong.push((Code::HolderDisagrees, message));
    }
}

/// Times that are of the generation the node is at. Each is read before the clock, which only goes on.
fn times(node: &NodeSlot, word: NodeWord, wrong: &mut Wrong) {
    let generation = word.generation();
    let lease = node.lease.load(Ordering::Acquire);
    let until = node.left_alone_until_ms(word);
    let end = node.end.load(Ordering::Acquire);
    let now = clock::lease_now_ms();
    let ahead = |time: u64| time.saturating_sub(now);
    if word.holder().is_some() && lease.is_of(generation) && ahead(lease.deadline_ms()) > LEASE_MS_MAX {
        wrong.push((Code::LeaseTooLong, format!("its lease runs for another {} ms", ahead(lease.deadline_ms()))));
    }
    if let Some(until) = until.filter(|&until| word.is_open() && ahead(until) > RETRY_DELAY_MS_MAX) {
        wrong.push((Code::DelayTooLong, format!("it is left alone for another {} ms", ahead(until))));
    }
    if word.is_ended() && end.is_of(generation) && ahead(end.time_ms()) > 0 {
        wrong.push((Code::EndAhead, format!("it ended at a moment that comes in {} ms", ahead(end.time_ms()))));
    }
}

/// Holders with two claims at one moment; answers with the slots that are told of.
fn two_claims(core: &Core<'_>, found: &mut Found) -> BTreeSet<u16> {
    let mut told = BTreeSet::new();
    let mut held: BTreeMap<u16, u16> = BTreeMap::new();
    let word = |slot: u16| core.node(slot).map(|node| node.word.load(Ordering::Acquire));
    for slot in 0..NODES as u16 {
        let Some(holder) = word(slot).ok().and_then(NodeWord::holder) else { continue };
        let Some(other) = held.insert(holder, slot) else { continue };
        // One is read between two looks at the other that find the same: at that moment both were so.
        let (Ok(before), Ok(here), Ok(after)) = (word(other), word(slot), word(other)) else { continue };
        if before == after && before.holder() == Some(holder) && here.holder() == Some(holder) {
            let message = format!("it has claimed node slot {other} and node slot {slot}");
            found.add(Code::TwoClaims, format!("holder {holder}"), message);
            told.extend([other, slot]);
        }
    }
    told
}

/// A holder's word names what it may hold: at most the next generation of a node.
fn holders(core: &Core<'_>, found: &mut Found) {
    for holder in 0..HOLDERS as u16 {
        let Ok(of_holder) = core.holder(holder) else { continue };
        // The holder's word first: the node's generation only grows.
        let names = of_holder.word.load(Ordering::Acquire);
        let Ok(node) = core.node(names.node()) else {
            found.add(Code::HolderAhead, format!("holder {holder}"), format!("its word names slot {}", names.node()));
            continue;
        };
        let generation = node.word.load(Ordering::Acquire).generation();
        if names.generation() > generation + 1 {
            let message = format!(
                "its word names generation {} of slot {}, which is at {generation}",
                names.generation(),
                names.node()
            );
            found.add(Code::HolderAhead, format!("holder {holder}"), message);
        }
    }
}

/// A limit that was lowered takes nothing away, so more claims than that are no fault.
fn groups(core: &Core<'_>, raw: &Raw, found: &mut Found) {
    let mut claimed: BTreeMap<u8, u64> = BTreeMap::new();
    for slot in raw.nodes() {
        let held = core.node(slot as u16).is_ok_and(|node| node.word.load(Ordering::Acquire).holder().is_some());
        if held && raw.policy[slot].group() != 0 {
            *claimed.entry(raw.policy[slot].group()).or_default() += 1;
        }
    }
    for (group, claimed) in claimed {
        let limit = raw.group_limit.get(usize::from(group)).copied().unwrap_or(0);
        if claimed > limit {
            found.note(format!("group {group} has {claimed} claims and a limit of {limit}: either the limit was lowered, a claimed node came into it, or claims changed while they were counted"));
        }
    }
}
