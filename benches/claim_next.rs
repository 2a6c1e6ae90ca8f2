//! What does it cost to be given the next node, and does it grow with the graph? Released again each time. The floor is
//! a bit taken from a queue, two swaps and a clock read.

#![allow(missing_docs, reason = "criterion's macros make public functions")]

mod common;

use common::shapes::Shape;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

fn claim_next(c: &mut Criterion) {
    let mut group = c.benchmark_group("claim_next + release");
    for nodes in common::SIZES {
        let (_dir, table) = common::table_of(&Shape::random(nodes, 4));
        let worker = table.worker("w").expect("a holder");
        group.bench_function(BenchmarkId::from_parameter(nodes), |b| {
            b.iter(|| worker.claim_next().expect("one is ready").release().expect("it is held"));
        });
    }
    group.finish();
    let dir = common::dir();
    let floor = common::floor::Floor::open(&dir.path().join("floor")).expect("a file");
    let shape = Shape::flat(4_096);
    floor.reset(&shape.needs);
    c.bench_function("floor: a bit, two swaps and a clock read", |b| {
        b.iter(|| {
            if !floor.work_one(&[]) {
                floor.reset(&shape.needs);
            }
        });
    });
}

criterion_group! { name = benches; config = common::short(); targets = claim_next }
criterion_main!(benches);
