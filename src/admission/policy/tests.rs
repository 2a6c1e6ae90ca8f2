//! What each kind of policy answers, and what happens when it cannot.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::*;
use crate::admission::facts::{Entrance, Facts, Occasion, Policy, Subject};
use crate::admission::names::{Generation, MachineId};

fn facts(subject: &str, surface: &str) -> Facts {
    Facts {
        subject: subject.parse().unwrap(),
        surface: surface.parse().unwrap(),
        machine: MachineId::of_public_key(b"m1"),
        place: "/srv/repo".parse().unwrap(),
        generation: Generation::FIRST,
        work: None,
        entrance: Entrance::Local,
        occasion: Occasion::First,
    }
}

fn me() -> Subject {
    "uid:1000".parse().unwrap()
}

fn file(text: &str) -> FilePolicy {
    FilePolicy::parse(text).unwrap()
}

#[track_caller]
fn assert_unavailable(decision: &Decision, words: &str) {
    let reason = decision.denied.as_deref().expect("denied");
    assert!(reason.starts_with("policy_unavailable: "), "{reason}");
    assert!(reason.contains(words), "{reason}");
}

#[test]
fn without_a_file_the_owner_may_and_nobody_else() {
    let policy = OwnerOnly::new(me());
    assert_eq!(policy.evaluate(&facts("uid:1000", "s")).denied, None);
    let other = policy.evaluate(&facts("uid:1001", "s"));
    assert!(other.denied.unwrap().contains("belongs to uid:1000"));
    assert_ne!(policy.epoch(), OwnerOnly::new("uid:1".parse().unwrap()).epoch());
}

#[test]
fn the_first_rule_that_matches_decides_and_the_default_is_no() {
    let policy = file(
        r#"
        [[rule]]
        effect = "deny"
        surface = "live/*"
        reason = "frozen"
        [[rule]]
        effect = "allow"
        subject = ["uid:1000", "uid:1001"]
        surface = ["docs", "live/*"]
        [[rule]]
        effect = "deny"
        "#,
    );
    assert_eq!(policy.evaluate(&facts("uid:1000", "docs")).denied, None);
    assert_eq!(policy.evaluate(&facts("uid:1000", "live/a")).denied.as_deref(), Some("frozen"));
    assert!(policy.evaluate(&facts("uid:2", "docs")).denied.unwrap().contains("rule 3"));
    let empty = file("");
    assert!(empty.evaluate(&facts("uid:1000", "docs")).denied.unwrap().contains("no rule"));
}

#[test]
fn every_fact_can_be_a_condition() {
    let machine = MachineId::of_public_key(b"m1");
    let all = [
        "subject = \"uid:*\"".to_owned(),
        "surface = \"docs\"".to_owned(),
        format!("machine = \"{machine}\""),
        "place = \"/srv/*\"".to_owned(),
        "work = \"w\"".to_owned(),
        "entrance = \"local\"".to_owned(),
        "occasion = [\"first\", \"resend\"]".to_owned(),
    ];
    let rule = format!("[[rule]]\neffect = \"allow\"\n{}", all.join("\n"));
    let policy = file(&rule);
    let fits = Facts { work: Some("w".parse().unwrap()), ..facts("uid:7", "docs") };
    assert_eq!(policy.evaluate(&fits).denied, None);
    let others = [
        Facts { subject: "bot".parse().unwrap(), ..fits.clone() },
        Facts { surface: "doc".parse().unwrap(), ..fits.clone() },
        Facts { machine: MachineId::of_public_key(b"m2"), ..fits.clone() },
        Facts { place: "/home/x".parse().unwrap(), ..fits.clone() },
        Facts { work: None, ..fits.clone() },
        Facts { entrance: Entrance::Queue, ..fits.clone() },
        Facts { occasion: Occasion::Start, ..fits.clone() },
    ];
    for other in others {
        assert!(policy.evaluate(&other).denied.is_some(), "{other:?}");
    }
}

/// A misspelt condition would match everything.
#[test]
fn a_file_with_anything_unknown_in_it_is_refused_with_the_place() {
    let bad = [
        ("[[rule]]\neffect = \"allow\"\nsubjct = \"x\"", "subjct"),
        ("[[rules]]\neffect = \"allow\"", "rules"),
        ("[[rule]]\neffect = \"permit\"", "permit"),
        ("[[rule]]\nsubject = \"x\"", "effect"),
        ("[[rule]]\neffect = \"allow\"\nentrance = \"door\"", "entrance"),
        ("[[rule]]\neffect = \"allow\"\nreason = \"x\"", "rule 1"),
        ("[[rule]]\neffect = \"deny\"\nsubject = []", "`subject` lists nothing"),
        ("command = []", "command"),
        ("command = [\"\"]", "command"),
        ("[[rule", "line 1"),
    ];
    for (text, words) in bad {
        let error = FilePolicy::parse(text).unwrap_err();
        assert!(error.contains(words), "{text:?}: {error}");
    }
}

#[test]
fn another_text_is_another_epoch_and_the_same_text_the_same() {
    assert_eq!(file("# a").epoch(), file("# a").epoch());
    assert_ne!(file("# a").epoch(), file("# b").epoch());
}

fn install(dir: &Path, text: &[u8]) {
    std::fs::write(dir.join("new"), text).unwrap();
    std::fs::rename(dir.join("new"), dir.join("policy.toml")).unwrap();
}

/// A17: a right that is withdrawn is withdrawn for the next question.
#[test]
fn what_is_installed_counts_from_the_next_question_on() {
    let dir = tempfile::tempdir().unwrap();
    let policy = Installed::new(dir.path().join("policy.toml"), me());
    let ask = || policy.evaluate(&facts("uid:1000", "s"));
    let alone = (ask(), policy.epoch());
    assert_eq!(alone.0, Decision { denied: None, epoch: alone.1 });
    install(dir.path(), b"");
    assert!(ask().denied.is_some());
    assert_ne!(policy.epoch(), alone.1);
    install(dir.path(), b"[[rule]]\neffect = \"allow\"");
    assert_eq!(ask().denied, None);
    std::fs::remove_file(dir.path().join("policy.toml")).unwrap();
    assert_eq!((ask(), policy.epoch()), alone);
}

#[test]
fn a_file_that_cannot_be_used_lets_nobody_start() {
    let dir = tempfile::tempdir().unwrap();
    let policy = Installed::new(dir.path().join("policy.toml"), me());
    for text in [&b"[[rule"[..], b"\xff", &vec![b'#'; POLICY_BYTES_MAX as usize + 1]] {
        install(dir.path(), text);
        assert_unavailable(&policy.evaluate(&facts("uid:1000", "s")), "policy.toml");
        assert!(policy.check().is_err());
    }
    std::fs::remove_file(dir.path().join("policy.toml")).unwrap();
    std::fs::create_dir(dir.path().join("policy.toml")).unwrap();
    assert_unavailable(&policy.evaluate(&facts("uid:1000", "s")), "cannot be read");
}

/// A program of two lines.
fn program(dir: &Path, body: &str) -> PathBuf {
    let path = dir.join(format!("hook-{}", uuid::Uuid::now_v7().simple()));
    let mut file = std::fs::File::create(&path).unwrap();
    writeln!(file, "#!/bin/sh\n{body}").unwrap();
    file.set_permissions(PermissionsExt::from_mode(0o755)).unwrap();
    path
}

/// Runs through the shell, so that a program just written is not "busy" while another test forks.
fn hook(path: &Path) -> Hook {
    Hook::new(&["/bin/sh".to_owned(), path.display().to_string()]).unwrap().with_patience(Duration::from_secs(60))
}

#[test]
fn the_exit_code_of_a_hook_is_its_answer() {
    let dir = tempfile::tempdir().unwrap();
    let ask = |body: &str| hook(&program(dir.path(), body)).evaluate(&facts("uid:1000", "docs"));
    assert_eq!(ask("exit 0").denied, None);
    assert_eq!(ask("echo closed for today; echo more; exit 1").denied.as_deref(), Some("closed for today"));
    assert_eq!(ask("exit 1").denied.as_deref(), Some("no reason was given"));
    assert_unavailable(&ask("exit 2"), "exit status: 2");
    assert_unavailable(&ask("kill -9 $$"), "signal: 9");
    let printed = ask("printf 'a\\033[2Jb\\n'; exit 1").denied.unwrap();
    assert_eq!(printed, "a\u{fffd}[2Jb");
    let long = ask("head -c 100000 /dev/zero | tr '\\0' x; exit 1").denied.unwrap();
    assert_eq!(long.len(), REASON_BYTES_MAX);
    let absent = Hook::new(&["/nowhere/at/all".to_owned()]).unwrap();
    assert_unavailable(&absent.evaluate(&facts("uid:1000", "s")), "cannot be run");
}

#[test]
fn a_hook_reads_the_facts_as_one_line_of_json() {
    let dir = tempfile::tempdir().unwrap();
    let seen = dir.path().join("seen");
    let body = format!("cat > {}", seen.display());
    assert_eq!(hook(&program(dir.path(), &body)).evaluate(&facts("uid:1000", "docs")).denied, None);
    let text = std::fs::read_to_string(seen).unwrap();
    assert_eq!(text.lines().count(), 1);
    assert_eq!(serde_json::from_str::<Facts>(&text).unwrap(), facts("uid:1000", "docs"));
}

/// No answer is no, and nothing of the program is left, also not what it started itself.
#[test]
fn a_hook_that_does_not_answer_is_killed_with_all_that_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    let path = program(dir.path(), &format!("trap '' TERM; sleep 1000 & echo $$ $! > {}; wait", pids.display()));
    // A machine may be too busy to start it in the first of these times.
    for seconds in [0.2, 2.0, 20.0] {
        let slow = hook(&path).with_patience(Duration::from_secs_f64(seconds));
        assert_unavailable(&slow.evaluate(&facts("uid:1000", "s")), "no answer within");
        if std::fs::read_to_string(&pids).is_ok_and(|text| text.ends_with('\n')) {
            break;
        }
    }
    let text = std::fs::read_to_string(&pids).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    for pid in text.split_whitespace() {
        while crate::process::is_running(pid.parse().unwrap()) {
            assert!(Instant::now() < until, "{pid} still runs");
            std::thread::yield_now();
        }
    }
}

/// A patience without end is one; no clock has room for it.
#[test]
fn a_hook_may_take_as_long_as_it_likes() {
    let dir = tempfile::tempdir().unwrap();
    let patient = hook(&program(dir.path(), "echo no; exit 1")).with_patience(Duration::MAX);
    assert_eq!(patient.evaluate(&facts("uid:1000", "s")).denied.as_deref(), Some("no"));
}

/// A program that leaves its output open to somebody else is not waited for.
#[test]
fn a_hook_that_answers_is_not_waited_for_longer() {
    let dir = tempfile::tempdir().unwrap();
    let path = program(dir.path(), "sleep 1000 & exit 0");
    assert_eq!(hook(&path).evaluate(&facts("uid:1000", "s")).denied, None);
}

#[test]
fn a_file_may_leave_the_rest_to_a_program() {
    let dir = tempfile::tempdir().unwrap();
    let path = program(dir.path(), "grep -q docs");
    let text = format!(
        "command = [\"/bin/sh\", {:?}]\n[[rule]]\neffect = \"deny\"\nsurface = \"docs/live\"",
        path.display().to_string()
    );
    let policy = file(&text);
    assert_eq!(policy.evaluate(&facts("uid:1000", "docs")).denied, None);
    assert!(policy.evaluate(&facts("uid:1000", "docs/live")).denied.unwrap().contains("rule 1"));
    assert!(policy.evaluate(&facts("uid:1000", "other")).denied.is_some());
    assert_eq!(policy.evaluate(&facts("uid:1000", "docs")).epoch, policy.epoch());
    let direct = Hook::new(&[path.display().to_string()]).unwrap();
    let before = direct.epoch();
    std::fs::write(&path, "#!/bin/sh\nexit 0 # another one\n").unwrap();
    assert_ne!(direct.epoch(), before);
}
