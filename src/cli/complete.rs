//! `complete`: a node comes to its end.

use clap::ValueEnum;
use serde::Serialize;
use tenure::{Completion, NodeId, Outcome, Seen};

use super::answer;
use super::context::Context;
use super::escape;
use super::exit::{CliError, Exit};
use super::input;

/// Ends a node: done, failed or cancelled
///
/// A held node is ended by its holder only. Name the generation that the claim printed: without it a claim that was
/// lost meanwhile is not noticed. Ending a node again the same way is no error and changes nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenure complete build --holder w1 --gen 2
  tenure complete build --holder w1 --gen 2 --status failed --summary 'no compiler'
  tenure complete build --status cancelled         a node that nobody holds")]
pub struct CompleteArgs {
    /// Name or id
    node: String,

    /// How it ends
    #[arg(long, value_enum, default_value_t = End::Done)]
    status: End,

    /// The generation that the claim printed
    #[arg(long = "gen", value_name = "N", allow_negative_numbers = true)]
    generation: Option<u64>,

    /// Name of the worker that holds it
    #[arg(long, env = "TENURE_HOLDER", hide_env_values = true)]
    holder: Option<String>,

    /// Replaces the summary, at most 1,024 bytes; '' clears it, `-` reads it from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    summary: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum End {
    /// It ended well; everything it waits for must be done
    Done,
    /// It ended badly; what waits for it is blocked
    Failed,
    /// It was given up; what waits for it is blocked
    Cancelled,
}

impl From<End> for Outcome {
    fn from(end: End) -> Outcome {
        match end {
            End::Done => Outcome::Done,
            End::Failed => Outcome::Failed,
            End::Cancelled => Outcome::Cancelled,
        }
    }
}

#[derive(Debug, Serialize)]
struct Ended {
    id: NodeId,
    name: Option<String>,
    status: Outcome,
    changed: bool,
}

/// Runs the verb.
pub fn run(context: &Context, args: CompleteArgs) -> Result<Exit, CliError> {
    let id = context.node(&args.node)?;
    let outcome = Outcome::from(args.status);
    let summary = input::summary(args.summary)?;
    let completion = Completion { outcome, generation: args.generation, holder: args.holder, summary };
    let table = context.open()?;
    let changed = table.complete(id, &completion)?;
    if changed {
        context.out.mark_changed();
    }
    if context.json {
        let name = answer::name_of(&table, id, &args.node);
        context.out.json(&Ended { id, name, status: outcome, changed })?;
    } else {
        let end = end_name(outcome);
        let already = if changed { "" } else { " already; nothing was changed" };
        context.out.line(&format!("{} is {end}{already}", escape::cell(&args.node)))?;
    }
    Ok(Exit::Done)
}

/// The word for an end, as everywhere else.
fn end_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Done => Seen::Done.name(),
        Outcome::Failed => Seen::Failed.name(),
        Outcome::Cancelled => Seen::Cancelled.name(),
    }
}
