//! Several processes on one table, some of them killed.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use tenure::{NodeId, Stats};

use crate::support::{PATIENCE, Sandbox, finish, signal};

/// Layers of nodes, each node after two of the layer above; every command logs `NODE GEN` first and last.
fn layers(count: usize, width: usize, seconds: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for layer in 0..count {
        for i in 0..width {
            let needs = match layer {
                0 => String::new(),
                _ => format!("\"n{}-{i}\",\"n{}-{}\"", layer - 1, layer - 1, (i + 1) % width),
            };
            lines.push(format!(
                "{{\"name\":\"n{layer}-{i}\",\"needs\":[{needs}],\"run\":\"echo $TENURE_NODE $TENURE_GEN >> $LOG; sleep {seconds}\"}}"
            ));
        }
    }
    lines
}

fn sandbox(lines: &[String]) -> Sandbox {
    Sandbox::new(&lines.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Every node done; no generation of a node worked on twice; the generation that counts among those worked on.
fn check(sandbox: &Sandbox, nodes: usize) {
    let log = sandbox.log();
    let distinct: HashSet<&String> = log.iter().collect();
    assert_eq!(distinct.len(), log.len(), "a generation was worked on twice: {log:?}");
    let statuses = sandbox.statuses();
    assert_eq!(statuses.len(), nodes);
    for (node, status) in statuses {
        assert_eq!(status, "done", "{node}");
        let line = format!("{node} {}", sandbox.node(&node).generation);
        assert!(log.contains(&line), "{line} was never worked on");
    }
}

/// Nothing that a process had reserved is left reserved.
fn check_leaks(stats: &Stats) {
    assert_eq!((stats.text_blocks_reserved, stats.versions_reserved), (0, 0), "{stats:?}");
}

#[test]
fn two_processes_share_a_graph_without_doing_anything_twice() {
    let lines = layers(10, 4, "0.01");
    let sandbox = sandbox(&lines);
    let runs = [sandbox.start_run(&["-j", "2"]), sandbox.start_run(&["-j", "2"])];
    for run in runs {
        let ran = finish(run);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    check(&sandbox, lines.len());
    assert_eq!(sandbox.log().len(), lines.len());
    check_leaks(&sandbox.table().stats().unwrap());
}

#[test]
fn a_process_killed_again_and_again_loses_nothing() {
    let lines = layers(15, 6, "0.05");
    let sandbox = sandbox(&lines);
    let args = ["-j", "2", "--lease", "0.3"];
    let mut survivor = sandbox.start_run(&args);
    let mut kills = 0;
    let began = Instant::now();
    while survivor.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < PATIENCE, "the survivor does not end");
        let mut victim = sandbox.start_run(&args);
        std::thread::sleep(Duration::from_millis(100 + 37 * (kills % 5)));
        if victim.try_wait().unwrap().is_none() {
            signal(victim.id(), "KILL");
            kills += 1;
        }
        victim.wait().unwrap();
    }
    let ran = finish(survivor);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(kills >= 5, "{kills} kills say little");
    check(&sandbox, lines.len());
    assert!(sandbox.log().len() > lines.len(), "some work was lost with a victim and done again");
    check_leaks(&sandbox.table().stats().unwrap());
}

#[test]
fn a_run_waits_for_what_others_hold_and_takes_it_when_they_die() {
    let sandbox = Sandbox::new(&[
        r#"{"name":"a","run":"echo a $TENURE_GEN >> $LOG"}"#,
        r#"{"name":"b","needs":["a"],"run":"echo b >> $LOG"}"#,
    ]);
    assert_eq!(sandbox.tenure(&["import", "graph.jsonl"]).code, Some(0));
    let claim = sandbox.tenure(&["claim", "a", "--holder", "gone", "--lease", "0.7"]);
    assert_eq!(claim.code, Some(0), "{claim:?}");
    let held = sandbox.node("a").generation;
    let ran = sandbox.run(&["-j", "2"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let log = sandbox.log();
    assert_eq!(log.len(), 2, "{log:?}");
    let generation: u64 = log[0].strip_prefix("a ").unwrap().parse().unwrap();
    assert!(generation > held, "{log:?}");
}

#[test]
fn a_run_works_on_whatever_the_table_holds() {
    let sandbox = Sandbox::new(&[r#"{"name":"other","run":"echo other >> $LOG"}"#]);
    assert_eq!(sandbox.tenure(&["import", "graph.jsonl"]).code, Some(0));
    sandbox.write("graph.jsonl", "{\"name\":\"mine\",\"run\":\"true\",\"needs\":[\"other\"]}");
    assert_eq!(sandbox.run(&[]).code, Some(0));
    assert_eq!(sandbox.log(), ["other"]);
    assert_eq!(sandbox.table().get(NodeId::of_name("mine")).unwrap().status.name(), "done");
}

#[test]
fn more_workers_than_work_do_no_harm() {
    let lines = layers(3, 2, "0");
    let sandbox = sandbox(&lines);
    let (summary, code) = sandbox.run_json(&["-j", "64"]);
    assert_eq!((code, summary["done"].as_u64()), (Some(0), Some(6)));
    check(&sandbox, lines.len());
}
