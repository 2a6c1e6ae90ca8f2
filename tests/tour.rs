//! The tour in the README, run line by line against the answers that stand there.
//!
//! In a ```console block a line after `$ ` is a command, `? N` is its exit code when it is not 0, and the lines up to the
//! next command are what it prints: standard output first, then standard error.

use std::path::Path;
use std::process::Command;

use snapbox::Data;

/// A command of the tour with what is expected of it.
#[derive(Debug, Default)]
struct Step {
    command: String,
    code: i32,
    output: String,
}

fn steps(readme: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in readme.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            _ => {
                if let Some(command) = line.strip_prefix("$ ") {
                    steps.push(Step { command: command.into(), ..Step::default() });
                } else if let Some(step) = steps.last_mut() {
                    match line.strip_prefix("? ") {
                        Some(code) => step.code = code.parse().unwrap(),
                        None => step.output += &format!("{line}\n"),
                    }
                }
            }
        }
    }
    steps
}

#[test]
fn every_line_of_the_tour_does_what_the_readme_says() {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let steps = steps(&readme);
    assert!(steps.len() >= 20, "the tour has only {} steps", steps.len());
    let dir = tempfile::tempdir().unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    for step in steps {
        let done = Command::new("sh")
            .args(["-c", &step.command])
            .current_dir(dir.path())
            .env("PATH", &path)
            .env("TENURE_DIR", dir.path().join("table"))
            .env_remove("TENURE_HOLDER")
            .output()
            .unwrap();
        let mut printed = String::from_utf8(done.stdout).unwrap();
        printed += &String::from_utf8(done.stderr).unwrap();
        // The table's right edge is padded; trailing blanks carry no meaning.
        let printed: String = printed.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        assert_eq!(done.status.code(), Some(step.code), "$ {}\n{printed}", step.command);
        if step.output.trim() != "[..]" {
            let wanted: String = step.output.lines().map(|line| format!("{}\n", line.trim_end())).collect();
            snapbox::Assert::new().eq(Data::text(printed), Data::text(wanted));
        }
    }
}
