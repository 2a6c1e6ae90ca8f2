//! Groups: so many of their nodes may be claimed at once and never one more.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tenure::{CreateOptions, NodeId, NodeSpec, Outcome, Refusal, Table};

use crate::support::Sandbox;

/// `a`, `b`, `c` in the group `g`.
fn three(limit: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.ok(["group", "g", "--limit", limit]);
    for node in ["a", "b", "c"] {
        sandbox.ok(["upsert", node, "--group", "g"]);
    }
    sandbox
}

#[test]
fn a_full_group_refuses_and_the_search_goes_past_it() {
    let sandbox = three("2");
    sandbox.ok(["upsert", "free"]);
    sandbox.claim("a", "h1");
    sandbox.claim("b", "h2");
    let ran = sandbox.run(["claim", "c", "--holder", "h3", "--json"]);
    let refused = ran.refused_json(1, "group_full");
    assert_eq!((&refused["node"], &refused["group"], &refused["limit"]), (&json!("c"), &json!("g"), &json!(2)));
    assert_eq!(sandbox.ok(["claim-next", "--holder", "h3"]), "free gen=1");
    sandbox.run(["claim-next", "--holder", "h4"]).refused(3, "nothing is ready");
    // A refused claim leaves no trace; the next one is granted.
    sandbox.ok(["complete", "a", "--holder", "h1"]);
    assert_eq!(sandbox.ok(["claim-next", "--holder", "h4"]), "c gen=1");
}

#[test]
fn claims_that_lost_the_last_seat_are_no_attempts() {
    let dir = tempfile::tempdir().expect("a directory");
    let (table, _) = Table::open_or_create(dir.path(), &CreateOptions::default()).expect("a table");
    table.set_group("g", 1).expect("room");
    let node = |i: usize| NodeSpec {
        name: Some(format!("n{i}")),
        group: Some("g".into()),
        max_attempts: Some(2),
        ..NodeSpec::default()
    };
    table.import(&(0..300).map(node).collect::<Vec<_>>()).expect("room");
    let lost = std::sync::atomic::AtomicU64::new(0);
    // Each has nodes of its own, and all share the one seat: who is refused it has often reserved its node before.
    std::thread::scope(|scope| {
        for who in 0..6 {
            let (table, lost) = (table.clone(), &lost);
            scope.spawn(move || {
                let worker = table.worker(&format!("w{who}")).expect("a name");
                for i in (who..300).step_by(6) {
                    let claim = loop {
                        match worker.claim(NodeId::of_name(&format!("n{i}"))) {
                            Ok(claim) => break claim,
                            Err(_) => drop(lost.fetch_add(1, std::sync::atomic::Ordering::Relaxed)),
                        }
                    };
                    // Lets others run while the seat is taken, however few processors there are.
                    std::thread::yield_now();
                    claim.complete(Outcome::Done).expect("held");
                }
            });
        }
    });
    assert!(lost.into_inner() > 0, "nobody was ever refused: nothing was shown");
    for i in 0..300 {
        let node = table.get(NodeId::of_name(&format!("n{i}"))).expect("it is there");
        assert_eq!((node.attempts, node.generation), (1, 1), "{node:?}");
    }
}

#[test]
fn a_limit_is_changed_and_takes_nothing_away() {
    let sandbox = three("2");
    sandbox.claim("a", "h1");
    sandbox.claim("b", "h2");
    assert_eq!(sandbox.one(["group", "g", "--limit", "1"]), json!({"group": "g", "limit": 1, "changed": true}));
    assert_eq!(sandbox.one(["group"]), json!({"name": "g", "limit": 1, "claimed": 2, "nodes": 3}));
    sandbox.ok(["renew", "a", "--holder", "h1"]);
    sandbox.ok(["release", "a", "--holder", "h1"]);
    sandbox.run(["claim", "a", "--holder", "h1"]).refused(1, "g");
    sandbox.ok(["group", "g", "--limit", "3"]);
    sandbox.claim("a", "h1");
    sandbox.claim("c", "h3");
    assert_eq!(sandbox.one(["group", "g", "--limit", "3"])["changed"], false);
}

#[test]
fn groups_are_listed() {
    let sandbox = three("2");
    sandbox.ok(["group", "disk", "--limit", "4096"]);
    sandbox.claim("a", "h1");
    assert_eq!(sandbox.ok(["group"]), "g  1 of 2 claimed, 3 nodes\ndisk  0 of 4096 claimed, 0 nodes");
    assert_eq!(sandbox.ok(["group", "disk"]), "disk  0 of 4096 claimed, 0 nodes");
    sandbox.run(["group", "nobody"]).refused(1, "nobody");
    let names: Vec<_> = sandbox.json(["group"]).iter().map(|group| group["name"].clone()).collect();
    assert_eq!(names, ["g", "disk"]);
    assert_eq!(sandbox.one(["get", "a"])["group"], "g");
    assert!(sandbox.ok(["get", "a"]).contains("group          g\n"));
    assert_eq!(sandbox.ok(["group", "d", "--limit", "1"]), "at most 1 of group d at once");
    let hostile = Sandbox::new();
    assert_eq!(hostile.ok(["group"]), "");
    hostile.ok(["group", "\u{1b}[31mred", "--limit", "1"]);
    assert!(!hostile.ok(["group"]).contains('\u{1b}'));
}

#[test]
fn what_is_no_group_or_no_limit_is_refused() {
    let sandbox = three("2");
    let ran = sandbox.run(["upsert", "a", "--group", "nosuch", "--json"]);
    let refused = ran.refused_json(1, "no_such_group");
    assert_eq!(refused["group"], "nosuch");
    sandbox.run(["upsert", "new", "--group", "nosuch"]).refused(1, "tenure group nosuch --limit N");
    assert_eq!(sandbox.run(["get", "new"]).code, Some(4));
    for args in [["group", "g", "--limit", "0"], ["group", "g", "--limit", "4097"]] {
        sandbox.run(args).refused(2, "limit");
    }
    for args in [["group", "--limit", "2"].as_slice(), &["group", "g", "--limit", "x"]] {
        assert_eq!(sandbox.run(args).code, Some(2), "{args:?}");
    }
    sandbox.run(["group", "", "--limit", "1"]).refused(2, "group");
    assert_eq!(sandbox.run(["group", &"x".repeat(65), "--limit", "1"]).code, Some(2));
    assert_eq!(sandbox.one(["group"])["limit"], 2);
}

#[test]
fn an_empty_group_takes_a_node_out_of_it() {
    let sandbox = three("1");
    sandbox.claim("a", "h1");
    sandbox.run(["claim", "b", "--holder", "h2"]).refused(1, "g");
    sandbox.ok(["upsert", "b", "--group", ""]);
    sandbox.claim("b", "h2");
    assert_eq!(sandbox.one(["get", "b"])["group"], json!(null));
}

const DIR: &str = "TENURE_TEST_GROUP_TABLE";
const NAME: &str = "TENURE_TEST_GROUP_NAME";
const LIMIT: usize = 3;
const MEMBERS: usize = 40;

/// Not a test of its own: what a contending process runs until it is killed. It counts itself in and out with files whose
/// names say under which claim, so that a look at the directory shows who may have been in at once.
#[test]
fn contender_entry() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let name = std::env::var(NAME).expect("a name");
    let table = Table::open(PathBuf::from(&dir).join("t")).expect("the parent made the table");
    let worker = table.worker(&name).expect("a worker");
    let mut log = OpenOptions::new().append(true).open(PathBuf::from(&dir).join("log")).expect("the log");
    loop {
        let claim = match worker.claim_next() {
            Ok(claim) => claim,
            Err(Refusal::NothingReady | Refusal::Contended { .. }) => {
                std::thread::yield_now();
                continue;
            }
            Err(Refusal::Busy { .. }) => {
                if let Ok(Some(claim)) = worker.current() {
                    let _ = claim.release();
                }
                continue;
            }
            Err(other) => panic!("{other}"),
        };
        let (node, generation) = (claim.task().map(|task| task.label()), claim.generation());
        // One write for one line: what several processes append does not mix.
        let _ = log.write_all(format!("in {} {generation}\n", node.unwrap_or_default()).as_bytes());
        std::thread::sleep(Duration::from_micros(50));
        let _ = log.write_all(format!("out {generation}\n").as_bytes());
        match generation % 3 {
            0 => drop(claim.complete(Outcome::Failed)),
            _ => drop(claim.release()),
        }
    }
}

fn contender(dir: &std::path::Path, name: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "groups::contender_entry", "--nocapture"])
        .env(DIR, dir)
        .env(NAME, name)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("this program starts again")
}

#[test]
fn the_limit_holds_under_sixteen_processes_that_are_killed_at_random() {
    let root = tempfile::tempdir().unwrap();
    let options = CreateOptions { lease_ms: Some(50), ..CreateOptions::default() };
    let (table, _) = Table::open_or_create(root.path().join("t"), &options).unwrap();
    std::fs::write(root.path().join("log"), "").unwrap();
    table.set_group("g", LIMIT as u32).unwrap();
    let specs: Vec<NodeSpec> = (0..MEMBERS)
        .map(|i| NodeSpec {
            name: Some(format!("n{i}")),
            group: Some("g".to_owned()),
            // Failed attempts are tried again, all the time.
            max_attempts: Some(60_000),
            ..NodeSpec::default()
        })
        .collect();
    for spec in &specs {
        table.upsert(spec, false).unwrap();
    }
    let mut crew: Vec<Child> = (0..16).map(|i| contender(root.path(), &format!("h{i}"))).collect();
    let began = Instant::now();
    let (mut looks, mut kills, mut most) = (0, 0, 0);
    while began.elapsed() < Duration::from_millis(3_000) {
        // A cut: all of these were claimed at one moment.
        let group = table.groups().unwrap().remove(0);
        assert!(group.claimed as usize <= LIMIT, "{group:?}");
        (looks, most) = (looks + 1, most.max(group.claimed));
        if looks % 40 == 0 {
            let victim = (looks * 7_919) % crew.len();
            crew[victim].kill().unwrap();
            crew[victim].wait().unwrap();
            crew[victim] = contender(root.path(), &format!("h{victim}"));
            kills += 1;
        }
        std::thread::sleep(Duration::from_micros(400));
    }
    for child in &mut crew {
        let _ = child.kill();
        let _ = child.wait();
    }
    let log = std::fs::read_to_string(root.path().join("log")).unwrap();
    let claims: Vec<&str> = log.lines().filter(|line| line.starts_with("in ")).collect();
    let distinct: std::collections::HashSet<&&str> = claims.iter().collect();
    assert_eq!(distinct.len(), claims.len(), "a claim was granted twice");
    assert!(claims.len() > 200 && kills >= 5 && looks > 100, "{} claims, {kills} kills, {looks} looks", claims.len());
    assert_eq!(most as usize, LIMIT, "the seats are used");
    // Nothing of the killed is left: all seats are free once the leases are over.
    table.reclaim(Some(0)).unwrap();
    assert_eq!(table.groups().unwrap()[0].claimed, 0);
    for i in 0..LIMIT {
        let worker = table.worker(&format!("after{i}")).unwrap();
        assert!(worker.claim(NodeId::of_name(&format!("n{i}"))).unwrap().generation() > 0);
    }
    let worker = table.worker("one-too-many").unwrap();
    assert!(matches!(worker.claim_next(), Err(Refusal::NothingReady)));
}
