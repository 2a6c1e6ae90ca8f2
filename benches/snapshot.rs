//! What does a snapshot of a full table cost, in memory and on the disk that the build is on? The floor is as many bytes
//! written, synced and put in place with the same system calls.

#![allow(missing_docs, reason = "criterion's macros make public functions")]

mod common;

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use common::shapes::Shape;
use criterion::{Criterion, criterion_group, criterion_main};
use tenure::{CreateOptions, Table};

fn replace(dir: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let (from, to) = (dir.join("bare.new"), dir.join("bare"));
    let mut file = File::create(&from)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&from, &to)?;
    File::open(dir)?.sync_all()
}

fn snapshot(c: &mut Criterion) {
    let on_disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    for (place, dir) in [("in memory", common::dir()), ("on disk", on_disk)] {
        let (table, _) = Table::open_or_create(dir.path(), &CreateOptions::default()).expect("a table");
        table.import(&Shape::random(4_096, 4).specs(0)).expect("a graph that fits");
        let take = || table.snapshot(Duration::from_secs(10), || {}).expect("room");
        let bytes = fs::read(take().path).expect("it was written");
        let mut group = c.benchmark_group(format!("snapshot of 4,096 nodes, {place}"));
        group.bench_function("whole", |b| b.iter(take));
        group.bench_function("floor: write, sync, rename, sync", |b| b.iter(|| replace(dir.path(), &bytes)));
        group.finish();
    }
}

criterion_group! { name = benches; config = common::short(); targets = snapshot }
criterion_main!(benches);
