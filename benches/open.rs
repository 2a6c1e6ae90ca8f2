//! What does it cost to open a table and read one node of 4,096? The floor is a file of the size opened, mapped and one
//! word read.

#![allow(missing_docs, reason = "criterion's macros make public functions")]

mod common;

use common::shapes::Shape;
use criterion::{Criterion, criterion_group, criterion_main};
use tenure::{NodeId, Table};

fn open(c: &mut Criterion) {
    let (dir, table) = common::table_of(&Shape::random(4_096, 4));
    c.bench_function("open", |b| b.iter(|| Table::open(dir.path()).expect("a table")));
    let read = |node: u128| Table::open(dir.path()).expect("a table").get(NodeId(node)).expect("a node");
    c.bench_function("open + read a ready node", |b| b.iter(|| read(1)));
    c.bench_function("open + read a node behind 4,000 unfinished ones", |b| b.iter(|| read(4_096)));
    c.bench_function("read a ready node of an open table", |b| b.iter(|| table.get(NodeId(1)).expect("a node")));
    let floor = dir.path().join("floor");
    drop(common::floor::Floor::open(&floor).expect("a file"));
    c.bench_function("floor: open, map, read a word", |b| {
        b.iter(|| common::floor::Floor::open(&floor).expect("a file").read_one(7));
    });
}

criterion_group! { name = benches; config = common::short(); targets = open }
criterion_main!(benches);
