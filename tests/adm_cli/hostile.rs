//! Names and texts that mean harm: nothing leads out of a directory, nothing reaches a terminal raw, nothing panics.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::support::World;

#[test]
fn ids_that_lead_elsewhere_are_refused_before_anything_is_kept() {
    let world = World::new();
    let long = "x".repeat(65_536);
    for id in ["../../evil", "a/b", "..", ".", "", "-x", "a b", "a\nb", "ü", &long, "a\u{1b}[2J"] {
        let ran = world.run([OsStr::new("submit"), OsStr::new("docs"), OsStr::new(&format!("--request={id}"))]);
        assert_eq!(ran.code, Some(2), "{id:.20}: {ran:?}");
        assert!(!ran.err.contains('\u{1b}') && !ran.err.contains("panicked"), "{ran:?}");
    }
    let ran = world.run([OsStr::new("submit"), OsStr::new("docs"), OsStr::from_bytes(b"--request=\xff")]);
    assert_eq!(ran.code, Some(2));
    assert!(!world.state().join("outbox").exists(), "nothing was kept");
}

/// F27 on the command line: one key, or a refusal.
#[test]
fn a_surface_is_one_however_it_is_spelled() {
    let world = World::new();
    let place = world.place();
    std::os::unix::fs::symlink(&place, world.root().join("link")).unwrap();
    let path = place.to_str().unwrap();
    let key = world.one(["surface", "add", path])["surface"].clone();
    let link = world.root().join("link");
    for other in [format!("{path}/"), format!("{path}//"), format!("{path}/."), link.to_str().unwrap().to_owned()] {
        let answer = world.one(["surface", "add", &other]);
        assert_eq!((&answer["surface"], &answer["created"]), (&key, &serde_json::json!(false)), "{other}");
    }
    for other in ["Docs", "docs/", "DOCS//"] {
        assert_eq!(world.one(["surface", "show", other])["surface"], "docs");
    }
    for other in ["./docs", "../docs", ".", "~/docs"] {
        world.run(["surface", "show", other]).refused(2, "relative path");
    }
}

#[test]
fn reasons_and_names_are_shown_without_control_characters() {
    let world = World::new();
    let id =
        world.one(["admit", "docs", "--request", "r1", "--", "echo", "\u{1b}[2J\nforged  row"])["admission"].clone();
    let id = id.as_str().unwrap();
    world.ok(["stop", id, "--reason", "\u{1b}]0;title\u{7}\nsecond line\u{202e}"]);
    for args in [&["show", id][..], &["history"], &["surface", "show", "docs"], &["show", id, "--json"], &["pickup"]] {
        let ran = world.run(args);
        let bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!ran.out.contains(bad) && !ran.err.contains(bad), "{ran:?}");
        assert!(!ran.out.lines().any(|line| line.starts_with("forged") || line.starts_with("second")), "{ran:?}");
    }
}

#[test]
fn a_token_that_is_none_is_refused() {
    let world = World::new();
    let id = world.one(["admit", "docs", "--request", "r1"])["admission"].as_str().unwrap().to_owned();
    for token in ["x", "v4.local.AAAA", "", &"v4.local.A".repeat(10_000)] {
        let file = format!("@{}", world.file("token", token));
        world
            .run(["close", &id, "--token", &file, "--kind", "failed-before-start"])
            .refused(21, "not one that this ledger made");
    }
    world.run(["close", &id, "--kind", "failed-before-start"]).refused(2, "no credential");
    world.run(["close", &id, "--token", "@/nowhere", "--kind", "failed-before-start"]).refused(2, "cannot read");
    world.run(["close", "adm-x", "--kind", "failed-before-start"]).refused(2, "adm- and 26 digits");
}

/// I4: a reader that has gone is a quiet end; a full disk says that the change was made.
#[test]
fn an_answer_that_cannot_be_written_says_what_was_done() {
    let world = World::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = world.command(["submit", "docs", "--request", "r1", "--", "true"]);
    let ran = crate::support::finish_into(&mut command, full);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    assert!(ran.err.contains("the change was made"), "{ran:?}");
    assert_eq!(world.shown("r1")["phase"], "queued");
}
