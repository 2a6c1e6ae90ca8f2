//! What does it cost to end a node, with no, one and 64 nodes that wait for it?

#![allow(missing_docs, reason = "criterion's macros make public functions")]

mod common;

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use tenure::{CreateOptions, NodeId, NodeSpec, Outcome, Table};

/// Nodes that can be ended in one table, each with `behind` nodes that wait for it.
fn stars(behind: u128) -> Vec<NodeSpec> {
    let stars = 4_096 / (behind + 1);
    let spec = |i: u128| {
        let (star, at) = (i / (behind + 1), i % (behind + 1));
        let needs = if at == 0 { Vec::new() } else { vec![NodeId(star * (behind + 1) + 1).into()] };
        NodeSpec { id: Some(NodeId(i + 1)), needs, ..NodeSpec::default() }
    };
    (0..stars * (behind + 1)).map(spec).collect()
}

/// Ends the heads of a fresh table's stars, up to `most`; how many, and how long the ends alone took.
fn round(behind: u128, most: u64) -> (u64, Duration) {
    let dir = common::dir();
    let (table, _) = Table::open_or_create(dir.path(), &CreateOptions::default()).expect("a table");
    table.import(&stars(behind)).expect("a graph that fits");
    let worker = table.worker("w").expect("a holder");
    let mut took = Duration::ZERO;
    let heads = u64::try_from(4_096 / (behind + 1)).expect("small").min(most);
    for star in 0..heads {
        let claim = worker.claim(NodeId(u128::from(star) * (behind + 1) + 1)).expect("it is ready");
        let began = Instant::now();
        claim.complete(Outcome::Done).expect("it is held");
        took += began.elapsed();
    }
    (heads, took)
}

fn complete(c: &mut Criterion) {
    let mut group = c.benchmark_group("complete, nodes that wait for it");
    for behind in [0, 1, 64] {
        group.bench_function(BenchmarkId::from_parameter(behind), |b| {
            b.iter_custom(|times| {
                let (mut done, mut took) = (0, Duration::ZERO);
                while done < times {
                    let (more, longer) = round(behind, times - done);
                    done += more;
                    took += longer;
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

criterion_group! { name = benches; config = common::short(); targets = complete }
criterion_main!(benches);
