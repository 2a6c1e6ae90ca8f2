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
