//! Text from a table made harmless: nothing that a terminal obeys, or that changes the order in which text is read.

/// Whether a terminal, or the eye, would take this character for something other than text: control characters (C0,
/// DEL, C1), line separators, marks and overrides of the writing direction, and characters that show as nothing.
///
/// The joiners U+200C and U+200D stay: scripts and emoji need them.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The text with every unsafe character written as `\n`, `\t`, `\r` or `\u{..}`.
pub(crate) fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            _ if is_unsafe(c) => out.extend(c.escape_unicode()),
            _ => out.push(c),
        }
    }
    out
}
