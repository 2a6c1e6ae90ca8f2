//! What does a claim with its completion cost, fence and lease included, on a table of 4,096 nodes?
//!
//! Run with `cargo bench`. Each round claims and completes every node once; making the table is not counted.

#![allow(missing_docs, reason = "criterion's macros make public functions")]

use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use tenure::{CreateOptions, NodeId, NodeSpec, Outcome, Table};

const NODES: u128 = 4_096;

/// Node `i` waits for up to `needs` nodes before it.
fn graph(needs: u128) -> Vec<NodeSpec> {
    let id = |i: u128| NodeId(i + 1);
    let node = |i: u128| NodeSpec {
        id: Some(id(i)),
        needs: (1..=needs).filter(|k| i >= k * 7).map(|k| id(i - k * 7).into()).collect(),
        ..NodeSpec::default()
    };
    (0..NODES).map(node).collect()
}

/// Works a fresh table to its end.
fn round(specs: &[NodeSpec]) -> Duration {
    let dir = tempfile::tempdir().expect("a directory");
    let (table, _) = Table::open_or_create(dir.path(), &CreateOptions::default()).expect("a table");
    table.import(specs).expect("a graph that fits");
    let worker = table.worker("bench").expect("a holder");
    let began = Instant::now();
    let mut done = 0;
    while let Ok(claim) = worker.claim_next() {
        claim.complete(Outcome::Done).expect("it is held");
        done += 1;
    }
    assert_eq!(done, NODES);
    began.elapsed()
}

fn pairs(c: &mut Criterion) {
    let mut group = c.benchmark_group("claim_next + complete, one of 4,096");
    group.sample_size(10);
    for needs in [0, 4] {
        let specs = graph(needs);
        group.bench_function(format!("{needs} dependencies each"), |b| {
            b.iter_custom(|pairs| {
                let rounds = pairs.div_ceil(NODES as u64).max(1);
                let time: Duration = (0..rounds).map(|_| round(&specs)).sum();
                time.mul_f64(pairs as f64 / (rounds * NODES as u64) as f64)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, pairs);
criterion_main!(benches);
