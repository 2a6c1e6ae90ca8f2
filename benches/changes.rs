//! What does a change of the graph cost: a link and its undoing, a node added, a graph imported? The floor is a copy of
//! as many bytes as a version has in use.

#![allow(missing_docs, reason = "criterion's macros make public functions")]

mod common;

use std::time::{Duration, Instant};

use common::shapes::Shape;
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use tenure::{CreateOptions, NodeId, NodeSpec, Table};

fn link(c: &mut Criterion) {
    let mut group = c.benchmark_group("link + unlink");
    for nodes in common::SIZES {
        let (_dir, table) = common::table_of(&Shape::random(nodes, 4));
        let (first, last) = (NodeId(1), NodeId(nodes as u128));
        group.bench_function(BenchmarkId::from_parameter(nodes), |b| {
            b.iter(|| {
                table.link(first, last).expect("no loop");
                table.unlink(first, last).expect("it is there");
            });
        });
    }
    group.finish();
}

fn add(c: &mut Criterion) {
    let mut group = c.benchmark_group("add a node");
    for nodes in [10, 1_000, 4_000] {
        let shape = Shape::random(nodes, 4);
        group.bench_function(BenchmarkId::from_parameter(nodes), |b| {
            b.iter_custom(|times| {
                let (mut took, mut added) = (Duration::ZERO, 0);
                while added < times {
                    let (_dir, table) = common::table_of(&shape);
                    let now = (times - added).min(90);
                    let began = Instant::now();
                    for i in 0..now {
                        let id = Some(NodeId(1 << 64 | u128::from(i)));
                        table.upsert(&NodeSpec { id, ..NodeSpec::default() }, false).expect("room");
                    }
                    took += began.elapsed();
                    added += now;
                }
                took
            });
        });
    }
    group.finish();
}

fn import(c: &mut Criterion) {
    let mut group = c.benchmark_group("import");
    group.sample_size(10);
    for nodes in common::SIZES {
        let specs = Shape::random(nodes, 4).specs(0);
        let empty = || {
            let dir = common::dir();
            let (table, _) = Table::open_or_create(dir.path(), &CreateOptions::default()).expect("a table");
            (dir, table)
        };
        group.bench_function(BenchmarkId::from_parameter(nodes), |b| {
            b.iter_batched(
                empty,
                |(dir, table)| {
                    table.import(&specs).expect("a graph that fits");
                    (dir, table)
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
    let from = vec![1u64; 70_000];
    let mut to = vec![0u64; 70_000];
    c.bench_function("floor: a copy of 560 kB, a version of 4,096 nodes", |b| b.iter(|| to.copy_from_slice(&from)));
}

criterion_group! { name = benches; config = common::short(); targets = link, add, import }
criterion_main!(benches);
