//! Looking: list, ready, stats. None of these writes anything.

use crate::clock;
use crate::error::Refusal;
use crate::graph::Node;
use crate::layout::{BLOCKS, EDGES, HOLDERS, NODES};
use crate::node::{Counts, Filter, NodeView, Seen, Stats};
use crate::sync::Ordering;
use crate::table::TRIES;
use crate::verbs::Table;
use crate::verbs::cut::Cut;
use crate::word::{EndWord, NodeWord, Phase};

/// Some text, or `None` for the empty one.
pub(crate) fn filled(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

impl Table {
    /// Nodes, oldest first: the live ones, and those that the filter adds.
    ///
    /// # Errors
    /// [`Refusal::Damaged`].
    pub fn list(&self, filter: Filter) -> Result<Vec<NodeView>, Refusal> {
        self.views(|cut| {
            let mut slots: Vec<(u64, u16)> = cut
                .graph
                .iter()
                .filter(|(slot, _)| match cut.words[usize::from(*slot)].state().phase {
                    Phase::Open if cut.seen(*slot).is_terminal() => filter.terminal,
                    Phase::Open | Phase::Claimed { .. } => true,
                    Phase::Ended { archived: true, .. } => filter.archived,
                    Phase::Ended { archived: false, .. } => filter.terminal,
                })
                .map(|(slot, node)| (node.born, slot))
                .collect();
            slots.sort_unstable();
            slots.into_iter().map(|(_, slot)| slot).collect()
        })
    }

    /// The ready nodes in the order in which they are given out: the most work waiting below first, then the oldest.
    ///
    /// # Errors
    /// [`Refusal::Damaged`].
    pub fn ready(&self) -> Result<Vec<NodeView>, Refusal> {
        self.views(|cut| cut.order.iter().copied().filter(|&slot| cut.seen(slot) == Seen::Ready).collect())
    }

    /// Counts of what is in the table.
    ///
    /// # Errors
    /// [`Refusal::Damaged`].
    pub fn stats(&self) -> Result<Stats, Refusal> {
        let cut = self.cut()?;
        let core = self.core();
        let stopped = |stop| self.refusal(stop);
        let (text_blocks, text_blocks_reserved) = core.count_blocks().map_err(stopped)?;
        let mut stats = Stats {
            capacity: NODES as u32,
            nodes: cut.graph.count() as u32,
            edges: cut.graph.edges.len() as u32,
            edges_max: EDGES as u32,
            holders: cut.graph.holders.iter().flatten().count() as u32,
            holders_max: HOLDERS as u32 - 1,
            text_blocks,
            text_blocks_reserved,
            text_blocks_max: BLOCKS as u32,
            versions: core.version_count()? as u32,
            versions_reserved: core.count_marked_versions().map_err(stopped)?,
            version: cut.root.number(),
            ..Stats::default()
        };
        let Counts { ready, todo, blocked, claimed, done, failed, cancelled } = counts(&cut);
        stats = Stats { ready, todo, blocked, claimed, done, failed, cancelled, ..stats };
        let is_archived = |w: &&NodeWord| matches!(w.state().phase, Phase::Ended { archived: true, .. });
        let present = cut.graph.iter().filter_map(|(slot, _)| cut.words.get(usize::from(slot)));
        stats.archived = present.filter(is_archived).count() as u32;
        let ages = self.ages(&cut)?;
        stats.oldest_ready_ms = ages.oldest_ready_ms;
        stats.shortest_lease_ms = ages.shortest_lease_ms;
        stats.leases_ending_soon = ages.leases_ending_soon;
        stats.leases_run_out = ages.leases_run_out;
        stats.holders_busy = ages.holders_busy;
        Ok(stats)
    }

    /// How many nodes there are of each kind: much cheaper than [`stats`](Table::stats), which also looks for what is
    /// reserved.
    ///
    /// # Errors
    /// [`Refusal::Damaged`].
    pub fn counts(&self) -> Result<Counts, Refusal> {
        Ok(counts(&self.cut()?))
    }

    /// The views of some slots of one cut, taken anew when texts were used again meanwhile.
    fn views(&self, choose: impl Fn(&Cut) -> Vec<u16>) -> Result<Vec<NodeView>, Refusal> {
        for _ in 0..TRIES {
            let cut = self.cut()?;
            let views: Option<Vec<NodeView>> =
                choose(&cut).into_iter().map(|slot| self.view(&cut, slot)).collect::<Result<_, _>>()?;
            if let Some(views) = views {
                return Ok(views);
            }
        }
        Err(Refusal::Contended { tries: TRIES })
    }

    pub(crate) fn view(&self, cut: &Cut, slot: u16) -> Result<Option<NodeView>, Refusal> {
        let word = cut.words[usize::from(slot)];
        let Some(node) = cut.graph.node(slot).copied() else { return Ok(None) };
        let Some(texts) = self.texts(cut.root, &cut.graph, slot, word)? else { return Ok(None) };
        let holder = word.holder().map(|holder| self.holder_name(holder)).transpose()?;
        let end = self.core().node(slot)?.end.load(Ordering::Relaxed);
        let archived = matches!(word.state().phase, Phase::Ended { archived: true, .. });
        Ok(Some(NodeView {
            id: node.id,
            name: filled(texts.name),
            status: cut.seen(slot),
            generation: word.generation(),
            lease_left_ms: if holder.is_some() { Some(self.lease_left_ms(slot, word)?) } else { None },
            holder,
            kind: filled(texts.kind),
            role: filled(texts.role),
            parent: node.parent.map(|parent| self.label_in(&cut.graph, parent)),
            on_failure: cut.graph.deps(slot).iter().map(|e| e.on_failure).collect(),
            skipped_by: cut.skipped_by(slot).map(|by| self.label_in(&cut.graph, by)),
            attempts: attempts(word, end, &node),
            max_attempts: node.policy.max_attempts(),
            retry_delay_ms: node.policy.retry_delay_ms(),
            retry_in_ms: cut.left_alone_ms(slot),
            group: self.group_name(&cut.graph, node.policy.group())?,
            surface: filled(texts.surface),
            startable: None,
            depends_on: cut.graph.deps(slot).iter().map(|e| self.label_in(&cut.graph, e.parent)).collect(),
            cost: node.cost,
            waiting_below: cut.plan.waiting_below[usize::from(slot)],
            summary: filled(texts.summary),
            run: filled(texts.run),
            archived,
            created_at_ms: node.created_ms,
            updated_at_ms: node.updated_ms,
            finished_at_ms: word.is_ended().then(|| finished_ms(end, &node)),
        }))
    }

    /// Milliseconds until the lease of a claimed node runs out; negative when it has.
    pub(crate) fn lease_left_ms(&self, slot: u16, word: NodeWord) -> Result<i64, Refusal> {
        let core = self.core();
        let lease = core.node(slot)?.lease.load(Ordering::Acquire);
        if !lease.is_of(word.generation()) {
            // Its claimer has not started it yet; whoever looks for run-out leases would start it now.
            return Ok(core.length_ms(slot, word.generation())? as i64);
        }
        Ok(lease.deadline_ms() as i64 - clock::lease_now_ms() as i64)
    }
}

fn counts(cut: &Cut) -> Counts {
    let mut counts = Counts::default();
    for (slot, _) in cut.graph.iter() {
        let count = match cut.seen(slot) {
            Seen::Ready => &mut counts.ready,
            Seen::Todo => &mut counts.todo,
            Seen::Blocked => &mut counts.blocked,
            Seen::Claimed => &mut counts.claimed,
            Seen::Done => &mut counts.done,
            Seen::Failed => &mut counts.failed,
            Seen::Cancelled => &mut counts.cancelled,
        };
        *count += 1;
    }
    counts
}

/// How many claims of a node there were since it was made or reopened.
pub(crate) fn attempts(word: NodeWord, end: EndWord, node: &Node) -> u64 {
    word.attempts_since(attempts_from(word, end, node))
}

/// The generation that the attempts of a node are counted from, as if it had not been archived since it ended.
pub(crate) fn attempts_from(word: NodeWord, end: EndWord, node: &Node) -> u64 {
    let moves = if word.is_ended() { end.moves_to(word.generation()) } else { 0 };
    // Never past it: a node that comes back with a snapshot stands there for a moment with the end of the one before it.
    node.base.saturating_add(moves).min(word.generation())
}

/// When an ended node ended. One that came back from an earlier boot has no time on the lease clock, and the time of its
/// last change stands for it.
pub(crate) fn finished_ms(end: EndWord, node: &Node) -> u64 {
    match end.time_ms() {
        0 => node.updated_ms,
        time_ms => wall_ms(time_ms),
    }
}

/// A moment of the lease clock on the wall clock, as the two stand to each other now.
fn wall_ms(lease_clock_ms: u64) -> u64 {
    let ago = clock::lease_now_ms().saturating_sub(lease_clock_ms);
    clock::wall_now_ms().saturating_sub(ago)
}
