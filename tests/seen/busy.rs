//! `why` on a table that others change all the time: status and reasons are of one moment, so they always fit.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tenure::{Completion, CreateOptions, Need, NodeId, NodeSpec, OnFailure, Outcome, Reason, Seen, Table, Why};

const NODES: usize = 24;
/// Looks at each node, at the least.
const LOOKS: usize = 20;

fn name(n: usize) -> String {
    format!("n{n}")
}

fn id(n: usize) -> NodeId {
    NodeId::of_name(&name(n))
}

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// A graph with edges of every mode, each node behind up to three earlier ones.
fn graph(table: &Table, numbers: &mut Numbers) {
    for n in 0..NODES {
        let spec = NodeSpec { name: Some(name(n)), ..NodeSpec::default() };
        table.upsert(&spec, false).expect("room");
        for _ in 0..numbers.below(4).min(n) {
            let mode = [OnFailure::Block, OnFailure::Skip, OnFailure::Continue][numbers.below(3)];
            let need = Need { node: id(numbers.below(n)), on_failure: Some(mode) };
            table.link_with(need, id(n)).expect("no loop");
        }
    }
}

/// One random change; most are refused, and that is fine.
fn change(table: &Table, holder: &str, numbers: &mut Numbers) {
    let node = id(numbers.below(NODES));
    let outcome = [Outcome::Done, Outcome::Done, Outcome::Failed, Outcome::Cancelled][numbers.below(4)];
    let summary = Some("x".repeat(numbers.below(200)));
    let completion = Completion { outcome, generation: None, holder: None, summary };
    let _ = match numbers.below(4) {
        0 => table.reopen(node).map(drop),
        1 => table.worker(holder).and_then(|worker| worker.claim(node).map(drop)),
        2 => table.release_forced(node, None).map(drop),
        _ => table.complete(node, &completion).map(drop),
    };
}

#[track_caller]
fn check(why: &Why) {
    let label = why.node.label();
    let has = |is_it: fn(&Reason) -> bool| why.reasons.iter().any(is_it);
    let waits = has(|reason| matches!(reason, Reason::WaitsFor { .. }));
    let failed = has(|reason| matches!(reason, Reason::Failed { .. }));
    let skipped = has(|reason| matches!(reason, Reason::Skipped { .. }));
    let held = has(|reason| matches!(reason, Reason::Held { .. }));
    let ended = has(|reason| matches!(reason, Reason::Ended { .. }));
    let fits = match why.node.status {
        Seen::Ready => !waits && !failed && !skipped && !held && !ended,
        Seen::Todo => waits && !failed && !skipped && !held && !ended,
        Seen::Blocked => failed && !skipped && !held && !ended,
        Seen::Claimed => held && !skipped && !ended,
        Seen::Cancelled if why.node.skipped_by.is_some() => skipped && !waits && !failed && !held && !ended,
        Seen::Done | Seen::Failed | Seen::Cancelled => ended && !waits && !failed && !skipped && !held,
    };
    assert!(fits, "{why:?}");
    for reason in &why.reasons {
        match reason {
            Reason::Failed { node, chain } | Reason::Skipped { node, chain } => {
                assert!(matches!(node.status, Seen::Failed | Seen::Cancelled), "{why:?}");
                assert_eq!(chain.first(), Some(&label), "{why:?}");
                assert_eq!(chain.last(), Some(&node.label()), "{why:?}");
                assert!(chain.len() >= 2 && why.node.depends_on.contains(&chain[1]), "{why:?}");
            }
            Reason::WaitsFor { node, .. } => {
                assert!(!node.status.is_terminal() && why.node.depends_on.contains(&node.label()), "{why:?}");
            }
            Reason::Behind { node } => {
                assert!(matches!(node.status, Seen::Ready | Seen::Claimed), "{why:?}");
                assert!(!why.node.depends_on.contains(&node.label()), "{why:?}");
            }
            _ => {}
        }
    }
}

#[test]
fn the_reasons_always_fit_the_status() {
    let dir = tempfile::tempdir().expect("a scratch directory");
    let (table, _) = Table::open_or_create(dir.path(), &CreateOptions::default()).expect("a table");
    graph(&table, &mut Numbers(88_172_645_463_325_252));
    let over = AtomicBool::new(false);
    let mut seen = [0usize; 8];
    thread::scope(|scope| {
        for writer in 0..3u64 {
            let (table, over) = (table.clone(), &over);
            scope.spawn(move || {
                let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15 + writer);
                while !over.load(Ordering::Relaxed) {
                    change(&table, &format!("w{writer}-{}", numbers.below(4)), &mut numbers);
                    // Changes without a pause would leave a look little to succeed in.
                    thread::sleep(Duration::from_micros(300));
                }
            });
        }
        // A check that fails must end the writers too.
        let looked = thread::Builder::new().spawn_scoped(scope, || {
            let deadline = Instant::now() + Duration::from_secs(60);
            let all_met = |seen: &[usize]| seen.iter().all(|&count| count > 0);
            for n in 0.. {
                let enough = n >= LOOKS * NODES && all_met(&seen);
                if enough || Instant::now() > deadline {
                    break;
                }
                let why = table.why(id(n % NODES)).expect("an answer");
                check(&why);
                seen[if why.node.skipped_by.is_some() { 7 } else { why.node.status as usize }] += 1;
            }
        });
        let looked = looked.expect("a thread").join();
        over.store(true, Ordering::Relaxed);
        if let Err(panic) = looked {
            std::panic::resume_unwind(panic);
        }
    });
    assert!(seen.iter().all(|&count| count > 0), "every status was met, and skipped: {seen:?}");
}
