//! Filling a table from a snapshot: one change of the graph, whole or not at all, also while others work on it.

use std::path::{Path, PathBuf};

use crate::clock;
use crate::error::{Damaged, Refusal};
use crate::graph::{Edge, Graph, Group, Node};
use crate::layout::{INDEX, NODES};
use crate::node::{Outcome, Status};
use crate::record::{Record, name_hash};
use crate::snapshot::file::{self, Whose};
use crate::snapshot::{SavedEdge, SavedGroup, SavedNode, Snapshot, SnapshotError};
use crate::sync::Ordering;
use crate::table::hints::BORN_COUNT_BITS;
use crate::table::text::Draft;
use crate::table::{Core, Stop};
use crate::verbs::Table;
use crate::verbs::edit::{Edit, Planned};
use crate::word::{EndWord, GENERATION_CLAIMABLE_MAX, NodeWord, Phase, PolicyWord, State, TextOf, TextRef};

/// How far a restore moves every generation: past all that may have been given out since the snapshot was taken. Of
/// those the snapshot knows nothing, and of a table that is gone with its boot nothing else does either; a holder that
/// kept its fence somewhere must be refused all the same. Even, since attempts are counted in pairs of generations.
const GENERATIONS_PAST: u64 = 1 << 20;

/// What came back from a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// The file.
    pub path: PathBuf,
    /// Nodes that came back.
    pub nodes: u32,
    /// Dependency edges between them.
    pub edges: u32,
    /// Nodes that were claimed at the cut and are open now.
    pub handed_back: u32,
    /// Wall clock of the cut, milliseconds since 1970.
    pub taken_at_ms: u64,
}

/// What a plan came to.
enum Plan {
    Restore,
    NotEmpty(usize),
}

impl Table {
    /// Fills this table from a snapshot, its own when no other file is named; over nodes that it has only with `force`.
    ///
    /// Claimed nodes come back open, ended ones as they were. Every generation moves past all that were ever given out,
    /// so whoever held a claim, in this table or in the one that the snapshot is of, is refused from now on. The table's
    /// own settings stay.
    ///
    /// # Errors
    /// [`SnapshotError`]; the table is as it was then, and so is the file.
    pub fn restore(&self, file: Option<&Path>, force: bool) -> Result<Restored, SnapshotError> {
        let (path, whose) = match file {
            Some(path) => (path.to_owned(), Whose::Anybodys),
            None => (self.snapshot_path(), Whose::Ours),
        };
        let snapshot = file::read(&path, whose)?;
        self.fill_from(&snapshot, path, force)
    }

    /// As [`restore`](Table::restore), from a snapshot that was read.
    pub(crate) fn fill_from(&self, from: &Snapshot, path: PathBuf, force: bool) -> Result<Restored, SnapshotError> {
        let core = self.core_mut().map_err(SnapshotError::from)?;
        let mut texts = Texts { draft: core.draft(), known: vec![TextRef::NONE; NODES], written: vec![false; NODES] };
        let mut ends = Vec::new();
        let planned = self.change(|edit| {
            if !force && edit.graph.count() > 0 {
                return Ok(Planned::Nothing(Plan::NotEmpty(edit.graph.count())));
            }
            ends = plan(edit, from, &mut texts, |stop| self.refusal(stop))?;
            Ok(Planned::Publish(Plan::Restore))
        });
        match planned {
            Ok(Plan::NotEmpty(nodes)) => return Err(SnapshotError::NotEmpty { nodes: nodes as u32 }),
            Ok(Plan::Restore) => {}
            Err(Refusal::Cycle { .. }) => {
                return Err(SnapshotError::Damaged { path, why: "its graph has a loop".into() });
            }
            Err(refusal) => return Err(refusal.into()),
        }
        set_ends(&core, &ends).map_err(Refusal::from)?;
        // It was ordered as the nodes stood before their words were set.
        core.rerank().map_err(|stop| self.refusal(stop))?;
        let claimed = from.nodes.iter().filter(|node| node.status == Status::Claimed).count();
        Ok(Restored {
            path,
            nodes: from.nodes.len() as u32,
            edges: from.edges.len() as u32,
            handed_back: claimed as u32,
            taken_at_ms: from.taken.taken_at_ms,
        })
    }
}

/// The texts of the nodes to come, written once however often the change has to be planned anew: there are far more
/// bytes in them than in a version of the graph, and who begins anew with all of them never gets ahead of others.
struct Texts<'m> {
    draft: Draft<'m>,
    /// By slot.
    known: Vec<TextRef>,
    /// By slot: the text is in the draft, and not one that the table had.
    written: Vec<bool>,
}

impl Texts<'_> {
    /// The text of a node: the one that its slot has already if that is the same, else a new one.
    fn of(&mut self, core: &Core<'_>, graph: &Graph, node: &SavedNode) -> Result<TextRef, Stop> {
        let at = usize::from(node.slot);
        let there = graph.node(node.slot).map_or(TextRef::NONE, |n| n.text);
        let known = self.known.get(at).copied().unwrap_or(TextRef::NONE);
        if !known.is_none() && (known == there || self.written.get(at) == Some(&true)) {
            return Ok(known);
        }
        let SavedNode { name, kind, role, summary, run, surface, .. } = node.clone();
        let bytes = Record { name, kind, role, summary, run, surface }.encode();
        let same = !there.is_none() && core.read_text(there)?.is_some_and(|old| old == bytes);
        let text = if same { there } else { self.draft.write(TextOf::Node(node.slot), &bytes)? };
        if let (Some(known), Some(written)) = (self.known.get_mut(at), self.written.get_mut(at)) {
            (*known, *written) = (text, !same);
        }
        Ok(text)
    }
}

/// When a slot's node ended: what its word said before, and what it is to say.
struct Ended {
    slot: u16,
    before: EndWord,
    after: EndWord,
}

/// Puts the snapshot's graph in the place of the copy's, with a step for every slot of either.
fn plan(
    edit: &mut Edit<'_>,
    from: &Snapshot,
    texts: &mut Texts<'_>,
    refusal: impl Fn(Stop) -> Refusal,
) -> Result<Vec<Ended>, Refusal> {
    let core = edit.core;
    let above = highest_generation(&core)?;
    // Nodes that neither knows may come back under their names. Even, so that no first claim has a tag of all zeros, which
    // a slot that was never used carries.
    let given = from.nodes.iter().map(|node| node.generation).fold(above.max(from.floor), u64::max);
    let floor = (given.max(edit.graph.floor) + GENERATIONS_PAST).next_multiple_of(2);
    if floor > GENERATION_CLAIMABLE_MAX {
        return Err(Refusal::Exhausted { node: "every new node".into(), what: "generations" });
    }
    // Born now, in their old order: for how long a node has been ready is counted within a boot.
    let born = edit.graph.next_born.max(clock::lease_now_ms() << BORN_COUNT_BITS);
    let at_their_end = Damaged { what: "the creation numbers are used up" };
    let mut graph = Graph {
        nodes: Vec::new(),
        edges: Vec::new(),
        // The names stay: holders that look for work go on under them.
        holders: edit.graph.holders.clone(),
        groups: Vec::new(),
        floor,
        next_born: born.checked_add(from.nodes.len() as u64).ok_or(at_their_end)?,
        index: vec![0; INDEX],
    };
    put_groups(edit, &mut graph, from)?;
    let mut by_age: Vec<&SavedNode> = from.nodes.iter().collect();
    by_age.sort_by_key(|node| (node.born, node.id));
    let mut ends = Vec::new();
    for (saved, born) in by_age.into_iter().zip(born..) {
        let text = texts.of(&core, &edit.graph, saved).map_err(&refusal)?;
        let back = Back::of(&core, saved, above)?;
        graph.insert(saved.slot, back.node(saved, text, born));
        edit.become_word(saved.slot, back.word);
        if let Some(finished) = back.finished_ms {
            let before = core.node(saved.slot)?.end.load(Ordering::Relaxed);
            let after = EndWord::new(back.word.generation(), lease_ms(finished));
            ends.push(Ended { slot: saved.slot, before, after });
        }
    }
    let edge = |e: &SavedEdge| Edge { child: e.child, parent: e.parent, on_failure: e.on_failure };
    graph.link(&from.edges.iter().map(edge).collect::<Vec<_>>());
    // Whoever holds one of these is fenced off like all others.
    let gone: Vec<u16> = edit.graph.iter().map(|(slot, _)| slot).filter(|&slot| graph.node(slot).is_none()).collect();
    for slot in gone {
        let generation = core.clear_generation(slot, above + GENERATIONS_PAST)?;
        edit.become_word(slot, NodeWord::new(State { generation, phase: Phase::Open }));
    }
    edit.graph = graph;
    Ok(ends)
}

/// Puts the snapshot's groups into a graph, under their numbers, with the name that is there already where it is the same.
fn put_groups(edit: &mut Edit<'_>, graph: &mut Graph, from: &Snapshot) -> Result<(), Refusal> {
    for SavedGroup { number, limit, name } in &from.groups {
        let there = edit.graph.groups.get(usize::from(*number)).copied().flatten().map(|group| group.name);
        let same = match there {
            Some(there) => edit.core.read_text(there)?.filter(|old| old == name.as_bytes()).and(Some(there)),
            None => None,
        };
        let text = match same {
            Some(text) => text,
            None => edit.write_text(TextOf::Group((*number).into()), name.as_bytes())?,
        };
        graph.set_group(*number, Group { name: text, hash: name_hash(name), limit: *limit });
    }
    Ok(())
}

/// The highest generation of any slot. A node may have lived in another slot since the snapshot, or been pruned from it,
/// so only what lies above all of them has surely never been its.
fn highest_generation(core: &Core<'_>) -> Result<u64, Damaged> {
    let mut highest = 0;
    for slot in 0..NODES as u16 {
        highest = highest.max(core.node(slot)?.word.load(Ordering::Acquire).generation());
    }
    Ok(highest)
}

/// What a node comes back as.
struct Back {
    word: NodeWord,
    /// The generation that its attempts are counted from.
    base: u64,
    finished_ms: Option<u64>,
}

impl Back {
    fn of(core: &Core<'_>, saved: &SavedNode, above: u64) -> Result<Back, Refusal> {
        let generation = core.clear_generation(saved.slot, saved.generation.max(above) + GENERATIONS_PAST)?;
        if generation > GENERATION_CLAIMABLE_MAX {
            let node = if saved.name.is_empty() { saved.id.to_string() } else { saved.name.clone() };
            return Err(Refusal::Exhausted { node, what: "generations" });
        }
        // Two generations are one attempt, the second of them the end of the claim.
        let mut spent = saved.generation.saturating_sub(saved.attempts_from);
        let attempts = spent.div_ceil(2);
        let was_last = saved.max_attempts > 0 && attempts >= u64::from(saved.max_attempts);
        let outcome = match saved.status {
            // With its boot the claim was lost, and that may have been the last attempt.
            Status::Claimed if was_last => Some(Outcome::Failed),
            Status::Claimed => {
                spent += 1;
                None
            }
            Status::Open => None,
            Status::Done => Some(Outcome::Done),
            Status::Failed => Some(Outcome::Failed),
            Status::Cancelled => Some(Outcome::Cancelled),
        };
        let phase = match outcome {
            None => Phase::Open,
            Some(outcome) => Phase::Ended { outcome, archived: saved.archived, text: None },
        };
        let finished_ms = outcome.map(|_| saved.finished_at_ms.unwrap_or_else(clock::wall_now_ms));
        let word = NodeWord::new(State { generation, phase });
        Ok(Back { word, base: generation.saturating_sub(spent), finished_ms })
    }

    fn node(&self, saved: &SavedNode, text: TextRef, born: u64) -> Node {
        // A time before this boot cannot be told on the lease clock; readers then take the time of the last change for it.
        let updated_ms = match self.finished_ms {
            Some(finished) if lease_ms(finished) == 0 => finished,
            _ => saved.updated_at_ms,
        };
        Node {
            id: saved.id,
            text,
            cost: saved.cost,
            parent: saved.parent,
            role: if saved.role.is_empty() { 0 } else { name_hash(&saved.role) },
            born,
            created_ms: saved.created_at_ms,
            updated_ms,
            base: self.base,
            policy: PolicyWord::new(saved.max_attempts, saved.retry_delay_ms, saved.group)
                .gated(!saved.surface.is_empty()),
        }
    }
}

/// A moment of the wall clock on the lease clock, as the two stand to each other now; 0 for one before this boot.
fn lease_ms(wall_ms: u64) -> u64 {
    let ago = clock::wall_now_ms().saturating_sub(wall_ms);
    clock::lease_now_ms().saturating_sub(ago)
}

/// Says when the restored nodes ended, unless one has ended anew by now. For display and for what is pruned first.
fn set_ends(core: &Core<'_>, ends: &[Ended]) -> Result<(), Damaged> {
    for Ended { slot, before, after } in ends {
        let _ = core.node(*slot)?.end.compare_exchange(*before, *after, Ordering::Relaxed, Ordering::Relaxed);
    }
    Ok(())
}
