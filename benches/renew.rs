//! What does it cost to stay alive, and does it grow with the graph? The floor is one swap and a clock read.

#![allow(missing_docs, reason = "criterion's macros make public functions")]

mod common;

use common::shapes::Shape;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

fn renew(c: &mut Criterion) {
    let mut group = c.benchmark_group("renew");
    for nodes in common::SIZES {
        let (_dir, table) = common::table_of(&Shape::random(nodes, 4));
        let worker = table.worker("w").expect("a holder");
        let claim = worker.claim_next().expect("one is ready");
        group.bench_function(BenchmarkId::from_parameter(nodes), |b| b.iter(|| claim.renew().expect("it is held")));
    }
    group.finish();
    let dir = common::dir();
    let floor = common::floor::Floor::open(&dir.path().join("floor")).expect("a file");
    c.bench_function("floor: a swap and a clock read", |b| b.iter(|| floor.renew(7)));
}

criterion_group! { name = benches; config = common::short(); targets = renew }
criterion_main!(benches);
