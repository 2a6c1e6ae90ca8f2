//! Every verb of the command line, killed by SIGKILL before its k-th write of a shared word, for every k.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use crate::points::{Promise, aftermath, is_kept, report, script, tried};
use crate::world::World;

const STATE: &str = "group g 1;upsert a group=g summary=s;upsert b needs=a;upsert c group=g;upsert d;complete d done summary=x;\
                     upsert e;complete e failed;archive e;snapshot;claim w1 a;register w2";

/// A file to import, and one to run.
const GRAPH: &str = "{\"name\":\"x\",\"run\":\"true\"}\n{\"name\":\"y\",\"needs\":[\"x\"],\"run\":\"true\"}\n";

const CALLS: &[&str] = &[
    "init",
    "upsert n --needs a --summary new",
    "upsert a --summary changed --cost 7",
    "link d c",
    "link b c --on-failure skip",
    "unlink a b",
    "group g --limit 2",
    "group new --limit 1",
    "claim c --holder w2",
    "claim a --holder w1 --resume",
    "claim-next --holder w2 --lease 5",
    "claim-next --holder w9 --role r",
    "claim-next --holder w2 --wait 0.05",
    "renew a --holder w1 --lease 7",
    "release a --holder w1",
    "release a --force",
    "complete a --holder w1 --summary t",
    "complete a --holder w1 --status failed",
    "complete b --status cancelled",
    "reclaim --lease 0",
    "reopen d",
    "reopen e",
    "archive d",
    "unarchive e",
    "import GRAPH",
    "run GRAPH -j 1",
    "snapshot",
    "restore --force",
    "list --all",
    "get a",
    "ready",
    "why b",
    "stats",
    "export",
    "fsck",
];

fn promise(call: &str) -> Promise {
    match call.split(' ').next().unwrap_or_default() {
        "run" => Promise::Nothing,
        "claim" | "claim-next" | "reclaim" => Promise::EachNode,
        _ => Promise::Whole,
    }
}

/// A table as a call begins with it: `run` gets an empty one, since it waits for whoever holds something.
fn prepare(call: &str) -> World {
    let world = World::real();
    for verb in script(if call.starts_with("run") { "" } else { STATE }) {
        world.run(verb);
    }
    std::fs::write(world.dir.path().join("GRAPH"), GRAPH).unwrap();
    world
}

/// Runs the program; whether it was killed on the way.
fn call(world: &World, call: &str, kill_at: Option<u64>) -> bool {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command.args(call.split(' ')).current_dir(world.dir.path());
    command.env("TENURE_DIR", world.dir.path()).env_remove("TENURE_HOLDER");
    match kill_at {
        Some(k) => command.env("TENURE_KILL_AT", k.to_string()),
        None => command.env_remove("TENURE_KILL_AT"),
    };
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(matches!(status.signal(), None | Some(9)), "{call}: {status}");
    assert_ne!(status.code(), Some(2), "{call} is no call");
    status.signal() == Some(9)
}

/// Every k for a call, or every `step`-th.
fn crash(line: &str, step: usize) -> Vec<String> {
    let mut found = Vec::new();
    let world = prepare(line);
    let mut fine = vec![world.dump()];
    call(&world, line, None);
    fine.push(world.dump());
    let between = {
        let world = prepare(line);
        world.run("reclaim quiet=0");
        world.dump()
    };
    let mut points = 0;
    for k in (0..).step_by(step) {
        let world = prepare(line);
        let killed = call(&world, line, Some(k));
        let dump = world.dump();
        let mut bad = |what: String| found.push(format!("tenure {line} killed at write {k}: {what}"));
        if !is_kept(promise(line), &dump, &fine, &between) {
            bad(format!("half done: {dump:#?} is none of {fine:#?}"));
        }
        aftermath(&world).into_iter().for_each(&mut bad);
        if !killed {
            break;
        }
        points += 1;
    }
    tried(&format!("program killed: {line}"), points);
    found
}

#[test]
fn quick_every_program_dies_at_some_writes() {
    report(CALLS.iter().flat_map(|line| crash(line, 41)).collect());
}

#[test]
fn every_program_dies_at_every_write() {
    report(CALLS.iter().flat_map(|line| crash(line, 1)).collect());
}
