//! Readiness, the weight below and the order of 10,000 random graphs, compared with a slow and obvious reference while
//! somebody else writes to the table (R1, R2, case 38).
//!
//! Graphs do not touch each other, so that one table holds many of them at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use tenure::{Completion, CreateOptions, Filter, NodeId, NodeSpec, NodeView, Outcome, Seen, Table};

const GRAPHS: usize = 10_000;
const NODES_IN_TABLE: usize = 3_600;
const EVERYTHING: Filter = Filter { terminal: true, archived: true };

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n.max(1)
    }
}

struct Node {
    needs: Vec<usize>,
    cost: u32,
    end: Option<Outcome>,
}

/// A graph whose edges lead from lower to higher numbers; where a node stands in the table is another matter.
struct Graph {
    first: usize,
    nodes: Vec<Node>,
}

fn random_graph(first: usize, dice: &mut Dice) -> Graph {
    let n = 1 + dice.below(24);
    let density = 1 + dice.below(4);
    let nodes: Vec<Node> = (0..n)
        .map(|i| {
            let mut needs: Vec<usize> = (0..dice.below(density + 1).min(i)).map(|_| dice.below(i)).collect();
            needs.sort_unstable();
            needs.dedup();
            Node { needs, cost: if dice.below(3) == 0 { 1 + dice.below(9) as u32 } else { 1 }, end: None }
        })
        .collect();
    Graph { first, nodes }
}

impl Graph {
    fn id(&self, i: usize) -> NodeId {
        // The order of ids is not that of the numbers, so that ties are not broken by accident.
        NodeId(((self.first + i) as u128 * 0x9E37_79B9) % (1 << 40) + 1)
    }

    fn specs(&self) -> Vec<NodeSpec> {
        let spec = |(i, node): (usize, &Node)| NodeSpec {
            id: Some(self.id(i)),
            cost: Some(node.cost),
            needs: node.needs.iter().map(|&d| self.id(d).into()).collect(),
            ..NodeSpec::default()
        };
        self.nodes.iter().enumerate().map(spec).collect()
    }

    /// Ends some nodes, as far as the rules allow.
    fn end_some(&mut self, table: &Table, dice: &mut Dice) {
        for i in 0..self.nodes.len() {
            let in_order = self.nodes[i].needs.iter().all(|&d| self.nodes[d].end == Some(Outcome::Done));
            let outcome = match dice.below(8) {
                0..=2 if in_order => Outcome::Done,
                3 => Outcome::Failed,
                4 if dice.below(3) == 0 => Outcome::Cancelled,
                _ => continue,
            };
            let completion = Completion { outcome, generation: None, holder: None, summary: None };
            assert_eq!(table.complete(self.id(i), &completion).expect("an open node"), tenure::Ended::Now);
            self.nodes[i].end = Some(outcome);
        }
    }

    /// By walking all chains down from `i`.
    fn waiting_below(&self, i: usize) -> u64 {
        let below =
            (i + 1..self.nodes.len()).filter(|&c| self.nodes[c].end.is_none() && self.nodes[c].needs.contains(&i));
        below.map(|c| u64::from(self.nodes[c].cost) + self.waiting_below(c)).max().unwrap_or(0)
    }

    /// By walking all chains up from `i`.
    fn is_stuck(&self, i: usize) -> bool {
        self.nodes[i].needs.iter().any(|&d| match self.nodes[d].end {
            Some(outcome) => outcome != Outcome::Done,
            None => self.is_stuck(d),
        })
    }

    fn seen(&self, i: usize) -> Seen {
        match self.nodes[i].end {
            Some(Outcome::Done) => Seen::Done,
            Some(Outcome::Failed) => Seen::Failed,
            Some(Outcome::Cancelled) => Seen::Cancelled,
            None if self.nodes[i].needs.iter().all(|&d| self.nodes[d].end == Some(Outcome::Done)) => Seen::Ready,
            None if self.is_stuck(i) => Seen::Blocked,
            None => Seen::Todo,
        }
    }
}

fn check(table: &Table, graphs: &[Graph]) {
    let rows: BTreeMap<NodeId, NodeView> =
        table.list(EVERYTHING).expect("rows").into_iter().map(|row| (row.id, row)).collect();
    let mut wanted_ready = Vec::new();
    for graph in graphs {
        for i in 0..graph.nodes.len() {
            let row = &rows[&graph.id(i)];
            let wanted = (graph.seen(i), graph.waiting_below(i));
            assert_eq!((row.status, row.waiting_below), wanted, "node {i} of the graph from {}", graph.first);
            if wanted.0 == Seen::Ready {
                wanted_ready.push((std::cmp::Reverse(wanted.1), graph.first + i, graph.id(i)));
            }
        }
    }
    wanted_ready.sort_unstable();
    let wanted: Vec<NodeId> = wanted_ready.into_iter().map(|(.., id)| id).collect();
    let ready = table.ready().expect("rows").into_iter().filter(|row| row.name.is_none()).map(|row| row.id);
    assert_eq!(ready.collect::<Vec<_>>(), wanted, "most work below first, then the oldest");
}

/// Another writer: changes nodes of its own, and the graph with them.
fn write_until(table: &Table, stop: &AtomicBool) {
    let named = |name: &str| NodeSpec { name: Some(name.into()), ..NodeSpec::default() };
    let (a, b) = (table.upsert(&named("a"), false).expect("room").0, table.upsert(&named("b"), false).expect("room").0);
    while !stop.load(Ordering::Relaxed) {
        table.link(a, b).expect("two nodes");
        table.unlink(a, b).expect("two nodes");
        table
            .complete(a, &Completion { outcome: Outcome::Failed, generation: None, holder: None, summary: None })
            .expect("open");
        table.reopen(a).expect("ended");
    }
}

#[test]
fn ten_thousand_graphs_are_seen_as_a_slow_reference_sees_them() {
    let mut dice = Dice(38);
    let mut left = GRAPHS;
    while left > 0 {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let (table, _) = Table::open_or_create(dir.path(), &CreateOptions::default()).expect("a fresh directory");
        let mut graphs = Vec::new();
        let mut used = 0;
        while left > 0 && used < NODES_IN_TABLE {
            let graph = random_graph(used, &mut dice);
            used += graph.nodes.len();
            left -= 1;
            graphs.push(graph);
        }
        let specs: Vec<NodeSpec> = graphs.iter().flat_map(Graph::specs).collect();
        table.import(&specs).expect("room");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| write_until(&table, &stop));
            check(&table, &graphs);
            graphs.iter_mut().for_each(|graph| graph.end_some(&table, &mut dice));
            check(&table, &graphs);
            stop.store(true, Ordering::Relaxed);
        });
    }
}
