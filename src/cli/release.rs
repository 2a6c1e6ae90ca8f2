//! `release`: hand a claim back.

use super::answer;
use super::context::Context;
use super::escape;
use super::exit::{CliError, Exit};
use super::out;
use super::quick::Words;

/// Hands a claim back: the node is open again
///
/// Prints the new generation; the old claim is void from then on.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  tenure release build --holder w1 --gen 2\n  tenure release build --force")]
pub struct ReleaseArgs {
    /// Name or id
    node: String,

    /// Name of the worker that holds it
    #[arg(long, env = "TENURE_HOLDER", hide_env_values = true)]
    holder: Option<String>,

    /// The generation that the claim printed
    #[arg(long = "gen", value_name = "N", allow_negative_numbers = true)]
    generation: Option<u64>,

    /// Whoever holds it; says on standard error whom it was taken from
    #[arg(long)]
    force: bool,
}

impl ReleaseArgs {
    /// See `quick`.
    pub fn from_words(words: &mut Words) -> Option<ReleaseArgs> {
        if words.is_holder_odd() {
            return None;
        }
        Some(ReleaseArgs {
            node: words.node()?,
            holder: words.holder(),
            generation: words.generation()?,
            force: words.flag("force"),
        })
    }
}

/// Runs the verb.
pub fn run(context: &Context, args: ReleaseArgs) -> Result<Exit, CliError> {
    let node = context.node(&args.node)?;
    if args.force {
        return forced(context, &args);
    }
    let Some(holder) = &args.holder else {
        return Err(CliError::usage("usage", "name the holder with --holder or TENURE_HOLDER")
            .with_hint("--force takes the claim away from whoever holds it"));
    };
    let table = context.open_to_change()?;
    let generation = table.release(node, holder, args.generation)?;
    answer::moved(context, &table, node, &args.node, generation)
}

fn forced(context: &Context, args: &ReleaseArgs) -> Result<Exit, CliError> {
    let node = context.node(&args.node)?;
    let taken = context.open_to_change()?.release_forced(node, args.generation)?;
    context.out.mark_changed();
    out::note(&format!(
        "tenure: {} was taken from {}, last heard of {} ms ago",
        escape::message(&args.node),
        escape::message(&taken.holder),
        taken.quiet_ms
    ));
    if context.json {
        context.out.json(&taken)?;
    } else {
        context.out.line(&format!("gen={}", taken.generation))?;
    }
    Ok(Exit::Done)
}
