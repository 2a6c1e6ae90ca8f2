//! Several hosts with one PostgreSQL: two homes with keys of their own, one of them with the issuer's secret key.

use serde_json::json;

use crate::server::Schema;
use crate::support::{World, finish, wait_for, wait_for_file};

/// The same round as on one host.
#[test]
fn a_start_a_resend_and_a_conflict_on_a_server() {
    let schema = Schema::new();
    let world = World::on(schema.url());
    let input = world.file("in", "hello\n");
    let start = |command: &str| world.run(["start", "docs", "--request", "r1", "--input", &input, "--", command]);
    let ran = start("cat");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "hello\n"), "{ran:?}");
    start("cat").refused(17, "succeeded");
    start("tac").refused(11, "other contents");
    assert_eq!(world.ok(["fsck"]), "the ledger keeps its rules");
    assert!(!world.ledger_file().exists(), "nothing is kept on this side");
}

/// A54: the input is kept before anything else, also where no key of the issuer is, and where the one that is there makes no
/// credentials.
#[test]
fn without_the_issuers_key_the_input_is_kept() {
    let schema = Schema::new();
    let issuer = World::on(schema.url());
    let machine = World::on_without_keys(schema.url());
    let input = machine.file("in", "hello\n");
    let words = |verb, request| [verb, "docs", "--request", request, "--input", &input, "--", "cat"].map(str::to_owned);
    machine.run(words("submit", "r1")).refused(5, "the input is kept: `tenure adm outbox send r1/1`");
    let said = finish(machine.command(["--json"]).args(words("start", "r2"))).refused_json(5, "no_issuer_key");
    assert_eq!(said["outbox"], "r2/1");
    machine.run(words("admit", "r3")).refused(5, "issuer.pub");
    let adm = issuer.one(["admit", "docs", "--request", "r0"])["admission"].as_str().unwrap().to_owned();
    machine.run(["append", &adm, "--request", "more", "--input", &input]).refused(5, "is kept");
    let kept = ["more.1", "r1.1", "r2.1", "r3.1"];
    let file = |name: &str| (name.to_owned(), "new".to_owned(), "no_issuer_key".to_owned());
    assert_eq!(machine.outbox(), kept.map(file), "and they can be listed");
    machine.run(["outbox", "send", "r1"]).refused(5, "issuer.pub");
    assert_eq!(issuer.all(["history"]).len(), 1, "nothing was sent");
    // With the public key what does not run here is sent; what does is kept.
    std::fs::copy(issuer.state().join("issuer.pub"), machine.state().join("issuer.pub")).unwrap();
    machine.ok(["outbox", "send", "r1"]);
    assert_eq!(issuer.shown("r1")["phase"], "queued");
    machine.run(words("start", "r4")).refused(21, "the input is kept: `tenure adm outbox send r4/1`");
    machine.ok(["outbox", "send", "more"]);
    machine.ok(["outbox", "drop", "r2"]);
    let file = |(name, state, code): (&str, &str, &str)| (name.to_owned(), state.to_owned(), code.to_owned());
    let now = [
        ("more.1", "sent", "accepted"),
        ("r1.1", "sent", "accepted"),
        ("r3.1", "new", "no_issuer_key"),
        ("r4.1", "new", "cannot_issue"),
    ];
    assert_eq!(machine.outbox(), now.map(file));
}

/// The machine sleeps on the server's word, not on a clock.
#[test]
fn a_machine_is_woken_when_something_is_left_for_it() {
    let schema = Schema::new();
    let world = World::on(schema.url());
    let waiting = world.spawn(["pickup", "--exec", "--wait=50"]);
    wait_for("the machine to show itself", || world.all(["machine", "list"])[0]["seen_ms"].as_u64());
    world.ok(["submit", "docs", "--request", "r1", "--", "sh", "-c", "echo ran > log"]);
    assert_eq!(wait_for_file(&world.place().join("log")), "ran\n");
    world.until("r1", "closed");
    waiting.signal(rustix::process::Signal::TERM);
    waiting.end();
}

/// The issuer makes credentials; a machine with the public key checks and uses them, and makes none.
#[test]
fn a_machine_with_the_public_key_only_uses_what_the_issuer_made() {
    let schema = Schema::new();
    let issuer = World::on(schema.url());
    let machine = World::on_without_keys(schema.url());
    machine.run(["history"]).refused(5, "issuer.pub");
    std::fs::copy(issuer.state().join("issuer.pub"), machine.state().join("issuer.pub")).unwrap();
    let id = machine.ok(["machine", "show"]);
    issuer.ok(["surface", "add", "far"]);
    issuer.ok(["place", "far", "--machine", &id, "--path", "/srv/far"]);
    issuer.ok(["submit", "far", "--request", "r1", "--", "true"]);
    assert_eq!(machine.one(["pickup", "--list"])["waiting"][0]["request"], "r1");
    machine.run(["pickup"]).refused(21, "only the issuer's public key");
    assert_eq!(issuer.run(["pickup"]).code, Some(3), "A41: invisible to the other machine");
    // With the secret key it is an issuer itself.
    std::fs::copy(issuer.state().join("issuer.key"), machine.state().join("issuer.key")).unwrap();
    let found = machine.one(["pickup"]);
    assert!(found["admitted"]["token"].as_str().unwrap().starts_with("v4.public."));
    let token = format!("@{}", machine.file("token", found["admitted"]["token"].as_str().unwrap()));
    let adm = found["admitted"]["admission"].as_str().unwrap();
    std::fs::remove_file(machine.state().join("issuer.key")).unwrap();
    assert_eq!(machine.one(["started", adm, "--token", &token])["phase"], "started");
    assert_eq!(machine.one(["close", adm, "--token", &token, "--kind", "succeeded"])["closing"], "succeeded");
    assert_eq!(issuer.shown("r1")["closed_by"], json!(format!("machine {id}")));
}
