//! What the benchmarks share: graphs to work on, tables to work in, and the words alone as a floor.

#![allow(dead_code, unreachable_pub, reason = "each benchmark uses a part of it")]

#[path = "../../examples/bench/floor.rs"]
pub mod floor;
#[path = "../../examples/bench/shapes.rs"]
pub mod shapes;

use std::path::PathBuf;
use std::time::Duration;

use criterion::Criterion;
use tenure::{CreateOptions, Table};

use shapes::Shape;

/// The monotonic clock, in nanoseconds; the floor reads it as a claim does.
pub fn clock_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// A directory in memory if there is one, so that no disk is measured.
pub fn dir() -> tempfile::TempDir {
    let memory = PathBuf::from("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a directory")
}

/// A table that holds a graph.
pub fn table_of(shape: &Shape) -> (tempfile::TempDir, Table) {
    let dir = dir();
    let (table, _) = Table::open_or_create(dir.path(), &CreateOptions::default()).expect("a table");
    table.import(&shape.specs(0)).expect("a graph that fits");
    (dir, table)
}

/// Short enough that all benchmarks together take a few minutes.
pub fn short() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(20)
}

/// The sizes at which a verb should cost the same.
pub const SIZES: [usize; 3] = [10, 1_000, 4_096];
