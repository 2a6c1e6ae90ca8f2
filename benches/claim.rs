//! What does a claim of a named node cost, and does it grow with the graph? Released again each time, which is told by
//! itself in `release`; the floor is two swaps and a clock read on words in a mapped file.

#![allow(missing_docs, reason = "criterion's macros make public functions")]

mod common;

use common::shapes::Shape;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use tenure::NodeId;

fn claim(c: &mut Criterion) {
    let mut group = c.benchmark_group("claim + release");
    for nodes in common::SIZES {
        let (_dir, table) = common::table_of(&Shape::flat(nodes));
        let worker = table.worker("w").expect("a holder");
        let node = NodeId(nodes as u128 / 2 + 1);
        group.bench_function(BenchmarkId::from_parameter(nodes), |b| {
            b.iter(|| worker.claim(node).expect("it is ready").release().expect("it is held"));
        });
    }
    group.finish();
    let dir = common::dir();
    let floor = common::floor::Floor::open(&dir.path().join("floor")).expect("a file");
    c.bench_function("floor: two swaps and a clock read", |b| b.iter(|| floor.claim_and_release(7)));
}

criterion_group! { name = benches; config = common::short(); targets = claim }
criterion_main!(benches);
