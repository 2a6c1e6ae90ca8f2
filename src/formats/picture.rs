//! What a drawing of the graph shows, whatever language it is written in: which edges there are, what is on the critical
//! path, and how each status looks.

use ahash::AHashMap;

use crate::node::{NodeView, OnFailure, Seen};

/// Colour of the critical path.
pub(super) const CRITICAL: &str = "#d00000";
/// Colour of the lines from a node to those that belong under it.
pub(super) const FAMILY: &str = "#9e9e9e";

/// How nodes of one status look. Shape and words say what the colour says, for those who do not see it.
pub(super) struct Look {
    pub(super) fill: &'static str,
    pub(super) line: &'static str,
    /// Shape and style in DOT.
    pub(super) dot: (&'static str, &'static str),
    /// What stands before and after the text in Mermaid.
    pub(super) mermaid: (&'static str, &'static str),
}

/// The look of a status.
pub(super) fn look(seen: Seen) -> Look {
    let (fill, line, dot, mermaid) = match seen {
        Seen::Ready => ("#d4edda", "#2e7d32", ("ellipse", "filled"), ("([", "])")),
        Seen::Todo => ("#f5f5f5", "#757575", ("box", "filled"), ("[", "]")),
        Seen::Blocked => ("#fde6c8", "#b26a00", ("trapezium", "filled"), ("[/", "\\]")),
        Seen::Claimed => ("#d6e4ff", "#1f4e9c", ("hexagon", "filled"), ("{{", "}}")),
        Seen::Done => ("#e0e0e0", "#9e9e9e", ("box", "filled,rounded"), ("(", ")")),
        Seen::Failed => ("#f8d0d0", "#b71c1c", ("octagon", "filled"), ("[[", "]]")),
        Seen::Cancelled => ("#e8def8", "#6a4c93", ("parallelogram", "filled"), ("[/", "/]")),
    };
    Look { fill, line, dot, mermaid }
}

/// A dependency edge, by places in the list of nodes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) is_critical: bool,
    /// What becomes of `to` if `from` fails, in a word, when it is not blocked by that.
    pub(super) label: Option<&'static str>,
}

/// The nodes of one look at the table, with what follows from them.
pub(super) struct Picture<'a> {
    pub(super) nodes: &'a [NodeView],
    /// By place: whether the node is on the critical path.
    pub(super) is_critical: Vec<bool>,
    pub(super) edges: Vec<Edge>,
    /// Parent and child, by place.
    pub(super) families: Vec<(usize, usize)>,
}

impl Picture<'_> {
    pub(super) fn of(nodes: &[NodeView]) -> Picture<'_> {
        // By name and by id: which of the two another node's list gives is its own affair.
        let names = nodes.iter().enumerate().filter_map(|(at, node)| Some((node.name.clone()?, at)));
        let ids = nodes.iter().enumerate().map(|(at, node)| (node.id.to_string(), at));
        let place: AHashMap<String, usize> = ids.chain(names).collect();
        let (mut pairs, mut labels) = (Vec::new(), Vec::new());
        let mut families = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            for (label, on_failure) in node.depends_on.iter().zip(&node.on_failure) {
                let Some(&from) = place.get(label) else { continue };
                pairs.push((from, at));
                labels.push(match on_failure {
                    OnFailure::Block => None,
                    OnFailure::Skip => Some("skip"),
                    OnFailure::Continue => Some("continue"),
                });
            }
            families.extend(node.parent.iter().filter_map(|label| Some((*place.get(label)?, at))));
        }
        let path = critical_path(nodes, &pairs);
        let mut is_critical = vec![false; nodes.len()];
        let mut next_on_path = vec![None; nodes.len()];
        for (&at, after) in path.iter().zip(path.iter().skip(1).map(Some).chain([None])) {
            if let (Some(is_critical), Some(next)) = (is_critical.get_mut(at), next_on_path.get_mut(at)) {
                (*is_critical, *next) = (true, after.copied());
            }
        }
        let on_path = |from: usize, to| next_on_path.get(from).copied().flatten() == Some(to);
        let edge = |((from, to), label)| Edge { from, to, is_critical: on_path(from, to), label };
        let edges = pairs.into_iter().zip(labels).map(edge).collect();
        Picture { nodes, is_critical, edges, families }
    }
}

/// The places along the critical path: of all chains of nodes that have not ended, one with the most cost. Of several the
/// one that begins with the oldest node, and so at every step.
///
/// `nodes` must be of one look, oldest first; `edges` are pairs of places, the second waits for the first.
fn critical_path(nodes: &[NodeView], edges: &[(usize, usize)]) -> Vec<usize> {
    let unfinished = |at: usize| nodes.get(at).filter(|node| !node.status.is_terminal());
    let weight = |at: usize| unfinished(at).map(|node| u64::from(node.cost).saturating_add(node.waiting_below));
    let mut children = vec![Vec::new(); nodes.len()];
    let mut waits = vec![false; nodes.len()];
    for &(from, to) in edges {
        if unfinished(from).is_none() || unfinished(to).is_none() {
            continue;
        }
        if let (Some(children), Some(waits)) = (children.get_mut(from), waits.get_mut(to)) {
            children.push(to);
            *waits = true;
        }
    }
    // Whatever waits is behind something at least as heavy.
    let starts = (0..nodes.len()).filter(|&at| waits.get(at) == Some(&false));
    let heaviest = |places: &mut dyn Iterator<Item = usize>| {
        places.filter_map(|at| Some((weight(at)?, std::cmp::Reverse(at)))).max().map(|(_, at)| at.0)
    };
    let mut path = Vec::new();
    let mut next = heaviest(&mut starts.into_iter());
    while let Some(at) = next.filter(|_| path.len() < nodes.len()) {
        path.push(at);
        next = heaviest(&mut children.get(at).into_iter().flatten().copied());
    }
    path
}

/// The second line of a node: what it is, in words.
pub(super) fn status_line(node: &NodeView) -> String {
    match (&node.holder, &node.skipped_by) {
        (Some(holder), _) => format!("{} by {holder}", node.status.name()),
        (None, Some(_)) => "skipped".to_owned(),
        (None, None) => node.status.name().to_owned(),
    }
}
