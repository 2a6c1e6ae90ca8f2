//! One node and what decides how it stands, read from the version in force without a copy of it.
//!
//! What is read is what a look at the whole table would have read, in the same order: the node, then what it waits for,
//! up to what has ended. So it costs as much as there is unfinished work above the node.

use crate::clock;
use crate::error::{Damaged, Refusal};
use crate::id::NodeId;
use crate::layout::{edge_parts, get16};
use crate::node::{NodeView, OnFailure, Seen};
use crate::record::Record;
use crate::standing::{Standing, satisfies};
use crate::sync::Ordering;
use crate::table::version::InForce;
use crate::table::{Core, TRIES};
use crate::verbs::Table;
use crate::verbs::view::{attempts, filled, finished_ms};
use crate::word::{NodeWord, Phase, TextRef};

impl Table {
    /// One node.
    ///
    /// # Errors
    /// [`Refusal::NoSuchNode`].
    pub fn get(&self, node: NodeId) -> Result<NodeView, Refusal> {
        let core = self.core();
        for _ in 0..TRIES {
            let seen = core.in_force().map_err(|stop| self.refusal(stop))?;
            let slot = seen.slot_of(node);
            let view = slot.map_or(Ok(None), |slot| self.glance(&seen, slot));
            // What was read while the version changed is neither an answer nor damage.
            if !seen.is_whole() || core.fixed.header.root.load(Ordering::Acquire) != seen.root {
                continue;
            }
            match (slot, view?) {
                (None, _) => return Err(Refusal::NoSuchNode { node: node.to_string() }),
                (Some(_), Some(view)) => return Ok(view),
                (Some(_), None) => {}
            }
        }
        Err(Refusal::Contended { tries: TRIES })
    }

    /// `None`: the node changed meanwhile.
    fn glance(&self, seen: &InForce<'_>, slot: u16) -> Result<Option<NodeView>, Refusal> {
        let core = self.core();
        let word = core.seen_word(seen.root, slot)?;
        let Some(node) = seen.node(slot) else { return Ok(None) };
        let (standing, skipped_by) = Above::new(core, seen).look(slot, word)?;
        let mut status = standing.seen();
        let until_ms = core.node(slot)?.left_alone_until_ms(word).filter(|_| status == Seen::Ready);
        let left_ms = until_ms.map(|until_ms| until_ms.saturating_sub(clock::lease_now_ms())).filter(|&ms| ms > 0);
        if left_ms.is_some() {
            status = Seen::Todo;
        }
        let waiting_below = if standing.is_over() { self.left_below(seen, slot)? } else { seen.waiting_below(slot) };
        let holder = word.holder().map(|holder| self.holder_name(holder)).transpose()?;
        let record = match word.state().phase {
            Phase::Ended { text: Some(head), .. } => core.read_end_text(head)?,
            _ => core.read_text(node.text)?,
        };
        let end = core.node(slot)?.end.load(Ordering::Relaxed);
        let lease_left_ms = if holder.is_some() { Some(self.lease_left_ms(slot, word)?) } else { None };
        let edges = || seen.deps(slot).map(|i| edge_parts(get16(&seen.version.deps, i).unwrap_or(0)));
        let depends_on = edges().map(|(dep, _)| self.label_at(seen, dep)).collect::<Result<_, _>>()?;
        let parent = node.parent.map(|parent| self.label_at(seen, parent)).transpose()?;
        let skipped_by = skipped_by.map(|by| self.label_at(seen, by)).transpose()?;
        let group = match node.policy.group() {
            0 => None,
            group => self.text_at(seen.group_name(group.into()))?,
        };
        if core.seen_word(seen.root, slot)? != word {
            return Ok(None);
        }
        let record = record.and_then(|bytes| Record::decode(&bytes));
        let Record { name, kind, role, summary, run, surface } =
            record.ok_or(Damaged { what: "a node's record does not decode" })?;
        Ok(Some(NodeView {
            id: node.id,
            name: filled(name),
            status,
            generation: word.generation(),
            lease_left_ms,
            holder,
            kind: filled(kind),
            role: filled(role),
            parent,
            on_failure: edges().map(|(_, on_failure)| on_failure).collect(),
            skipped_by,
            attempts: attempts(word, end, &node),
            max_attempts: node.policy.max_attempts(),
            retry_delay_ms: node.policy.retry_delay_ms(),
            retry_in_ms: left_ms,
            group,
            surface: filled(surface),
            startable: None,
            depends_on,
            cost: node.cost,
            waiting_below,
            summary: filled(summary),
            run: filled(run),
            archived: matches!(word.state().phase, Phase::Ended { archived: true, .. }),
            created_at_ms: node.created_ms,
            updated_at_ms: node.updated_ms,
            finished_at_ms: word.is_ended().then(|| finished_ms(end, &node)),
        }))
    }

    /// What waits below a node that is over: the version counts that of a live one, which ends in order do not change.
    fn left_below(&self, seen: &InForce<'_>, slot: u16) -> Result<u64, Refusal> {
        let core = self.core();
        let mut longest = 0;
        for i in seen.children(slot) {
            let (child, _) = edge_parts(get16(&seen.version.children, i).unwrap_or(0));
            let word = core.seen_word(seen.root, child)?;
            let skipped = || core.is_skipped(seen, child).map_err(|stop| self.refusal(stop));
            let is_over = word.is_ended() || (word.is_open() && skipped()?);
            if !is_over {
                let cost = seen.node(child).map_or(0, |node| u64::from(node.cost));
                longest = longest.max(cost.saturating_add(seen.waiting_below(child)));
            }
        }
        Ok(longest)
    }

    fn text_at(&self, text: TextRef) -> Result<Option<String>, Refusal> {
        let bytes = if text.is_none() { None } else { self.core().read_text(text)? };
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Name or id of a node of the version in force.
    fn label_at(&self, seen: &InForce<'_>, slot: u16) -> Result<String, Refusal> {
        let record = self.core().read_text(seen.text(slot))?.and_then(|bytes| Record::decode(&bytes));
        let name = record.map(|record| record.name).filter(|name| !name.is_empty());
        Ok(name.unwrap_or_else(|| seen.id(slot).to_string()))
    }
}

/// How nodes stand, for a node and the unfinished ones above it.
struct Above<'a, 'm> {
    core: Core<'m>,
    seen: &'a InForce<'m>,
    /// By slot, how it stands and whether it is behind a failure, once that is known.
    known: Vec<Option<(Standing, bool)>>,
}

impl<'a, 'm> Above<'a, 'm> {
    fn new(core: Core<'m>, seen: &'a InForce<'m>) -> Above<'a, 'm> {
        Above { core, seen, known: vec![None; usize::from(seen.high())] }
    }

    fn get(&self, slot: u16) -> Option<(Standing, bool)> {
        self.known.get(usize::from(slot)).copied().flatten()
    }

    fn edges(&self, slot: u16) -> impl Iterator<Item = (u16, OnFailure)> + use<'a, 'm> {
        let seen = self.seen;
        seen.deps(slot).map(move |i| edge_parts(get16(&seen.version.deps, i).unwrap_or(0)))
    }

    /// How `slot` stands, and the failed dependency that skips it. Each node is looked at before those above it.
    fn look(&mut self, slot: u16, word: NodeWord) -> Result<(Standing, Option<u16>), Damaged> {
        let mut left = vec![(slot, word, false)];
        while let Some((at, word, above_is_known)) = left.pop() {
            if self.get(at).is_some() {
                continue;
            }
            let phase = word.state().phase;
            if let Phase::Ended { outcome, .. } = phase {
                self.put(at, Standing::Ended(outcome), false)?;
            } else if above_is_known {
                let (standing, stuck) = self.judge(at, phase);
                self.put(at, standing, stuck)?;
            } else {
                left.push((at, word, true));
                for (dep, _) in self.edges(at) {
                    if self.get(dep).is_none() {
                        left.push((dep, self.core.seen_word(self.seen.root, dep)?, false));
                    }
                }
                // A sound version has no loop and so many edges at most; a damaged one ends here.
                if left.len() > crate::layout::EDGES + crate::layout::NODES {
                    return Err(Damaged { what: "the version in force has a loop" });
                }
            }
        }
        let standing = self.get(slot).map_or(Standing::Todo, |known| known.0);
        let fails = |dep: u16| self.get(dep).is_some_and(|(standing, _)| standing.is_failure());
        let by = self.edges(slot).find(|&(dep, mode)| mode == OnFailure::Skip && fails(dep)).map(|(dep, _)| dep);
        Ok((standing, by.filter(|_| standing == Standing::Skipped)))
    }

    fn put(&mut self, slot: u16, standing: Standing, stuck: bool) -> Result<(), Damaged> {
        let known = self.known.get_mut(usize::from(slot));
        *known.ok_or(Damaged { what: "an edge leads past the last node" })? = Some((standing, stuck));
        Ok(())
    }

    /// As `standings` does for all nodes at once.
    fn judge(&self, slot: u16, phase: Phase) -> (Standing, bool) {
        let (mut skipped, mut behind, mut waits) = (false, false, false);
        for (dep, on_failure) in self.edges(slot) {
            let (parent, stuck) = self.get(dep).unwrap_or((Standing::Todo, false));
            skipped |= on_failure == OnFailure::Skip && parent.is_failure();
            behind |= stuck || (on_failure == OnFailure::Block && parent.is_failure());
            waits |= !satisfies(parent, on_failure);
        }
        let standing = match phase {
            Phase::Claimed { .. } => Standing::Claimed,
            Phase::Open if skipped => Standing::Skipped,
            Phase::Open if behind => Standing::Blocked,
            Phase::Open if waits => Standing::Todo,
            Phase::Open => Standing::Ready,
            Phase::Ended { outcome, .. } => Standing::Ended(outcome),
        };
        (standing, behind && !standing.is_over())
    }
}

#[cfg(all(test, not(tenure_loom)))]
mod tests {
    use crate::node::{Filter, Need};
    use crate::{Completion, CreateOptions, NodeId, NodeSpec, Outcome, Table};

    use super::*;

    /// Ends, claims and links in an order that a small generator makes up; after each, every node is looked at both ways.
    #[test]
    fn a_glance_sees_what_a_look_at_the_whole_table_sees() {
        let dir = tempfile::tempdir().unwrap();
        let (table, _) = Table::open_or_create(dir.path().join("t"), &CreateOptions::default()).unwrap();
        let mut number = 0x2545_F491_4F6C_DD1D_u64;
        let mut below = |limit: u64| {
            number ^= number << 13;
            number ^= number >> 7;
            number ^= number << 17;
            number % limit
        };
        let id = |i: u64| NodeId(u128::from(i) + 1);
        let modes = [OnFailure::Block, OnFailure::Skip, OnFailure::Continue];
        table.set_group("g", 2).unwrap();
        for i in 0..40 {
            let needs = (0..below(4).min(i))
                .map(|_| Need { node: id(below(i.max(1))), on_failure: Some(modes[below(3) as usize]) })
                .collect();
            let group = (below(4) == 0).then(|| "g".to_owned());
            let parent = (i > 0 && below(5) == 0).then(|| Some(id(below(i))));
            let cost = Some(below(9) as u32);
            let spec = NodeSpec { id: Some(id(i)), needs, group, parent, cost, ..NodeSpec::default() };
            // A parent that waits for its child is a loop, and refused.
            let _ = table.upsert(&spec, false);
        }
        for turn in 0..200 {
            let node = id(below(40));
            let outcome = [Outcome::Done, Outcome::Failed, Outcome::Cancelled][below(3) as usize];
            let worker = table.worker(&format!("w{}", below(3))).unwrap();
            match below(6) {
                0 => drop(table.reopen(node)),
                1 => drop(table.archive(node)),
                2 => drop(worker.claim_next()),
                _ => drop(table.complete(node, &Completion { outcome, generation: None, holder: None, summary: None })),
            }
            let all = table.list(Filter { terminal: true, archived: true }).unwrap();
            assert!(!all.is_empty());
            for mut whole in all {
                let mut one = table.get(whole.id).unwrap();
                // Time goes on between the two looks.
                (one.lease_left_ms, whole.lease_left_ms) = (None, None);
                (one.finished_at_ms, whole.finished_at_ms) = (None, None);
                assert_eq!(one, whole, "turn {turn}");
            }
        }
    }
}
