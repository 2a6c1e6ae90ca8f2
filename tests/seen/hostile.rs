//! Names, holders and texts that try to be something else.

use crate::support::{Ran, Sandbox};

const NASTY: [&str; 12] = [
    "a\nforged is done",
    "a\x1b[2J\x1b[31mb",
    "a\r\tb\u{7f}",
    "a\u{202e}b\u{2066}c",
    "a\u{9b}31m",
    "q\"uote\\",
    "\"]; evil [label=\"",
    "x\"] --> y; %%{init: {}}%%",
    "a;b#quot;c&lt;d",
    "<script>alert(1)</script>",
    "1. `code` __b__",
    "end",
];

/// Nothing that a terminal obeys or that turns the direction of text.
#[track_caller]
fn harmless(ran: &Ran) {
    for text in [&ran.out, &ran.err] {
        let bad = |c: char| c != '\n' && (tenure::formats::is_unsafe(c));
        assert!(!text.chars().any(bad), "{ran:?}");
    }
}

/// A blocked chain, a claim and a wanted role, all under one nasty name.
fn table_of(nasty: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", nasty, "--summary", nasty, "--role", nasty]);
    sandbox.ok(["upsert", "middle", "--needs", nasty, "--parent", nasty]);
    sandbox.ok(["upsert", "last", "--needs", "middle", "--summary", nasty]);
    sandbox
}

#[test]
fn nothing_nasty_reaches_the_terminal() {
    for nasty in NASTY {
        let sandbox = table_of(nasty);
        let look = || {
            for node in [nasty, "middle", "last"] {
                let ran = sandbox.run(["why", node]);
                assert_eq!(ran.code, Some(0), "{ran:?}");
                assert!(!ran.out.lines().any(|line| line == "forged is done"), "{ran:?}");
                harmless(&ran);
                harmless(&sandbox.run(["why", node, "--json"]));
                assert_eq!(sandbox.one(["why", node])["status"], sandbox.status(node));
            }
            for args in [
                &["list", "--blocked"][..],
                &["export", "--format", "dot"],
                &["export", "--format", "mermaid"],
                &["stats"],
                &["stats", "--format", "prometheus"],
            ] {
                let ran = sandbox.run(args);
                assert_eq!(ran.code, Some(0), "{ran:?}");
                harmless(&ran);
            }
        };
        look();
        sandbox.ok(["claim", nasty, "--holder", nasty]);
        look();
        sandbox.ok(["complete", nasty, "--holder", nasty, "--status", "failed", "--summary", nasty]);
        look();
        harmless(&sandbox.run(["why", &("x".repeat(70) + nasty)]));
    }
}

/// The text of a DOT string that begins behind its first quote, and what follows it.
fn dot_string(text: &str) -> Option<(String, &str)> {
    let mut string = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((string, &text[at + 1..])),
            '\\' => string.extend(['\\', chars.next()?.1]),
            _ => string.push(c),
        }
    }
    None
}

#[test]
fn no_name_gets_out_of_its_string_in_dot() {
    for nasty in NASTY {
        let sandbox = table_of(nasty);
        sandbox.ok(["claim", nasty, "--holder", nasty]);
        let dot = sandbox.ok(["export", "--format", "dot"]);
        // A head of three lines, three nodes, two edges, one family and the end, each on a line of its own.
        assert_eq!(dot.lines().count(), 3 + 3 + 2 + 1 + 1, "{dot}");
        for line in dot.lines().skip(3).take(3) {
            let (_, mut rest) = line.split_once('"').expect(line);
            let mut outside = String::new();
            loop {
                let (_, behind) = dot_string(rest).expect(line);
                let (between, next) = behind.split_once('"').unwrap_or((behind, ""));
                outside += between;
                if next.is_empty() {
                    break;
                }
                rest = next;
            }
            let known = ["shape=", "style=", "fillcolor=", "color=", "penwidth=", "tooltip="];
            let words = outside.split([',', ' ', ']', ';']).filter(|word| !word.is_empty());
            for word in words {
                assert!(known.iter().any(|known| word.starts_with(known)), "{word:?} in {line}");
            }
        }
    }
}

#[test]
fn no_name_gets_out_of_its_string_in_mermaid() {
    for nasty in NASTY {
        let sandbox = table_of(nasty);
        sandbox.ok(["claim", nasty, "--holder", nasty]);
        let mermaid = sandbox.ok(["export", "--format", "mermaid"]);
        let lines: Vec<&str> = mermaid.lines().collect();
        for line in &lines[1..4] {
            let parts: Vec<&str> = line.split('"').collect();
            assert_eq!(parts.len(), 3, "one string and no more: {line}");
            let text = parts[1].replacen("<br/>", "", 1);
            let plain = |c: char| c.is_alphanumeric() || matches!(c, '#' | ';' | '-' | '_' | ' ');
            assert!(text.chars().all(plain), "{line}");
            // Every number sign begins a reference of digits that ends in a semicolon, and none ends otherwise.
            for reference in text.split('#').skip(1) {
                let (digits, _) = reference.split_once(';').expect(line);
                assert!(!digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()), "{line}");
            }
            assert_eq!(text.matches('#').count(), text.matches(';').count(), "{line}");
        }
    }
}
