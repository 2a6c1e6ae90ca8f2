//! Several processes on one table: how many pairs of claim and completion a second, how even, and how long a claim takes.
//!
//! Each process is this program again. All of them open the table, register and say so; then each round is a moment on
//! the monotonic clock that everybody waits for.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use tenure::{CreateOptions, Outcome, Refusal, Table, Worker};

use super::floor::Floor;
use super::report::{median, quantile};
use super::shapes::Shape;
use super::{Failure, clock_ns, cpu_ns};

/// What the workers of a round work on.
#[derive(Clone, Copy, PartialEq)]
pub enum On {
    Table,
    /// The same with a clock read around each claim.
    Timed,
    Floor,
}

/// What came of some rounds; medians.
pub struct Figures {
    pub pairs_per_s: f64,
    /// The same if nobody else had used the processors: by the processor time that the members used.
    pub pairs_per_cpu_s: f64,
    /// The slowest process's share of the fastest's.
    pub even: f64,
    pub p50_ns: f64,
    pub p99_ns: f64,
}

struct Member {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Member {
    fn start(dir: &Path, name: &str, on: On, shape: &str, tables: usize) -> Result<Member, Failure> {
        let on = match on {
            On::Table => "table",
            On::Timed => "timed",
            On::Floor => "floor",
        };
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("member").arg(dir).args([name, on, shape]).arg(tables.to_string());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a worker without pipes".into());
        };
        let mut member = Member { child, to, from: BufReader::new(from) };
        member.line()?;
        Ok(member)
    }

    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        if self.from.read_line(&mut line)? == 0 {
            return Err("a worker ended before its answer".into());
        }
        Ok(line)
    }
}

/// Nodes of a graph by name, as the members make it too.
pub fn shape(name: &str) -> Shape {
    match name {
        "flat" => Shape::flat(4_096),
        _ => Shape::random(4_096, 4),
    }
}

fn children(shape: &Shape) -> Vec<Vec<u16>> {
    let mut children = vec![Vec::new(); shape.needs.len()];
    for (i, needs) in shape.needs.iter().enumerate() {
        needs.iter().for_each(|&n| children[usize::from(n)].push(i as u16));
    }
    children
}

/// One table of a round and the words beside it.
struct Place {
    table: Table,
    floor: Floor,
}

/// A round works several tables one after the other, so that it is longer than a turn of the kernel's scheduler.
fn places(dir: &Path, count: usize) -> Result<Vec<Place>, Failure> {
    let open = |k: usize| {
        let dir = dir.join(k.to_string());
        std::fs::create_dir_all(&dir)?;
        let (table, _) = Table::open_or_create(&dir, &CreateOptions::default())?;
        Ok(Place { table, floor: Floor::open(&dir.join("floor"))? })
    };
    (0..count).map(open).collect()
}

/// How many tables a round has: few, so that they fit into the caches as one table does that is in use.
fn tables(members: usize) -> usize {
    if members == 1 { 1 } else { 4 }
}

/// The first rounds touch pages for the first time; they are not counted.
const FIRST: usize = 3;

/// Works `rounds` times all tables to their end with `members` processes.
pub fn rounds(dir: &Path, members: usize, on: On, shape_name: &str, rounds: usize) -> Result<Figures, Failure> {
    let shape = shape(shape_name);
    let count = tables(members);
    let places = places(dir, count)?;
    let mut crew: Vec<Member> =
        (0..members).map(|i| Member::start(dir, &format!("w{i}"), on, shape_name, count)).collect::<Result<_, _>>()?;
    let cpus = std::thread::available_parallelism()?.get();
    let mut cpu_rates = Vec::new();
    let (mut rates, mut evens, mut p50s, mut p99s) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds + FIRST {
        let specs = shape.specs(round as u128 * 4_096);
        for place in &places {
            place.floor.reset(&shape.needs);
            if on != On::Floor {
                place.table.import(&specs)?;
            }
        }
        let at = clock_ns() + 1_000_000;
        for member in &mut crew {
            writeln!(member.to, "{at}")?;
        }
        let (mut counts, mut used_ns) = (Vec::new(), 0.0);
        let mut until = at;
        for member in &mut crew {
            let line = member.line()?;
            let figures: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            let &[count, ended, used, p50, p99] = figures.as_slice() else {
                return Err(format!("answer {line:?}").into());
            };
            counts.push(count);
            used_ns += used;
            until = until.max(ended as u64);
            if round >= FIRST && p50 > 0.0 {
                p50s.push(p50);
                p99s.push(p99);
            }
        }
        let total: f64 = counts.iter().sum();
        let all = shape.needs.len() * count;
        if total as usize != all {
            return Err(format!("{total} of {all} nodes were worked").into());
        }
        if round >= FIRST {
            rates.push(total * 1e9 / (until - at) as f64);
            cpu_rates.push(total * 1e9 / used_ns * members.min(cpus) as f64);
            let least = counts.iter().copied().fold(f64::MAX, f64::min);
            evens.push(least / counts.iter().copied().fold(1.0, f64::max));
        }
    }
    for member in crew {
        drop(member.to);
        let mut child = member.child;
        child.wait()?;
    }
    Ok(Figures {
        pairs_per_s: median(&mut rates),
        pairs_per_cpu_s: median(&mut cpu_rates),
        even: median(&mut evens),
        p50_ns: median(&mut p50s),
        p99_ns: median(&mut p99s),
    })
}

/// One process of the crew: works whenever it is told a moment to begin at.
pub fn member(dir: &Path, name: &str, on: &str, shape_name: &str, tables: usize) -> Result<(), Failure> {
    let places = places(dir, tables)?;
    let workers: Vec<Worker> = places.iter().map(|place| place.table.worker(name)).collect::<Result<_, _>>()?;
    let shape = shape(shape_name);
    let children = children(&shape);
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        let at: u64 = line?.trim().parse()?;
        wait_until(at);
        let mut times = Vec::with_capacity(4_096 * tables);
        let mut count = 0;
        let used = cpu_ns();
        for (place, worker) in places.iter().zip(&workers) {
            let mut one = || match on {
                "floor" => Ok(place.floor.work_one(&children)),
                "timed" => timed_pair(worker, &mut times),
                _ => pair(worker),
            };
            let (mut own, mut told) = (0, 0);
            loop {
                if one()? {
                    own += 1;
                    continue;
                }
                // Nothing to take: at the end once everybody has said what it did, and it is all there was.
                if place.floor.add_done(own - told) == shape.needs.len() {
                    break;
                }
                told = own;
                std::thread::yield_now();
            }
            count += own;
        }
        let (ended, used) = (clock_ns(), cpu_ns() - used);
        let (p50, p99) = (quantile(&mut times, 0.5), quantile(&mut times, 0.99));
        let known = |value: f64| if value.is_nan() { 0.0 } else { value };
        println!("{count} {ended} {used} {} {}", known(p50), known(p99));
    }
    Ok(())
}

/// False: nothing is ready.
fn pair(worker: &Worker) -> Result<bool, Failure> {
    match worker.claim_next() {
        Ok(claim) => claim.complete(Outcome::Done)?,
        Err(Refusal::NothingReady) => return Ok(false),
        Err(refusal) => return Err(refusal.into()),
    };
    Ok(true)
}

fn timed_pair(worker: &Worker, times: &mut Vec<f64>) -> Result<bool, Failure> {
    let began = clock_ns();
    match worker.claim_next() {
        Ok(claim) => {
            times.push((clock_ns() - began) as f64);
            claim.complete(Outcome::Done)?;
        }
        Err(Refusal::NothingReady) => return Ok(false),
        Err(refusal) => return Err(refusal.into()),
    }
    Ok(true)
}

fn wait_until(at: u64) {
    loop {
        let now = clock_ns();
        if now >= at {
            return;
        }
        if at - now > 300_000 {
            std::thread::sleep(Duration::from_nanos(at - now - 200_000));
        }
    }
}
