//! `work`: on a table that others fill.

use std::collections::BTreeSet;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Sandbox, await_that, finish, runs, signal};

fn imported(lines: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new(lines);
    assert_eq!(sandbox.tenure(&["import", "graph.jsonl"]).code, Some(0));
    sandbox
}

fn all_are(sandbox: &Sandbox, status: &str) -> bool {
    sandbox.statuses().iter().all(|(_, found)| *found == status)
}

#[test]
fn every_node_is_given_to_the_command() {
    let sandbox = imported(&[
        r#"{"name":"a","run":"echo not this >> $LOG"}"#,
        r#"{"name":"b","needs":["a"]}"#,
        r#"{"name":"c","role":"r"}"#,
    ]);
    let log = sandbox.path("log");
    let script = format!("echo \"$0 $TENURE_NODE $TENURE_GEN $TENURE_HOLDER $TENURE_DIR\" >> {}; cat", log.display());
    let ran = sandbox.tenure(&["work", "--holder", "w", "--drain", "--role", "r", "--", "sh", "-c", &script, "me"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let dir = sandbox.path("table");
    let lines: BTreeSet<String> = sandbox.log().into_iter().collect();
    let wanted = ["a", "b", "c"].map(|node| format!("me {node} 1 w {}", dir.display()));
    assert_eq!(lines, BTreeSet::from(wanted));
    assert!(ran.out.contains("\ndone 3, failed 0, blocked 0, cancelled 0, unfinished 0\n"), "{ran:?}");
    assert!(ran.out.starts_with("start a gen=1\n") || ran.out.starts_with("start c gen=1\n"), "{ran:?}");
}

#[test]
fn without_a_command_it_is_the_node_s_own() {
    let sandbox = imported(&[r#"{"name":"a","run":"echo own >> $LOG"}"#, r#"{"name":"gate","needs":["a"]}"#]);
    let ran = sandbox.tenure(&["work", "--holder", "w", "--drain", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let summary: Value = serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}: {ran:?}"));
    assert_eq!((summary["done"].as_u64(), summary["ran"].as_u64()), (Some(2), Some(2)));
    assert_eq!(summary.get("created"), None, "it loads nothing");
    assert_eq!(sandbox.log(), ["own"]);
}

#[test]
fn a_failure_does_not_end_the_work() {
    let sandbox = imported(&[
        r#"{"name":"bad","cost":9,"run":"exit 3"}"#,
        r#"{"name":"behind","needs":["bad"]}"#,
        r#"{"name":"good","run":"echo good >> $LOG"}"#,
    ]);
    let ran = sandbox.tenure(&["work", "--holder", "w", "--drain"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("\ndone 1, failed 1, blocked 1, cancelled 0, unfinished 0\n"), "{ran:?}");
    assert_eq!(sandbox.log(), ["good"]);
}

#[test]
fn as_many_nodes_as_it_is_told() {
    let sandbox = imported(&[r#"{"name":"a"}"#, r#"{"name":"b"}"#, r#"{"name":"c"}"#]);
    let ran = sandbox.tenure(&["work", "--holder", "w", "--max-nodes", "2"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(sandbox.statuses().iter().filter(|(_, status)| *status == "done").count(), 2);
    assert_eq!(sandbox.tenure(&["work", "--holder", "w", "--max-nodes", "1", "--", "false"]).code, Some(1));
    for wrong in ["0", "-1", "x"] {
        assert_eq!(sandbox.tenure(&["work", "--holder", "w", &format!("--max-nodes={wrong}")]).code, Some(2));
    }
}

#[test]
fn several_workers_have_names_of_their_own() {
    let lines: Vec<String> = (0..3).map(|i| format!("{{\"name\":\"n{i}\"}}")).collect();
    let sandbox = imported(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    let script = "echo $TENURE_HOLDER >> log; until test $(wc -l < log) -eq 3; do sleep 0.02; done";
    let ran = sandbox.tenure(&["work", "--holder", "w", "-j", "3", "--drain", "--", "sh", "-c", script]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let holders: BTreeSet<String> = sandbox.log().into_iter().collect();
    assert_eq!(holders, ["w", "w-2", "w-3"].map(str::to_owned).into());
}

#[test]
fn what_cannot_be_worked_on_is_refused() {
    let sandbox = Sandbox::new(&[]);
    let ran = sandbox.tenure(&["work", "--holder", "w"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(5), ""), "{ran:?}");
    assert_eq!(sandbox.tenure(&["upsert", "a"]).code, Some(0));
    for program in ["no-such-program", "./no-such-program", "/etc/passwd"] {
        let ran = sandbox.tenure(&["work", "--holder", "w", "--", program]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.err.contains(program) && ran.err.contains("hint: "), "{ran:?}");
    }
    assert_eq!(sandbox.tenure(&["work"]).code, Some(2));
    assert_eq!(sandbox.tenure(&["work", "--holder", &"x".repeat(65), "--drain"]).code, Some(2));
    assert_eq!(sandbox.node("a").generation, 0, "nothing was claimed");
}

#[test]
fn a_name_that_has_a_claim_elsewhere_is_refused() {
    let sandbox = imported(&[r#"{"name":"a"}"#, r#"{"name":"b"}"#]);
    assert_eq!(sandbox.tenure(&["claim", "a", "--holder", "w"]).code, Some(0));
    let ran = sandbox.tenure(&["work", "--holder", "w", "--drain"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("w already holds a at generation 1"), "{ran:?}");
    assert_eq!(sandbox.node("b").generation, 0);
}

#[test]
fn two_of_them_do_what_a_third_process_adds() {
    let sandbox = Sandbox::new(&[]);
    assert_eq!(sandbox.tenure(&["init"]).code, Some(0));
    let works: Vec<Child> = ["v", "w"]
        .map(|holder| {
            let script = "echo $TENURE_HOLDER $TENURE_NODE $TENURE_GEN >> log; sleep 0.02";
            sandbox.start(&["work", "--holder", holder, "-j", "2", "--", "sh", "-c", script])
        })
        .into();
    for i in 0..40 {
        let needs = format!("n{}", (i + 1) / 2);
        let args = ["upsert", &format!("n{}", i + 1), "--needs", &needs];
        assert_eq!(sandbox.tenure(if i == 0 { &args[..2] } else { &args }).code, Some(0));
    }
    await_that("all to be done", || sandbox.statuses().len() == 40 && all_are(&sandbox, "done"));
    for work in works {
        signal(work.id(), "INT");
        let ran = finish(work);
        assert_eq!(ran.code, Some(130), "{ran:?}");
        assert!(ran.out.contains("\ndone 40, failed 0, blocked 0, cancelled 0, unfinished 0\n"), "{ran:?}");
    }
    let log = sandbox.log();
    let nodes: BTreeSet<&str> = log.iter().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!((log.len(), nodes.len()), (40, 40), "{log:?}");
    assert!(["v", "w"].iter().all(|who| log.iter().any(|line| line.starts_with(who))), "{log:?}");
}

#[test]
fn a_signal_ends_one_that_waits() {
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let sandbox = imported(&[r#"{"name":"a","run":"echo a >> $LOG"}"#]);
        let work = sandbox.start(&["work", "--holder", "w", "-j", "3"]);
        sandbox.await_log("a");
        await_that("the end of the node", || all_are(&sandbox, "done"));
        std::thread::sleep(Duration::from_millis(400));
        let began = Instant::now();
        signal(work.id(), name);
        let ran = finish(work);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    }
}

#[test]
fn one_that_is_killed_and_started_again_under_its_name_goes_on() {
    let sandbox = imported(&[
        r#"{"name":"a","run":"echo $$ >> $LOG; test $(wc -l < $LOG) -gt 1 || exec sleep 1000"}"#,
        r#"{"name":"b","needs":["a"]}"#,
    ]);
    let mut work = sandbox.start(&["work", "--holder", "w", "--lease", "200"]);
    await_that("the command", || !sandbox.log().is_empty());
    signal(work.id(), "KILL");
    let ran = sandbox.tenure(&["work", "--holder", "w", "--drain"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    work.wait().unwrap();
    let log = sandbox.log();
    assert_eq!(log.len(), 2, "{log:?}");
    assert!(!runs(&log[0]));
}

/// Processor time of a process in ticks of 10 ms.
fn ticks(child: &Child) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("it runs");
    let (_, behind_the_name) = stat.rsplit_once(") ").expect("a stat line");
    behind_the_name.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

#[test]
fn eight_that_wait_do_a_wide_graph_and_end_together_and_waiting_costs_nothing() {
    let sandbox = Sandbox::new(&[]);
    assert_eq!(sandbox.tenure(&["init"]).code, Some(0));
    assert_eq!(sandbox.tenure(&["upsert", "start", "--role", "later"]).code, Some(0));
    let mut works: Vec<Child> = (0..8)
        .map(|i| sandbox.start(&["work", "--holder", &format!("w{i}"), "--role", "later", "--role", "r"]))
        .collect();
    await_that("the first node", || sandbox.node("start").status.name() == "done");
    std::thread::sleep(Duration::from_millis(500));
    let sum = |works: &[Child]| works.iter().map(ticks).sum::<u64>();
    let before = sum(&works);
    std::thread::sleep(Duration::from_secs(2));
    // All eight together use less than a fortieth of one processor.
    assert!(sum(&works) - before <= 5, "{} ticks of 10 ms in 2 s", sum(&works) - before);

    let width = 4_093;
    let mut lines = vec![r#"{"name":"top"}"#.to_owned()];
    lines.extend((0..width).map(|i| format!(r#"{{"name":"n{i}","needs":["top"]}}"#)));
    let needs: Vec<String> = (0..width).map(|i| format!("\"n{i}\"")).collect();
    lines.push(format!(r#"{{"name":"end","needs":[{}]}}"#, needs.join(",")));
    sandbox.write("graph.jsonl", lines.join("\n"));
    assert_eq!(sandbox.tenure(&["import", "graph.jsonl"]).code, Some(0));
    let began = Instant::now();
    await_that("the last node", || sandbox.node("end").status.name() == "done");
    // One after the other would be woken by their time-outs only after 250 ms each.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    for work in &works {
        signal(work.id(), "TERM");
    }
    let ended = Instant::now();
    for work in works.drain(..) {
        assert_eq!(finish(work).code, Some(143));
    }
    assert!(ended.elapsed() < Duration::from_secs(5), "{:?}", ended.elapsed());
}

#[test]
fn those_that_drain_end_together() {
    let lines: Vec<String> = (0..50).map(|i| format!(r#"{{"name":"n{i}","run":"sleep 0.02"}}"#)).collect();
    let sandbox = imported(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    let works: Vec<Child> = (0..8).map(|i| sandbox.start(&["work", "--holder", &format!("w{i}"), "--drain"])).collect();
    await_that("all to be done", || all_are(&sandbox, "done"));
    let began = Instant::now();
    for work in works {
        let ran = finish(work);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}
