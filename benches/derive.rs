//! What does it cost to find the order and depth of every node of 4,096? The same source that the library is built from;
//! the floor is one walk over the same edges that adds them up.

#![allow(missing_docs, reason = "criterion's macros make public functions")]

mod common;

#[allow(dead_code, unreachable_pub, reason = "a part of it is measured alone")]
#[path = "../examples/bench/derived.rs"]
mod derived;

#[allow(dead_code, unreachable_pub, reason = "a part of it")]
#[path = "../examples/bench/report.rs"]
mod report;

use common::shapes::Shape;
pub use common::{clock_ns, shapes};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

fn derive(c: &mut Criterion) {
    let mut group = c.benchmark_group("order and depth of 4,096 nodes");
    let shapes = [
        Shape::random(4_096, 4),
        Shape::random(4_096, 64),
        Shape::layered(4_096),
        Shape::fan(4_096),
        Shape::chain(4_096),
    ];
    for shape in shapes {
        let arrays = derived::arrays(&shape);
        let name = format!("{}, {} edges", shape.name, shape.edges());
        group.bench_function(BenchmarkId::new("whole", &name), |b| b.iter(|| derived::whole(&arrays)));
        let order = derived::order(&arrays);
        group.bench_function(BenchmarkId::new("over a kept order", &name), |b| {
            b.iter(|| derived::chains(&arrays, &order));
        });
        group.bench_function(BenchmarkId::new("floor: a walk over the edges", &name), |b| {
            b.iter(|| arrays.children.iter().map(|&child| u64::from(arrays.cost[usize::from(child)])).sum::<u64>());
        });
    }
    group.finish();
}

criterion_group! { name = benches; config = common::short(); targets = derive }
criterion_main!(benches);
