//! `complete`: a node comes to its end.

use clap::ValueEnum;
use serde::Serialize;
use tenure::{Completion, Ended, NodeId, Outcome, Seen};

use super::answer;
use super::context::Context;
use super::escape;
use super::exit::{CliError, Exit};
use super::input;
use super::quick::Words;

/// Ends a node: done, failed or cancelled
///
/// A held node is ended by its holder only. Name the generation that the claim printed: without it a claim that was
/// lost meanwhile is not noticed. Ending a node again the same way is no error and changes nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenure complete build --holder w1 --gen 1
  tenure complete build --holder w1 --gen 1 --status failed --summary 'no compiler'
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

impl CompleteArgs {
    /// See `quick`.
    pub fn from_words(words: &mut Words) -> Option<CompleteArgs> {
        if words.is_holder_odd() {
            return None;
        }
        let status = match words.option("status").as_deref() {
            None | Some("done") => End::Done,
            Some("failed") => End::Failed,
            Some("cancelled") => End::Cancelled,
            Some(_) => return None,
        };
        Some(CompleteArgs {
            node: words.node()?,
            status,
            generation: words.generation()?,
            holder: words.holder(),
            summary: words.option("summary"),
        })
    }
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
struct Answer {
    id: NodeId,
    name: Option<String>,
    status: &'static str,
    changed: bool,
    /// The node's new generation and how many attempts it has had, when it is to be tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<u64>,
}

/// Runs the verb.
pub fn run(context: &Context, args: CompleteArgs) -> Result<Exit, CliError> {
    let id = context.node(&args.node)?;
    let outcome = Outcome::from(args.status);
    let summary = input::summary(args.summary)?;
    let completion = Completion { outcome, generation: args.generation, holder: args.holder, summary };
    let table = context.open_to_change()?;
    let ended = table.complete(id, &completion)?;
    let changed = ended != Ended::Already;
    if changed {
        context.out.mark_changed();
    }
    let (status, generation, attempts) = match ended {
        Ended::ToRetry { generation, attempts } => ("open", Some(generation), Some(attempts)),
        _ => (end_name(outcome), None, None),
    };
    if context.json {
        let name = answer::name_of(&table, id, &args.node);
        context.out.json(&Answer { id, name, status, changed, generation, attempts })?;
        return Ok(Exit::Done);
    }
    let node = escape::cell(&args.node);
    context.out.line(&match ended {
        Ended::ToRetry { attempts, .. } => format!("{node} failed in attempt {attempts} and is open for another"),
        Ended::Already => format!("{node} is {status} already; nothing was changed"),
        _ => format!("{node} is {status}"),
    })?;
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
