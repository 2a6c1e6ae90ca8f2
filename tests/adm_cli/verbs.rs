//! Each verb once, with its answer for people and for scripts, and its exit codes.

use serde_json::json;

use crate::support::World;

#[test]
fn a_start_runs_its_command_in_the_place_and_ends_as_it_does() {
    let world = World::new();
    let input = world.file("in", "from the file\n");
    let ran = world.run(["start", "docs", "--request", "r1", "--input", &input, "--", "sh", "-c", "pwd; cat; exit 7"]);
    assert_eq!(ran.code, Some(7));
    assert_eq!(ran.out, format!("{}\nfrom the file\n", world.place().display()));
    assert!(ran.err.starts_with("adm-"), "the admission comes first: {ran:?}");
    let shown = world.shown("r1/1");
    assert_eq!(
        (&shown["phase"], &shown["closing"], &shown["exit_code"]),
        (&json!("closed"), &json!("failed"), &json!(7))
    );
    assert_eq!(shown["next_attempt"], json!(false), "files may be half changed");
    world
        .run([
            "start",
            "docs",
            "--request",
            "r1",
            "--attempt",
            "2",
            "--input",
            &input,
            "--",
            "sh",
            "-c",
            "pwd; cat; exit 7",
        ])
        .refused_json_of(&world, 16, "previous_final");
}

impl crate::support::Ran {
    /// The same refusal as a script reads it, from the ledger's own note of it (A57).
    #[track_caller]
    fn refused_json_of(&self, world: &World, code: i32, error: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        let noted = world.all(["refusals"]);
        assert_eq!(noted[0]["code"], error, "{noted:?}");
    }
}

/// A3: a finished admission frees the surface and stays as history.
#[test]
fn what_has_ended_is_history_and_the_surface_is_free() {
    let world = World::new();
    for request in ["a", "b", "c"] {
        assert_eq!(world.run(["start", "docs", "--request", request, "--", "true"]).code, Some(0));
    }
    let history = world.all(["history", "docs"]);
    let seen: Vec<_> =
        history.iter().map(|row| (row["request"].as_str().unwrap(), row["closing"].as_str().unwrap())).collect();
    assert_eq!(seen, [("a", "succeeded"), ("b", "succeeded"), ("c", "succeeded")]);
    assert_eq!(world.all(["history", "--limit", "1"]).len(), 1);
    assert_eq!(world.all(["history", "--request", "b"]).len(), 1);
    assert_eq!(world.all(["history", "--unfinished"]).len(), 0);
    assert_eq!(world.ok(["show", "docs"]), "nothing is open or waiting on docs");
    assert_eq!(world.ok(["fsck"]), "the ledger keeps its rules");
}

#[test]
fn admit_started_attach_and_close_are_the_same_by_hand() {
    let world = World::new();
    let admitted = world.one(["admit", "docs", "--request", "r1"]);
    let (id, token) = (admitted["admission"].as_str().unwrap(), admitted["token"].as_str().unwrap());
    assert!(token.starts_with("v4.local."));
    assert_eq!(admitted["created"], json!(true));
    let first = world.file("first", token);
    let attached = world.one(["attach", id]);
    assert_eq!(attached["attach_number"], json!(2));
    // A19: the token before is cut.
    world.run(["started", id, "--token", &format!("@{first}")]).refused(21, "`attach` gives a new one");
    let second = format!("@{}", world.file("second", attached["token"].as_str().unwrap()));
    // A credential of another admission starts neither of the two, also one that is not good any more.
    let place = world.place();
    world.ok(["surface", "add", "other"]);
    world.ok(["place", "other", "--path", place.join("other").to_str().unwrap()]);
    let other = world.one(["admit", "other", "--request", "r2"]);
    let theirs = format!("@{}", world.file("theirs", other["token"].as_str().unwrap()));
    world.run(["started", id, "--token", &theirs]).refused(21, "for another admission");
    world.ok(["revoke", "r2"]);
    world.run(["started", id, "--token", &theirs]).refused(21, "for another admission");
    assert_eq!((&world.shown("r1")["phase"], &world.shown("r2")["phase"]), (&json!("admitted"), &json!("admitted")));
    assert_eq!(world.one(["started", id, "--token", &second])["phase"], "started");
    world.run(["close", id, "--token", &second, "--kind", "failed-before-start"]).refused(2, "it ran");
    // A60: there is no such kind.
    world.run(["close", id, "--token", &second, "--kind", "unknown"]).refused(2, "unknown");
    let closed =
        world.one(["close", id, "--token", &second, "--kind", "succeeded", "--exit", "0", "--reason", "all well"]);
    assert_eq!((&closed["closing"], &closed["reason"]), (&json!("succeeded"), &json!("all well")));
    world.run(["attach", id]).refused(17, "closed: succeeded");
    // The first closing stands.
    let again = world.run(["close", id, "--token", &second, "--kind", "failed", "--json"]).refused_json(17, "closed");
    assert_eq!(again["record"]["closing"], "succeeded");
}

/// A10, A16: the same request again is the same admission; when it has succeeded nothing is started.
#[test]
fn a_resend_of_a_success_starts_nothing() {
    let world = World::new();
    let start = || world.run(["start", "docs", "--request", "r1", "--json", "--", "sh", "-c", "echo ran >> log"]);
    assert_eq!(start().code, Some(0));
    let again = start().refused_json(17, "closed");
    assert_eq!((&again["record"]["closing"], &again["created"]), (&json!("succeeded"), &json!(false)));
    assert_eq!(again.get("token"), None);
    assert_eq!(std::fs::read_to_string(world.place().join("log")).unwrap(), "ran\n");
}

/// A11: one byte changed is a conflict, also after the end, and the new content is kept (A56).
#[test]
fn a_resend_with_one_byte_changed_is_a_conflict() {
    let world = World::new();
    let (one, other) = (world.file("one", "text"), world.file("other", "texu"));
    let start = |input: &str| world.run(["start", "docs", "--request", "r1", "--input", input, "--", "true"]);
    assert_eq!(start(&one).code, Some(0));
    start(&other).refused(11, "sent before with other contents");
    let kept = [("r1.1", "refused", "conflict"), ("r1.1", "sent", "accepted")];
    assert_eq!(world.outbox(), kept.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned())));
    // The first content is still the request it was.
    start(&one).refused(17, "succeeded");
}

#[test]
fn cancel_takes_back_what_has_not_started() {
    let world = World::new();
    world.ok(["submit", "docs", "--request", "r1", "--", "true"]);
    assert_eq!(world.one(["cancel", "r1"])["closing"], "canceled");
    // A15: a resend is refused, by every entrance.
    world.run(["submit", "docs", "--request", "r1", "--", "true"]).refused(18, "was canceled");
    world.run(["start", "docs", "--request", "r1", "--", "true"]).refused(18, "was canceled");
    assert_eq!(world.run(["cancel", "nobody/7"]).code, Some(4));
}

/// A62: cutting the credential and freeing the surface are two operations.
#[test]
fn revoke_leaves_the_owner_and_release_cuts_the_credential_too() {
    let world = World::new();
    let admitted = world.one(["admit", "docs", "--request", "r1"]);
    let id = admitted["admission"].as_str().unwrap();
    let token = format!("@{}", world.file("token", admitted["token"].as_str().unwrap()));
    world.ok(["revoke", id]);
    world.run(["started", id, "--token", &token]).refused(21, "cut");
    world.run(["start", "docs", "--request", "r2", "--", "true"]).refused(10, "owned by");
    let shown = world.shown(id);
    // A18: the row is open and proves nothing.
    assert_eq!(
        (&shown["phase"], &shown["credential"], &shown["uncertain"]),
        (&json!("admitted"), &json!("none"), &json!(true))
    );
    assert_eq!(world.all(["history", "--uncertain"]).len(), 1);
    world.run(["release", id, "--reason", "gone"]).refused(2, "may still run");
    assert_eq!(world.run(["release", id, "--yes"]).code, Some(2), "a release needs a reason");
    let released = world.one(["release", id, "--reason", "the machine burnt", "--yes"]);
    assert_eq!(
        (&released["closing"], &released["closed_by"]),
        (&json!("released"), &json!(tenure::admission::Home::user()))
    );
    assert_eq!(world.run(["start", "docs", "--request", "r2", "--", "true"]).code, Some(0));
    world.run(["started", id, "--token", &token]).refused(17, "released");
}

#[test]
fn what_keeps_a_start_off_has_its_own_exit_code() {
    let world = World::new();
    let start = |args: &[&str]| world.run([&["start"], args, &["--", "true"]].concat());
    assert_eq!(start(&["nowhere", "--request", "a"]).code, Some(13));
    assert_eq!(start(&["docs", "--request", "a", "--attempt", "2"]).code, Some(24));
    assert_eq!(start(&["docs", "--request", "a", "--after", "never/1"]).code, Some(24));
    world.ok(["admit", "docs", "--request", "open"]);
    let busy = world.run(["start", "docs", "--request", "a", "--json", "--", "true"]).refused_json(10, "busy");
    assert_eq!(busy["owner"]["request"], "open");
    // A22, whatever the next attempt brings; A11 within one attempt, and on another surface.
    start(&["docs", "--request", "open", "--attempt", "2"]).refused(15, "no next attempt yet");
    assert_eq!(world.run(["admit", "docs", "--request", "open", "--attempt", "2"]).code, Some(15));
    assert_eq!(start(&["docs", "--request", "open"]).code, Some(11));
    assert_eq!(start(&["nowhere", "--request", "open", "--attempt", "2"]).code, Some(11));
    world.run(["legacy", "take", "docs", "old-tool"]).refused(10, "owned by");
}

/// A51, A52.
#[test]
fn the_legacy_path_and_admissions_keep_each_other_off() {
    let world = World::new();
    world.ok(["legacy", "take", "docs", "old-tool"]);
    world.run(["start", "docs", "--request", "a", "--", "true"]).refused(25, "old-tool");
    world.run(["legacy", "drop", "docs", "somebody"]).refused(28, "old-tool");
    assert_eq!(world.ok(["legacy", "drop", "docs", "old-tool"]), "docs is free");
    assert_eq!(world.run(["start", "docs", "--request", "a", "--", "true"]).code, Some(0));
}

/// A29, A30: a placement is said, moved, and said to be gone; the same words change nothing.
#[test]
fn a_placement_has_a_generation() {
    let world = World::new();
    std::fs::create_dir(world.root().join("other")).unwrap();
    let place = |name: &str| {
        let path = world.root().join(name).to_str().unwrap().to_owned();
        world.one(["place", "docs", "--path", &path])["placement"]["generation"].clone()
    };
    assert_eq!(place("place"), json!(1));
    assert_eq!(place("other"), json!(2));
    assert_eq!(place("place"), json!(3), "back again is another placement");
    assert!(world.ok(["place", "docs", "--gone"]).contains("no longer"));
    assert_eq!(world.run(["start", "docs", "--request", "a", "--", "true"]).code, Some(13));
    assert_eq!(place("place"), json!(4));
}

/// A8: the same place under two keys is said, and a declared split is not.
#[test]
fn two_keys_for_one_place_are_pointed_out() {
    let world = World::new();
    let place = world.place().to_str().unwrap().to_owned();
    world.ok(["surface", "add", "papers"]);
    let ran = world.run(["place", "papers", "--path", &place]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.err.contains("docs may be the same place"), "{ran:?}");
    let answer = world.one(["surface", "add", "papers"]);
    assert_eq!(answer["warnings"][0]["surface"], "docs");
    world.ok(["surface", "add", "papers", "--shares", "docs"]);
    assert_eq!(world.one(["surface", "add", "papers"])["warnings"], json!([]));
    world.ok(["surface", "add", "docs#a"]);
    let split = world.run(["place", "docs#a", "--path", &place]);
    assert!(!split.err.contains("docs may be"), "{split:?}");
}

/// Without a terminal, scripts and people read the same facts.
#[test]
fn lists_are_tables_for_people_and_a_line_each_for_scripts() {
    let world = World::new();
    world.ok(["admit", "docs", "--request", "r1"]);
    let table = world.ok(["surface", "list"]);
    assert!(table.starts_with("SURFACE") && table.contains("docs"), "{table}");
    assert_eq!(world.all(["surface", "list"])[0]["owner"]["request"], "r1");
    assert!(world.ok(["surface", "show", "docs"]).contains("placed"));
    assert_eq!(world.run(["surface", "show", "nowhere"]).code, Some(4));
    assert!(world.ok(["history"]).contains("r1/1"));
    assert!(world.ok(["show", "r1"]).contains("credential   number 1, live"));
    assert_eq!(world.run(["show", "nothing"]).code, Some(4));
    assert!(world.ok(["machine", "list"]).contains("here"));
    assert!(world.ok(["migrate"]).contains("already"));
}
