//! The policy is asked on every send, resend, attach and start, as it stands then.

use serde_json::json;

use crate::support::{World, wait_for};

const ALL: &str = "[[rule]]\neffect = \"allow\"\n";
const NONE: &str = "[[rule]]\neffect = \"deny\"\nreason = \"closed for the weekend\"\n";

/// A20, A56, A57: a refusal writes nothing but its note, and the input stays.
#[test]
fn a_denied_start_leaves_its_input_and_a_reason() {
    let world = World::new();
    world.policy(NONE);
    let input = world.file("in", "precious");
    let start = || world.run(["start", "docs", "--request", "r1", "--input", &input, "--", "touch", "ran"]);
    start().refused(14, "closed for the weekend");
    assert_eq!(world.all(["history"]).len(), 0);
    assert_eq!(world.outbox(), [("r1.1".to_owned(), "refused".to_owned(), "denied".to_owned())]);
    assert!(std::fs::read(world.state().join("outbox/refused/r1.1")).unwrap().ends_with(b"precious"));
    let noted = world.all(["refusals", "docs"]);
    assert_eq!((&noted[0]["code"], &noted[0]["reason"]), (&json!("denied"), &json!("denied: closed for the weekend")));
    assert!(!world.place().join("ran").exists());
    // Monday: the same send is taken.
    world.policy(ALL);
    assert_eq!(start().code, Some(0));
    assert_eq!(world.outbox(), [("r1.1".to_owned(), "sent".to_owned(), "accepted".to_owned())]);
}

/// A17, A18, A21: withdrawn, a resend gets no credential, and what is open stays as it was.
#[test]
fn a_right_that_is_withdrawn_is_withdrawn_for_the_resend() {
    let world = World::new();
    world.policy(ALL);
    let first = world.one(["admit", "docs", "--request", "r1"]);
    world.policy(NONE);
    let refused = world.run(["admit", "docs", "--request", "r1", "--json"]).refused_json(14, "denied");
    assert_eq!(refused.get("token"), None);
    world.run(["attach", first["admission"].as_str().unwrap()]).refused(14, "weekend");
    let shown = world.shown("r1");
    assert_eq!((&shown["phase"], &shown["attach_number"]), (&json!("admitted"), &json!(1)));
    // Denied is said before busy: who may not start is not told who owns.
    world.run(["admit", "docs", "--request", "r2"]).refused(14, "weekend");
}

/// Withdrawn while it runs: it may go on for as long as its credential is good, and no longer.
#[test]
fn a_right_that_is_withdrawn_ends_a_run_when_its_credential_does() {
    let world = World::new();
    world.policy(ALL);
    let running = world.spawn(["start", "docs", "--request", "r1", "--credential", "2", "--", "sleep", "1000"]);
    world.until("r1", "started");
    world.policy(NONE);
    let ran = running.end();
    assert_eq!(ran.code, Some(143), "{ran:?}");
    let shown = world.shown("r1");
    assert_eq!(shown["closing"], "interrupted");
    assert!(shown["reason"].as_str().unwrap().contains("weekend"), "{shown}");
}

/// Denied at the start only: nothing ran, and the surface is free again.
#[test]
fn a_start_that_is_denied_at_the_last_moment_frees_the_surface() {
    let world = World::new();
    world.policy(
        "[[rule]]\neffect = \"deny\"\noccasion = \"start\"\nreason = \"not now\"\n[[rule]]\neffect = \"allow\"\n",
    );
    world.run(["start", "docs", "--request", "r1", "--", "touch", "ran"]).refused_code(14);
    assert_eq!(world.shown("r1")["closing"], "failed_before_start");
    assert!(!world.place().join("ran").exists());
    world.policy(ALL);
    assert_eq!(world.run(["start", "docs", "--request", "r2", "--", "true"]).code, Some(0));
}

impl crate::support::Ran {
    #[track_caller]
    fn refused_code(&self, code: i32) {
        assert_eq!(self.code, Some(code), "{self:?}");
    }
}

#[test]
fn a_policy_that_cannot_be_used_lets_nobody_start() {
    let world = World::new();
    world.policy("[[rule]]\neffect = \"allow\"\nsubjet = \"x\"\n");
    let ran = world.run(["start", "docs", "--request", "r1", "--", "true"]);
    ran.refused(14, "policy_unavailable");
    assert!(ran.err.contains("subjet"), "{ran:?}");
    // What needs no permission goes on.
    assert_eq!(world.run(["history"]).code, Some(0));
}

/// The program is given the facts and decides; it is never asked while the ledger is locked.
#[test]
fn a_program_can_decide() {
    let world = World::new();
    let hook = world.file(
        "hook",
        "cat >> ../facts; tenure_busy=1; grep -q . ../facts && test -e ../open || { echo ask Bob; exit 1; }",
    );
    let root = world.root();
    world.policy(&format!("command = [\"/bin/sh\", \"-c\", \"cd {}/place && . {hook}\"]\n", root.display()));
    world.run(["start", "docs", "--request", "r1", "--", "true"]).refused(14, "ask Bob");
    world.file("open", "");
    assert_eq!(world.run(["start", "docs", "--request", "r1", "--", "true"]).code, Some(0));
    let facts = std::fs::read_to_string(root.join("facts")).unwrap();
    let occasions: Vec<String> = facts
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["occasion"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(occasions, ["first", "first", "start"]);
}

/// What the program says on standard error reaches the person and not the terminal; also when it is cut off.
#[test]
fn the_complaints_of_a_program_are_harmless() {
    let world = World::new();
    let said = "printf 'look\\033[2J\\033]0;x\\007 here\\rand there\\nsecond\\n' >&2";
    world.policy(&format!("command = [\"/bin/sh\", \"-c\", {:?}]\n", format!("{said}; echo no; exit 1")));
    let ran = world.run(["start", "docs", "--request", "r1", "--", "true"]);
    ran.refused(14, "denied: no");
    assert!(ran.err.contains("look\u{fffd}[2J\u{fffd}]0;x\u{fffd} here\u{fffd}and there\nsecond\n"), "{ran:?}");
    assert!(!ran.err.chars().any(|c| c.is_control() && c != '\n'), "{ran:?}");
    world.policy(&format!("command = [\"/bin/sh\", \"-c\", {:?}]\n", format!("{said}; sleep 1000")));
    // A machine may be too busy to start it in the time that it has.
    wait_for("the complaint of one that is cut off", || {
        let ran = world.run(["start", "docs", "--request", "r1", "--", "true"]);
        ran.refused(14, "no answer within");
        ran.err.contains("second\n").then_some(())
    });
}

/// While a slow program decides, others use the ledger.
#[test]
fn a_slow_program_holds_nobody_up() {
    let world = World::new();
    let asked = world.root().join("asked");
    world.policy(&format!("command = [\"/bin/sh\", \"-c\", \"touch {}; sleep 1.5\"]\n", asked.display()));
    let slow = world.spawn(["submit", "docs", "--request", "r1", "--", "true"]);
    wait_for("the program to be asked", || asked.exists().then_some(()));
    world.ok(["surface", "add", "other", "--timeout", "0.2"]);
    assert_eq!(slow.end().code, Some(0));
}

/// One that may not be started any more does not keep a waiting pickup from what comes after it.
#[test]
fn a_pickup_that_waits_outlives_one_that_is_denied() {
    let world = World::new();
    world.policy(ALL);
    world.ok(["submit", "docs", "--request", "r1", "--", "touch", "ran"]);
    world.one(["pickup", "--credential", "0.001"]);
    let far = world.root().join("far");
    std::fs::create_dir(&far).unwrap();
    world.ok(["surface", "add", "far"]);
    world.ok(["place", "far", "--path", far.to_str().unwrap()]);
    world.policy(
        "[[rule]]\neffect = \"deny\"\nsurface = \"docs\"\noccasion = \"attach\"\n\n[[rule]]\neffect = \"allow\"\n",
    );
    let waiting = world.spawn(["pickup", "--exec", "--wait=50"]);
    wait_for("the refusal", || (!world.all(["refusals", "docs"]).is_empty()).then_some(()));
    world.ok(["submit", "far", "--request", "r2", "--", "true"]);
    world.until("r2", "closed");
    waiting.signal(rustix::process::Signal::TERM);
    assert_eq!(waiting.end().code, None, "ended by the signal itself");
    assert_eq!(world.shown("r1")["phase"], "admitted");
    assert!(!world.place().join("ran").exists());
}
