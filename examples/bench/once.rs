//! What is done once in a while: deriving, opening, snapshots.

use std::path::Path;
use std::time::{Duration, Instant};

use tenure::{CreateOptions, NodeId, Table};

use super::report::{median, quantile};
use super::shapes::Shape;
use super::{Failure, clock_ns};

/// Microseconds to open a table of 4,096 nodes and read one: the first, which is ready, or the last, which waits for
/// nearly all others.
pub fn open_and_read(dir: &Path, node: u128, times: usize) -> Result<f64, Failure> {
    filled(dir)?;
    let mut took = Vec::new();
    for _ in 0..times {
        let began = clock_ns();
        let view = Table::open(dir)?.get(NodeId(node))?;
        took.push((clock_ns() - began) as f64 / 1e3);
        std::hint::black_box(view);
    }
    Ok(median(&mut took))
}

/// Microseconds to map a file of the same size and read one word: what opening cannot be faster than.
pub fn map_and_read(dir: &Path, times: usize) -> Result<f64, Failure> {
    filled(dir)?;
    let file = std::fs::read_dir(dir)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("table-")))
        .ok_or("no table file")?;
    let mut took = Vec::new();
    for _ in 0..times {
        let began = clock_ns();
        let mut word = [0u8; 8];
        let open = std::fs::File::open(&file)?;
        let map = memmap2::MmapOptions::new().len(1 << 22).map_raw_read_only(&open)?;
        // SAFETY: the file is longer than that, the mapping readable, and the bytes are only copied.
        unsafe { std::ptr::copy_nonoverlapping(map.as_ptr().add(4_096), word.as_mut_ptr(), 8) };
        std::hint::black_box(word);
        drop((map, open));
        took.push((clock_ns() - began) as f64 / 1e3);
    }
    Ok(median(&mut took))
}

fn filled(dir: &Path) -> Result<Table, Failure> {
    std::fs::create_dir_all(dir)?;
    let (table, made) = Table::open_or_create(dir, &CreateOptions::default())?;
    if made {
        table.import(&Shape::random(4_096, 4).specs(0))?;
    }
    Ok(table)
}

/// Milliseconds of a snapshot of a full table, and of writing as many bytes and putting them in place with the same calls.
pub fn snapshot(dir: &Path, times: usize) -> Result<(f64, f64), Failure> {
    let table = filled(dir)?;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..times {
        let began = clock_ns();
        let done = table.snapshot(Duration::from_secs(10), || {})?;
        ours.push((clock_ns() - began) as f64 / 1e6);
        let bytes = std::fs::read(&done.path)?;
        let began = clock_ns();
        let (from, to) = (dir.join("bare.new"), dir.join("bare"));
        let mut file = std::fs::File::create(&from)?;
        std::io::Write::write_all(&mut file, &bytes)?;
        file.sync_all()?;
        std::fs::rename(&from, &to)?;
        std::fs::File::open(dir)?.sync_all()?;
        bare.push((clock_ns() - began) as f64 / 1e6);
    }
    Ok((median(&mut ours), median(&mut bare)))
}

/// The 99th percentile of a renewal, in microseconds: alone, and while another thread takes snapshots without a break.
pub fn stalled(dir: &Path, times: usize) -> Result<(f64, f64), Failure> {
    let table = filled(dir)?;
    let worker = table.worker("w1")?;
    let claim = worker.claim_next()?;
    let measure = || -> Result<f64, Failure> {
        let mut took = Vec::new();
        for _ in 0..times {
            let began = Instant::now();
            claim.renew()?;
            took.push(began.elapsed().as_nanos() as f64 / 1e3);
        }
        Ok(quantile(&mut took, 0.99))
    };
    let alone = measure()?;
    let stop = std::sync::atomic::AtomicBool::new(false);
    let beside = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = table.snapshot(Duration::from_secs(10), || {});
            }
        });
        let beside = measure();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        beside
    })?;
    claim.release()?;
    Ok((alone, beside))
}
