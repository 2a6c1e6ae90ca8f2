//! Standard output that goes nowhere: a reader that has gone is a quiet end, anything else is told, and nothing panics.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::{Ran, Sandbox, bare, finish};

fn filled() -> Sandbox {
    let sandbox = Sandbox::new();
    let table = tenure::Table::open(sandbox.dir()).expect("a table");
    let spec = |n: usize| tenure::NodeSpec {
        name: Some(format!("node-{n}")),
        summary: Some("x".repeat(200)),
        ..tenure::NodeSpec::default()
    };
    table.import(&(0..2_000).map(spec).collect::<Vec<_>>()).expect("room for 2,000 nodes");
    sandbox
}

/// Runs with standard output on a device that is always full.
fn on_a_full_device(sandbox: &Sandbox, args: &[&str]) -> Ran {
    let full = OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let child = sandbox.command().args(args).stdout(Stdio::from(full)).stderr(Stdio::piped()).spawn();
    let output = child.expect("the program starts").wait_with_output().expect("it ends");
    Ran { code: output.status.code(), out: String::new(), err: String::from_utf8(output.stderr).expect("UTF-8") }
}

#[test]
fn a_reader_that_leaves_early_is_a_quiet_end() {
    let sandbox = filled();
    for args in [&["list"][..], &["list", "--json"], &["ready"], &["ready", "--json"]] {
        // More than a pipe holds, so that the program is still writing when the reader leaves.
        let mut child =
            sandbox.command().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let mut reader = BufReader::with_capacity(64, child.stdout.take().expect("a pipe"));
        reader.read_line(&mut line).expect("a line");
        drop(reader);
        let output = child.wait_with_output().expect("it ends");
        assert!(!line.is_empty());
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
    }
}

#[test]
fn the_same_through_a_shell() {
    let sandbox = filled();
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", "set -o pipefail; \"$0\" list | head -1", env!("CARGO_BIN_EXE_tenure")]);
    let ran = finish(shell.env("TENURE_DIR", sandbox.dir()));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.out.starts_with("NODE"), "{ran:?}");
}

#[test]
fn help_into_a_closed_pipe_is_quiet_too() {
    let mut child =
        bare().arg("--help").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn a_reader_verb_on_a_full_device_says_so() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    for args in [&["list"][..], &["get", "n"], &["ready"], &["stats"]] {
        let ran = on_a_full_device(&sandbox, args);
        ran.refused(7, "cannot write to standard output");
        assert!(!ran.err.contains("the change was made"), "{ran:?}");
    }
    let object = on_a_full_device(&sandbox, &["list", "--json"]).refused_json(7, "output");
    assert_eq!(object["changed"], false);
    let ran = on_a_full_device(&sandbox, &["--help"]);
    ran.refused(7, "cannot write to standard output");
}

#[test]
fn a_changing_verb_on_a_full_device_says_that_the_change_was_made() {
    let sandbox = Sandbox::new();
    let calls: &[(&[&str], &str)] = &[
        (&["upsert", "n"], "ready"),
        (&["claim", "n", "--holder", "w"], "claimed"),
        (&["renew", "n", "--holder", "w"], "claimed"),
        (&["release", "n", "--holder", "w"], "ready"),
        (&["claim-next", "--holder", "w"], "claimed"),
        (&["complete", "n", "--holder", "w"], "done"),
        (&["archive", "n"], "done"),
        (&["unarchive", "n"], "done"),
        (&["reopen", "n"], "ready"),
    ];
    for (args, status) in calls {
        let ran = on_a_full_device(&sandbox, args);
        ran.refused(7, "the change was made");
        assert_eq!(sandbox.status("n"), *status, "{args:?}");
    }
    sandbox.ok(["upsert", "m"]);
    on_a_full_device(&sandbox, &["link", "n", "m"]).refused(7, "the change was made");
    assert_eq!(sandbox.status("m"), "todo");
    sandbox.ok(["claim", "n", "--holder", "w"]);
    let forced = on_a_full_device(&sandbox, &["release", "n", "--force"]);
    assert_eq!(forced.code, Some(7), "{forced:?}");
    assert!(forced.err.contains("the change was made"), "{forced:?}");
}

#[test]
fn what_was_not_changed_is_not_called_changed() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n", "--cost", "2"]);
    let ran = on_a_full_device(&sandbox, &["upsert", "n", "--cost", "2"]);
    ran.refused(7, "cannot write");
    assert!(!ran.err.contains("the change was made"), "{ran:?}");
}

#[test]
fn a_full_device_in_json() {
    let sandbox = Sandbox::new();
    let object = on_a_full_device(&sandbox, &["upsert", "n", "--json"]).refused_json(7, "output");
    assert_eq!(object["changed"], true);
}

#[test]
fn an_answer_that_nobody_can_read_is_seven_and_never_goes_into_the_table() {
    let sandbox = Sandbox::new();
    let script = "\"$0\" upsert n >&- 2>&-; a=$?; \"$0\" get nowhere >&- 2>&-; b=$?; echo $a $b";
    let mut shell = std::process::Command::new("bash");
    let ran = finish(shell.args(["-c", script, env!("CARGO_BIN_EXE_tenure")]).env("TENURE_DIR", sandbox.dir()));
    // As to a full device: the change was made, and its caller must not take it for one that it was told of.
    assert_eq!(ran.out.trim(), "7 4", "{ran:?}");
    assert_eq!(sandbox.status("n"), "ready");
}
