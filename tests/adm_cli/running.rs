//! A command under its admission: what it finds, what reaches it, and how its end is recorded.

use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};
use tenure::is_running;

use crate::support::{World, wait_for, wait_for_file};

/// A1, A2: two terminals, one surface.
#[test]
fn of_two_terminals_one_starts() {
    let world = World::new();
    let first = world.spawn(["start", "docs", "--request", "a", "--", "sh", "-c", "echo x >> log; read -r _ < ../go"]);
    make_fifo(&world.root().join("go"));
    world.until("a", "started");
    world.run(["start", "docs", "--request", "b", "--", "touch", "b-ran"]).refused(10, "owned by adm-");
    // The same request from a second terminal is the same start.
    let same = ["start", "docs", "--request", "a", "--", "sh", "-c", "echo x >> log; read -r _ < ../go"];
    world.run(same).refused(29, "not started again");
    std::fs::write(world.root().join("go"), "go\n").unwrap();
    assert_eq!(first.end().code, Some(0), "the first is none the worse for it");
    assert_eq!(world.shown("a")["closing"], "succeeded");
    assert_eq!(std::fs::read_to_string(world.place().join("log")).unwrap(), "x\n");
    assert!(!world.place().join("b-ran").exists());
}

fn make_fifo(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode};
    match rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(e) => panic!("{e}"),
    }
}

/// Sixteen at once: one runs, fifteen are told who owns it.
#[test]
fn of_sixteen_at_once_one_starts() {
    let world = World::new();
    let go = world.root().join("go");
    make_fifo(&go);
    let names: Vec<String> = (0..16).map(|i| format!("r{i}")).collect();
    let all: Vec<_> = names
        .iter()
        .map(|name| {
            world.spawn(["start", "docs", "--request", name, "--", "sh", "-c", "echo x >> log; read -r _ < ../go"])
        })
        .collect();
    wait_for("one to start and the others to be refused", || {
        let codes: Vec<Value> = world.all(["refusals"]);
        (codes.len() == 15).then_some(())
    });
    std::fs::write(&go, "go\n").unwrap();
    let mut codes: Vec<_> = all.into_iter().map(|one| one.end().code.unwrap()).collect();
    codes.sort_unstable();
    assert_eq!(codes, [vec![0], vec![10; 15]].concat());
    assert_eq!(std::fs::read_to_string(world.place().join("log")).unwrap(), "x\n");
    assert_eq!(world.all(["history"]).len(), 1, "A2: a refusal writes no admission");
}

/// Race 1: the same request from eight terminals at once runs once, and nobody is told anything else than that.
#[test]
fn the_same_start_eight_times_at_once_runs_once() {
    let world = World::new();
    for round in 0..3 {
        let request = format!("r{round}");
        let script = format!("echo {request} >> log");
        let args = ["start", "docs", "--request", &request, "--", "sh", "-c", &script];
        let all: Vec<_> = (0..8).map(|_| world.spawn(args)).collect();
        let ends: Vec<_> = all.into_iter().map(|one| one.end()).collect();
        let ran = ends.iter().filter(|end| end.code == Some(0)).count();
        assert_eq!(ran, 1, "{ends:?}");
        assert!(ends.iter().all(|end| matches!(end.code, Some(0 | 17 | 29))), "{ends:?}");
        assert_eq!(world.shown(&request)["closing"], "succeeded");
    }
    assert_eq!(std::fs::read_to_string(world.place().join("log")).unwrap(), "r0\nr1\nr2\n");
    assert_eq!(world.ok(["fsck"]), "the ledger keeps its rules");
}

#[test]
fn the_command_finds_what_the_help_promises() {
    let world = World::new();
    let input = world.file("in", "in\n");
    let script = "env | grep ^TENURE_ | sort; cat $TENURE_INPUT; ls -d $TENURE_INPUTS; stat -c %a $TENURE_CREDENTIAL; \
                  head -c 9 $TENURE_CREDENTIAL; test ! -e $TENURE_STOP && echo go";
    let ran = world.run(["start", "docs", "--request", "r1", "--input", &input, "--", "sh", "-c", script]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = world.shown("r1");
    let dir = world.state().join("runs").join(shown["admission"].as_str().unwrap());
    for line in [
        format!("TENURE_ADMISSION={}", shown["admission"].as_str().unwrap()),
        "TENURE_REQUEST=r1".to_owned(),
        "TENURE_ATTEMPT=1".to_owned(),
        "TENURE_SURFACE=docs".to_owned(),
        "TENURE_GENERATION=1".to_owned(),
        format!("TENURE_PLACE={}", world.place().display()),
        format!("TENURE_STATE_DIR={}", world.state().display()),
        format!("TENURE_STOP={}/stop", dir.display()),
    ] {
        assert!(ran.out.lines().any(|found| found == line), "no {line} in {}", ran.out);
    }
    assert!(ran.out.ends_with(&format!("in\n{}/inputs\n600\nv4.local.go\n", dir.display())), "{}", ran.out);
    assert!(!dir.exists(), "nothing is left of it");
}

/// The credential is a secret: on no command line, in no environment.
#[test]
fn the_credential_is_on_no_command_line() {
    let world = World::new();
    let script = "cat /proc/*/cmdline /proc/*/environ 2>/dev/null | grep -acF -f $TENURE_CREDENTIAL; true";
    let ran = world.run(["start", "docs", "--request", "r1", "--", "sh", "-c", script]);
    assert_eq!(ran.out, "0\n", "{ran:?}");
}

/// The whole group ends on stop, the reason can be read, and the next attempt is allowed.
#[test]
fn a_stop_ends_the_whole_group() {
    let world = World::new();
    let script = "sleep 1000 & echo $$ $! > pids; trap 'cp $TENURE_STOP why' TERM; wait; sleep 1000";
    let args = ["start", "docs", "--request", "r1", "--grace", "1", "--", "sh", "-c", script];
    let running = world.spawn(args);
    let pids = wait_for_file(&world.place().join("pids"));
    let id = world.until("r1", "started");
    world.ok(["stop", &id, "--reason", "enough now"]);
    // A30: it takes no more input from now on.
    let more = world.file("more", "x");
    world.run(["append", &id, "--input", &more]).refused(12, "stopping");
    let ran = running.end();
    assert!(matches!(ran.code, Some(137 | 143)), "{ran:?}");
    assert_eq!(
        std::fs::read_to_string(world.place().join("why")).unwrap(),
        format!("{}: enough now\n", tenure::admission::Home::user())
    );
    for pid in pids.split_whitespace() {
        wait_for("the group to be gone", || (!is_running(pid.parse().unwrap())).then_some(()));
    }
    let shown = world.shown("r1");
    assert_eq!((&shown["closing"], &shown["next_attempt"]), (&json!("interrupted"), &json!(true)));
}

/// A30: placement moved while it runs: a stop, no more input, no new credential; the next start is at the new place.
#[test]
fn a_placement_that_moves_stops_what_runs_there() {
    let world = World::new();
    let running = world.spawn(["start", "docs", "--request", "r1", "--", "sleep", "1000"]);
    let id = world.until("r1", "started");
    let destination = |shown: &Value| [shown["machine"].clone(), shown["place"].clone(), shown["generation"].clone()];
    let before = destination(&world.shown(&id));
    let other = world.root().join("other");
    std::fs::create_dir(&other).unwrap();
    let placed = world.one(["place", "docs", "--path", other.to_str().unwrap()]);
    assert_eq!(placed["stopping"][0]["admission"], json!(id));
    let more = world.file("more", "x");
    assert_eq!(world.run(["append", &id, "--input", &more]).code, Some(12));
    assert_eq!(world.run(["attach", &id]).code, Some(12));
    assert_eq!(running.end().code, Some(143));
    let shown = world.shown(&id);
    assert_eq!(destination(&shown), before, "A28: the destination is as it was");
    assert_eq!(shown["closing"], "interrupted");
    let ran = world.run(["start", "docs", "--request", "r2", "--", "pwd"]);
    assert_eq!(ran.out.trim(), other.to_str().unwrap());
}

#[test]
fn what_is_appended_appears_as_files() {
    let world = World::new();
    let script = "while [ ! -e $TENURE_INPUTS/000002 ]; do sleep 0.05; done; cat $TENURE_INPUTS/*";
    let running = world.spawn(["start", "docs", "--request", "r1", "--", "sh", "-c", script]);
    let id = world.until("r1", "started");
    let (one, two) = (world.file("one", "one\n"), world.file("two", "two\n"));
    assert_eq!(world.one(["append", &id, "--request", "i1", "--input", &one])["number"], json!(1));
    // Sent again, it is the same input (A10); with other contents a conflict (A11).
    assert_eq!(world.one(["append", &id, "--request", "i1", "--input", &one])["number"], json!(1));
    assert_eq!(world.run(["append", &id, "--request", "i1", "--input", &two]).code, Some(11));
    assert_eq!(world.one(["append", &id, "--input", &two])["number"], json!(2));
    let ran = running.end();
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "one\ntwo\n"));
    assert_eq!(world.run(["append", &id, "--input", &one]).code, Some(17));
}

/// A33, A35: the credential in the file is replaced before it runs out, and the old one is worth nothing.
#[test]
fn the_credential_is_renewed_before_it_runs_out() {
    let world = World::new();
    let script = "cp $TENURE_CREDENTIAL first; while cmp -s $TENURE_CREDENTIAL first; do sleep 0.05; done; \
                  cp $TENURE_CREDENTIAL second; read -r _ < ../go";
    make_fifo(&world.root().join("go"));
    let running = world.spawn(["start", "docs", "--request", "r1", "--credential", "6", "--", "sh", "-c", script]);
    let second = wait_for_file(&world.place().join("second"));
    let first = std::fs::read_to_string(world.place().join("first")).unwrap();
    assert_ne!(first, second);
    let id = world.until("r1", "started");
    assert_eq!(world.shown(&id)["uncertain"], json!(false));
    let old = format!("@{}", world.place().join("first").display());
    world.run(["close", &id, "--token", &old, "--kind", "failed"]).refused(21, "cut or replaced");
    std::fs::write(world.root().join("go"), "go\n").unwrap();
    assert_eq!(running.end().code, Some(0));
    assert_eq!(world.shown(&id)["closing"], "succeeded");
}

/// A34, A36: the runner is killed. Nobody takes the surface, however long nothing is heard; its command runs on.
#[test]
fn a_runner_that_dies_leaves_the_surface_owned_and_uncertain() {
    let world = World::new();
    let args = [
        "start",
        "docs",
        "--request",
        "r1",
        "--credential",
        "0.5",
        "--",
        "sh",
        "-c",
        "exec >/dev/null 2>&1; echo $$ > pid; sleep 1000",
    ];
    let running = world.spawn(args);
    let pid: u32 = wait_for_file(&world.place().join("pid")).trim().parse().unwrap();
    running.signal(Signal::KILL);
    running.end();
    assert!(is_running(pid), "silence is not death");
    let id = world.until("r1", "started");
    wait_for("the credential to lapse", || (world.shown(&id)["uncertain"] == json!(true)).then_some(()));
    world.run(["start", "docs", "--request", "r2", "--", "true"]).refused(10, "owned by");
    assert_eq!(world.all(["history", "--uncertain"])[0]["admission"], json!(id));
    // A48: its machine sees it, and can go on with it.
    assert_eq!(world.one(["pickup"])["open"][0]["admission"], json!(id));
    let token = format!("@{}", world.file("token", world.one(["attach", &id])["token"].as_str().unwrap()));
    rustix::process::kill_process_group(rustix::process::Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
    world.ok(["close", &id, "--token", &token, "--kind", "interrupted"]);
    assert_eq!(world.run(["start", "docs", "--request", "r2", "--", "true"]).code, Some(0));
}

/// A signal is handed on; the end is an interruption, and the exit code says which signal.
#[test]
fn a_signal_to_start_reaches_the_command() {
    let world = World::new();
    for (request, signal, code) in [("term", Signal::TERM, 143), ("int", Signal::INT, 130)] {
        let running = world.spawn(["start", "docs", "--request", request, "--", "sleep", "1000"]);
        world.until(request, "started");
        running.signal(signal);
        assert_eq!(running.end().code, Some(code));
        assert_eq!(world.shown(request)["closing"], "interrupted");
    }
    let ran = world.run(["start", "docs", "--request", "killed", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(ran.code, Some(137));
    assert_eq!(world.shown("killed")["closing"], "failed", "nobody asked it to stop");
}

/// Nothing ran: the next attempt is allowed, and the surface is free.
#[test]
fn what_cannot_be_run_is_closed_as_not_started() {
    let world = World::new();
    world.run(["start", "docs", "--request", "r1", "--", "no-such-program"]).refused(127, "no program no-such-program");
    let shown = world.shown("r1");
    assert_eq!((&shown["closing"], &shown["next_attempt"]), (&json!("failed_before_start"), &json!(true)));
    world.file("place/not-executable", "x");
    world.run(["start", "docs", "--request", "r2", "--", "./not-executable"]);
    assert_eq!(world.shown("r2")["next_attempt"], json!(true));
    std::fs::rename(world.place(), world.root().join("elsewhere")).unwrap();
    world.run(["start", "docs", "--request", "r3", "--", "true"]).refused(126, "not a directory on this machine");
    assert_eq!(world.shown("r3")["closing"], "failed_before_start");
}

/// Released while it ran: somebody else may be at work in its place, so it is stopped.
#[test]
fn a_release_stops_a_command_that_still_runs_after_all() {
    let world = World::new();
    let running = world.spawn(["start", "docs", "--request", "r1", "--", "sleep", "1000"]);
    let id = world.until("r1", "started");
    world.ok(["release", &id, "--reason", "thought it was gone", "--yes"]);
    let ran = running.end();
    assert_eq!(ran.code, Some(143), "{ran:?}");
    assert!(ran.err.contains("released"), "{ran:?}");
    assert_eq!(world.shown(&id)["closing"], "released", "the first closing stands");
}
