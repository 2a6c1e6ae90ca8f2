//! Text from standard input, for values too long or too awkward for a command line.

use std::io::{self, Read};

use tenure::node::SUMMARY_BYTES_MAX;

use super::exit::CliError;

/// The summary of the command line, where `-` stands for standard input.
pub fn summary(given: Option<String>) -> Result<Option<String>, CliError> {
    match given {
        Some(dash) if dash == "-" => read_summary(io::stdin().lock()).map(Some),
        other => Ok(other),
    }
}

/// Reads a summary without its last line end. What is too long is refused after reading just enough to know.
fn read_summary(input: impl Read) -> Result<String, CliError> {
    const LINE_END_BYTES_MAX: usize = 2;
    let enough = SUMMARY_BYTES_MAX + LINE_END_BYTES_MAX + 1;
    let mut bytes = Vec::new();
    input
        .take(enough as u64)
        .read_to_end(&mut bytes)
        .map_err(|error| CliError::usage("input", format!("cannot read the summary from standard input: {error}")))?;
    let text = bytes.strip_suffix(b"\n").map_or(&*bytes, |text| text.strip_suffix(b"\r").unwrap_or(text));
    if text.len() > SUMMARY_BYTES_MAX {
        let message =
            format!("the summary on standard input is longer than {SUMMARY_BYTES_MAX} bytes, and nothing is cut");
        return Err(CliError::usage("too_long", message)
            .with_hint("keep the long text in a file and put its path into the summary")
            .with_field("field", "summary")
            .with_field("limit", SUMMARY_BYTES_MAX));
    }
    match std::str::from_utf8(text) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(CliError::usage("bad_text", "the summary on standard input is not UTF-8")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::repeat;

    #[test]
    fn one_line_end_is_dropped_and_the_rest_kept() {
        assert_eq!(read_summary(&b"two\nlines\n"[..]).unwrap(), "two\nlines");
        assert_eq!(read_summary(&b"dos\r\n"[..]).unwrap(), "dos");
        assert_eq!(read_summary(&b"x\n\n"[..]).unwrap(), "x\n");
        assert_eq!(read_summary(&b""[..]).unwrap(), "");
    }

    #[test]
    fn the_limit_is_exact_and_counts_no_line_end() {
        let longest = "x".repeat(SUMMARY_BYTES_MAX);
        assert_eq!(read_summary(longest.as_bytes()).unwrap(), longest);
        assert_eq!(read_summary(format!("{longest}\r\n").as_bytes()).unwrap(), longest);
        assert_eq!(read_summary(format!("{longest}y").as_bytes()).unwrap_err().code(), "too_long");
        assert_eq!(read_summary(format!("{longest}\n\n").as_bytes()).unwrap_err().code(), "too_long");
    }

    #[test]
    fn an_input_without_end_is_refused_at_once() {
        assert_eq!(read_summary(repeat(b'x')).unwrap_err().code(), "too_long");
    }

    #[test]
    fn what_is_not_text_is_refused() {
        assert_eq!(read_summary(&b"\xff\xfe"[..]).unwrap_err().code(), "bad_text");
    }
}
