//! `list` and `ready`: many nodes, a row each.

use tenure::{Filter, NodeView, Seen};

use super::context::Context;
use super::exit::{CliError, Exit};
use super::out;
use super::render;
use super::surfaces;

/// Lists the nodes that have not ended, oldest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenure list --all
  tenure list --blocked        `tenure why NODE` names what failed
  tenure list --json | jq -r 'select(.holder==\"w1\") | .name'")]
pub struct ListArgs {
    /// Also the nodes that have ended
    #[arg(long)]
    terminal: bool,
    /// Also the archived ones
    #[arg(long)]
    archived: bool,
    /// Everything
    #[arg(long)]
    all: bool,
    /// Only the blocked ones: something that they wait for failed or was cancelled
    #[arg(long, conflicts_with_all = ["terminal", "archived", "all"])]
    blocked: bool,
}

/// Lists the nodes that can be claimed now, in the order in which they are given out
///
/// First the node with the longest chain of unfinished work waiting below it (by cost), then the oldest. An empty list
/// is an answer: the exit code is 0.
#[derive(Debug, clap::Args)]
pub struct ReadyArgs {
    /// At most this many
    #[arg(short = 'n', value_name = "N", allow_negative_numbers = true)]
    limit: Option<usize>,
}

/// Runs `list`.
pub fn list(context: &Context, args: ListArgs) -> Result<Exit, CliError> {
    let filter = Filter { terminal: args.terminal || args.all, archived: args.archived || args.all };
    let mut views = context.open()?.list(filter)?;
    if args.blocked {
        views.retain(|view| view.status == Seen::Blocked);
        return answer(context, &views, "nothing is blocked");
    }
    let none = if filter.terminal { "no nodes" } else { "no live nodes (--terminal, --archived and --all show more)" };
    answer(context, &views, none)
}

/// Runs `ready`.
pub fn ready(context: &Context, args: ReadyArgs) -> Result<Exit, CliError> {
    let mut views = context.open()?.ready()?;
    if let Some(limit) = args.limit {
        views.truncate(limit);
    }
    surfaces::ask(context, &mut views);
    answer(context, &views, "nothing is ready (`tenure list` shows what waits)")
}

fn answer(context: &Context, views: &[NodeView], none: &str) -> Result<Exit, CliError> {
    if context.json {
        context.out.json_lines(views)?;
    } else if views.is_empty() {
        out::note(none);
    } else {
        context.out.block(&render::nodes(views))?;
    }
    Ok(Exit::Done)
}
