//! What waiting costs: nothing.

use std::process::Command;
use std::time::Duration;

use crate::sleeper::{Sleeper, await_that};
use crate::support::Sandbox;

#[test]
fn of_fifty_waiters_one_gets_the_new_node_and_the_others_sleep_on() {
    let sandbox = Sandbox::new();
    // Ready all the time, for a role that nobody offers: no reason to stay awake.
    sandbox.ok(["upsert", "other", "--role", "q"]);
    let mut sleepers: Vec<Sleeper> =
        (0..50).map(|i| Sleeper::awake(&sandbox, &format!("w{i}"), &["--role", "r"])).collect();
    sleepers.iter().for_each(Sleeper::await_sleep);
    let ticks = |sleepers: &[Sleeper]| sleepers.iter().map(Sleeper::ticks).sum::<u64>();
    let switches = |sleepers: &[Sleeper]| sleepers.iter().map(Sleeper::switches).collect::<Vec<u64>>();
    let (before, slept) = (ticks(&sleepers), switches(&sleepers));
    std::thread::sleep(Duration::from_millis(1_200));
    // A tick is 10 ms: all fifty together use less than a hundredth of one processor, and that is the watcher's looks.
    assert!(ticks(&sleepers) - before <= 2, "{} ticks", ticks(&sleepers) - before);
    let woken = switches(&sleepers).iter().zip(&slept).filter(|(now, then)| now != then).count();
    assert!(woken <= 1, "{woken} woke up, the watcher among them");

    let slept = switches(&sleepers);
    sandbox.ok(["upsert", "a", "--role", "r"]);
    await_that("one of them to have it", || sleepers.iter_mut().any(Sleeper::has_ended));
    std::thread::sleep(Duration::from_millis(300));
    let ended: Vec<usize> = (0..50).filter(|&i| sleepers[i].has_ended()).collect();
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert_eq!(sandbox.one(["get", "a"])["holder"], format!("w{}", ended[0]));
    // The watcher, and whoever took the watch from it when it was the one that got the node.
    let woken = (0..50).filter(|&i| i != ended[0] && sleepers[i].switches() != slept[i]).count();
    assert!(woken <= 2, "{woken} others woke up");
}

/// How often a verb asks the kernel to wake somebody; `None` when this machine has no strace, or does not let it look.
fn wakes(sandbox: &Sandbox, args: &[&str]) -> Option<usize> {
    let trace = sandbox.root().join("trace");
    let program = sandbox.command();
    let mut strace = Command::new("strace");
    strace.args(["-f", "-e", "trace=futex", "-o"]).arg(&trace).arg(program.get_program()).args(args);
    strace.env("TENURE_DIR", sandbox.dir());
    let output = strace.output().ok()?;
    let text = std::fs::read_to_string(&trace).unwrap_or_default();
    if !text.contains("+++ exited with 0 +++") {
        assert!(text.is_empty(), "{args:?}: {text} {output:?}");
        return None;
    }
    Some(text.lines().filter(|line| line.contains("futex(") && line.contains("WAKE")).count())
}

#[test]
fn who_completes_a_node_while_nobody_waits_makes_no_system_call_for_it() {
    let sandbox = Sandbox::new();
    for node in ["a", "b"] {
        sandbox.ok(["upsert", node, "--role", "r"]);
        sandbox.ok(["upsert", &format!("after-{node}"), "--needs", node, "--role", "r"]);
    }
    let Some(calls) = wakes(&sandbox, &["complete", "a"]) else {
        eprintln!("left out: strace is not installed here, or may not look at processes");
        return;
    };
    assert_eq!(calls, 0);
    // What it is like when somebody sleeps; and when that one is gone, the first who rings finds out for all.
    let mut sleeper = Sleeper::start(&sandbox, "w", &[]);
    assert_ne!(wakes(&sandbox, &["complete", "b"]), Some(0));
    sleeper.kill();
    assert_ne!(wakes(&sandbox, &["upsert", "c"]), Some(0));
    assert_eq!(wakes(&sandbox, &["upsert", "d"]), Some(0));
    assert_eq!(wakes(&sandbox, &["complete", "c"]), Some(0));
}
