//! `stats`: counts of everything, for people, scripts and collectors.

use tenure::Stats;
use tenure::formats::prometheus;

use super::context::Context;
use super::escape;
use super::exit::{CliError, Exit};
use super::render;

/// Counts the nodes by status, and says how old and how full the table's content is
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenure stats --json | jq .blocked
  tenure stats --format prometheus > /var/lib/node_exporter/tenure.prom.new")]
pub struct StatsArgs {
    /// How the numbers are written down; --json stands for `json`
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<FormatArg>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FormatArg {
    /// A line each, for people
    Text,
    /// One object
    Json,
    /// The text format of Prometheus and OpenMetrics
    Prometheus,
}

/// Runs the verb.
pub fn run(context: &Context, args: StatsArgs) -> Result<Exit, CliError> {
    let format = args.format.unwrap_or(if context.json { FormatArg::Json } else { FormatArg::Text });
    if context.json && format != FormatArg::Json {
        return Err(CliError::usage("usage", "--json and --format ask for two formats; leave one out"));
    }
    let table = context.open()?;
    let stats = table.stats()?;
    match format {
        FormatArg::Json => context.out.json(&stats)?,
        FormatArg::Text => {
            let dir = escape::message(&table.dir().display().to_string());
            context.out.block(&text(&dir, &stats))?;
        }
        FormatArg::Prometheus => {
            let mut text = String::new();
            // Writing to a String does not fail.
            let _ = prometheus::write(&stats, &mut text);
            context.out.block(&text)?;
        }
    }
    Ok(Exit::Done)
}

fn text(dir: &str, stats: &Stats) -> String {
    let mut rows = vec![
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
    ];
    if let Some(age) = stats.oldest_ready_ms {
        rows.push(("oldest ready", format!("for {}", render::duration(i64::try_from(age).unwrap_or(i64::MAX)))));
    }
    if let Some(left) = stats.shortest_lease_ms {
        let span = render::duration(left.saturating_abs());
        rows.push((
            "first lease",
            if left > 0 { format!("runs out in {span}") } else { format!("ran out {span} ago") },
        ));
        let counts =
            format!("{} with less than a third left, {} run out", stats.leases_ending_soon, stats.leases_run_out);
        rows.push(("leases", counts));
    }
    rows.extend([
        ("edges", format!("{} of {}", stats.edges, stats.edges_max)),
        ("holders", format!("{} of {}, {} busy", stats.holders, stats.holders_max, stats.holders_busy)),
        ("text blocks", reserved(stats.text_blocks, stats.text_blocks_reserved, Some(stats.text_blocks_max))),
        ("versions", reserved(stats.versions, stats.versions_reserved, None)),
        ("version", stats.version.to_string()),
    ]);
    rows.iter().map(|(key, value)| format!("{key:<12} {value}\n")).collect()
}

/// A count with what some process has in hand and not published yet.
fn reserved(used: u32, reserved: u32, max: Option<u32>) -> String {
    let of = max.map(|max| format!(" of {max}")).unwrap_or_default();
    format!("{used}{of}, {reserved} reserved")
}
