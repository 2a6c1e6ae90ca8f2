//! Readiness and depth of every node in one pass: the same source that the library is built from.

#[allow(dead_code, unreachable_pub, clippy::indexing_slicing, reason = "a part of it is measured alone")]
#[path = "../../src/derive.rs"]
mod derive;

use derive::View;

use super::clock_ns;
use super::report::median;
use super::shapes::Shape;

/// A graph as the library derives from it.
pub struct Arrays {
    present: Vec<bool>,
    pub cost: Vec<u32>,
    born: Vec<u64>,
    parent: Vec<Option<u16>>,
    ended: Vec<bool>,
    dep_start: Vec<u32>,
    child_start: Vec<u32>,
    pub children: Vec<u16>,
}

pub fn arrays(shape: &Shape) -> Arrays {
    let high = shape.needs.len();
    let mut child_start = vec![0u32; high + 1];
    for &parent in shape.needs.iter().flatten() {
        child_start[usize::from(parent) + 1] += 1;
    }
    for i in 0..high {
        child_start[i + 1] += child_start[i];
    }
    let mut dep_start = vec![0u32];
    for needs in &shape.needs {
        dep_start.push(dep_start.last().copied().unwrap_or(0) + needs.len() as u32);
    }
    let mut fill = child_start.clone();
    let mut children = vec![0u16; shape.edges()];
    for (child, needs) in shape.needs.iter().enumerate() {
        for &parent in needs {
            children[fill[usize::from(parent)] as usize] = child as u16;
            fill[usize::from(parent)] += 1;
        }
    }
    Arrays {
        present: vec![true; high],
        cost: vec![1; high],
        born: (0..high as u64).collect(),
        parent: vec![None; high],
        ended: vec![false; high],
        dep_start,
        child_start,
        children,
    }
}

impl Arrays {
    fn view(&self) -> View<'_> {
        View {
            present: &self.present,
            cost: &self.cost,
            born: &self.born,
            parent: &self.parent,
            ended: &self.ended,
            dep_start: &self.dep_start,
            child_start: &self.child_start,
            children: &self.children,
        }
    }
}

/// An order in which the graph can be worked.
pub fn order(arrays: &Arrays) -> Vec<u16> {
    arrays.view().topological().unwrap_or_default()
}

/// The chains over a kept order.
pub fn chains(arrays: &Arrays, order: &[u16]) -> Vec<u64> {
    arrays.view().chains(order)
}

/// Both.
pub fn whole(arrays: &Arrays) -> Vec<u64> {
    chains(arrays, &order(arrays))
}

/// Microseconds for order and chains, and for the chains alone over a kept order.
pub fn measure(shape: &Shape, times: usize) -> (f64, f64) {
    let arrays = arrays(shape);
    let (mut both, mut kept) = (Vec::new(), Vec::new());
    for _ in 0..times {
        let began = clock_ns();
        let order = order(&arrays);
        let ordered = clock_ns();
        std::hint::black_box(chains(&arrays, &order));
        let ended = clock_ns();
        both.push((ended - began) as f64 / 1e3);
        kept.push((ended - ordered) as f64 / 1e3);
    }
    (median(&mut both), median(&mut kept))
}
