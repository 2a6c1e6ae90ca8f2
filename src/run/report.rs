//! How a run went, and how far from the best possible it was.

use std::time::Duration;

use ahash::AHashMap;
use serde::Serialize;

use super::Interrupt;
use super::worker::Tally;
use crate::error::Refusal;
use crate::id::NodeId;
use crate::node::{Filter, NodeView, Seen};
use crate::verbs::Table;

/// The summary of a run. The counts are of the whole table, archived nodes left out; times are of this process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Nodes that are done.
    pub done: usize,
    /// Nodes that failed.
    pub failed: usize,
    /// Nodes that cannot start because one before them failed or was cancelled.
    pub blocked: usize,
    /// Nodes that were given up.
    pub cancelled: usize,
    /// Nodes that are ready, waiting or held.
    pub unfinished: usize,
    /// Pieces of work that this process did, to whatever end.
    pub ran: usize,
    /// Nodes that failed in this process.
    pub failed_here: usize,
    /// Attempts that failed in this process and left their nodes open for another.
    pub to_retry: usize,
    /// Claims that this process lost.
    pub lost: usize,
    /// Claims that this process handed back unfinished.
    pub released: usize,
    /// Workers of this process.
    pub workers: usize,
    /// From the start to the end of the run.
    pub wall_ms: f64,
    /// Sum of the times that its workers spent on nodes.
    pub work_ms: f64,
    /// The longest chain of nodes that had to follow one another, by the times that they took here.
    pub critical_path_ms: f64,
    /// No schedule for these workers is shorter: the larger of the critical path and the work shared out evenly.
    pub lower_bound_ms: f64,
    /// The share of the workers' time that was spent on nodes.
    pub busy_percent: f64,
    /// The interrupt that ended the run early.
    pub stopped_by: Option<Interrupt>,
}

impl Report {
    /// Whether nothing in the table is left to do, to repair or to look into.
    pub fn all_done(&self) -> bool {
        self.failed + self.blocked + self.cancelled + self.unfinished == 0
    }

    pub(super) fn of(
        table: &Table,
        tally: Tally,
        stopped_by: Option<Interrupt>,
        workers: usize,
        wall: Duration,
    ) -> Result<Report, Refusal> {
        let nodes = table.list(Filter { terminal: true, archived: false })?;
        let mut took: AHashMap<NodeId, Duration> = AHashMap::new();
        for &(id, time) in &tally.took {
            *took.entry(id).or_default() += time;
        }
        let count = |wanted: Seen| nodes.iter().filter(|node| node.status == wanted).count();
        let work: Duration = took.values().sum();
        let critical_path = longest_chain(&nodes, &took);
        let shared = work / u32::try_from(workers.max(1)).unwrap_or(u32::MAX);
        Ok(Report {
            done: count(Seen::Done),
            failed: count(Seen::Failed),
            blocked: count(Seen::Blocked),
            cancelled: count(Seen::Cancelled),
            unfinished: count(Seen::Ready) + count(Seen::Todo) + count(Seen::Claimed),
            ran: tally.took.len(),
            failed_here: tally.failed,
            to_retry: tally.to_retry,
            lost: tally.lost,
            released: tally.released,
            workers,
            wall_ms: ms(wall),
            work_ms: ms(work),
            critical_path_ms: ms(critical_path),
            lower_bound_ms: ms(critical_path.max(shared)),
            busy_percent: percent(shared, wall),
            stopped_by,
        })
    }
}

/// The longest sum of times along dependencies. One pass from the nodes that wait for nothing, no recursion.
fn longest_chain(nodes: &[NodeView], took: &AHashMap<NodeId, Duration>) -> Duration {
    let labels: Vec<String> = nodes.iter().map(NodeView::label).collect();
    let index: AHashMap<&str, usize> = labels.iter().enumerate().map(|(i, label)| (label.as_str(), i)).collect();
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut unmet: Vec<usize> = vec![0; nodes.len()];
    for (child, node) in nodes.iter().enumerate() {
        for parent in node.depends_on.iter().filter_map(|need| index.get(need.as_str())) {
            if let (Some(below), Some(unmet)) = (below.get_mut(*parent), unmet.get_mut(child)) {
                below.push(child);
                *unmet += 1;
            }
        }
    }
    let mut open: Vec<usize> = unmet.iter().enumerate().filter(|(_, unmet)| **unmet == 0).map(|(i, _)| i).collect();
    let mut ends: Vec<Duration> = vec![Duration::ZERO; nodes.len()];
    let mut longest = Duration::ZERO;
    while let Some(i) = open.pop() {
        let own = nodes.get(i).and_then(|node| took.get(&node.id)).copied().unwrap_or_default();
        let end = ends.get(i).copied().unwrap_or_default() + own;
        longest = longest.max(end);
        for &child in below.get(i).into_iter().flatten() {
            if let (Some(start), Some(unmet)) = (ends.get_mut(child), unmet.get_mut(child)) {
                *start = end.max(*start);
                *unmet -= 1;
                if *unmet == 0 {
                    open.push(child);
                }
            }
        }
    }
    longest
}

/// Milliseconds, to the microsecond.
fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// `part` of `whole` in percent, to one decimal.
fn percent(part: Duration, whole: Duration) -> f64 {
    if whole.is_zero() {
        return 0.0;
    }
    (part.as_secs_f64() / whole.as_secs_f64() * 1e3).round() / 10.0
}
