//! The texts below the options: their paragraphs are broken where the terminal ends, not where the source does.

use clap::Command;

/// The command, and all below it, with paragraphs of one line each. What is indented stays as it is.
pub fn flowing(command: Command) -> Command {
    let command = match command.get_after_help().map(ToString::to_string) {
        Some(text) => command.after_help(unbroken(&text)),
        None => command,
    };
    command.mut_subcommands(flowing)
}

fn unbroken(text: &str) -> String {
    let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
    let mut out = String::new();
    let mut goes_on = false;
    for line in text.lines() {
        if !out.is_empty() {
            out.push(if goes_on && is_prose(line) { ' ' } else { '\n' });
        }
        out.push_str(line);
        goes_on = is_prose(line) && !line.ends_with(':');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_flow_and_examples_stay() {
        let text = "One sentence, broken\nin two.\n\nExamples:\n  a\n  b\nExit codes: 0 done,\n1 not.";
        let flows = "One sentence, broken in two.\n\nExamples:\n  a\n  b\nExit codes: 0 done, 1 not.";
        assert_eq!(unbroken(text), flows);
        assert_eq!(unbroken(""), "");
        assert_eq!(unbroken("a\n\n\nb:\nc"), "a\n\n\nb:\nc");
    }
}
