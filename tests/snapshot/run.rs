//! Snapshots that `run` takes: at an interval, and at its end.

use std::process::{Command, Stdio};

use tenure::{Snapshot, Status};

use super::crew::{scratch, until};
use super::help::{names, read, reboot, tenure};

fn graph(dir: &std::path::Path, lines: &str) -> String {
    let file = dir.join("graph.jsonl");
    std::fs::write(&file, lines).expect("a file");
    file.into_os_string().into_string().expect("a plain name")
}

#[test]
fn a_run_leaves_a_snapshot_of_its_end_also_when_something_failed() {
    for (command, status, exit) in [("true", Status::Done, 0), ("false", Status::Failed, 1)] {
        let (dir, files) = (scratch(), scratch());
        let file = graph(files.path(), &format!("{{\"name\":\"a\",\"run\":\"{command}\"}}\n"));
        let (code, _, err) = tenure(dir.path(), &["run", &file, "-j", "1"]);
        assert_eq!(code, Some(exit), "{err}");
        assert_eq!(read(dir.path()).nodes[0].status, status);
        assert_eq!(names(dir.path()), ["snapshot", "snapshot.lock"]);
    }
}

#[test]
fn a_run_that_is_killed_leaves_the_snapshot_of_its_last_interval() {
    let (dir, files) = (scratch(), scratch());
    let file = graph(
        files.path(),
        "{\"name\":\"a\",\"run\":\"true\"}\n{\"name\":\"b\",\"needs\":[\"a\"],\"run\":\"exec sleep 15\"}\n",
    );
    let mut run = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .args(["run", &file, "-j", "1", "--snapshot-every", "0.1", "--dir"])
        .arg(dir.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    until("a snapshot with a done in it", || {
        let there = Snapshot::read(dir.path().join("snapshot"));
        there.is_ok_and(|s| s.nodes.iter().any(|n| n.name == "a" && n.status == Status::Done))
    });
    let first = read(dir.path()).taken.began_ns;
    until("another snapshot", || read(dir.path()).taken.began_ns > first);
    run.kill().expect("SIGKILL");
    run.wait().expect("its end");
    reboot(dir.path());
    let (code, out, err) = tenure(dir.path(), &["ready", "--json"]);
    assert_eq!((code, out.as_str()), (Some(5), ""), "{err}");
    assert_eq!(tenure(dir.path(), &["init"]).0, Some(0));
    let (_, out, _) = tenure(dir.path(), &["ready", "--json"]);
    assert!(out.contains("\"name\":\"b\"") && out.lines().count() == 1, "{out}");
}
