//! A reader that leaves early, and a device without room.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::Sandbox;

/// Enough of everything that no answer fits into a pipe.
fn filled() -> Sandbox {
    let sandbox = Sandbox::new();
    let table = tenure::Table::open(sandbox.dir()).expect("a table");
    let spec = |n: usize| tenure::NodeSpec {
        name: Some(format!("node-{n}")),
        summary: Some("x".repeat(200)),
        needs: n.checked_sub(1).map(|n| tenure::NodeId::of_name(&format!("node-{n}")).into()).into_iter().collect(),
        ..tenure::NodeSpec::default()
    };
    table.import(&(0..4_000).map(spec).collect::<Vec<_>>()).expect("room");
    sandbox.ok(["complete", "node-0", "--status", "failed"]);
    sandbox
}

#[test]
fn a_reader_that_leaves_early_is_a_quiet_end() {
    let sandbox = filled();
    for args in [
        &["why", "node-3999", "--json"][..],
        &["list", "--blocked"],
        &["export", "--format", "dot"],
        &["export", "--format", "mermaid"],
    ] {
        let mut child =
            sandbox.command().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut start = Vec::new();
        let mut reader = BufReader::with_capacity(16, child.stdout.take().expect("a pipe"));
        reader.read_until(b' ', &mut start).expect("a beginning");
        drop(reader);
        let output = child.wait_with_output().expect("it ends");
        assert!(!start.is_empty());
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
    }
}

#[test]
fn a_pipe_that_was_closed_before_anything_was_written() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    for args in [&["why", "n"][..], &["stats", "--format", "prometheus"], &["util", "completions", "bash"]] {
        let mut child =
            sandbox.command().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{args:?}");
    }
}

#[test]
fn a_full_device_is_told() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    for args in [
        &["why", "n"][..],
        &["export", "--format", "dot"],
        &["stats", "--format", "prometheus"],
        &["util", "completions", "zsh"],
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
        let child = sandbox.command().args(args).stdout(full).stderr(Stdio::piped()).spawn().expect("it starts");
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(7), "{args:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write to standard output"), "{args:?}");
    }
}
