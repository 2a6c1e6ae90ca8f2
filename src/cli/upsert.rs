//! `upsert`: creates or updates one node.

use serde::Serialize;
use tenure::{Change, NodeId, NodeSpec};

use super::answer;
use super::args;
use super::context::Context;
use super::exit::{CliError, Exit};
use super::input;

/// Creates or updates a node, and prints its name or id
///
/// What is not named stays as it is; what is given as empty ('') is cleared. A node that has ended is not changed
/// (`reopen` it first).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenure upsert build --needs fetch --cost 90000 --run 'make -j2'
  tenure upsert build --summary '' --existing
  git log -1 | tenure upsert build --summary -
  tenure upsert                          makes a node without a name and prints its id

Readiness is never set: a node is ready when everything it needs is done.")]
pub struct UpsertArgs {
    /// Name (at most 64 bytes) or id (32 lowercase hex digits); without it a node without a name is made
    node: Option<String>,

    /// A word for people and filters, at most 64 bytes
    #[arg(long)]
    kind: Option<String>,

    /// Only a worker that offers this role is given the node, at most 64 bytes
    #[arg(long)]
    role: Option<String>,

    /// The node it belongs under, for people; '' for none
    #[arg(long, value_name = "NODE")]
    parent: Option<String>,

    /// Estimated milliseconds of work [default: 1 for a new node]
    #[arg(long, value_name = "MS", value_parser = args::cost_ms, allow_negative_numbers = true)]
    cost: Option<u32>,

    /// One text, at most 1,024 bytes; `-` reads it from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    summary: Option<String>,

    /// Shell command that `tenure run` starts for it, at most 4,096 bytes
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    run: Option<String>,

    /// The workspace surface that its work is tied to, as `tenure admission` knows it; '' for none
    #[arg(long, value_name = "KEY")]
    surface: Option<String>,

    /// A node that it waits for; may be given several times, and adds to what it waits for already
    #[arg(long, value_name = "NODE")]
    needs: Vec<String>,

    /// The last of so many attempts that is lost or fails ends the node as failed; 0 is no limit
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_attempts: Option<u16>,

    /// Seconds that it is left alone after an attempt was lost or failed; doubled with each, at most an hour
    #[arg(long, value_name = "SECS", value_parser = args::delay_ms, allow_negative_numbers = true)]
    retry_delay: Option<u32>,

    /// The group it belongs to (`tenure group` makes one); '' for none
    #[arg(long)]
    group: Option<String>,

    /// Refuse to create: a mistyped name is then an error
    #[arg(long)]
    existing: bool,

    // Taken only to say why there is no such thing.
    #[arg(long, hide = true, allow_hyphen_values = true)]
    status: Option<String>,
}

#[derive(Debug, Serialize)]
struct Upserted {
    id: NodeId,
    name: Option<String>,
    change: Change,
}

/// Runs the verb.
pub fn run(context: &Context, args: UpsertArgs) -> Result<Exit, CliError> {
    if args.status.is_some() {
        return Err(no_status());
    }
    if args.existing && args.node.is_none() {
        return Err(CliError::usage("usage", "--existing needs the node: name the one that is to be changed"));
    }
    let (typed, existing) = (args.node.clone(), args.existing);
    let spec = spec(context, args)?;
    // A node that may not be created cannot be in a table that does not exist yet.
    let table = if existing { context.open()? } else { context.open_or_create()? };
    let (id, change) = table.upsert(&spec, existing)?;
    if change != Change::Unchanged {
        context.out.mark_changed();
    }
    let name = typed.and_then(|typed| answer::name_of(&table, id, &typed));
    if context.json {
        context.out.json(&Upserted { id, name, change })?;
    } else {
        context.out.line(&answer::label(name.as_deref(), id))?;
    }
    Ok(Exit::Done)
}

fn spec(context: &Context, args: UpsertArgs) -> Result<NodeSpec, CliError> {
    let mut spec = NodeSpec { kind: args.kind, role: args.role, cost: args.cost, run: args.run, ..NodeSpec::default() };
    if let Some(typed) = args.node {
        let id = context.node(&typed)?;
        if id == NodeId::of_name(&typed) {
            spec.name = Some(typed);
        } else {
            spec.id = Some(id);
        }
    }
    spec.parent = match args.parent.as_deref() {
        None => None,
        Some("") => Some(None),
        Some(parent) => Some(Some(context.node(parent)?)),
    };
    for need in &args.needs {
        spec.needs.push(context.node(need)?.into());
    }
    spec.summary = input::summary(args.summary)?;
    spec.max_attempts = args.max_attempts;
    spec.retry_delay_ms = args.retry_delay;
    spec.group = args.group;
    spec.surface = args.surface;
    Ok(spec)
}

fn no_status() -> CliError {
    CliError::usage("usage", "a status is not set with upsert: readiness follows from what a node waits for").with_hint(
        "`claim`, `release`, `complete --status done|failed|cancelled` and `reopen` are what change a status",
    )
}
