//! Claims that stand and fall with a process.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tenure::{ClaimOptions, Refusal, Table};

use crate::sleeper::Sleeper;
use crate::support::Sandbox;

/// A process that does nothing until it is killed.
fn somebody() -> Child {
    Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("cat starts")
}

fn kill(mut child: Child) {
    child.kill().expect("SIGKILL to a child");
    child.wait().expect("its end");
}

/// A table with `a`, held for five minutes or until that process ends.
fn held_by(process: &Child) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "a"]);
    let pid = process.id().to_string();
    assert_eq!(sandbox.ok(["claim", "a", "--holder", "h", "--lease", "300", "--pid", &pid]), "gen=1");
    sandbox
}

#[test]
fn while_the_process_runs_the_node_is_held() {
    let process = somebody();
    let sandbox = held_by(&process);
    assert_eq!(sandbox.ok(["reclaim"]), "");
    sandbox.run(["claim", "a", "--holder", "w"]).refused(1, "h");
    sandbox.run(["claim-next", "--holder", "w", "--wait", "0.7"]).refused(3, "nothing is ready");
    assert_eq!(sandbox.one(["stats"])["leases_run_out"], 0);
    kill(process);
    assert_eq!(sandbox.one(["stats"])["leases_run_out"], 1);
}

#[test]
fn when_the_process_is_gone_whoever_asks_for_the_node_gets_it() {
    let process = somebody();
    let sandbox = held_by(&process);
    kill(process);
    assert_eq!(sandbox.ok(["claim", "a", "--holder", "w"]), "gen=3");
    sandbox.run(["complete", "a", "--holder", "h", "--gen", "1"]).refused(1, "generation");
}

#[test]
fn when_the_process_is_gone_reclaim_finds_it() {
    let process = somebody();
    let sandbox = held_by(&process);
    kill(process);
    assert!(sandbox.ok(["reclaim"]).starts_with("a gen=2 holder=h"));
}

#[test]
fn when_the_process_is_gone_a_waiter_gets_the_node() {
    let process = somebody();
    let sandbox = held_by(&process);
    let sleeper = Sleeper::start(&sandbox, "w", &[]);
    let began = Instant::now();
    kill(process);
    let ran = sleeper.finish("the end of the process");
    assert_eq!(ran.out, "a gen=3\n", "{ran:?}");
    // Half a second until the next look, and what a busy machine adds.
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

#[test]
fn a_process_that_waits_to_be_reaped_is_gone() {
    let mut process = somebody();
    let sandbox = held_by(&process);
    process.kill().unwrap();
    let began = Instant::now();
    while sandbox.ok(["reclaim"]).is_empty() {
        assert!(began.elapsed() < Duration::from_secs(5), "a zombie holds the node");
    }
    process.wait().unwrap();
}

#[test]
fn a_later_claim_is_not_that_process_s() {
    let process = somebody();
    let sandbox = held_by(&process);
    sandbox.ok(["release", "a", "--holder", "h"]);
    sandbox.ok(["claim", "a", "--holder", "h"]);
    kill(process);
    assert_eq!(sandbox.ok(["reclaim"]), "");
    assert_eq!(sandbox.status("a"), "claimed");
}

#[test]
fn a_process_that_never_was_is_a_mistake() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "a"]);
    for pid in ["4194305", "4294967295"] {
        sandbox.run(["claim", "a", "--holder", "h", "--pid", pid]).refused(2, "no such process");
        sandbox.run(["claim-next", "--holder", "h", "--pid", pid, "--json"]).refused_json(2, "usage");
    }
    for pid in ["0", "x", "-1", ""] {
        assert_eq!(sandbox.run(["claim", "a", "--holder", "h", &format!("--pid={pid}")]).code, Some(2), "{pid:?}");
    }
    let gone = somebody();
    let pid = gone.id().to_string();
    kill(gone);
    sandbox.run(["claim", "a", "--holder", "h", "--pid", &pid]).refused(2, "no such process");
    assert_eq!(sandbox.status("a"), "ready");
}

#[test]
fn a_library_user_ties_claims_to_itself_or_to_another() {
    let sandbox = Sandbox::new();
    for node in ["a", "b"] {
        sandbox.ok(["upsert", node]);
    }
    let table = Table::open(sandbox.dir()).unwrap();
    let mine = table.worker("mine").unwrap().tied_to_this_process();
    let claim = mine.claim_next().unwrap();
    assert_eq!(sandbox.ok(["reclaim"]), "", "this process runs");
    let process = somebody();
    let other = table.worker("other").unwrap().tied_to_this_process();
    let options = ClaimOptions { pid: Some(process.id()), ..ClaimOptions::default() };
    let theirs = other.claim_next_with(&options).unwrap();
    kill(process);
    assert!(sandbox.ok(["reclaim"]).starts_with("b gen=2 holder=other"), "the one named in the options counts");
    assert!(matches!(
        theirs.renew(),
        Err(Refusal::GenerationMismatch { .. } | Refusal::NotHolder { .. } | Refusal::NotHeld { .. })
    ));
    claim.renew().unwrap();
}
