//! Text from the table made harmless: nothing that a terminal obeys, or that changes the order in which text is read,
//! is ever printed raw.

use std::fmt::Write;

use tenure::formats::is_unsafe;

/// Whether the text can be printed as it is.
pub fn is_plain(text: &str) -> bool {
    !text.chars().any(is_unsafe)
}

/// A cell of a table: unsafe characters as `\n`, `\t`, `\r` or `\u{..}`, and a backslash doubled, so that what is shown
/// can be read back in one way only.
pub fn cell(text: &str) -> String {
    escaped(text, true)
}

/// A message: unsafe characters as in [`cell`], backslashes left alone, because messages quote paths and commands.
pub fn message(text: &str) -> String {
    escaped(text, false)
}

fn escaped(text: &str, double: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\\' if double => out.push_str("\\\\"),
            _ if is_unsafe(c) => out.extend(c.escape_unicode()),
            _ => out.push(c),
        }
    }
    out
}

/// JSON text in which everything that a terminal might obey is written as `\uXXXX`. Such characters stand only inside
/// strings there, so the value stays the same.
pub fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if !is_unsafe(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a String does not fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_overrides_are_shown_not_sent() {
        assert_eq!(cell("a\x1b[31mb"), "a\\u{1b}[31mb");
        assert_eq!(cell("a\nb\tc\rd"), "a\\nb\\tc\\rd");
        assert_eq!(cell("x\u{202e}y\u{9b}z\u{7f}"), "x\\u{202e}y\\u{9b}z\\u{7f}");
    }

    #[test]
    fn ordinary_text_of_any_script_stays() {
        let text = "größe 日本語 👩\u{200d}🚀 עברית";
        assert_eq!(cell(text), text);
        assert!(is_plain(text));
    }

    #[test]
    fn a_backslash_cannot_pass_for_an_escape() {
        assert_ne!(cell("\\n"), cell("\n"));
        assert_eq!(message("C:\\x"), "C:\\x");
    }

    #[test]
    fn json_keeps_its_value() {
        let text = "a\u{202e}b\u{9b}c\u{e0041}d\u{7f}\n";
        let safe = json(&serde_json::to_string(text).unwrap());
        assert!(is_plain(&safe), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), text);
    }
}
