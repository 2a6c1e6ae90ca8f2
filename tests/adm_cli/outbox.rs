//! The outbox through the program: kept until taken, sent again by hand, edited under a new id, never by itself.

use crate::support::World;

fn file(name: &str, state: &str, last: &str) -> (String, String, String) {
    (name.to_owned(), state.to_owned(), last.to_owned())
}

/// A54: the ledger is away; the input is kept, and sent later by hand.
#[test]
fn what_could_not_be_sent_is_sent_later() {
    let world = World::new();
    let input = world.file("in", "precious\n");
    let away = "postgres://nobody@127.0.0.1:1/none?connect_timeout=2";
    world.ok(["machine", "show"]);
    // The keys of several hosts are needed to speak to a server at all.
    make_issuer(&world, away);
    let ran = world.run(["submit", "docs", "--ledger", away, "--request", "r1", "--input", &input, "--", "cat"]);
    ran.refused(75, "cannot reach the ledger");
    assert!(ran.err.contains("outbox send r1/1"), "{ran:?}");
    assert!(!ran.err.contains("panicked"));
    let kept = world.outbox();
    assert_eq!((kept[0].0.as_str(), kept[0].1.as_str()), ("r1.1", "new"), "{kept:?}");
    world.ok(["outbox", "send", "r1"]);
    assert_eq!(world.outbox(), [file("r1.1", "sent", "accepted")]);
    let ran = world.run(["pickup", "--exec"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "precious\n"));
}

/// `migrate` makes the keys before it finds that nobody answers.
fn make_issuer(world: &World, away: &str) {
    assert_eq!(world.run(["migrate", "--ledger", away]).code, Some(75));
    assert!(world.state().join("issuer.key").exists());
}

/// A start that could not be sent is run when it is sent.
#[test]
fn a_start_from_the_outbox_runs_its_command() {
    let world = World::new();
    world.ok(["legacy", "take", "docs", "old"]);
    let input = world.file("in", "hello\n");
    world.run(["start", "docs", "--request", "r1", "--input", &input, "--", "cat"]).refused(25, "old");
    assert_eq!(world.outbox(), [file("r1.1", "refused", "busy_legacy")]);
    world.ok(["legacy", "drop", "docs", "old"]);
    assert_eq!(world.ok(["outbox", "send", "r1"]), "hello");
    assert_eq!(world.outbox(), [file("r1.1", "sent", "accepted")]);
}

/// Nothing leaves by itself: neither another verb nor --all fires what would run a command here.
#[test]
fn nothing_is_sent_by_itself() {
    let world = World::new();
    world.ok(["legacy", "take", "docs", "old"]);
    assert_eq!(world.run(["start", "docs", "--request", "r1", "--", "touch", "ran"]).code, Some(25));
    world.ok(["legacy", "drop", "docs", "old"]);
    world.ok(["history"]);
    assert_eq!(world.run(["pickup", "--exec"]).code, Some(3));
    assert_eq!(world.run(["outbox", "send", "--all"]).code, Some(3));
    assert!(!world.place().join("ran").exists());
    assert_eq!(world.outbox(), [file("r1.1", "refused", "busy_legacy")]);
}

#[test]
fn another_content_needs_another_id() {
    let world = World::new();
    world.policy("");
    let (one, two) = (world.file("one", "one\n"), world.file("two", "two\n"));
    assert_eq!(world.run(["submit", "docs", "--request", "r1", "--input", &one, "--", "cat"]).code, Some(14));
    world.run(["outbox", "edit", "r1", "--request", "r1", "--input", &two]).refused(2, "another request");
    world.ok(["outbox", "edit", "r1", "--request", "r2", "--input", &two]);
    assert_eq!(world.outbox(), [file("r1.1", "refused", "denied"), file("r2.1", "new", "")]);
    std::fs::remove_file(world.state().join("policy.toml")).unwrap();
    world.ok(["outbox", "send", "--all"]);
    assert_eq!(world.ok(["pickup", "--exec"]), "two");
    world.ok(["outbox", "drop", "r1"]);
    world.ok(["outbox", "drop", "--sent"]);
    assert_eq!(world.outbox(), []);
    world.run(["outbox", "drop", "r1"]).refused(4, "no r1 in the outbox");
}

/// A full or broken outbox: nothing is sent that is not kept.
#[test]
fn what_cannot_be_kept_is_not_sent() {
    let world = World::new();
    std::fs::create_dir_all(world.state().join("outbox")).unwrap();
    std::fs::write(world.state().join("outbox/tmp"), "in the way").unwrap();
    let ran = world.run(["submit", "docs", "--request", "r1", "--", "true"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert_eq!(world.all(["history"]).len(), 0);
}

#[test]
fn the_input_has_a_limit() {
    let world = World::new();
    let long = world.file("long", vec![b'x'; (16 << 20) + 1]);
    world.run(["start", "docs", "--request", "r1", "--input", &long, "--", "true"]).refused(2, "nothing is cut");
    world.run(["start", "docs", "--request", "r1", "--input", "/nowhere", "--", "true"]).refused(2, "cannot read");
    assert_eq!(world.outbox(), []);
}

/// A54: killed at any system call of a submit, the input is in the outbox whole or the ledger has it; sent again, there is
/// one row.
#[test]
fn a_submit_that_is_killed_anywhere_loses_nothing() {
    let world = World::new();
    let input = world.file("in", "precious\n");
    let mut killed = 0;
    for call in ["write", "fsync", "fdatasync", "rename", "renameat2", "pwrite64", "unlink"] {
        for nth in 1..=6 {
            let request = format!("{call}-{nth}");
            let args = [
                "adm",
                "submit",
                "docs",
                "--if-waiting",
                "replace",
                "--request",
                &request,
                "--input",
                &input,
                "--",
                "cat",
            ];
            let mut command = std::process::Command::new("strace");
            world.environment(&mut command);
            command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("inject={call}:signal=KILL:when={nth}")]);
            let ended = command.arg(env!("CARGO_BIN_EXE_tenure")).args(args).output().expect("strace is there");
            if ended.status.success() {
                continue;
            }
            killed += 1;
            // Whatever happened, the same send once more ends as one row.
            world.ok(&args[1..]);
            assert_eq!(world.all(["history", "--request", &request]).len(), 1, "{request}");
            // What was cut off while it was written is shown, and the whole of it is there beside that.
            let kept = world.all(["outbox", "list", "--all"]);
            assert!(
                kept.iter().any(|entry| entry["request"] == request.as_str() && entry["state"] == "sent"),
                "{kept:?}"
            );
        }
    }
    assert!(killed >= 15, "only {killed} were killed");
    assert_eq!(world.ok(["fsck"]), "the ledger keeps its rules");
}
