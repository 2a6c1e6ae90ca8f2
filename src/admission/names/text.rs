//! The checks that several kinds of name share.

use super::{BadName, Fault};

/// Refuses nothing at all, and too much.
pub fn not_empty(what: &'static str, text: &str, limit: usize) -> Result<(), BadName> {
    match text.len() {
        0 => Err(BadName::new(what, Fault::Empty)),
        bytes if bytes > limit => Err(BadName::new(what, Fault::TooLong { bytes, limit })),
        _ => Ok(()),
    }
}

/// Refuses the first character that does not fit.
pub fn only(what: &'static str, text: &str, allowed: &'static str, fits: impl Fn(char) -> bool) -> Result<(), BadName> {
    match text.chars().find(|c| !fits(*c)) {
        Some(found) => Err(BadName::new(what, Fault::Character { found, allowed })),
        None => Ok(()),
    }
}

/// Refuses what a command line takes for an option and a directory for a hidden file.
pub fn begins_well(what: &'static str, text: &str) -> Result<(), BadName> {
    match text.chars().next() {
        Some(found) if !found.is_ascii_alphanumeric() => Err(BadName::new(what, Fault::Beginning { found })),
        _ => Ok(()),
    }
}

/// Whether the character is invisible, is obeyed by a terminal, or changes the order in which text is read: two paths
/// that differ in it only would look the same.
pub fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A number as people write it: digits only, no sign, no leading zero.
pub fn number(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    if !digits || (text.len() > 1 && text.starts_with('0')) {
        return None;
    }
    text.parse().ok()
}
