//! Attempts that are lost or fail, and the time in which a node is left alone after one.

use std::time::{Duration, Instant};

use crate::sleeper::{SOON, Sleeper, await_that};
use crate::support::Sandbox;

fn sandbox(policy: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.ok([&["upsert", "n"], policy].concat());
    sandbox
}

fn fail(sandbox: &Sandbox) -> String {
    sandbox.claim("n", "h");
    sandbox.ok(["complete", "n", "--holder", "h", "--status", "failed", "--json"])
}

fn lose(sandbox: &Sandbox) {
    sandbox.claim("n", "h");
    sandbox.ok(["reclaim", "--lease", "0"]);
}

#[test]
fn the_last_attempt_that_fails_is_the_end() {
    let sandbox = sandbox(&["--max-attempts", "3"]);
    for attempt in 1..=2 {
        fail(&sandbox);
        let node = sandbox.one(["get", "n"]);
        assert_eq!(
            (&node["status"], &node["attempts"], &node["max_attempts"]),
            (&"ready".into(), &attempt.into(), &3.into())
        );
    }
    fail(&sandbox);
    let node = sandbox.one(["get", "n"]);
    assert_eq!((&node["status"], &node["attempts"]), (&"failed".into(), &3.into()));
    assert!(sandbox.ok(["get", "n"]).contains("attempts       3 of 3\n"));
}

#[test]
fn lost_attempts_count_as_failed_ones_do() {
    let sandbox = sandbox(&["--max-attempts", "3"]);
    lose(&sandbox);
    fail(&sandbox);
    assert_eq!(sandbox.one(["get", "n"])["attempts"], 2);
    lose(&sandbox);
    let node = sandbox.one(["get", "n"]);
    assert_eq!((&node["status"], &node["attempts"]), (&"failed".into(), &3.into()));
    assert!(node["finished_at_ms"].is_u64(), "{node}");
}

#[test]
fn a_last_attempt_whose_process_is_gone_is_the_end_too() {
    let sandbox = sandbox(&["--max-attempts", "1"]);
    let mut process = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
    sandbox.ok(["claim", "n", "--holder", "h", "--lease", "300", "--pid", &process.id().to_string()]);
    process.kill().unwrap();
    process.wait().unwrap();
    sandbox.ok(["reclaim"]);
    assert_eq!(sandbox.status("n"), "failed");
}

#[test]
fn without_a_limit_a_failure_is_the_end_and_a_loss_never_is() {
    let sandbox = sandbox(&[]);
    for _ in 0..5 {
        lose(&sandbox);
    }
    assert_eq!(sandbox.status("n"), "ready");
    fail(&sandbox);
    assert_eq!(sandbox.status("n"), "failed");
}

#[test]
fn reopening_counts_anew() {
    let sandbox = sandbox(&["--max-attempts", "2"]);
    fail(&sandbox);
    fail(&sandbox);
    assert_eq!(sandbox.status("n"), "failed");
    sandbox.ok(["reopen", "n"]);
    assert_eq!(sandbox.one(["get", "n"])["attempts"], 0);
    fail(&sandbox);
    assert_eq!(sandbox.status("n"), "ready");
    fail(&sandbox);
    assert_eq!(sandbox.status("n"), "failed");
}

#[test]
fn done_and_cancelled_end_it_whatever_attempts_are_left() {
    for status in ["done", "cancelled"] {
        let sandbox = sandbox(&["--max-attempts", "5"]);
        fail(&sandbox);
        sandbox.claim("n", "h");
        sandbox.ok(["complete", "n", "--holder", "h", "--status", status]);
        assert_eq!(sandbox.status("n"), status);
    }
}

#[test]
fn the_answer_to_a_failure_says_that_it_is_tried_again() {
    let sandbox = sandbox(&["--max-attempts", "2"]);
    let first = fail(&sandbox);
    let last = fail(&sandbox);
    assert!(first.contains("attempts") && !last.contains("attempts"), "{first} {last}");
}

#[test]
fn before_its_time_a_node_is_not_given_out_and_not_ready() {
    let sandbox = sandbox(&["--max-attempts", "9", "--retry-delay", "1"]);
    fail(&sandbox);
    let failed = Instant::now();
    let node = sandbox.one(["get", "n"]);
    assert_eq!(node["status"], "todo", "{node}");
    assert!(node["retry_in_ms"].as_u64().is_some_and(|ms| ms > 0 && ms <= 1_000), "{node}");
    assert_eq!(sandbox.ok(["ready", "--json"]), "");
    let refused = sandbox.run(["claim", "n", "--holder", "w", "--json"]).refused_json(1, "not_before");
    assert!(refused["left_ms"].as_u64().is_some_and(|ms| ms > 0 && ms <= 1_000), "{refused}");
    sandbox.run(["claim-next", "--holder", "w"]).refused(3, "nothing is ready");
    let sleeper = Sleeper::start(&sandbox, "w", &[]);
    let ran = sleeper.finish("the end of the delay");
    // The coarse clock that the delay is noted by may be a tick of the kernel behind.
    assert!(failed.elapsed() > Duration::from_millis(900), "{:?}", failed.elapsed());
    assert_eq!(ran.out, "n gen=3\n", "{ran:?}");
}

#[test]
fn when_its_time_has_come_it_can_be_claimed() {
    let sandbox = sandbox(&["--max-attempts", "9", "--retry-delay", "0.2"]);
    lose(&sandbox);
    sandbox.run(["claim", "n", "--holder", "w"]).refused(1, "n");
    let took = await_that("the end of the delay", || sandbox.status("n") == "ready");
    assert!(took < SOON, "{took:?}");
    assert_eq!(sandbox.ok(["claim-next", "--holder", "w"]), "n gen=3");
}

#[test]
fn the_delay_doubles_up_to_an_hour() {
    for (attempt, seconds) in [(1, 1_000), (2, 2_000), (3, 3_600), (6, 3_600)] {
        let sandbox = sandbox(&[]);
        // Without a delay at first, so that nobody has to wait for it here.
        (1..attempt).for_each(|_| lose(&sandbox));
        sandbox.ok(["upsert", "n", "--retry-delay", "1000"]);
        lose(&sandbox);
        let left_ms = sandbox.one(["get", "n"])["retry_in_ms"].as_u64().expect("it is left alone");
        assert!(left_ms <= seconds * 1_000 && left_ms > seconds * 1_000 - 30_000, "{left_ms} of {seconds}");
        sandbox.run(["claim", "n", "--holder", "w"]).refused(1, "n");
    }
}

#[test]
fn handing_a_node_back_on_purpose_costs_no_delay() {
    let sandbox = sandbox(&["--max-attempts", "9", "--retry-delay", "300"]);
    for how in [["release", "n", "--holder", "h"].as_slice(), &["release", "n", "--force"]] {
        sandbox.claim("n", "h");
        sandbox.ok(how);
        assert_eq!(sandbox.status("n"), "ready");
    }
    assert_eq!(sandbox.one(["get", "n"])["attempts"], 2, "claims they were");
    fail(&sandbox);
    assert_eq!(sandbox.status("n"), "todo");
}

#[test]
fn numbers_that_are_none_are_usage() {
    let sandbox = Sandbox::new();
    for wrong in
        ["--max-attempts=-1", "--max-attempts=65536", "--max-attempts=x", "--retry-delay=-1", "--retry-delay=3601"]
    {
        assert_eq!(sandbox.run(["upsert", "n", wrong]).code, Some(2), "{wrong}");
    }
    assert_eq!(sandbox.ok(["list", "--json"]), "");
}
