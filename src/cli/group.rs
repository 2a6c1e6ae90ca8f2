//! `group`: how many nodes of a group may be claimed at once.

use serde::Serialize;
use tenure::Refusal;

use super::context::Context;
use super::escape;
use super::exit::{CliError, Exit};

/// Sets how many nodes of a group may be claimed at once, or shows the groups
///
/// A node joins a group with `upsert --group`. With a limit of 1 its nodes exclude each other; one group that all nodes
/// of a benchmark join keeps the machine to itself. Lowering a limit takes nothing away from those who hold a node.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenure group gpu --limit 2
  tenure upsert train --group gpu
  tenure group gpu                   shows it
  tenure group                       shows all groups")]
pub struct GroupArgs {
    /// The group's name, at most 64 bytes; without it all groups are shown
    name: Option<String>,

    /// How many of its nodes may be claimed at once, 1 to 4,096; without it nothing is changed
    #[arg(long, value_name = "N", requires = "name", allow_negative_numbers = true)]
    limit: Option<u32>,
}

#[derive(Debug, Serialize)]
struct Answer<'a> {
    group: &'a str,
    limit: u32,
    changed: bool,
}

/// Runs the verb.
pub fn run(context: &Context, args: GroupArgs) -> Result<Exit, CliError> {
    let (Some(group), Some(limit)) = (&args.name, args.limit) else {
        return show(context, args.name);
    };
    let changed = context.open_or_create()?.set_group(group, limit)?;
    if changed {
        context.out.mark_changed();
    }
    if context.json {
        context.out.json(&Answer { group, limit, changed })?;
    } else {
        context.out.line(&format!("at most {limit} of group {} at once", escape::cell(group)))?;
    }
    Ok(Exit::Done)
}

/// One group, or all.
fn show(context: &Context, only: Option<String>) -> Result<Exit, CliError> {
    let mut groups = context.open()?.groups()?;
    if let Some(group) = only {
        groups.retain(|known| known.name == group);
        if groups.is_empty() {
            return Err(Refusal::NoSuchGroup { group }.into());
        }
    }
    if context.json {
        context.out.json_lines(&groups)?;
        return Ok(Exit::Done);
    }
    for group in &groups {
        let name = escape::cell(&group.name);
        context.out.line(&format!("{name}  {} of {} claimed, {} nodes", group.claimed, group.limit, group.nodes))?;
    }
    Ok(Exit::Done)
}
