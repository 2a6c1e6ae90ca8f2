//! `export`: writes the graph so that `import` makes an equal one.

use tenure::Filter;
use tenure::formats::jsonl;

use super::context::Context;
use super::escape;
use super::exit::{CliError, Exit};

/// Writes every node, also ended and archived ones, so that `import` into another table makes an equal graph
///
/// Fields and edges are written. Who holds what, and how nodes ended, is not.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  tenure export > graph.jsonl
  tenure --dir /tmp/again import graph.jsonl")]
pub struct ExportArgs {
    /// How the graph is written down
    #[arg(long, value_enum, default_value_t = FormatArg::Jsonl)]
    format: FormatArg,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum FormatArg {
    /// JSON Lines: one node a line
    Jsonl,
}

/// Runs the verb.
pub fn run(context: &Context, args: ExportArgs) -> Result<Exit, CliError> {
    let FormatArg::Jsonl = args.format;
    let nodes = context.open()?.list(Filter { terminal: true, archived: true })?;
    let mut lines = Vec::new();
    jsonl::write(&nodes, &mut lines).map_err(|source| CliError::Output { source, changed: false })?;
    // The file may be looked at on a terminal; JSON lets what must not reach one raw be written as an escape.
    let mut text = String::with_capacity(lines.len());
    for line in String::from_utf8_lossy(&lines).lines() {
        text.push_str(&escape::json(line));
        text.push('\n');
    }
    context.out.block(&text)?;
    Ok(Exit::Done)
}
