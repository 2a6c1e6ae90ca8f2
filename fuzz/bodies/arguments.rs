//! Command lines, through the program's own parser: the arguments are the lines of the bytes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::cli;

/// Whatever the words, they parse or are refused in words.
pub fn run(bytes: &[u8]) {
    let words = bytes.split(|&byte| byte == b'\n').map(OsStr::from_bytes);
    let words = std::iter::once(OsStr::new("tenure")).chain(words);
    if let Err(error) = cli::parse(words) {
        let text = error.render().to_string();
        assert!(!text.is_empty(), "a refusal says nothing");
    }
}
