//! Taking over does not mean running twice: what a command has started is gone before its node can be taken.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tenure::{Claim, NodeId, Outcome, Worker};

use crate::support::{PATIENCE, Sandbox, await_that, finish, runs, signal};

/// The first time it starts children in its group, in a session of their own and below that, notes their numbers and
/// stays; later it only says so. Whoever is asked to end politely does not.
const STEP: &str = r"trap '' TERM HUP INT
if test -e pids; then echo again >> $LOG; exit 0; fi
sleep 1000 &
echo $! >> noted
setsid sleep 1000 &
echo $! >> noted
(setsid sh -c 'sleep 1000 & echo $! >> noted; echo $$ >> noted; wait' &)
until test $(wc -l < noted) -eq 4; do sleep 0.01; done
echo $$ >> noted
mv noted pids
echo first >> $LOG
wait
";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new(&[r#"{"name":"a","run":"exec sh step.sh"}"#]);
    sandbox.write("step.sh", STEP.replace("$LOG", sandbox.path("log").to_str().expect("a plain path")));
    sandbox
}

/// The numbers of the first attempt's processes, all of which run.
fn pids(sandbox: &Sandbox) -> Vec<String> {
    sandbox.await_log("first");
    let text = std::fs::read_to_string(sandbox.path("pids")).expect("the numbers");
    let pids: Vec<String> = text.lines().map(str::to_owned).collect();
    assert_eq!(pids.len(), 5, "{pids:?}");
    assert!(pids.iter().all(|pid| runs(pid)));
    pids
}

/// Asks for the node over and over, as fast as it goes, and says who of them runs at the moment that it is given out.
fn take<'w>(worker: &'w Worker, pids: &[String]) -> (Claim<'w>, Vec<String>) {
    let began = Instant::now();
    loop {
        match worker.claim(NodeId::of_name("a")) {
            Ok(claim) => return (claim, pids.iter().filter(|pid| runs(pid)).cloned().collect()),
            Err(why) => assert!(began.elapsed() < PATIENCE, "it is never given out: {why}"),
        }
    }
}

/// The parent of a process.
fn parent(pid: &str) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let (_, behind_the_name) = stat.rsplit_once(") ").expect("a stat line");
    behind_the_name.split(' ').nth(1).and_then(|ppid| ppid.parse().ok()).expect("a number")
}

/// The processes that a process has started.
fn children(pid: u32) -> Vec<String> {
    let list = Command::new("ps").args(["-o", "pid=", "--ppid", &pid.to_string()]).output().expect("ps runs");
    String::from_utf8(list.stdout).expect("numbers").split_whitespace().map(str::to_owned).collect()
}

fn kill(mut run: Child) {
    signal(run.id(), "KILL");
    run.wait().expect("its end");
}

#[test]
fn when_a_run_is_killed_its_command_is_gone_before_the_node_is_given_out() {
    for _ in 0..5 {
        let sandbox = sandbox();
        let run = sandbox.start_run(&["-j", "2", "--lease", "200"]);
        let pids = pids(&sandbox);
        let table = sandbox.table();
        let thief = table.worker("thief").unwrap();
        let began = Instant::now();
        kill(run);
        let (_claim, left) = take(&thief, &pids);
        assert!(left.is_empty(), "{left:?} of {pids:?}");
        assert!(began.elapsed() < Duration::from_secs(20), "long before the lease: {:?}", began.elapsed());
    }
}

#[test]
fn another_run_takes_over_at_once() {
    let sandbox = sandbox();
    let victim = sandbox.start_run(&["-j", "2", "--lease", "200"]);
    pids(&sandbox);
    let survivor = sandbox.start_run(&["-j", "2"]);
    let began = Instant::now();
    kill(victim);
    let ran = finish(survivor);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(sandbox.log(), ["first", "again"]);
}

#[test]
fn launchers_end_with_their_run() {
    let sandbox = sandbox();
    let run = sandbox.start_run(&["-j", "8"]);
    pids(&sandbox);
    await_that("eight launchers", || children(run.id()).len() == 8);
    let launchers = children(run.id());
    kill(run);
    await_that("their end", || !launchers.iter().any(|pid| runs(pid)));
}

#[test]
fn when_a_launcher_is_killed_its_command_dies_and_is_tried_again() {
    let sandbox = Sandbox::new(&[
        r#"{"name":"a","run":"test -e pid && exec echo again >> $LOG; sleep 1000 & echo $! >> pid; echo $$ >> pid; echo first >> $LOG; wait"}"#,
    ]);
    let run = sandbox.start_run(&["-j", "1", "--lease", "200"]);
    sandbox.await_log("first");
    let text = std::fs::read_to_string(sandbox.path("pid")).unwrap();
    let pids: Vec<&str> = text.lines().collect();
    let launcher = parent(pids[1]);
    assert_eq!(parent(&launcher.to_string()), run.id());
    signal(launcher, "KILL");
    await_that("the end of the command", || !pids.iter().any(|pid| runs(pid)));
    let ran = finish(run);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(sandbox.log(), ["first", "again"]);
    assert!(ran.out.contains("its launcher was killed") || ran.out.contains("lost a"), "{ran:?}");
}

#[test]
fn an_idle_launcher_that_is_killed_is_replaced() {
    let sandbox = Sandbox::new(&[r#"{"name":"a","run":"echo a >> $LOG","role":"r"}"#]);
    assert_eq!(sandbox.tenure(&["import", "graph.jsonl"]).code, Some(0));
    let work = sandbox.start(&["work", "--holder", "w", "--max-nodes", "1"]);
    await_that("the launcher", || children(work.id()).len() == 1);
    let launcher = children(work.id()).remove(0);
    signal(launcher.parse().unwrap(), "KILL");
    await_that("another", || children(work.id()).iter().any(|pid| *pid != launcher && runs(pid)));
    assert_eq!(sandbox.tenure(&["upsert", "b"]).code, Some(0));
    assert_eq!(finish(work).code, Some(0));
    assert_eq!(sandbox.node("b").status.name(), "done");
}

#[test]
fn when_a_run_is_stopped_its_command_is_gone_before_the_lease_is_over() {
    let sandbox = sandbox();
    // Half a second between the end of the command and that of the lease: a tenth of a second is little on a busy machine.
    let run = sandbox.start_run(&["-j", "2", "--lease", "5"]);
    let pids = pids(&sandbox);
    let table = sandbox.table();
    let thief = table.worker("thief").unwrap();
    signal(run.id(), "STOP");
    let (claim, left) = take(&thief, &pids);
    assert!(left.is_empty(), "{left:?} of {pids:?}");
    // What the run says when it goes on is refused, and the claim of the other is as it was.
    signal(run.id(), "CONT");
    let pid = run.id().to_string();
    await_that("the launcher of the lost claim to go", || children(run.id()).len() <= 2 && runs(&pid));
    std::thread::sleep(Duration::from_millis(300));
    let held = sandbox.node("a");
    assert_eq!((held.holder.as_deref(), held.generation), (Some("thief"), claim.generation()));
    claim.complete(Outcome::Done).unwrap();
    let ran = finish(run);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("lost a gen=1"), "{ran:?}");
    assert_eq!(sandbox.log(), ["first"]);
}

#[test]
fn a_stopped_run_that_nobody_has_taken_over_does_the_node_again() {
    let sandbox = sandbox();
    let run = sandbox.start_run(&["-j", "1", "--lease", "0.5"]);
    let pids = pids(&sandbox);
    signal(run.id(), "STOP");
    let began = Instant::now();
    await_that("the end of the command", || !pids.iter().any(|pid| runs(pid)));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    signal(run.id(), "CONT");
    let ran = finish(run);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(sandbox.log(), ["first", "again"]);
    assert!(ran.out.contains("a gen=1: "), "{ran:?}");
}

#[test]
fn what_a_command_leaves_running_stays_only_if_its_node_is_done() {
    for (end, stays) in [("exit 0", true), ("exit 3", false), ("kill -9 $$", false)] {
        let sandbox = Sandbox::new(&[&format!(
            r#"{{"name":"a","run":"setsid sleep 1000 > /dev/null 2>&1 & echo $! >> $LOG; {end}"}}"#
        )]);
        let ran = sandbox.run(&["-j", "1"]);
        assert_eq!(ran.code, Some(i32::from(!stays)), "{ran:?}");
        let pid = sandbox.log().remove(0);
        assert_eq!(runs(&pid), stays, "{end}");
        if stays {
            signal(pid.parse().unwrap(), "KILL");
        }
    }
}

#[test]
fn a_command_is_given_no_descriptor_of_ours() {
    let lines: Vec<String> =
        (0..40).map(|i| format!(r#"{{"name":"n{i}","run":"exec ls /proc/self/fd >> $LOG"}}"#)).collect();
    let sandbox = Sandbox::new(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(sandbox.run(&["-j", "8"]).code, Some(0));
    // Besides the directory that is listed, those that this process was given itself and hands on to everybody.
    let direct = Command::new("ls").arg("/proc/self/fd").output().expect("ls runs");
    let direct = String::from_utf8(direct.stdout).expect("numbers");
    let mut wanted: Vec<&str> = std::iter::repeat_n(direct.lines(), 40).flatten().collect();
    let log = sandbox.log();
    let mut found: Vec<&str> = log.iter().map(String::as_str).collect();
    wanted.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, wanted);
}

#[test]
fn a_launcher_is_not_started_by_hand() {
    let sandbox = Sandbox::new(&[]);
    for args in [&["launch-a-command"][..], &["launch-a-command", "become"], &["launch-a-command", "x"]] {
        let ran = sandbox.tenure(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.err.starts_with("tenure: "), "{ran:?}");
    }
}

/// What a runner says that was stopped between its last renewal and the start of the command.
#[test]
fn a_launcher_starts_nothing_when_the_lease_is_over() {
    let sandbox = Sandbox::new(&[]);
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut launcher = sandbox.command(&["launch-a-command"]);
    let mut launcher = launcher.stdin(OwnedFd::from(theirs)).stdout(Stdio::piped()).spawn().unwrap();
    let word = |text: &str| format!(r#"{{"Unix":{:?}}}"#, text.as_bytes());
    let start = |until_ms: u64| {
        let command = [word("sh"), word("-c"), word("echo started")].join(",");
        format!(r#"{{"Start":{{"command":[{command}],"env":[],"until_ms":{until_ms}}}}}"#)
    };
    writeln!(&ours, "{}", start(1)).unwrap();
    let mut said = BufReader::new(&ours).lines().map(Result::unwrap);
    assert_eq!(said.next().unwrap(), r#""OutOfTime""#);
    // The same with time left.
    writeln!(&ours, "{}", start(u64::MAX)).unwrap();
    assert_eq!(said.next().unwrap(), r#"{"Exited":{"code":0,"signal":null}}"#);
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    let mut out = String::new();
    launcher.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!((out.as_str(), launcher.wait().unwrap().code()), ("started\n", Some(0)));
}
