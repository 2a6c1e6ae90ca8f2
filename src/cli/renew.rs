//! `renew`: the holder is alive.

use super::args::{self, HolderArg};
use super::context::Context;
use super::exit::{CliError, Exit};
use super::quick::Words;

/// Starts the lease of a claim again: the holder is alive
///
/// Prints the generation, which stays. A claim that was lost meanwhile is refused: stop working on it.
#[derive(Debug, clap::Args)]
pub struct RenewArgs {
    /// Name or id
    node: String,

    #[command(flatten)]
    holder: HolderArg,

    /// The generation that the claim printed; protects against another process of the same name
    #[arg(long = "gen", value_name = "N", allow_negative_numbers = true)]
    generation: Option<u64>,

    /// A new length for the lease, in seconds [default: the length it has]
    #[arg(long, value_name = "SECS", value_parser = args::lease_ms, allow_negative_numbers = true)]
    lease: Option<u64>,
}

impl RenewArgs {
    /// See `quick`.
    pub fn from_words(words: &mut Words) -> Option<RenewArgs> {
        Some(RenewArgs {
            node: words.node()?,
            holder: HolderArg::from_words(words)?,
            generation: words.generation()?,
            lease: words.lease_ms()?,
        })
    }
}

/// Runs the verb.
pub fn run(context: &Context, args: RenewArgs) -> Result<Exit, CliError> {
    let node = context.node(&args.node)?;
    let granted = context.open_to_change()?.renew(node, &args.holder.holder, args.generation, args.lease)?;
    context.out.mark_changed();
    if context.json {
        context.out.json(&granted)?;
    } else {
        context.out.line(&format!("gen={}", granted.generation))?;
    }
    Ok(Exit::Done)
}
