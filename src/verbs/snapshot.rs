//! Taking a snapshot of a table that others go on changing.

use std::path::PathBuf;
use std::time::Duration;

use crate::clock;
use crate::error::{Damaged, Refusal};
use crate::graph::{Edge, Graph};
use crate::process;
use crate::record::Record;
use crate::snapshot::file::{self, Placed};
use crate::snapshot::{Moment, SavedEdge, SavedGroup, SavedNode, Snapshot, SnapshotError};
use crate::sync::Ordering;
use crate::table::TRIES;
use crate::verbs::Table;
use crate::verbs::view::{attempts_from, finished_ms};
use crate::word::{NodeWord, Phase, RootWord, State, TextRef};

/// How long `snapshot` waits for other snapshotters when nobody says otherwise.
pub const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(10);

/// How often a snapshot is taken anew because another one was taken at the same time. Two suffice, see `snapshot::file`.
const ROUNDS: u32 = 8;

/// What came of taking a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshotted {
    /// The file.
    pub path: PathBuf,
    /// Nodes in it.
    pub nodes: u32,
    /// Dependency edges in it.
    pub edges: u32,
    /// Its length.
    pub bytes: u64,
    /// The number of the version of the graph.
    pub version: u64,
    /// Somebody else's snapshot, begun after this one was asked for, stands there instead. It holds all that this one
    /// had to; the numbers here are still of this one.
    pub covered: bool,
}

/// A cut from which nothing is missing: the graph, every word, and what each node's texts are.
struct Firm {
    root: RootWord,
    graph: Graph,
    /// By slot.
    words: Vec<NodeWord>,
    /// By slot: the text that the node has, or ended with.
    texts: Vec<TextRef>,
    began_ns: u64,
    ended_ns: u64,
}

impl Table {
    /// Where this table's snapshot is, or would be.
    pub fn snapshot_path(&self) -> PathBuf {
        self.dir().join(file::SNAPSHOT)
    }

    /// Writes a snapshot of the whole table, in the place of the last one. No verb of anybody waits for it.
    ///
    /// It waits for others that are replacing the snapshot, up to `patience`; `waiting` is called once when that has
    /// taken a second.
    ///
    /// # Errors
    /// [`SnapshotError`]; the last snapshot is still there then.
    pub fn snapshot(&self, patience: Duration, mut waiting: impl FnMut()) -> Result<Snapshotted, SnapshotError> {
        let asked_ns = clock::lease_now_ns();
        let dir = self.dir();
        file::clean_up(dir);
        for _ in 0..ROUNDS {
            let snapshot = self.take_snapshot()?;
            // A damaged table must not take the place of the last good snapshot.
            if snapshot.check().is_err() {
                return Err(Refusal::from(Damaged { what: "it holds what no snapshot can" }).into());
            }
            let bytes = snapshot.encode();
            let temporary = file::write(dir, &bytes)?;
            let placed = temporary.put_in_place(dir, &snapshot.taken, asked_ns, patience, &mut waiting)?;
            if placed != Placed::Overlaps {
                return Ok(Snapshotted {
                    path: self.snapshot_path(),
                    nodes: snapshot.nodes.len() as u32,
                    edges: snapshot.edges.len() as u32,
                    bytes: bytes.len() as u64,
                    version: snapshot.taken.version,
                    covered: placed == Placed::Covered,
                });
            }
        }
        Err(Refusal::Contended { tries: ROUNDS }.into())
    }

    /// A snapshot in memory.
    fn take_snapshot(&self) -> Result<Snapshot, Refusal> {
        for _ in 0..TRIES {
            let firm = self.firm_cut()?;
            let nodes = self.saved_nodes(&firm)?;
            let (Some(nodes), Some(groups)) = (nodes, self.saved_groups(&firm)?) else {
                self.look_again(firm.root)?;
                continue;
            };
            let header = &self.core().fixed.header;
            let taken = Moment {
                boot: process::boot_id().unwrap_or((0, 0)),
                table_created_at_ms: header.created_ms.load(Ordering::Relaxed),
                version: firm.root.number(),
                began_ns: firm.began_ns,
                ended_ns: firm.ended_ns,
                taken_at_ms: clock::wall_now_ms(),
            };
            return Ok(Snapshot {
                taken,
                lease_ms: self.default_lease_ms(),
                require_fence: self.requires_fence(),
                floor: firm.graph.floor,
                groups,
                nodes,
                edges: firm.graph.edges.iter().map(saved_edge).collect(),
            });
        }
        Err(Refusal::Contended { tries: TRIES })
    }

    /// All nodes of a cut with their texts. `None`: a text was used again since.
    fn saved_nodes(&self, firm: &Firm) -> Result<Option<Vec<SavedNode>>, Refusal> {
        let mut nodes = Vec::with_capacity(firm.graph.nodes.len());
        for (slot, _) in firm.graph.iter() {
            match self.saved(firm, slot)? {
                Some(node) => nodes.push(node),
                None => return Ok(None),
            }
        }
        Ok(Some(nodes))
    }

    /// A cut that could have existed; see [`cut_words`](crate::table::Core::cut_words).
    fn firm_cut(&self) -> Result<Firm, Refusal> {
        let core = self.core_mut()?;
        let stopped = |stop| self.refusal(stop);
        for _ in 0..TRIES {
            let began_ns = clock::lease_now_ns();
            core.settled_root().map_err(stopped)?;
            let (root, graph) = core.load().map_err(stopped)?;
            if root.is_pending() {
                continue;
            }
            let arrays = graph.arrays();
            let Ok(mut order) = arrays.view().topological() else {
                return Err(Damaged { what: "the version in force has a loop" }.into());
            };
            order.reverse();
            let Some(cut) = core.cut_words(root, &order, graph.nodes.len())? else { continue };
            let ended_ns = clock::lease_now_ns();
            let mut texts: Vec<TextRef> = graph.nodes.iter().map(|n| n.map_or(TextRef::NONE, |n| n.text)).collect();
            for (slot, text) in cut.end_texts {
                texts[usize::from(slot)] = text;
            }
            return Ok(Firm { root, graph, words: cut.words, texts, began_ns, ended_ns });
        }
        Err(Refusal::Contended { tries: TRIES })
    }

    /// A node of a cut with its texts. `None`: one of them was used again since.
    fn saved(&self, firm: &Firm, slot: u16) -> Result<Option<SavedNode>, Refusal> {
        let at = usize::from(slot);
        let core = self.core();
        let (Some(node), Some(&word), Some(&text)) = (firm.graph.node(slot), firm.words.get(at), firm.texts.get(at))
        else {
            return Ok(None);
        };
        let Some(bytes) = core.read_text(text)? else { return Ok(None) };
        let record = Record::decode(&bytes).ok_or(Damaged { what: "a node's record does not decode" })?;
        let State { generation, phase } = word.state();
        let end = core.node(slot)?.end.load(Ordering::Relaxed);
        let (mut holder, mut archived, mut finished_at_ms) = (None, false, None);
        match phase {
            Phase::Open => {}
            Phase::Claimed { holder: by } => {
                let name = firm.graph.holders.get(usize::from(by)).copied().flatten();
                let Some(name) = name.map(|h| core.read_text(h.name)).transpose()?.flatten() else { return Ok(None) };
                holder = Some(String::from_utf8_lossy(&name).into_owned());
            }
            Phase::Ended { archived: hidden, .. } => {
                archived = hidden;
                finished_at_ms = Some(finished_ms(end, node));
            }
        }
        let Record { name, kind, role, summary, run, surface } = record;
        Ok(Some(SavedNode {
            id: node.id,
            slot,
            generation,
            status: word.status(),
            archived,
            holder,
            name,
            kind,
            role,
            summary,
            run,
            surface,
            cost: node.cost,
            parent: node.parent,
            max_attempts: node.policy.max_attempts(),
            retry_delay_ms: node.policy.retry_delay_ms(),
            group: node.policy.group(),
            attempts_from: attempts_from(word, end, node),
            born: node.born,
            created_at_ms: node.created_ms,
            updated_at_ms: node.updated_ms,
            finished_at_ms,
        }))
    }

    /// The groups of a cut. `None`: the name of one was used again since.
    fn saved_groups(&self, firm: &Firm) -> Result<Option<Vec<SavedGroup>>, Refusal> {
        let known = (0..=u8::MAX).zip(&firm.graph.groups).filter_map(|(number, group)| Some((number, (*group)?)));
        known
            .map(|(number, group)| {
                let name = self.core().read_text(group.name)?;
                let name = name.map(|name| String::from_utf8_lossy(&name).into_owned());
                Ok(name.map(|name| SavedGroup { number, limit: group.limit, name }))
            })
            .collect()
    }
}

fn saved_edge(edge: &Edge) -> SavedEdge {
    SavedEdge { child: edge.child, parent: edge.parent, on_failure: edge.on_failure }
}

#[cfg(all(test, not(tenure_loom)))]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::id::NodeId;
    use crate::node::NodeSpec;
    use crate::verbs::CreateOptions;

    /// Without the taking back this finds holders with two claims within a second.
    #[test]
    fn no_holder_has_two_claims_in_any_cut_while_holders_go_to_and_fro() {
        const MANY: u128 = 4_000;
        let dir = tempfile::tempdir().expect("a directory");
        let (table, _) = Table::open_or_create(dir.path(), &CreateOptions::default()).expect("a table");
        let nodes = (1..=MANY).map(|n| NodeSpec { id: Some(NodeId(n)), ..NodeSpec::default() });
        table.import(&nodes.collect::<Vec<_>>()).expect("room");
        let until = Instant::now() + Duration::from_secs(2);
        let seen = std::thread::scope(|scope| {
            for k in 0..2 {
                let worker = table.worker(&format!("w{k}")).expect("a name");
                scope.spawn(move || {
                    // From low to high and back, so that every other claim is on the way of the reader.
                    for n in (0..).take_while(|_| Instant::now() < until) {
                        let far = if n % 2 == 0 { 2 + n % 50 } else { MANY - 1 - n % 50 };
                        worker.claim(NodeId(far - far % 2 + k)).expect("its own").release().expect("held");
                    }
                });
            }
            let mut seen = 0;
            while Instant::now() < until {
                let firm = table.firm_cut().expect("a cut");
                let mut holders: Vec<u16> = firm.words.iter().filter_map(|word| word.holder()).collect();
                holders.sort_unstable();
                seen += holders.len();
                assert!(holders.windows(2).all(|two| two[0] != two[1]), "one holder has two claims: {holders:?}");
            }
            seen
        });
        assert!(seen > 100, "hardly a claim was seen: {seen}");
    }
}
