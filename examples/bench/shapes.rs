//! Graphs to measure on, each made from a seed that is part of its name: the same at every run.

use tenure::{NodeId, NodeSpec};

/// Every node of one graph with the numbers of those it waits for, all of them lower.
pub struct Shape {
    pub name: &'static str,
    pub needs: Vec<Vec<u16>>,
}

/// A generator of numbers that differ enough: Marsaglia's xorshift (J. Stat. Software 8, 2003).
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

impl Shape {
    /// No edges.
    pub fn flat(nodes: usize) -> Shape {
        Shape { name: "flat", needs: vec![Vec::new(); nodes] }
    }

    /// Each node waits for up to `each` of the nodes before it.
    pub fn random(nodes: usize, each: usize) -> Shape {
        let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
        let needs = (0..nodes)
            .map(|i| {
                if i <= each {
                    return (0..i as u16).collect();
                }
                let mut own: Vec<u16> = Vec::with_capacity(each);
                while own.len() < each {
                    let other = numbers.below(i as u64) as u16;
                    if !own.contains(&other) {
                        own.push(other);
                    }
                }
                own.sort_unstable();
                own
            })
            .collect();
        Shape { name: if each > 4 { "random 64" } else { "random 4" }, needs }
    }

    /// Layers of 64 nodes; each waits for four of the layer before.
    pub fn layered(nodes: usize) -> Shape {
        let mut numbers = Numbers(42);
        let needs = (0..nodes)
            .map(|i| {
                let layer = i / 64;
                if layer == 0 {
                    return Vec::new();
                }
                let first = numbers.below(64) as usize;
                let mut own: Vec<u16> = (0..4).map(|k| ((layer - 1) * 64 + (first + k * 16) % 64) as u16).collect();
                own.sort_unstable();
                own
            })
            .collect();
        Shape { name: "layered", needs }
    }

    /// The last node waits for all others.
    pub fn fan(nodes: usize) -> Shape {
        let mut needs = vec![Vec::new(); nodes];
        if let Some(last) = needs.last_mut() {
            *last = (0..nodes as u16 - 1).collect();
        }
        Shape { name: "fan", needs }
    }

    /// Each node waits for the one before it.
    pub fn chain(nodes: usize) -> Shape {
        Shape { name: "chain", needs: (0..nodes as u16).map(|i| i.checked_sub(1).into_iter().collect()).collect() }
    }

    pub fn edges(&self) -> usize {
        self.needs.iter().map(Vec::len).sum()
    }

    /// As nodes to import; their ids begin at `base`, so that graphs with different bases do not meet.
    pub fn specs(&self, base: u128) -> Vec<NodeSpec> {
        let id = |i: usize| NodeId(base + i as u128 + 1);
        let node = |(i, needs): (usize, &Vec<u16>)| NodeSpec {
            id: Some(id(i)),
            needs: needs.iter().map(|&n| id(n.into()).into()).collect(),
            ..NodeSpec::default()
        };
        self.needs.iter().enumerate().map(node).collect()
    }
}
