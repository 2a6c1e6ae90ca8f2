//! Rows that wait, and the machine that comes for them.

use serde_json::json;

use crate::support::{World, wait_for, wait_for_file};

/// A37, A39, A41: the destination is written at once, and only it sees the row.
#[test]
fn a_row_waits_for_its_machine_alone() {
    let world = World::new();
    world.ok(["machine", "add", "m2"]);
    let row = world.one(["submit", "docs", "--request", "r1", "--", "true"]);
    assert_eq!((&row["phase"], &row["generation"]), (&json!("queued"), &json!(1)));
    assert_eq!(row["place"], json!(world.place()));
    let other = world.run(["pickup", "--list", "--machine", "m2", "--json"]);
    assert_eq!(other.code, Some(3));
    assert!(other.out.contains("\"waiting\":[]"), "{other:?}");
    assert_eq!(world.one(["pickup", "--list"])["waiting"][0]["request"], "r1");
    assert_eq!(world.shown("r1")["phase"], "queued", "a look takes nothing");
}

#[test]
fn pickup_runs_what_waits_with_the_input_it_came_with() {
    let world = World::new();
    let input = world.file("in", "the input\n");
    world.ok(["submit", "docs", "--request", "r1", "--input", &input, "--", "sh", "-c", "cat; exit 5"]);
    let ran = world.run(["pickup", "--exec"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(5), "the input\n"));
    assert_eq!(world.shown("r1")["closing"], "failed");
    assert_eq!(world.run(["pickup", "--exec"]).code, Some(3));
}

#[test]
fn a_row_without_a_command_gets_the_one_of_the_pickup() {
    let world = World::new();
    let input = world.file("in", "text\n");
    world.ok(["submit", "docs", "--request", "r1", "--input", &input]);
    let ran = world.run(["pickup", "--exec", "--", "tr", "a-z", "A-Z"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "TEXT\n"));
    world.ok(["submit", "docs", "--request", "r2", "--input", &input]);
    world.run(["pickup", "--exec"]).refused(127, "no command");
    assert_eq!(world.shown("r2")["closing"], "failed_before_start");
}

/// Without --exec the row becomes an admission, and its credential is the answer.
#[test]
fn pickup_answers_with_the_admission_for_a_program_that_runs_its_own() {
    let world = World::new();
    world.ok(["submit", "docs", "--request", "r1"]);
    let found = world.one(["pickup"]);
    assert!(found["admitted"]["token"].as_str().unwrap().starts_with("v4."));
    // A48: it comes back and sees what it has open.
    let found = world.one(["pickup"]);
    assert_eq!((&found["open"][0]["request"], &found["admitted"]), (&json!("r1"), &json!(null)));
}

/// A38: without a place nothing is queued, and the input stays.
#[test]
fn a_row_without_a_destination_stays_outside_the_queue() {
    let world = World::empty();
    world.ok(["surface", "add", "docs"]);
    let input = world.file("in", "text");
    world.run(["submit", "docs", "--request", "r1", "--input", &input]).refused(13, "no destination");
    assert_eq!(world.outbox(), [("r1.1".to_owned(), "refused".to_owned(), "no_destination".to_owned())]);
    assert_eq!(world.run(["pickup"]).code, Some(3));
    world.ok(["place", "docs", "--path", world.place().to_str().unwrap()]);
    world.ok(["outbox", "send", "r1"]);
    assert_eq!(world.shown("r1")["phase"], "queued");
}

/// A45: replacing is asked for, and written on both.
#[test]
fn a_second_row_is_refused_unless_it_is_to_replace_the_first() {
    let world = World::new();
    world.ok(["submit", "docs", "--request", "r1", "--", "true"]);
    let refused = world.run(["submit", "docs", "--request", "r2", "--json", "--", "true"]);
    assert_eq!(refused.refused_json(22, "waiting_exists")["record"]["request"], "r1");
    let second = world.one(["submit", "docs", "--request", "r3", "--if-waiting", "replace", "--", "true"]);
    let first = world.shown("r1/1");
    assert_eq!((&first["closing"], &first["successor"]), (&json!("superseded"), &second["admission"]));
    assert_eq!(second["supersedes"], first["admission"]);
    world.run(["pickup", "--exec"]);
    assert_eq!(world.shown("r3")["closing"], "succeeded");
}

/// One that waits sleeps until something is left for it, runs it, and goes on waiting.
#[test]
fn a_waiting_machine_runs_what_comes() {
    let world = World::new();
    let waiting = world.spawn(["pickup", "--exec", "--wait=50"]);
    wait_for("the machine to show itself", || world.all(["machine", "list"])[0]["seen_ms"].as_u64());
    for request in ["r1", "r2"] {
        let command = format!("echo {request} > {request}.log");
        world.ok(["submit", "docs", "--request", request, "--", "sh", "-c", &command]);
        assert_eq!(wait_for_file(&world.place().join(format!("{request}.log"))), format!("{request}\n"));
        world.until(request, "closed");
    }
    // Also after it has run something, a signal ends it at once: it would wait for 50 seconds.
    waiting.signal(rustix::process::Signal::TERM);
    assert_eq!(waiting.end().code, None, "ended by the signal itself");
    let brief = world.run(["pickup", "--exec", "--wait=0.2"]);
    assert_eq!(brief.code, Some(3), "{brief:?}");
}

/// Interrupting what runs ends the waiting too, and the row is an interruption like any other.
#[test]
fn an_interrupt_ends_what_runs_and_the_waiting() {
    let world = World::new();
    let waiting = world.spawn(["pickup", "--exec", "--wait=50"]);
    world.ok(["submit", "docs", "--request", "r1", "--", "sleep", "1000"]);
    world.until("r1", "started");
    waiting.signal(rustix::process::Signal::INT);
    assert_eq!(waiting.end().code, Some(130));
    assert_eq!(world.shown("r1")["closing"], "interrupted");
}

/// A27, A49: moved meanwhile, it is a refusal and not a move.
#[test]
fn a_row_whose_place_has_moved_is_closed_and_not_run() {
    let world = World::new();
    world.ok(["submit", "docs", "--request", "r1", "--", "touch", "ran"]);
    std::fs::create_dir(world.root().join("other")).unwrap();
    world.ok(["place", "docs", "--path", world.root().join("other").to_str().unwrap()]);
    let ran = world.run(["pickup", "--exec"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let shown = world.shown("r1/1");
    assert_eq!((&shown["closing"], &shown["reason"]), (&json!("failed_before_start"), &json!("placement_changed")));
    assert!(!world.place().join("ran").exists() && !world.root().join("other/ran").exists());
    assert_eq!(world.all(["refusals"])[0]["code"], "placement_changed");
    // The next attempt goes to the new place.
    world.ok(["submit", "docs", "--request", "r1", "--attempt", "2", "--", "touch", "ran"]);
    assert_eq!(world.run(["pickup", "--exec"]).code, Some(0));
    assert!(world.root().join("other/ran").exists());
}
