//! A55 by the system calls: nothing is handed to the command before the ledger has the admission on disk.

use std::process::Command;

use crate::support::World;

#[test]
fn the_input_is_handed_over_after_the_commit_and_not_before() {
    let world = World::new();
    let input = world.file("in", "precious\n");
    let trace = world.root().join("trace");
    let mut command = Command::new("strace");
    world.environment(&mut command);
    command.args(["-f", "-y", "-s", "300", "-o", trace.to_str().unwrap()]);
    command.args(["-e", "trace=openat,rename,renameat2,fsync,fdatasync,execve,pwrite64"]);
    command.arg(env!("CARGO_BIN_EXE_tenure"));
    command.args(["adm", "start", "docs", "--request", "r1", "--input", &input, "--", "/bin/cat"]);
    let ended = command.output().expect("strace is there");
    assert_eq!(ended.stdout, b"precious\n");
    let text = std::fs::read_to_string(trace).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let first = |what: &str, is: &dyn Fn(&str) -> bool| {
        lines.iter().position(|line| is(line)).unwrap_or_else(|| panic!("no {what} in\n{text}"))
    };
    let kept = first("rename to new", &|line| line.contains("rename") && line.contains("outbox/new/r1.1"));
    let commit = first("commit", &|line| line.contains("sync(") && line.contains("ledger.sqlite"));
    let sent = first("rename to sent", &|line| line.contains("rename") && line.contains("outbox/sent/r1.1"));
    let handed = first("input of the run", &|line| line.contains("openat") && line.contains("/runs/adm-"));
    let exec = first("execve", &|line| line.contains("execve(\"/bin/cat\""));
    let order = [("kept", kept), ("commit", commit), ("sent", sent), ("handed over", handed), ("run", exec)];
    for pair in order.windows(2) {
        assert!(pair[0].1 < pair[1].1, "{order:?}");
    }
    // Kept means on disk: the file, then the directory that has its name, then the ledger is spoken to.
    let synced = |what: &str| first(what, &|line| line.contains("fsync(") && line.contains(what));
    assert!(synced("outbox/tmp/") < kept, "the file is synced before it has its name");
    let named = lines.iter().skip(kept).position(|line| line.contains("fsync(") && line.contains("outbox/new>"));
    assert!(named.is_some_and(|after| kept + after < commit), "the name is on disk before anything is sent");
}
