//! How a complaint is told: `tenure: MESSAGE` and a hint for people, one JSON object with `--json`.

use std::io::IsTerminal;

use clap::error::ErrorKind;
use serde::Serialize;
use serde_json::{Map, Value};

use super::escape;
use super::exit::{CliError, Exit};
use super::out::{self, Out};

/// Tells the error on standard error and answers with the program's end.
pub fn error(error: CliError, json: bool) -> Exit {
    let exit = error.exit();
    if matches!(error, CliError::ClosedPipe) {
        return exit;
    }
    if json {
        out::note(&object(error.code(), &error.message(), error.fields()));
        return exit;
    }
    out::note(&format!("tenure: {}", escape::message(&error.message())));
    if let Some(hint) = error.hint() {
        out::note(&format!("hint: {}", escape::message(&hint)));
    }
    exit
}

/// Tells what clap says: help and version on standard output, complaints on standard error.
pub fn command_line(error: &clap::Error) -> Exit {
    let rendered = error.render();
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let styled = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let text = if styled { rendered.ansi().to_string() } else { rendered.to_string() };
        return match Out::default().line(text.trim_end()) {
            Ok(()) => Exit::Done,
            Err(error) => self::error(error, false),
        };
    }
    let text = rendered.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
    if asked_for_json() {
        // What follows the complaint is advice on how to call the program.
        let message = text.split("\n\nUsage:").next().unwrap_or(text);
        let message = message.split("\n\nFor more").next().unwrap_or(message);
        out::note(&object("usage", message, Map::new()));
        return Exit::Usage;
    }
    // clap quotes what was typed, so its text is escaped like any other, line by line.
    let lines: Vec<String> = text.lines().map(escape::message).collect();
    let who = if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand { "" } else { "tenure: " };
    out::note(&format!("{who}{}", lines.join("\n")));
    Exit::Usage
}

/// Whether `--json` stands on a command line that could not be parsed.
fn asked_for_json() -> bool {
    std::env::args_os().skip(1).take_while(|arg| arg != "--").any(|arg| arg == "--json")
}

/// The JSON object of a complaint, the code first.
#[derive(Serialize)]
struct Complaint<'a> {
    error: &'a str,
    message: &'a str,
    #[serde(flatten)]
    fields: Map<String, Value>,
}

fn object(error: &str, message: &str, fields: Map<String, Value>) -> String {
    let complaint = Complaint { error, message, fields };
    // Strings and JSON values always serialize; should that ever change, the code alone is still an answer.
    let text = serde_json::to_string(&complaint).unwrap_or_else(|_| format!("{{\"error\":\"{error}\"}}"));
    escape::json(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_has_code_message_and_fields_and_no_raw_control_character() {
        let fields = Map::from_iter([("holder".to_owned(), Value::from("w\u{9b}1"))]);
        let text = object("held", "a\x1b[0m\u{202e}", fields);
        assert!(escape::is_plain(&text), "{text}");
        let back: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back["error"], "held");
        assert_eq!(back["holder"], "w\u{9b}1");
        assert_eq!(back["message"], "a\x1b[0m\u{202e}");
    }
}
