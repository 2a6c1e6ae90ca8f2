//! `link` and `unlink`: who waits for whom.

use serde::Serialize;
use tenure::{Need, OnFailure};

use super::context::Context;
use super::escape;
use super::exit::{CliError, Exit};

/// Makes CHILD wait for PARENT
///
/// Linking twice is no error. A link that would close a loop is refused, and so is one to a node that has ended.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  tenure link fetch build                          build waits for fetch\n  tenure link lint report --on-failure continue    report starts however lint ends"
)]
pub struct LinkArgs {
    /// The node that must be done first
    parent: String,
    /// The node that waits for it
    child: String,
    /// What CHILD does when PARENT fails or is cancelled [default: block, or what the link says already]
    #[arg(long, value_enum)]
    on_failure: Option<OnFailureArg>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum OnFailureArg {
    /// It cannot become ready by itself
    Block,
    /// It is skipped: seen as cancelled until PARENT is reopened
    Skip,
    /// PARENT counts as satisfied
    Continue,
}

impl From<OnFailureArg> for OnFailure {
    fn from(arg: OnFailureArg) -> OnFailure {
        match arg {
            OnFailureArg::Block => OnFailure::Block,
            OnFailureArg::Skip => OnFailure::Skip,
            OnFailureArg::Continue => OnFailure::Continue,
        }
    }
}

/// Lets CHILD no longer wait for PARENT
#[derive(Debug, clap::Args)]
pub struct UnlinkArgs {
    /// The node that was waited for
    parent: String,
    /// The node that waited
    child: String,
}

#[derive(Debug, Serialize)]
struct Edge<'a> {
    parent: &'a str,
    child: &'a str,
    changed: bool,
}

/// Runs `link`.
pub fn link(context: &Context, args: LinkArgs) -> Result<Exit, CliError> {
    let (parent, child) = (context.node(&args.parent)?, context.node(&args.child)?);
    let changed = context
        .open_to_change()?
        .link_with(Need { node: parent, on_failure: args.on_failure.map(Into::into) }, child)?;
    let words = if changed { "now waits for" } else { "already waits for" };
    answer(context, &Edge { parent: &args.parent, child: &args.child, changed }, words)
}

/// Runs `unlink`.
pub fn unlink(context: &Context, args: UnlinkArgs) -> Result<Exit, CliError> {
    let (parent, child) = (context.node(&args.parent)?, context.node(&args.child)?);
    let changed = context.open_to_change()?.unlink(parent, child)?;
    let words = if changed { "no longer waits for" } else { "did not wait for" };
    answer(context, &Edge { parent: &args.parent, child: &args.child, changed }, words)
}

fn answer(context: &Context, edge: &Edge<'_>, words: &str) -> Result<Exit, CliError> {
    if edge.changed {
        context.out.mark_changed();
    }
    if context.json {
        context.out.json(edge)?;
    } else {
        context.out.line(&format!("{} {words} {}", escape::cell(edge.child), escape::cell(edge.parent)))?;
    }
    Ok(Exit::Done)
}
