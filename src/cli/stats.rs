//! `stats`: counts of everything.

use tenure::Stats;

use super::context::Context;
use super::escape;
use super::exit::{CliError, Exit};

/// Counts the nodes by status, and what else the table holds
#[derive(Debug, clap::Args)]
pub struct StatsArgs {}

/// Runs the verb.
pub fn run(context: &Context, _args: StatsArgs) -> Result<Exit, CliError> {
    let table = context.open()?;
    let stats = table.stats()?;
    if context.json {
        context.out.json(&stats)?;
    } else {
        let dir = escape::message(&table.dir().display().to_string());
        context.out.block(&text(&dir, &stats))?;
    }
    Ok(Exit::Done)
}

fn text(dir: &str, stats: &Stats) -> String {
    let rows = [
        ("table", dir.to_owned()),
        ("nodes", format!("{} of {}", stats.nodes, stats.capacity)),
        ("ready", stats.ready.to_string()),
        ("todo", stats.todo.to_string()),
        ("blocked", stats.blocked.to_string()),
        ("claimed", stats.claimed.to_string()),
        ("done", stats.done.to_string()),
        ("failed", stats.failed.to_string()),
        ("cancelled", stats.cancelled.to_string()),
        ("archived", stats.archived.to_string()),
        ("edges", format!("{} of {}", stats.edges, stats.edges_max)),
        ("holders", format!("{} of {}", stats.holders, stats.holders_max)),
        ("text blocks", reserved(stats.text_blocks, stats.text_blocks_reserved, Some(stats.text_blocks_max))),
        ("versions", reserved(stats.versions, stats.versions_reserved, None)),
        ("version", stats.version.to_string()),
    ];
    rows.iter().map(|(key, value)| format!("{key:<12} {value}\n")).collect()
}

/// A count with what some process has in hand and not published yet.
fn reserved(used: u32, reserved: u32, max: Option<u32>) -> String {
    let of = max.map(|max| format!(" of {max}")).unwrap_or_default();
    format!("{used}{of}, {reserved} reserved")
}
