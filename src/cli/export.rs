//! `export`: writes the graph so that `import` makes an equal one, or as a drawing.

use tenure::formats::{dot, jsonl, mermaid};
use tenure::{Filter, NodeView};

use super::context::Context;
use super::escape;
use super::exit::{CliError, Exit};
use super::out;

/// Writes every node, also ended and archived ones, so that `import` into another table makes an equal graph
///
/// Fields and edges are written. Who holds what, and how nodes ended, is not, except in drawings: `dot` and `mermaid`
/// show each node's status by colour and shape, and the critical path (the costliest chain of nodes that have not ended)
/// thick and red.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenure export > graph.jsonl
  tenure --dir /tmp/again import graph.jsonl
  tenure export --format dot | dot -Tsvg > graph.svg")]
pub struct ExportArgs {
    /// How the graph is written down
    #[arg(long, value_enum, default_value_t = FormatArg::Jsonl)]
    format: FormatArg,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum FormatArg {
    /// JSON Lines: one node a line
    Jsonl,
    /// A drawing for Graphviz
    Dot,
    /// A drawing for Mermaid
    Mermaid,
}

/// Runs the verb.
pub fn run(context: &Context, args: ExportArgs) -> Result<Exit, CliError> {
    let nodes = context.open()?.list(Filter { terminal: true, archived: true })?;
    let mut bytes = Vec::new();
    let written = match args.format {
        FormatArg::Jsonl => jsonl::write(&nodes, &mut bytes),
        FormatArg::Dot => dot::write(&nodes, &mut bytes),
        FormatArg::Mermaid => mermaid::write(&nodes, &mut bytes),
    };
    written.map_err(|source| CliError::Output { source, changed: false })?;
    let text = String::from_utf8_lossy(&bytes);
    match args.format {
        FormatArg::Jsonl => context.out.block(&escaped_json(&text))?,
        FormatArg::Dot | FormatArg::Mermaid => context.out.block(&text)?,
    }
    if matches!(args.format, FormatArg::Mermaid) {
        warn_of_limits(&nodes, text.len());
    }
    Ok(Exit::Done)
}

/// The file may be looked at on a terminal; JSON lets what must not reach one raw be written as an escape.
fn escaped_json(lines: &str) -> String {
    let mut text = String::with_capacity(lines.len());
    for line in lines.lines() {
        text.push_str(&escape::json(line));
        text.push('\n');
    }
    text
}

/// Mermaid shows an error in place of a drawing that is too large for it, and no drawing can raise its limits.
fn warn_of_limits(nodes: &[NodeView], bytes: usize) {
    let edges: usize = nodes.iter().map(|node| node.depends_on.len() + usize::from(node.parent.is_some())).sum();
    if edges > mermaid::EDGES_DRAWN || bytes > mermaid::BYTES_DRAWN {
        out::note(&format!(
            "tenure: Mermaid draws {} edges and {} bytes at most unless maxEdges and maxTextSize are raised where it is \
             shown; these are {edges} edges and {bytes} bytes (--format dot has no limit)",
            mermaid::EDGES_DRAWN,
            mermaid::BYTES_DRAWN
        ));
    }
}
