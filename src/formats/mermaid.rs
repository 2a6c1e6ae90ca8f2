//! The graph as a Mermaid flowchart, for places that draw those: Markdown of code hosts, wikis, notebooks.
//!
//! Names can hold any text, and the text of a Mermaid node is read several times: for the flowchart's own syntax, as HTML,
//! by older versions as Markdown. So everything is written as a character reference (`#34;`) that has no need to stay;
//! what stays is letters and digits, and between two of them also `-`, `_` and a blank, which mean nothing there.
//!
//! What is looked for after the references were read needs more: `\n` would be a line end, `$$` a formula, `fa:fa-` an
//! icon. The backslash is drawn as a character that looks the same, and a joiner that shows as nothing parts the others.

use std::fmt::Write as _;
use std::io::{Result, Write};

use super::picture::{CRITICAL, Picture, look, status_line};
use super::visible;
use crate::node::{NodeView, Seen};

/// The most edges that Mermaid draws unless its `maxEdges` is raised.
pub const EDGES_DRAWN: usize = 500;
/// The most bytes that Mermaid reads unless its `maxTextSize` is raised.
pub const BYTES_DRAWN: usize = 50_000;

const EVERY: [Seen; 7] =
    [Seen::Ready, Seen::Todo, Seen::Blocked, Seen::Claimed, Seen::Done, Seen::Failed, Seen::Cancelled];

/// Writes the nodes of one look, oldest first, as a flowchart: an arrow leads from a node to what waits for it, a dotted
/// line to what belongs under it. The critical path is thick and red. An edge whose failure does not block says what it
/// does instead.
///
/// A reference to a node that is not among `nodes` is left out.
///
/// # Errors
/// Whatever writing to `out` refuses.
pub fn write(nodes: &[NodeView], out: &mut dyn Write) -> Result<()> {
    let picture = Picture::of(nodes);
    writeln!(out, "flowchart LR")?;
    for (at, node) in picture.nodes.iter().enumerate() {
        let (open, close) = look(node.status).mermaid;
        let (label, status) = (escaped(&node.label()), escaped(&status_line(node)));
        writeln!(out, "  n{at}{open}\"{label}<br/>{status}\"{close}")?;
    }
    for edge in &picture.edges {
        let arrow = if edge.is_critical { "==>" } else { "-->" };
        let label = edge.label.map(|label| format!("|{label}|")).unwrap_or_default();
        writeln!(out, "  n{} {arrow}{label} n{}", edge.from, edge.to)?;
    }
    for (parent, child) in &picture.families {
        writeln!(out, "  n{parent} -.- n{child}")?;
    }
    for seen in EVERY {
        let of_it = places(picture.nodes.iter().map(|node| node.status == seen));
        if !of_it.is_empty() {
            let look = look(seen);
            writeln!(out, "  classDef {} fill:{},stroke:{},color:#000", seen.name(), look.fill, look.line)?;
            writeln!(out, "  class {} {}", joined("n", &of_it), seen.name())?;
        }
    }
    let critical = places(picture.is_critical.iter().copied());
    if !critical.is_empty() {
        writeln!(out, "  classDef critical stroke:{CRITICAL},stroke-width:3px")?;
        writeln!(out, "  class {} critical", joined("n", &critical))?;
    }
    let critical = places(picture.edges.iter().map(|edge| edge.is_critical));
    if !critical.is_empty() {
        writeln!(out, "  linkStyle {} stroke:{CRITICAL},stroke-width:3px", joined("", &critical))?;
    }
    Ok(())
}

fn places(is_it: impl Iterator<Item = bool>) -> Vec<usize> {
    is_it.enumerate().filter_map(|(at, is_it)| is_it.then_some(at)).collect()
}

fn joined(before: &str, places: &[usize]) -> String {
    let mut out = String::new();
    for (i, at) in places.iter().enumerate() {
        // Writing to a String does not fail.
        let _ = write!(out, "{}{before}{at}", if i > 0 { "," } else { "" });
    }
    out
}

/// Text that no reader of a flowchart takes for anything but text.
fn escaped(text: &str) -> String {
    let text = visible::text(text);
    // Mermaid marks references with the ligature U+FB02 while it reads.
    let is_word = |c: char| c.is_alphanumeric() && c != '\u{fb02}';
    let mut out = String::with_capacity(text.len());
    let mut before = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let c = if c == '\\' { '\u{29f5}' } else { c };
        let between = before && chars.peek().is_some_and(|&next| is_word(next));
        if is_word(c) || (between && matches!(c, '-' | '_' | ' ')) {
            out.push(c);
        } else {
            let _ = write!(out, "#{};", u32::from(c));
            if matches!(c, '$' | ':') {
                out.push_str("#8288;");
            }
        }
        before = is_word(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_stay_and_everything_else_is_a_reference() {
        assert_eq!(escaped("build-x86_64 two"), "build-x86_64 two");
        assert_eq!(escaped("größe 日本"), "größe 日本");
        assert_eq!(escaped("a\"b#c;d`e"), "a#34;b#35;c#59;d#96;e");
        assert_eq!(escaped("1. x"), "1#46;#32;x");
        assert_eq!(escaped("- x"), "#45;#32;x");
        assert_eq!(escaped("__init__"), "#95;#95;init#95;#95;");
        assert_eq!(escaped("%%{init}%%"), "#37;#37;#123;init#125;#37;#37;");
        assert_eq!(escaped("a\u{fb02}b"), "a#64258;b");
        assert_eq!(escaped("$$x$$"), "#36;#8288;#36;#8288;x#36;#8288;#36;#8288;");
        assert_eq!(escaped("fa:fa-car"), "fa#58;#8288;fa-car");
    }

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        assert_eq!(escaped("a\nb"), "a#10741;nb");
        assert!(!escaped("a\u{202e}b\u{9b}").contains(['\u{202e}', '\u{9b}']));
    }
}
