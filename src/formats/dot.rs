//! The graph as a drawing in DOT, the language of Graphviz.
//!
//! Names can hold any text, and DOT takes some of it for its own: quotes and backslashes, and `&...;`, which it reads as
//! HTML does. All of that is escaped, and what a terminal or a reader would obey is written out visibly.

use std::io::{Result, Write};

use super::picture::{CRITICAL, FAMILY, Picture, look, status_line};
use super::visible;
use crate::node::NodeView;

/// Writes the nodes of one look, oldest first, as a directed graph: an edge leads from a node to what waits for it, a
/// dashed line to what belongs under it. What is on the critical path has a thick red outline. An edge whose failure does not
/// block says what it does instead.
///
/// A reference to a node that is not among `nodes` is left out.
///
/// # Errors
/// Whatever writing to `out` refuses.
pub fn write(nodes: &[NodeView], out: &mut dyn Write) -> Result<()> {
    let picture = Picture::of(nodes);
    writeln!(out, "digraph tenure {{")?;
    writeln!(out, "  graph [rankdir=LR, charset=\"UTF-8\"];")?;
    writeln!(out, "  node [fontname=\"sans-serif\", fontsize=11];")?;
    for (at, (node, &is_critical)) in picture.nodes.iter().zip(&picture.is_critical).enumerate() {
        let look = look(node.status);
        let (shape, style) = look.dot;
        let label = quoted(&[&node.label(), &status_line(node)]);
        let (line, width) = if is_critical { (CRITICAL, 3) } else { (look.line, 1) };
        write!(out, "  n{at} [label={label}, shape={shape}, style=\"{style}\", fillcolor=\"{}\", ", look.fill)?;
        write!(out, "color=\"{line}\", penwidth={width}")?;
        if let Some(summary) = &node.summary {
            // Graphviz takes escapes out of a tooltip twice, in some versions; one that looks the same is left alone.
            let plain = visible::text(summary).replace('\\', "\u{29f5}");
            write!(out, ", tooltip={}", quoted(&[&plain]))?;
        }
        writeln!(out, "];")?;
    }
    for edge in &picture.edges {
        let critical = if edge.is_critical { format!("color=\"{CRITICAL}\", penwidth=3") } else { String::new() };
        let label = edge.label.map(|label| format!("label=\"{label}\", fontsize=9")).unwrap_or_default();
        let style = match (critical.is_empty(), label.is_empty()) {
            (true, true) => String::new(),
            (false, false) => format!(" [{critical}, {label}]"),
            _ => format!(" [{critical}{label}]"),
        };
        writeln!(out, "  n{} -> n{}{style};", edge.from, edge.to)?;
    }
    for (parent, child) in &picture.families {
        writeln!(out, "  n{parent} -> n{child} [style=dashed, color=\"{FAMILY}\", arrowhead=none, constraint=false];")?;
    }
    writeln!(out, "}}")
}

/// Lines of text as a quoted string.
fn quoted(lines: &[&str]) -> String {
    let mut out = String::from("\"");
    for (i, line) in lines.iter().enumerate() {
        if i > 0 {
            out.push_str("\\n");
        }
        for c in visible::text(line).chars() {
            match c {
                '"' => out.push_str("\\\""),
                // In a label a backslash begins an escape of DOT's own, such as \N for the node's name.
                '\\' => out.push_str("\\\\"),
                '&' => out.push_str("&amp;"),
                // No character at all: not allowed in the XML of a drawing.
                _ if u32::from(c) & 0xfffe == 0xfffe => out.push('\u{fffd}'),
                _ => out.push(c),
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_dot_would_take_for_its_own_is_escaped() {
        assert_eq!(quoted(&["a\"b"]), r#""a\"b""#);
        assert_eq!(quoted(&["a\\N", "\\"]), r#""a\\N\n\\""#);
        assert_eq!(quoted(&["&lt;b&gt;"]), r#""&amp;lt;b&amp;gt;""#);
        assert_eq!(quoted(&["<b>x</b>"]), r#""<b>x</b>""#);
    }

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        assert_eq!(quoted(&["a\nb\u{202e}c"]), r#""a\\nb\\u{202e}c""#);
        assert_eq!(quoted(&["a\u{ffff}"]), "\"a\u{fffd}\"");
    }
}
