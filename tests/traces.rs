//! Real workflow traces, run with their measured times: every task after what it needs, and as fast as list scheduling
//! with these workers can be.
//!
//! The traces are found through `TENURE_TRACES` or beside the repository; when they are absent this is said, and the
//! small trace of this repository is run alone. Each trace is run at a scale that makes the work last about a second,
//! with 1, 2 and 8 workers. The time is compared with a simulation: the same rule (longest chain below first), the same
//! times, plus what this machine needs per task, which is measured just before on as many tasks that wait for nothing.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crossbeam::channel;
use tenure::formats::{Format, Graph};
use tenure::run::{self, Event, Happening, Report, RunOptions};
use tenure::{CreateOptions, NodeId, NodeSpec, Table};

/// How far a run may be from the simulation, either way.
const TOLERANCE: f64 = 0.05;

/// What a run may be off beyond that: a machine that is busy with something else stalls.
const ONCE: Duration = Duration::from_millis(20);

/// A machine shared with others stalls at times. The best of this many runs counts.
const RUNS: usize = 4;

/// How long the work of a run is to take at least, and the bound that no schedule beats.
const TARGET: Duration = Duration::from_millis(1_200);

fn table() -> (tempfile::TempDir, Table) {
    let dir = tempfile::tempdir().unwrap();
    let (table, _) = Table::open_or_create(dir.path(), &CreateOptions::default()).unwrap();
    (dir, table)
}

fn traces() -> Vec<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/wfformat");
    let dir = std::env::var_os("TENURE_TRACES").map_or(beside, PathBuf::from);
    let mut found: Vec<PathBuf> = match std::fs::read_dir(&dir) {
        Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
        Err(error) => {
            println!("LEFT OUT: the real traces, because {} cannot be read: {error}", dir.display());
            Vec::new()
        }
    };
    found.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    found.sort();
    found.push(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/small.wfformat.json"));
    found
}

fn read(path: &Path) -> Graph {
    let mut input = BufReader::new(File::open(path).unwrap());
    Graph::read(Format::Wfformat, &mut input).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn replay(table: &Table, workers: usize, scale: f64) -> (Report, Vec<Event>) {
    let options = RunOptions { holders: run::holder_names(workers), replay: Some(scale), ..RunOptions::default() };
    let (events, told) = channel::unbounded();
    let report = run::run(table, &options, &channel::never(), &events).unwrap();
    (report, told.try_iter().collect())
}

/// A graph by indices, as the simulation needs it.
struct Plan {
    cost_ms: Vec<f64>,
    needs: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
    /// The longest chain of cost below each task, its own not included.
    waiting_below: Vec<u64>,
}

impl Plan {
    fn of(graph: &Graph) -> Plan {
        let entries = graph.entries();
        let index: HashMap<NodeId, usize> = entries.iter().enumerate().map(|(i, entry)| (entry.id, i)).collect();
        let needs: Vec<Vec<usize>> =
            entries.iter().map(|entry| entry.spec.needs.iter().map(|need| index[&need.node]).collect()).collect();
        let cost: Vec<u64> = entries.iter().map(|entry| u64::from(entry.spec.cost.unwrap_or(1))).collect();
        let mut below = vec![Vec::new(); entries.len()];
        for (child, needs) in needs.iter().enumerate() {
            needs.iter().for_each(|&parent| below[parent].push(child));
        }
        let mut unfinished: Vec<usize> = below.iter().map(Vec::len).collect();
        let mut open: Vec<usize> = (0..entries.len()).filter(|&i| unfinished[i] == 0).collect();
        let mut waiting_below = vec![0_u64; entries.len()];
        while let Some(i) = open.pop() {
            for &parent in &needs[i] {
                waiting_below[parent] = waiting_below[parent].max(waiting_below[i] + cost[i]);
                unfinished[parent] -= 1;
                if unfinished[parent] == 0 {
                    open.push(parent);
                }
            }
        }
        Plan { cost_ms: cost.iter().map(|&ms| ms as f64).collect(), needs, below, waiting_below }
    }

    fn total_ms(&self) -> f64 {
        self.cost_ms.iter().sum()
    }

    fn critical_path_ms(&self) -> f64 {
        (0..self.needs.len()).map(|i| self.cost_ms[i] + self.waiting_below[i] as f64).fold(0.0, f64::max)
    }

    /// How long list scheduling takes: an idle worker takes the ready task with the longest chain below it, the first
    /// of the file among equals.
    fn simulate(&self, workers: usize, scale: f64, overhead_ms: f64) -> f64 {
        let mut unmet: Vec<usize> = self.needs.iter().map(Vec::len).collect();
        let rank = |i: usize| (self.waiting_below[i], Reverse(i));
        let mut ready: BinaryHeap<_> = (0..unmet.len()).filter(|&i| unmet[i] == 0).map(rank).collect();
        let mut running: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        let mut now_ns = 0;
        loop {
            while running.len() < workers
                && let Some((_, Reverse(i))) = ready.pop()
            {
                let took_ns = ((self.cost_ms[i] * scale + overhead_ms) * 1e6) as u64;
                running.push(Reverse((now_ns + took_ns, i)));
            }
            let Some(Reverse((end_ns, i))) = running.pop() else { return now_ns as f64 / 1e6 };
            now_ns = end_ns;
            for &child in &self.below[i] {
                unmet[child] -= 1;
                if unmet[child] == 0 {
                    ready.push(rank(child));
                }
            }
        }
    }
}

/// What this machine needs besides the sleeps, with this many workers.
#[derive(Clone, Copy)]
struct Overhead {
    /// For a run of nothing: registering the workers, starting and ending their threads.
    run_ms: f64,
    /// For each task, measured on tasks that sleep a millisecond each and wait for nothing.
    task_ms: f64,
}

impl Overhead {
    fn measure(tasks: usize, workers: usize) -> Overhead {
        let (_dir, table) = table();
        let run_ms = replay(&table, workers, 1.0).0.wall_ms;
        // Few tasks would measure little; many would take long.
        let rounds = (tasks / workers).clamp(100, 300);
        let node = |i: usize| NodeSpec { name: Some(format!("n{i}")), ..NodeSpec::default() };
        table.import(&(0..rounds * workers).map(node).collect::<Vec<_>>()).unwrap();
        let (report, _) = replay(&table, workers, 1.0);
        assert_eq!(report.done, rounds * workers);
        Overhead { run_ms, task_ms: ((report.wall_ms - run_ms) / rounds as f64 - 1.0).max(0.0) }
    }
}

/// Every task was started once, and not before the tasks that it needs had had their time.
fn check_order(events: &[Event], plan: &Plan, graph: &Graph, scale: f64) {
    let mut started: HashMap<&str, Instant> = HashMap::new();
    for event in events.iter().filter(|event| event.what == Happening::Started) {
        assert_eq!(started.insert(&event.node, event.at), None, "{} was started twice", event.node);
    }
    let started_at = |i: usize| started[graph.entries()[i].label.as_str()];
    for (child, needs) in plan.needs.iter().enumerate() {
        for &parent in needs {
            let slept = Duration::from_secs_f64(plan.cost_ms[parent] * scale / 1e3);
            assert!(started_at(child) >= started_at(parent) + slept, "{} is too early", graph.entries()[child].label);
        }
    }
}

#[test]
fn real_traces_run_in_order_and_as_fast_as_list_scheduling() {
    println!("workers, tasks, time of the run, simulated time, the bound that no schedule beats; the difference");
    let mut too_far = Vec::new();
    for path in traces() {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let graph = read(&path);
        let plan = Plan::of(&graph);
        for workers in [1, 2, 8] {
            let bound_ms = plan.critical_path_ms().max(plan.total_ms() / workers as f64);
            let scale = TARGET.as_secs_f64() * 1e3 / bound_ms;
            let mut best: Option<(f64, f64, f64, Overhead)> = None;
            for _ in 0..RUNS {
                let overhead = Overhead::measure(graph.entries().len(), workers);
                let (_dir, table) = table();
                graph.load(&table).unwrap();
                let roots = plan.needs.iter().filter(|needs| needs.is_empty()).count();
                assert_eq!(table.ready().unwrap().len(), roots, "{name}");
                let (report, events) = replay(&table, workers, scale);
                assert_eq!((report.done, report.unfinished), (graph.entries().len(), 0), "{name}");
                check_order(&events, &plan, &graph, scale);
                let simulated_ms = plan.simulate(workers, scale, overhead.task_ms) + overhead.run_ms;
                let off_ms = (report.wall_ms - simulated_ms).abs() - ONCE.as_secs_f64() * 1e3;
                let far = off_ms.max(0.0) / simulated_ms;
                if best.as_ref().is_none_or(|(least, ..)| far < *least) {
                    best = Some((far, report.wall_ms, simulated_ms, overhead));
                }
                if far <= TOLERANCE {
                    break;
                }
            }
            let (far, wall_ms, simulated_ms, overhead) = best.unwrap();
            println!(
                "{name:<48} {workers} workers {:>5} tasks {wall_ms:>7.0} ms, simulated {simulated_ms:>7.0} ms, bound {:>7.0} ms, {:+.1} %; {:.0} us a task, {:.0} ms a run",
                graph.entries().len(),
                bound_ms * scale,
                (wall_ms / simulated_ms - 1.0) * 100.0,
                overhead.task_ms * 1e3,
                overhead.run_ms,
            );
            if far > TOLERANCE {
                too_far.push(format!("{name} with {workers} workers"));
            }
        }
    }
    assert!(too_far.is_empty(), "more than {} % off: {too_far:?}", TOLERANCE * 100.0);
}

#[test]
fn the_simulation_knows_what_list_scheduling_is() {
    // Two chains, 3 + 3 and 1, on two workers; then the same on one.
    let spec = |name: &str, cost, needs: &[&str]| {
        let needs: Vec<String> = needs.iter().map(|need| format!("\"{need}\"")).collect();
        format!("{{\"name\":\"{name}\",\"cost\":{cost},\"needs\":[{}]}}\n", needs.join(","))
    };
    let text = [spec("c", 1, &[]), spec("a", 3, &[]), spec("b", 3, &["a"]), spec("d", 1, &[])].concat();
    let plan = Plan::of(&Graph::read(Format::Jsonl, &mut text.as_bytes()).unwrap());
    assert_eq!((plan.total_ms(), plan.critical_path_ms()), (8.0, 6.0));
    assert_eq!(plan.waiting_below, [0, 3, 0, 0]);
    assert_eq!(plan.simulate(2, 1.0, 0.0), 6.0);
    assert_eq!(plan.simulate(1, 1.0, 0.5), 10.0);
}
