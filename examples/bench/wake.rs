//! From a ring to a waiter that runs, beside a futex alone. Both take turns, so that both meet the same machine.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::thread::futex;
use tenure::{ClaimOptions, CreateOptions, NodeId, NodeSpec, Outcome, Table};

use super::floor::Floor;
use super::report::quantile;
use super::{Failure, clock_ns};

pub struct Wakes {
    pub ours_p50: f64,
    pub ours_p99: f64,
    pub bare_p50: f64,
    pub bare_p99: f64,
}

fn id(i: usize) -> NodeId {
    NodeId(i as u128 + 1)
}

/// A chain: the ringer works the even nodes and the waiter the odd ones.
fn chain(turns: usize) -> Vec<NodeSpec> {
    (0..2 * turns)
        .map(|i| NodeSpec {
            id: Some(id(i)),
            needs: i.checked_sub(1).map(|before| id(before).into()).into_iter().collect(),
            role: Some(if i % 2 == 0 { "ringer".into() } else { "waiter".into() }),
            ..NodeSpec::default()
        })
        .collect()
}

pub fn measure(dir: &Path, turns: usize) -> Result<Wakes, Failure> {
    std::fs::create_dir_all(dir)?;
    let (table, _) = Table::open_or_create(dir, &CreateOptions::default())?;
    table.import(&chain(turns))?;
    let ringer = table.worker("ringer")?.with_roles(["ringer"])?;
    let floor = Floor::open(&dir.join("floor"))?;
    let mut child = Command::new(std::env::current_exe()?)
        .arg("waiter")
        .arg(dir)
        .arg(turns.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (Some(mut to), Some(from)) = (child.stdin.take(), child.stdout.take()) else { return Err("no pipes".into()) };
    let mut from = BufReader::new(from);
    let mut answer = |began: u64| -> Result<f64, Failure> {
        let mut line = String::new();
        from.read_line(&mut line)?;
        Ok(line.trim().parse::<u64>()?.saturating_sub(began) as f64)
    };
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for turn in 0..turns {
        let claim = ringer.claim_next()?;
        writeln!(to)?;
        std::thread::sleep(Duration::from_micros(400));
        let began = clock_ns();
        claim.complete(Outcome::Done)?;
        ours.push(answer(began)? / 1e3);
        writeln!(to)?;
        std::thread::sleep(Duration::from_micros(400));
        let began = clock_ns();
        floor.bell().store(turn as u32 + 1, std::sync::atomic::Ordering::SeqCst);
        futex::wake(floor.bell(), futex::Flags::empty(), 1)?;
        bare.push(answer(began)? / 1e3);
    }
    drop(to);
    child.wait()?;
    Ok(Wakes {
        ours_p50: quantile(&mut ours, 0.5),
        ours_p99: quantile(&mut ours, 0.99),
        bare_p50: quantile(&mut bare, 0.5),
        bare_p99: quantile(&mut bare, 0.99),
    })
}

/// The process that sleeps.
pub fn waiter(dir: &Path, turns: usize) -> Result<(), Failure> {
    let table = Table::open(dir)?;
    let worker = table.worker("waiter")?.with_roles(["waiter"])?;
    let floor = Floor::open(&dir.join("floor"))?;
    let mut lines = std::io::stdin().lock().lines();
    let mut out = std::io::stdout().lock();
    for turn in 0..turns {
        let Some(line) = lines.next() else { return Ok(()) };
        line?;
        let claim = worker.wait_claim_next(&ClaimOptions::default(), Some(10_000))?;
        let woken = clock_ns();
        claim.complete(Outcome::Done)?;
        writeln!(out, "{woken}")?;
        out.flush()?;
        let Some(line) = lines.next() else { return Ok(()) };
        line?;
        while floor.bell().load(std::sync::atomic::Ordering::SeqCst) == turn as u32 {
            let _ = futex::wait(floor.bell(), futex::Flags::empty(), turn as u32, None);
        }
        let woken = clock_ns();
        writeln!(out, "{woken}")?;
        out.flush()?;
    }
    Ok(())
}
