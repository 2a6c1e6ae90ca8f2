//! Texts that try to be something else: escape codes, line ends, writing direction, length.

use serde_json::Value;

use crate::support::{Ran, Sandbox};

const NASTY: [&str; 8] = [
    "a\nforged  done",
    "a\tb",
    "a\x1b[2J\x1b[31mb",
    "a\rb",
    "a\u{202e}b\u{2066}c",
    "a\u{9b}31mb",
    "a\u{7f}\u{8}\u{8}b",
    "q\"uote'\\n",
];

/// Nothing that a terminal obeys or that turns the direction of text, besides the line ends of the program's own.
#[track_caller]
fn harmless(ran: &Ran) {
    for text in [&ran.out, &ran.err] {
        let bad =
            |c: char| c != '\n' && (c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'));
        assert!(!text.chars().any(bad), "{ran:?}");
    }
}

#[test]
fn nothing_nasty_reaches_the_terminal_from_any_verb() {
    for nasty in NASTY {
        let sandbox = Sandbox::new();
        let long = "x".repeat(70) + nasty;
        let calls: &[&[&str]] = &[
            &["upsert", nasty, "--summary", nasty, "--kind", nasty, "--role", nasty, "--run", nasty],
            &["upsert", "child", "--needs", nasty, "--parent", nasty],
            &["list", "--all"],
            &["ready"],
            &["get", nasty],
            &["get", "child"],
            &["claim", "child", "--holder", nasty],
            &["claim-next", "--holder", nasty, "--role", nasty],
            &["claim", "child", "--holder", nasty],
            &["list"],
            &["claim", nasty, "--holder", "other"],
            &["renew", nasty, "--holder", "other"],
            &["renew", nasty, "--holder", nasty],
            &["release", nasty, "--force"],
            &["link", "child", nasty],
            &["link", nasty, "child"],
            &["complete", nasty, "--summary", nasty],
            &["complete", nasty, "--status", "failed"],
            &["archive", nasty],
            &["get", &long],
            &["get", "nowhere", nasty],
            &["--frob", nasty],
            &[nasty],
            &["stats", "--dir", nasty],
        ];
        for call in calls {
            harmless(&sandbox.run(*call));
            let ran = sandbox.run(call.iter().chain(&["--json"]));
            harmless(&ran);
            for line in ran.out.lines() {
                serde_json::from_str::<Value>(line).unwrap_or_else(|e| panic!("{e}: {line:?}"));
            }
        }
    }
}

#[test]
fn every_text_comes_back_as_it_was_given() {
    let sandbox = Sandbox::new();
    let others = ["日本語", "👩\u{200d}🚀", "עברית", "-", " ", "a b", "e\u{301}"];
    for text in NASTY.iter().chain(&others) {
        let text = if *text == "-" { "dash -" } else { text };
        sandbox.ok(["upsert", text, "--summary", text, "--kind", text, "--run", text]);
        let node = sandbox.one(["get", text]);
        for key in ["name", "summary", "kind", "run"] {
            assert_eq!(node[key], text, "{key}");
        }
    }
    assert_eq!(sandbox.json(["list"]).len(), NASTY.len() + others.len());
}

#[test]
fn a_name_cannot_forge_a_row_or_an_answer() {
    let sandbox = Sandbox::new();
    let forged = "a gen=9\nb";
    let printed = sandbox.ok(["upsert", forged]);
    assert_eq!(printed.len(), 32, "a name with a line end is answered with its id: {printed:?}");
    assert_eq!(sandbox.ok(["list"]).lines().count(), 2);
    let line = sandbox.ok(["claim-next", "--holder", "w"]);
    let (node, _) = line.split_once(" gen=").expect("a claim");
    assert_eq!(sandbox.one(["get", node])["name"], forged, "and the id is accepted back");
    sandbox.ok(["claim", node, "--holder", "w", "--resume"]);
}

#[test]
fn names_of_several_bytes_a_character_are_cut_nowhere() {
    let sandbox = Sandbox::new();
    for name in ["é".repeat(32), "日".repeat(21), "🚀".repeat(16), "\u{10ffff}".to_owned()] {
        assert_eq!(sandbox.ok(["upsert", &name]), name);
        let line = sandbox.ok(["claim", &name, "--holder", &name]);
        assert!(line.starts_with("gen="), "{line}");
        sandbox.ok(["complete", &name, "--holder", &name]);
    }
    for name in ["é".repeat(33), "日".repeat(22), "🚀".repeat(17)] {
        sandbox.run(["upsert", &name]).refused(2, "64");
        sandbox.run(["get", &name]).refused(2, "64");
        sandbox.run(["claim", "n", "--holder", &name]).refused(2, "64");
    }
    // As long as an id, and not one: bytes that look like hex digits to nobody, and upper case.
    for name in ["é".repeat(16), "ABCDEF0123456789ABCDEF0123456789".to_owned()] {
        assert_eq!(sandbox.ok(["upsert", &name]), name);
    }
}

#[test]
fn what_is_too_long_is_refused_and_nothing_is_cut() {
    let sandbox = Sandbox::new();
    let longest = "s".repeat(1_024);
    sandbox.ok(["upsert", "n", "--summary", &longest]);
    assert_eq!(sandbox.one(["get", "n"])["summary"], longest.as_str());
    for (flag, bytes) in
        [("--summary", 1_025), ("--summary", 100_000), ("--kind", 65), ("--role", 65), ("--run", 4_097)]
    {
        let ran = sandbox.run(["upsert", "n", flag, &"s".repeat(bytes)]);
        ran.refused(2, &bytes.to_string());
        assert!(ran.err.len() < 1_000, "the long text is not printed back: {ran:?}");
    }
    sandbox.run(["complete", "n", "--summary", &"s".repeat(1_025)]).refused(2, "1025");
    let node = sandbox.one(["get", "n"]);
    assert_eq!((&node["summary"], &node["status"]), (&longest.as_str().into(), &"ready".into()));
}

#[test]
fn a_name_that_begins_with_a_dash_goes_after_two_dashes() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.ok(["upsert", "--", "-x"]), "-x");
    let shown = sandbox.ok(["get", "--json", "--", "-x"]);
    assert!(shown.contains("\"name\":\"-x\""), "{shown}");
    sandbox.ok(["upsert", "n", "--summary", "- an item"]);
    assert_eq!(sandbox.one(["get", "n"])["summary"], "- an item");
}
