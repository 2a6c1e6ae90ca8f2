//! How fast, beside what cannot be faster: one line a target. `scripts/bench` builds what this needs and runs it.
//!
//! `bench growth FILE.svg ROUNDS` draws how cost grows.
//!
//! `bench [--quick] [--json] [--only WORD] [--tenure PROGRAM --hello PROGRAM] [--disk DIR]`

#![allow(clippy::indexing_slicing, reason = "a measurement that goes wrong may end")]

mod crew;
#[allow(dead_code, reason = "benches/derive uses the rest")]
mod derived;
#[allow(dead_code, reason = "the benches use the rest")]
mod floor;
mod growth;
mod once;
mod programs;
mod report;
mod shapes;
mod wake;

use std::path::{Path, PathBuf};

use crew::On;
use report::{Goal, Line};
use shapes::Shape;

type Failure = Box<dyn std::error::Error>;

/// The monotonic clock, in nanoseconds, the same in every process.
pub fn clock_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Processor time of this process, in nanoseconds.
pub fn cpu_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

#[derive(Default)]
struct Asked {
    quick: bool,
    json: bool,
    only: Option<String>,
    tenure: Option<PathBuf>,
    hello: Option<PathBuf>,
    disk: Option<PathBuf>,
}

impl Asked {
    fn wants(&self, part: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == part)
    }

    fn times(&self, whole: usize) -> usize {
        if self.quick { (whole / 5).max(3) } else { whole }
    }
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["member", dir, name, on, shape, tables] => {
            return crew::member(Path::new(dir), name, on, shape, tables.parse()?);
        }
        ["waiter", dir, turns] => return wake::waiter(Path::new(dir), turns.parse()?),
        ["growth", file, rounds] => {
            let dir = memory().join(format!("tenure-growth-{}", std::process::id()));
            let drawn = growth::draw(&dir, Path::new(file), rounds.parse()?);
            let _ = std::fs::remove_dir_all(&dir);
            return drawn;
        }
        _ => {}
    }
    let mut asked = Asked::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} wants a value"));
        match word {
            "--quick" => asked.quick = true,
            "--json" => asked.json = true,
            "--only" => asked.only = Some(value()?.to_owned()),
            "--tenure" => asked.tenure = Some(value()?.into()),
            "--hello" => asked.hello = Some(value()?.into()),
            "--disk" => asked.disk = Some(value()?.into()),
            _ => return Err(format!("{word}: not an option of this program").into()),
        }
    }
    let dir = memory().join(format!("tenure-bench-{}", std::process::id()));
    let measured = measure(&asked, &dir);
    let _ = std::fs::remove_dir_all(&dir);
    measured
}

/// A directory in memory if there is one, so that no disk is measured.
fn memory() -> PathBuf {
    if Path::new("/dev/shm").is_dir() { PathBuf::from("/dev/shm") } else { std::env::temp_dir() }
}

fn measure(asked: &Asked, dir: &Path) -> Result<(), Failure> {
    machine(asked.json);
    report::heading(asked.json);
    let print = |line: Line| line.print(asked.json);
    if asked.wants("pairs") {
        pairs(asked, dir, &print)?;
    }
    if asked.wants("derive") {
        derive(asked, &print);
    }
    if asked.wants("verbs") {
        verbs(asked, dir, &print)?;
    }
    if asked.wants("wake") {
        let wakes = wake::measure(&dir.join("wake"), asked.times(1_000))?;
        let line = Line::told("blocked claim, ring to running, p50", "us", wakes.ours_p50);
        print(line.beside("us bare futex", wakes.bare_p50).target(Goal::Times(1.5), Goal::Times(1.2)));
        let line = Line::told("blocked claim, ring to running, p99", "us", wakes.ours_p99);
        print(line.beside("us bare futex", wakes.bare_p99).target(Goal::Times(1.5), Goal::Times(1.2)));
    }
    if asked.wants("once") {
        once(asked, dir, &print)?;
    }
    Ok(())
}

fn pairs(asked: &Asked, dir: &Path, print: &impl Fn(Line)) -> Result<(), Failure> {
    let rounds = asked.times(25);
    for (shape, title) in [("flat", "no dependencies"), ("random", "4 dependencies each")] {
        for members in [1, 2, 4, 16] {
            let at = |on: &str| dir.join(format!("{shape}-{members}-{on}"));
            // Not left behind: sixteen tables each.
            let clear = |on: &str| std::fs::remove_dir_all(at(on));
            let ours = crew::rounds(&at("table"), members, On::Table, shape, rounds)?;
            clear("table")?;
            let floor = crew::rounds(&at("floor"), members, On::Floor, shape, rounds)?;
            clear("floor")?;
            if members == 1 {
                let (target, stretch) = match shape {
                    "flat" => (Goal::AtMost(100.0), Goal::AtMost(60.0)),
                    _ => (Goal::Told, Goal::Told),
                };
                let line =
                    Line::told(format!("claim + complete, 1 process, {title}"), "ns", 1e9 / ours.pairs_per_cpu_s);
                print(line.beside("ns swaps and a clock read", 1e9 / floor.pairs_per_cpu_s).target(target, stretch));
            } else {
                let (target, stretch) = match (shape, members) {
                    ("flat", 2) => (Goal::AtLeast(5.0), Goal::AtLeast(10.0)),
                    ("random", 2) => (Goal::AtLeast(3.0), Goal::AtLeast(6.0)),
                    _ => (Goal::Told, Goal::Told),
                };
                let line = Line::told(format!("pairs, {members} processes, {title}"), "M/s", ours.pairs_per_s / 1e6);
                print(line.beside("M/s swaps and a clock", floor.pairs_per_s / 1e6).target(target, stretch));
                let line = Line::told("  the same by processor time", "M/s", ours.pairs_per_cpu_s / 1e6);
                print(line.beside("M/s swaps and a clock", floor.pairs_per_cpu_s / 1e6));
                let line = Line::told(format!("  slowest process / fastest, {members} processes"), "", ours.even);
                let target = if members == 2 { Goal::AtLeast(0.5) } else { Goal::Told };
                print(line.beside("the same of swaps", floor.even).target(target, Goal::Told));
            }
            let timed = crew::rounds(&at("timed"), members, On::Timed, shape, rounds / 2)?;
            clear("timed")?;
            print(Line::told(format!("  claim_next, {members} processes, p50"), "ns", timed.p50_ns));
            print(Line::told(format!("  claim_next, {members} processes, p99"), "ns", timed.p99_ns));
        }
    }
    Ok(())
}

fn derive(asked: &Asked, print: &impl Fn(Line)) {
    let shapes = [
        (Shape::random(4_096, 4), Goal::AtMost(60.0), Goal::AtMost(30.0)),
        (Shape::random(4_096, 64), Goal::AtMost(900.0), Goal::AtMost(600.0)),
        (Shape::chain(4_096), Goal::AtMost(50.0), Goal::AtMost(20.0)),
        (Shape::layered(4_096), Goal::Told, Goal::Told),
        (Shape::fan(4_096), Goal::Told, Goal::Told),
    ];
    for (shape, target, stretch) in shapes {
        let (whole, kept) = derived::measure(&shape, asked.times(300));
        let what = format!("order and depth, {}, {} edges", shape.name, shape.edges());
        print(Line::told(what, "us", whole).beside("us over a kept order", kept).target(target, stretch));
    }
}

fn verbs(asked: &Asked, dir: &Path, print: &impl Fn(Line)) -> Result<(), Failure> {
    let (Some(tenure), Some(hello)) = (&asked.tenure, &asked.hello) else { return Ok(()) };
    for (name, ours, hello) in programs::verbs(&dir.join("verbs"), tenure, hello, asked.times(500))? {
        let line = Line::told(format!("tenure {name}, spawn to exit"), "ms", ours);
        print(line.beside("ms static hello", hello).target(Goal::Times(1.15), Goal::Times(1.05)));
    }
    Ok(())
}

fn once(asked: &Asked, dir: &Path, print: &impl Fn(Line)) -> Result<(), Failure> {
    let at = dir.join("once");
    let ours = once::open_and_read(&at, 1, asked.times(1_000))?;
    let behind = once::open_and_read(&at, 4_096, asked.times(1_000))?;
    let bare = once::map_and_read(&at, asked.times(1_000))?;
    let line = Line::told("open a table and read one node", "us", ours).beside("us open, map, read a word", bare);
    print(line.target(Goal::AtMost(20.0), Goal::AtMost(10.0)));
    print(Line::told("  the same, a node behind 4,000 unfinished ones", "us", behind));
    let (ours, bare) = once::snapshot(&at, asked.times(200))?;
    let line = Line::told("snapshot of a full table, tmpfs", "ms", ours).beside("ms write, sync, rename", bare);
    print(line.target(Goal::AtMost(0.5), Goal::Told));
    if let Some(disk) = &asked.disk {
        let disk = disk.join(format!("tenure-bench-{}", std::process::id()));
        let measured = once::snapshot(&disk, asked.times(200));
        let _ = std::fs::remove_dir_all(&disk);
        let (ours, bare) = measured?;
        let line = Line::told("snapshot of a full table, disk", "ms", ours).beside("ms write, sync, rename", bare);
        print(line.target(Goal::AtMost(1.5), Goal::Told));
    }
    let (alone, beside) = once::stalled(&at, asked.times(1_000_000))?;
    print(Line::told("  renewal while snapshots are taken, p99", "us", beside).beside("us without", alone));
    Ok(())
}

/// Names the machine, so that figures are not compared across machines by mistake.
fn machine(json: bool) {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("", |m| m.1);
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease").trim().to_owned();
    let load = read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned();
    if json {
        println!("{}", serde_json::json!({"machine": model, "cpus": cpus, "kernel": kernel, "load": load}));
    } else {
        println!("{model}, {cpus} CPUs, Linux {kernel}, load {load} at the start");
    }
}
