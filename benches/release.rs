//! What does it cost to hand a claim back? Each claim that is handed back is made outside of the time.

#![allow(missing_docs, reason = "criterion's macros make public functions")]

mod common;

use std::time::{Duration, Instant};

use common::shapes::Shape;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use tenure::NodeId;

fn release(c: &mut Criterion) {
    let mut group = c.benchmark_group("release");
    for nodes in common::SIZES {
        let (_dir, table) = common::table_of(&Shape::flat(nodes));
        let worker = table.worker("w").expect("a holder");
        let node = NodeId(nodes as u128 / 2 + 1);
        group.bench_function(BenchmarkId::from_parameter(nodes), |b| {
            b.iter_custom(|times| {
                let mut took = Duration::ZERO;
                for _ in 0..times {
                    let claim = worker.claim(node).expect("it is ready");
                    let began = Instant::now();
                    claim.release().expect("it is held");
                    took += began.elapsed();
                }
                took
            });
        });
    }
    group.finish();
    c.bench_function("floor: two clock reads, which each of these holds", |b| {
        b.iter_custom(|times| (0..times).map(|_| Instant::now().elapsed()).sum());
    });
}

criterion_group! { name = benches; config = common::short(); targets = release }
criterion_main!(benches);
