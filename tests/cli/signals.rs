//! SIGBUS, the one signal that a mapped file can send.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::Sandbox;

/// The handler, with the signal sent by hand to a process that waits for its input.
#[test]
fn sigbus_is_told_in_plain_words_and_ends_with_table_unusable() {
    let sandbox = Sandbox::new();
    let child = sandbox
        .command()
        .args(["upsert", "n", "--summary", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    std::thread::sleep(Duration::from_millis(200));
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::BUS).expect("it is still there");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("truncated"), "{said}");
}

/// The real thing: the file is cut short under a process that has it mapped and goes on reading it.
#[test]
fn a_table_truncated_under_a_running_process_is_told_and_not_a_bare_signal() {
    let sandbox = Sandbox::new();
    let graph = sandbox.root().join("graph.jsonl");
    std::fs::write(&graph, "{\"name\":\"slow\",\"run\":\"sleep 2\"}\n").expect("a file");
    let child = sandbox
        .command()
        .args(["run", "-j", "1", "--lease", "0.3"])
        .arg(&graph)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let claimed = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        sandbox.run(["get", "slow"]).out.contains("claimed")
    });
    assert!(claimed, "the node was never claimed");
    std::fs::File::options().write(true).open(sandbox.file()).expect("a table").set_len(0).expect("it can be cut");
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("truncated while it was mapped"), "{said}");
}
