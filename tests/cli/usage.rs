//! Command lines that make no sense: exit 2, a message that says why, nothing changed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use crate::support::{Sandbox, bare, finish};

#[test]
fn bad_command_lines_are_usage() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    let calls: &[(&[&str], &str)] = &[
        (&["frobnicate"], "frobnicate"),
        (&["get"], "NODE"),
        (&["get", "a", "b"], "b"),
        (&["get", ""], "empty"),
        (&["upsert", "n", "--cost", "-1"], "-1"),
        (&["upsert", "n", "--cost", "1.5"], "1.5"),
        (&["upsert", "n", "--cost", "4294967296"], "4294967295"),
        (&["upsert", "n", "--frob"], "--frob"),
        (&["upsert", "--existing"], "--existing"),
        (&["claim", "n"], "--holder"),
        (&["claim", "n", "--holder", ""], "empty"),
        (&["claim", "n", "--holder", "w", "--gen", "x"], "--gen"),
        (&["claim", "n", "--holder", "w", "--gen", "-1"], "-1"),
        (&["claim", "n", "--holder", "w", "--gen", "18446744073709551616"], "--gen"),
        (&["claim", "n", "--holder", "w", "--lease", "0"], "lease"),
        (&["claim", "n", "--holder", "w", "--lease", "-5"], "-5"),
        (&["claim", "n", "--holder", "w", "--lease", "nan"], "nan"),
        (&["claim", "n", "--holder", "w", "--lease", "5m"], "5m"),
        (&["claim", "n", "--holder", "w", "--lease", "1e9"], "1e9"),
        (&["claim", "n", "--holder", "w", "--pid", "-3"], "-3"),
        (&["upsert", "n", "--max-attempts", "-1"], "-1"),
        (&["upsert", "n", "--retry-delay", "-1"], "-1"),
        (&["group", "g", "--limit", "-1"], "-1"),
        (&["release", "n"], "--holder"),
        (&["complete", "n", "--status", "ready"], "done, failed, cancelled"),
        (&["ready", "-n", "-1"], "-1"),
        (&["init", "--lease", "0"], "lease"),
        (&["--dir", "", "list"], "--dir"),
    ];
    for (call, words) in calls {
        let ran = sandbox.run(*call);
        assert_eq!(ran.code, Some(2), "{call:?}: {ran:?}");
        // What looks like an option and is a value is not advised about as an option.
        let taken_for_an_option = call
            .iter()
            .any(|word| ran.err.contains(&format!("unexpected argument '{word}'")) && word.parse::<i64>().is_ok());
        assert!(!taken_for_an_option, "{call:?}: {ran:?}");
        ran.refused(2, words);
    }
    assert_eq!(sandbox.status("n"), "ready");
}

#[test]
fn usage_is_json_too_when_asked_for() {
    let sandbox = Sandbox::new();
    sandbox.run(["frobnicate", "--json"]).refused_json(2, "usage");
    sandbox.run(["--json", "claim", "n"]).refused_json(2, "usage");
    let long = "x".repeat(65);
    let object = sandbox.run(["get", &long, "--json"]).refused_json(2, "too_long");
    assert_eq!((&object["limit"], &object["bytes"]), (&64.into(), &65.into()));
    let ran = sandbox.run(["frobnicate", "--", "--json"]);
    assert!(ran.err.starts_with("tenure: "), "{ran:?}");
}

#[test]
fn a_status_is_not_set_with_upsert() {
    let sandbox = Sandbox::new();
    for status in ["ready", "done", "x"] {
        let ran = sandbox.run(["upsert", "n", "--status", status]);
        ran.refused(2, "status is not set");
        assert!(ran.err.contains("complete"), "{ran:?}");
    }
    assert!(sandbox.json(["list", "--all"]).is_empty());
    let help = sandbox.ok(["upsert", "--help"]);
    assert!(!help.contains("--status"), "{help}");
}

#[test]
fn arguments_that_are_not_utf8_are_usage() {
    let sandbox = Sandbox::new();
    let bad = OsStr::from_bytes(b"n\xff\xfe");
    for args in [[OsStr::new("get"), bad], [OsStr::new("upsert"), bad]] {
        sandbox.run(args).refused(2, "UTF-8");
    }
    let ran = finish(sandbox.command().args(["claim-next"]).env("TENURE_HOLDER", bad));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(sandbox.json(["list", "--all"]).is_empty());
}

#[test]
fn help_and_version_end_well() {
    for args in [&["--help"][..], &["-h"], &["--version"], &["claim", "--help"], &["help", "claim"]] {
        let ran = finish(bare().args(args));
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        assert!(ran.out.ends_with('\n') && ran.err.is_empty(), "{args:?}: {ran:?}");
        assert!(!ran.out.contains('\x1b'), "no colours into a pipe: {ran:?}");
    }
}

#[test]
fn no_verb_at_all_shows_the_help_and_is_usage() {
    let ran = finish(&mut bare());
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("Usage: tenure"), "{ran:?}");
}

#[test]
fn every_verb_has_help_for_a_newcomer() {
    let verbs = "init upsert link unlink get list ready claim claim-next renew release complete reclaim reopen archive \
                 unarchive import export run stats";
    let overview = finish(bare().arg("--help")).out;
    for verb in verbs.split_whitespace() {
        assert!(overview.lines().any(|line| line.trim_start().starts_with(verb)), "{verb} in {overview}");
        let help = finish(bare().args([verb, "--help"]));
        assert_eq!(help.code, Some(0), "{help:?}");
    }
}

#[test]
fn a_summary_without_end_on_standard_input_is_refused_politely() {
    let sandbox = Sandbox::new();
    let zero = std::fs::File::open("/dev/zero").expect("/dev/zero");
    let ran = finish(sandbox.command().args(["upsert", "n", "--summary", "-"]).stdin(Stdio::from(zero)));
    ran.refused(2, "longer than 1024 bytes");
    assert!(sandbox.json(["list", "--all"]).is_empty());
}

#[test]
fn dir_may_stand_before_or_after_the_verb_and_goes_before_the_environment() {
    let sandbox = Sandbox::empty();
    let other = sandbox.root().join("other");
    let other = other.to_str().expect("UTF-8");
    sandbox.ok(["--dir", other, "upsert", "n"]);
    assert!(!sandbox.dir().exists());
    assert_eq!(sandbox.json(["list", "--dir", other]).len(), 1);
    assert_eq!(sandbox.json(["--dir", other, "list"]).len(), 1);
    assert_eq!(sandbox.json([&format!("--dir={other}"), "list"]).len(), 1);
    assert_eq!(sandbox.ok(["--json", "list", "--dir", other]), sandbox.ok(["list", "--dir", other, "--json"]));
}
