//! The walk-through in `docs/admissions.md`, run line by line against the answers that stand there.
//!
//! In a ```console block a line after `$ ` is a command, `? N` is its exit code when it is not 0, and the lines up to the
//! next command are what it prints: standard output first, then standard error. What a command sets going in the
//! background is waited for, and so is the end of what was asked to stop.

use std::path::Path;
use std::process::{Command, Stdio};

use snapbox::Data;

use crate::support::{World, wait_for};

#[derive(Debug, Default)]
struct Step {
    command: String,
    code: i32,
    output: String,
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            _ => match (line.strip_prefix("$ "), line.strip_prefix("? ")) {
                (Some(command), _) => steps.push(Step { command: command.into(), ..Step::default() }),
                (_, Some(code)) => steps.last_mut().expect("a command before it").code = code.parse().unwrap(),
                _ => steps.last_mut().expect("a command before it").output += &format!("{line}\n"),
            },
        }
    }
    steps
}

#[test]
fn every_line_of_the_walk_through_does_what_it_says() {
    let doc = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/admissions.md");
    let steps = steps(&std::fs::read_to_string(doc).unwrap());
    assert!(steps.len() >= 30, "the walk-through has only {} steps", steps.len());
    let world = World::empty();
    let binary = Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    for step in steps {
        let mut shell = Command::new("sh");
        world.environment(&mut shell);
        shell.args(["-c", &step.command]).current_dir(world.root()).env("PATH", &path).stdin(Stdio::null());
        let done = shell.output().unwrap();
        let printed = String::from_utf8(done.stdout).unwrap() + &String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(step.code), "$ {}\n{printed}", step.command);
        snapbox::Assert::new().eq(Data::text(printed), Data::text(step.output));
        let unfinished = || world.all(["history", "--unfinished"]);
        if step.command.ends_with('&') {
            wait_for("the command to have started", || {
                unfinished().iter().any(|row| row["phase"] == "started").then_some(())
            });
        }
        if step.command.starts_with("tenure adm stop") {
            wait_for("it to have ended", || unfinished().is_empty().then_some(()));
        }
    }
}
