//! How good the order of work is: real workflow traces on a few simulated workers, through the library's own claims.
//!
//! `bench_schedules DIR [SEED]` reads every WfFormat trace in the directory. Time is simulated and claims are not: each
//! worker that is free asks the table for its next node, and a node is completed when its measured time is over. Beside
//! it: first come first served, a random ready node, and HEFT (Topcuoglu, Hariri and Wu, IEEE TPDS 13, 2002) on equal
//! machines without transfers, which sees the whole graph beforehand and may fill gaps. Every figure is the makespan over
//! the bound that no schedule beats: the longest path, or the work divided by the workers.

#![allow(clippy::indexing_slicing, reason = "numbers of nodes that this file has made itself")]

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use tenure::formats::{Format, Graph};
use tenure::{CreateOptions, NodeId, NodeSpec, Outcome, Refusal, Table};

type Failure = Box<dyn std::error::Error>;

const WORKERS: [usize; 5] = [2, 4, 8, 16, 32];

/// A trace with its nodes numbered.
struct Trace {
    name: String,
    specs: Vec<NodeSpec>,
    index: HashMap<NodeId, usize>,
    cost: Vec<u64>,
    needs: Vec<Vec<usize>>,
    children: Vec<Vec<usize>>,
}

impl Trace {
    fn read(path: &Path, weighted: bool) -> Result<Trace, Failure> {
        let graph = Graph::read(Format::Wfformat, &mut BufReader::new(File::open(path)?))?;
        let entries = graph.entries();
        let index: HashMap<NodeId, usize> = entries.iter().enumerate().map(|(i, entry)| (entry.id, i)).collect();
        let mut specs: Vec<NodeSpec> = entries.iter().map(|entry| entry.spec.clone()).collect();
        // Every task takes some time, so that the simulation goes on.
        specs.iter_mut().for_each(|spec| spec.cost = Some(if weighted { spec.cost.unwrap_or(1).max(1) } else { 1 }));
        let cost = specs.iter().map(|spec| u64::from(spec.cost.unwrap_or(1))).collect();
        let needs: Vec<Vec<usize>> = specs
            .iter()
            .map(|spec| spec.needs.iter().filter_map(|need| index.get(&need.node).copied()).collect())
            .collect();
        let mut children = vec![Vec::new(); specs.len()];
        for (child, needs) in needs.iter().enumerate() {
            needs.iter().for_each(|&parent| children[parent].push(child));
        }
        let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        Ok(Trace { name, specs, index, cost, needs, children })
    }

    /// The cost of the longest path from each node on, its own included.
    fn ranks(&self) -> Vec<u64> {
        let mut left: Vec<usize> = self.children.iter().map(Vec::len).collect();
        let mut free: Vec<usize> = (0..left.len()).filter(|&i| left[i] == 0).collect();
        let mut rank = self.cost.clone();
        while let Some(node) = free.pop() {
            for &parent in &self.needs[node] {
                rank[parent] = rank[parent].max(self.cost[parent] + rank[node]);
                left[parent] -= 1;
                if left[parent] == 0 {
                    free.push(parent);
                }
            }
        }
        rank
    }

    fn bound(&self, workers: usize) -> u64 {
        let path = self.ranks().into_iter().max().unwrap_or(0);
        path.max(self.cost.iter().sum::<u64>().div_ceil(workers as u64))
    }

    /// When the last node ends if free workers are given what `next` chooses of the ready nodes. They are handed over in
    /// the order in which they became ready.
    fn list(&self, workers: usize, mut next: impl FnMut(&mut Vec<usize>) -> usize) -> u64 {
        let mut left: Vec<usize> = self.needs.iter().map(Vec::len).collect();
        let mut ready: Vec<usize> = (0..left.len()).filter(|&i| left[i] == 0).collect();
        let mut running = BinaryHeap::new();
        let mut now = 0;
        loop {
            while running.len() < workers && !ready.is_empty() {
                let node = next(&mut ready);
                running.push(Reverse((now + self.cost[node], node)));
            }
            let Some(Reverse((end, node))) = running.pop() else { return now };
            now = end;
            for &child in &self.children[node] {
                left[child] -= 1;
                if left[child] == 0 {
                    ready.push(child);
                }
            }
        }
    }

    /// The same with the table choosing.
    fn through_claims(&self, workers: usize) -> Result<u64, Failure> {
        let dir = std::env::temp_dir().join(format!("tenure-schedules-{}", std::process::id()));
        let (table, _) = Table::open_or_create(&dir, &CreateOptions::default())?;
        let makespan = self.simulate(&table, workers);
        std::fs::remove_dir_all(&dir)?;
        makespan
    }

    fn simulate(&self, table: &Table, workers: usize) -> Result<u64, Failure> {
        table.import(&self.specs)?;
        let workers = (0..workers).map(|i| table.worker(&format!("w{i}"))).collect::<Result<Vec<_>, _>>()?;
        let mut idle: BTreeSet<usize> = (0..workers.len()).collect();
        let mut running = BinaryHeap::new();
        let mut claims = HashMap::new();
        let (mut now, mut done) = (0, 0);
        loop {
            while let Some(&worker) = idle.first() {
                match workers[worker].claim_next() {
                    Ok(claim) => {
                        let node = *self.index.get(&claim.id()).ok_or("a node that is not in the trace")?;
                        running.push(Reverse((now + self.cost[node], node, worker)));
                        claims.insert(worker, claim);
                        idle.remove(&worker);
                    }
                    Err(Refusal::NothingReady) => break,
                    Err(refusal) => return Err(refusal.into()),
                }
            }
            let Some(Reverse((end, _, worker))) = running.pop() else { break };
            now = end;
            let claim = claims.remove(&worker).ok_or("a worker without a claim")?;
            claim.complete(Outcome::Done)?;
            done += 1;
            idle.insert(worker);
        }
        if done != self.cost.len() {
            return Err(format!("{done} of {} nodes were worked", self.cost.len()).into());
        }
        Ok(now)
    }

    /// HEFT: by falling rank, each node where it ends first, gaps included.
    fn heft(&self, workers: usize) -> u64 {
        let ranks = self.ranks();
        let mut order: Vec<usize> = (0..ranks.len()).collect();
        order.sort_by_key(|&i| (Reverse(ranks[i]), i));
        let mut ends = vec![0; order.len()];
        let mut busy: Vec<Vec<(u64, u64)>> = vec![Vec::new(); workers];
        for node in order {
            let from = self.needs[node].iter().map(|&parent| ends[parent]).max().unwrap_or(0);
            let places = busy.iter().enumerate().map(|(worker, busy)| (gap(busy, from, self.cost[node]), worker));
            let (begin, worker) = places.min().unwrap_or((from, 0));
            ends[node] = begin + self.cost[node];
            let at = busy[worker].partition_point(|&(other, _)| other < begin);
            busy[worker].insert(at, (begin, ends[node]));
        }
        ends.into_iter().max().unwrap_or(0)
    }
}

/// The first moment from which a worker is free for so long.
fn gap(busy: &[(u64, u64)], from: u64, cost: u64) -> u64 {
    let mut begin = from;
    for &(other, end) in busy {
        if begin + cost <= other {
            break;
        }
        begin = begin.max(end);
    }
    begin
}

/// The middle of nine random schedules.
fn random(trace: &Trace, workers: usize, seed: u64) -> u64 {
    let mut number = seed | 1;
    let mut makespans: Vec<u64> = (0..9)
        .map(|_| {
            trace.list(workers, |ready| {
                number ^= number << 13;
                number ^= number >> 7;
                number ^= number << 17;
                ready.swap_remove((number % ready.len() as u64) as usize)
            })
        })
        .collect();
    makespans.sort_unstable();
    makespans[4]
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().ok_or("name a directory of WfFormat traces")?;
    let seed = arguments.next().map_or(Ok(42), |seed| seed.parse())?;
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&dir)?.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    if paths.is_empty() {
        return Err(format!("no .json file in {dir}").into());
    }
    println!("makespan over the bound max(longest path, work / workers); 1.000 is as fast as can be; seed {seed}");
    println!(
        "{:<44} {:>5} {:>4} {:<8} {:>7} {:>7} {:>7} {:>7}",
        "trace", "nodes", "P", "cost", "ours", "fifo", "random", "heft"
    );
    let mut logs = [0.0; 4];
    let mut count = 0.0;
    for path in &paths {
        for weighted in [false, true] {
            let trace = Trace::read(path, weighted)?;
            for workers in WORKERS {
                let bound = trace.bound(workers) as f64;
                let makespans = [
                    trace.through_claims(workers)?,
                    trace.list(workers, |ready| ready.remove(0)),
                    random(&trace, workers, seed),
                    trace.heft(workers),
                ];
                let ratios = makespans.map(|makespan| makespan as f64 / bound);
                logs.iter_mut().zip(ratios).for_each(|(sum, ratio)| *sum += ratio.ln());
                count += 1.0;
                let [ours, fifo, random, heft] = ratios;
                let cost = if weighted { "weighted" } else { "unit" };
                let nodes = trace.cost.len();
                let name: String = trace.name.chars().take(44).collect();
                println!(
                    "{name:<44} {nodes:>5} {workers:>4} {cost:<8} {ours:>7.3} {fifo:>7.3} {random:>7.3} {heft:>7.3}"
                );
            }
        }
    }
    let [ours, fifo, random, heft] = logs.map(|sum: f64| (sum / count).exp());
    println!("{:<63} {ours:>7.3} {fifo:>7.3} {random:>7.3} {heft:>7.3}", "geometric mean");
    Ok(())
}
