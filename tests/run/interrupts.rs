//! Signals: passed on, waited for, and what is unfinished handed back.

use std::time::{Duration, Instant};

use tenure::Table;

use crate::support::{Sandbox, await_that, finish, runs, signal};

const SLOW: [&str; 2] = [
    r#"{"name":"slow","run":"echo $$ >> $LOG; echo ready >> $LOG; exec sleep 300"}"#,
    r#"{"name":"next","needs":["slow"],"run":"echo next >> $LOG"}"#,
];

#[test]
fn a_signal_is_passed_on_and_the_node_handed_back() {
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let sandbox = Sandbox::new(&SLOW);
        let run = sandbox.start_run(&["-j", "2"]);
        sandbox.await_log("ready");
        let held = sandbox.node("slow");
        assert_eq!(held.status.name(), "claimed");
        let began = Instant::now();
        signal(run.id(), name);
        let ran = finish(run);
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(!runs(&sandbox.log()[0]));
        let after = sandbox.node("slow");
        assert_eq!((after.status.name(), after.holder), ("ready", None));
        assert!(after.generation > held.generation);
        assert!(ran.out.contains("released slow gen="), "{ran:?}");
        assert!(ran.err.contains("stopped"), "{ran:?}");
    }
}

#[test]
fn a_sleep_of_replay_ends_at_once() {
    let sandbox = Sandbox::new(&[r#"{"name":"a","cost":300000}"#]);
    let run = sandbox.start_run(&["--replay", "1"]);
    await_that("the claim", || {
        let table = Table::open(sandbox.path("table")).ok();
        table.and_then(|table| table.stats().ok()).is_some_and(|stats| stats.claimed == 1)
    });
    signal(run.id(), "TERM");
    assert_eq!(finish(run).code, Some(143));
    assert_eq!(sandbox.node("a").status.name(), "ready");
}

#[test]
fn a_command_that_ends_well_in_spite_of_it_is_done() {
    let sandbox = Sandbox::new(&[
        r#"{"name":"a","run":"trap 'echo saved >> $LOG; exit 0' TERM; echo ready >> $LOG; while :; do sleep 0.05; done"}"#,
        r#"{"name":"b","needs":["a"],"run":"echo b >> $LOG"}"#,
    ]);
    let run = sandbox.start_run(&[]);
    sandbox.await_log("ready");
    signal(run.id(), "TERM");
    assert_eq!(finish(run).code, Some(143));
    assert_eq!(sandbox.log(), ["ready", "saved"]);
    assert_eq!(sandbox.statuses(), [("a".to_owned(), "done"), ("b".to_owned(), "ready")]);
}

#[test]
fn the_second_one_kills() {
    let sandbox = Sandbox::new(&[
        r#"{"name":"a","run":"trap '' TERM; echo $$ >> $LOG; echo ready >> $LOG; while :; do sleep 0.1; done"}"#,
    ]);
    let mut run = sandbox.start_run(&["--lease", "1"]);
    sandbox.await_log("ready");
    signal(run.id(), "TERM");
    // It waits for the command as long as that takes, and keeps the lease meanwhile.
    std::thread::sleep(Duration::from_millis(1_500));
    assert!(run.try_wait().unwrap().is_none());
    assert_eq!(sandbox.node("a").status.name(), "claimed");
    signal(run.id(), "TERM");
    assert_eq!(finish(run).code, Some(143));
    assert!(!runs(&sandbox.log()[0]));
    assert_eq!(sandbox.node("a").status.name(), "ready");
}

#[test]
fn the_same_command_goes_on_where_it_was_stopped() {
    let sandbox = Sandbox::new(&[
        r#"{"name":"a","run":"echo a >> $LOG"}"#,
        r#"{"name":"b","needs":["a"],"run":"echo b >> $LOG; test -e go || exec sleep 300"}"#,
        r#"{"name":"c","needs":["b"],"run":"echo c >> $LOG"}"#,
    ]);
    let run = sandbox.start_run(&[]);
    sandbox.await_log("b");
    signal(run.id(), "TERM");
    assert_eq!(finish(run).code, Some(143));
    sandbox.write("go", "");
    assert_eq!(sandbox.run(&[]).code, Some(0));
    assert_eq!(sandbox.log(), ["a", "b", "b", "c"]);
}

#[test]
fn a_signal_that_is_ignored_from_the_start_stays_ignored() {
    let sandbox = Sandbox::new(&[r#"{"name":"a","run":"echo a >> $LOG; until test -e go; do sleep 0.02; done"}"#]);
    let program = env!("CARGO_BIN_EXE_tenure");
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", &format!("trap '' HUP; exec {program} run graph.jsonl")]);
    shell.current_dir(sandbox.path("")).env("TENURE_DIR", sandbox.path("table"));
    let run = shell.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    sandbox.await_log("a");
    signal(run.id(), "HUP");
    std::thread::sleep(Duration::from_millis(200));
    sandbox.write("go", "");
    assert_eq!(finish(run).code, Some(0));
}
