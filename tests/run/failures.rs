//! Commands that fail, and claims that are lost under them.

use std::time::{Duration, Instant};

use tenure::{NodeId, Outcome};

use crate::support::{Sandbox, await_that, finish, runs};

const GRAPH: [&str; 5] = [
    r#"{"name":"bad","cost":100,"run":"echo bad >> $LOG; exit 3"}"#,
    r#"{"name":"after","needs":["bad"],"run":"echo after >> $LOG"}"#,
    r#"{"name":"far","needs":["after"],"run":"echo far >> $LOG"}"#,
    r#"{"name":"free","run":"echo free >> $LOG"}"#,
    r#"{"name":"free2","needs":["free"],"run":"echo free2 >> $LOG"}"#,
];

#[test]
fn nothing_new_is_started_after_a_failure() {
    let sandbox = Sandbox::new(&GRAPH);
    let ran = sandbox.run(&["-j", "1"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(sandbox.log(), ["bad"]);
    assert!(ran.out.contains("failed bad exit 3 "), "{ran:?}");
    assert!(ran.out.contains("\ndone 0, failed 1, blocked 2, cancelled 0, unfinished 2\n"), "{ran:?}");
    assert!(ran.err.contains("tenure reopen"), "{ran:?}");
    assert_eq!(sandbox.node("bad").summary.as_deref(), Some("exit 3"));
}

#[test]
fn what_runs_is_allowed_to_end_after_a_failure() {
    let sandbox = Sandbox::new(&[
        r#"{"name":"slow","run":"echo begin >> $LOG; sleep 0.6; echo end >> $LOG"}"#,
        r#"{"name":"bad","run":"until grep -q begin $LOG; do sleep 0.02; done; exit 1"}"#,
        r#"{"name":"next","needs":["slow"],"run":"echo next >> $LOG"}"#,
    ]);
    assert_eq!(sandbox.run(&["-j", "2"]).code, Some(1));
    assert_eq!(sandbox.log(), ["begin", "end"]);
    assert_eq!(sandbox.node("slow").status.name(), "done");
}

#[test]
fn keep_going_does_all_that_does_not_depend_on_it() {
    for flag in ["-k", "--keep-going"] {
        let sandbox = Sandbox::new(&GRAPH);
        let (summary, code) = sandbox.run_json(&["-j", "1", flag]);
        assert_eq!(code, Some(1));
        assert_eq!(sandbox.log(), ["bad", "free", "free2"]);
        assert_eq!((summary["done"].as_u64(), summary["failed"].as_u64()), (Some(2), Some(1)));
        assert_eq!((summary["blocked"].as_u64(), summary["unfinished"].as_u64()), (Some(2), Some(0)));
    }
}

#[test]
fn a_command_killed_by_a_signal_has_failed() {
    let sandbox = Sandbox::new(&[r#"{"name":"a","run":"kill -9 $$"}"#]);
    let ran = sandbox.run(&[]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains("failed a killed by signal 9 "), "{ran:?}");
    assert_eq!(sandbox.node("a").summary.as_deref(), Some("killed by signal 9"));
}

#[test]
fn a_failed_node_runs_again_when_it_is_reopened() {
    let sandbox = Sandbox::new(&[r#"{"name":"a","run":"echo x >> $LOG; test $(wc -l < $LOG) -gt 1"}"#]);
    assert_eq!(sandbox.run(&[]).code, Some(1));
    assert_eq!(sandbox.run(&[]).code, Some(1));
    assert_eq!(sandbox.log().len(), 1);
    assert_eq!(sandbox.tenure(&["reopen", "a"]).code, Some(0));
    assert_eq!(sandbox.run(&[]).code, Some(0));
    assert_eq!(sandbox.log().len(), 2);
}

/// Takes the node away from the run, holds it until the run has noticed, and ends it.
fn take_away(sandbox: &Sandbox, noticed: impl Fn() -> bool) {
    let table = sandbox.table();
    let id = NodeId::of_name("a");
    let taken = table.release_forced(id, None).unwrap();
    assert!(taken.holder.starts_with("run-"), "{taken:?}");
    let thief = table.worker("thief").unwrap();
    let claim = thief.claim(id).unwrap();
    await_that("the command to be ended", noticed);
    claim.complete(Outcome::Done).unwrap();
}

#[test]
fn a_command_whose_claim_was_lost_is_ended_with_all_its_children() {
    let sandbox = Sandbox::new(&[
        r#"{"name":"a","run":"trap 'echo asked >> $LOG; exit 0' TERM; sleep 300 & echo $! >> $LOG; echo $$ >> $LOG; echo ready >> $LOG; wait; wait"}"#,
    ]);
    let run = sandbox.start_run(&["-j", "1", "--lease", "0.3"]);
    sandbox.await_log("ready");
    let pids: Vec<String> = sandbox.log().into_iter().take(2).collect();
    assert!(pids.iter().all(|pid| runs(pid)));
    take_away(&sandbox, || !pids.iter().any(|pid| runs(pid)));
    let ran = finish(run);
    assert!(sandbox.log().contains(&"asked".to_owned()), "{:?}", sandbox.log());
    // The node is done, by somebody else; what this process knew of it was not written over that.
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("lost a gen="), "{ran:?}");
    assert_eq!(sandbox.node("a").summary, None);
}

#[test]
fn a_command_that_does_not_listen_is_killed_after_the_grace() {
    let sandbox = Sandbox::new(&[
        r#"{"name":"a","run":"trap '' TERM; echo $$ >> $LOG; echo ready >> $LOG; while :; do sleep 0.1; done"}"#,
    ]);
    let run = sandbox.start_run(&["-j", "1", "--lease", "0.3"]);
    sandbox.await_log("ready");
    let pid = sandbox.log().remove(0);
    let began = Instant::now();
    take_away(&sandbox, || !runs(&pid));
    assert!(began.elapsed() >= tenure::run::GRACE, "it was given its time");
    assert!(began.elapsed() < tenure::run::GRACE + Duration::from_secs(10));
    assert_eq!(finish(run).code, Some(0));
}

#[test]
fn a_dependency_that_comes_while_a_node_is_worked_on_sends_it_back() {
    let sandbox = Sandbox::new(&[
        r#"{"name":"a","run":"echo a >> $LOG; until test -e go; do sleep 0.02; done"}"#,
        r#"{"name":"late","role":"other","run":"echo late >> $LOG"}"#,
    ]);
    let run = sandbox.start_run(&["-j", "1"]);
    sandbox.await_log("a");
    assert!(sandbox.table().link(NodeId::of_name("late"), NodeId::of_name("a")).unwrap());
    sandbox.write("go", "");
    let ran = finish(run);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("released a gen="), "{ran:?}");
    assert_eq!(sandbox.run(&["--role", "other"]).code, Some(0));
    assert_eq!(sandbox.log(), ["a", "late", "a"]);
}
