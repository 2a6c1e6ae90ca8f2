//! The same work on what people use instead: a queue of 4,096 tasks in order of priority, each claimed with a fence and a
//! lease and then completed, by one and by several processes. `scripts/bench-peers` installs and starts what this needs.
//!
//! `peers DIR [--quick]` measures; the sockets of the servers are expected in DIR. Each process is this program again.

mod embedded;
mod servers;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub type Failure = Box<dyn std::error::Error>;

/// One connection to one peer.
pub trait Peer {
    /// Empties the queue and puts tasks with priorities 0.. into it.
    fn fill(&mut self, tasks: u32) -> Result<(), Failure>;
    /// Claims the first task and completes it. False: there was none.
    fn pair(&mut self) -> Result<bool, Failure>;
}

/// A name, and how many tasks a round has: the slowest get fewer, so that a run ends.
const PEERS: [(&str, u32); 7] = [
    ("tenure", 4_096),
    ("lmdb", 4_096),
    ("sqlite", 4_096),
    ("beanstalkd", 4_096),
    ("redis", 4_096),
    ("postgres", 2_048),
    ("claimdag", 24),
];

fn open(peer: &str, dir: &Path, member: usize) -> Result<Box<dyn Peer>, Failure> {
    Ok(match peer {
        "tenure" => Box::new(embedded::Tenure::open(dir, member)?),
        "lmdb" => Box::new(embedded::Lmdb::open(dir)?),
        "sqlite" => Box::new(embedded::Sqlite::open(dir)?),
        "claimdag" => Box::new(embedded::Claimdag::open(dir, member)?),
        "beanstalkd" => Box::new(servers::Beanstalkd::open(dir)?),
        "redis" => Box::new(servers::Redis::open(dir)?),
        "postgres" => Box::new(servers::Postgres::open(dir)?),
        _ => return Err(format!("{peer}: no such peer").into()),
    })
}

/// When a lease that begins now runs out, in milliseconds.
pub fn lease_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as u64) + 300_000
}

struct Member {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Member {
    fn start(dir: &Path, peer: &str, number: usize) -> Result<Member, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("member").arg(dir).arg(peer).arg(number.to_string());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else { return Err("no pipes".into()) };
        let mut member = Member { child, to, from: BufReader::new(from) };
        member.line()?;
        Ok(member)
    }

    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        if self.from.read_line(&mut line)? == 0 {
            return Err("a member ended before its answer".into());
        }
        Ok(line)
    }
}

/// Pairs a second, the middle of some rounds.
fn measure(dir: &Path, peer: &str, tasks: u32, members: usize, rounds: usize) -> Result<f64, Failure> {
    let mut filler = open(peer, dir, 99)?;
    let mut crew = (0..members).map(|i| Member::start(dir, peer, i)).collect::<Result<Vec<_>, _>>()?;
    let mut rates = Vec::new();
    for round in 0..=rounds {
        filler.fill(tasks)?;
        let began = Instant::now();
        for member in &mut crew {
            writeln!(member.to)?;
        }
        let mut done = 0;
        for member in &mut crew {
            done += member.line()?.trim().parse::<u32>()?;
        }
        let took = began.elapsed().as_secs_f64();
        if done != tasks {
            return Err(format!("{peer}: {done} of {tasks} tasks were done").into());
        }
        // The first round warms up.
        if round > 0 {
            rates.push(f64::from(tasks) / took);
        }
    }
    for mut member in crew {
        drop(member.to);
        member.child.wait()?;
    }
    rates.sort_by(f64::total_cmp);
    Ok(rates[rates.len() / 2])
}

fn member(dir: &Path, peer: &str, number: usize) -> Result<(), Failure> {
    let mut peer = open(peer, dir, number)?;
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        line?;
        let mut count = 0;
        while peer.pair()? {
            count += 1;
        }
        println!("{count}");
    }
    Ok(())
}

/// The middle of some runs of a program, from spawn to exit, in milliseconds.
fn program(line: &str, times: usize) -> Result<f64, Failure> {
    let mut words = line.split('\t');
    let mut took = Vec::new();
    let (name, arguments) = (words.next().unwrap_or(""), words.collect::<Vec<_>>());
    for _ in 0..times {
        let mut command = Command::new(name);
        command.args(&arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let began = Instant::now();
        command.status()?;
        took.push(began.elapsed());
    }
    took.sort();
    Ok(took.get(times / 2).map_or(0.0, Duration::as_secs_f64) * 1e3)
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["member", dir, peer, number] => member(Path::new(dir), peer, number.parse()?),
        // One program and its arguments, separated by tabs.
        ["program", line] => {
            println!("{:.2}", program(line, 51)?);
            Ok(())
        }
        [dir, rest @ ..] => {
            let rounds = if rest.contains(&"--quick") { 3 } else { 9 };
            println!("| peer | one process, us a pair | pairs/s, 1 | pairs/s, 2 | pairs/s, 4 |");
            println!("|---|---|---|---|---|");
            for (peer, tasks) in PEERS {
                let rates = [1, 2, 4].map(|members| measure(Path::new(dir), peer, tasks, members, rounds));
                match rates {
                    [Ok(one), Ok(two), Ok(four)] => {
                        println!("| {peer} | {:.2} | {one:.0} | {two:.0} | {four:.0} |", 1e6 / one);
                    }
                    [Err(why), ..] | [_, Err(why), _] | [.., Err(why)] => println!("| {peer} | {why} | | | |"),
                }
            }
            Ok(())
        }
        [] => Err("name the directory with the servers' sockets".into()),
    }
}
