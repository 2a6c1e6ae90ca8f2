//! `claim` and `claim-next`: take a node under a lease.

use tenure::{Claim, ClaimOptions};

use super::answer;
use super::args::{self, HolderArg};
use super::context::Context;
use super::exit::{CliError, Exit};
use super::out;

/// Claims one node, and prints the generation that fences the claim
///
/// The node must be ready and the holder must hold nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  tenure claim build --holder w1         prints: gen=2
  tenure renew build --holder w1 --gen 2
  tenure complete build --holder w1 --gen 2")]
pub struct ClaimArgs {
    /// Name or id
    node: String,

    #[command(flatten)]
    holder: HolderArg,

    /// Refuse unless the node is at this generation
    #[arg(long = "gen", value_name = "N", allow_negative_numbers = true)]
    generation: Option<u64>,

    #[command(flatten)]
    how: HowArgs,
}

/// Claims the ready node with the most unfinished work waiting below it, and prints it and its generation
///
/// Exit code 3 says that nothing is ready for this worker.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  tenure claim-next --holder w1 --role compile     prints: build gen=2")]
pub struct ClaimNextArgs {
    #[command(flatten)]
    holder: HolderArg,

    /// A role that this worker offers; may be given several times. Nodes that name no role go to anybody
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<String>,

    #[command(flatten)]
    how: HowArgs,
}

/// What both kinds of claim take.
#[derive(Debug, clap::Args)]
struct HowArgs {
    /// Seconds until the claim may be taken away unless it is renewed [default: the table's]
    #[arg(long, value_name = "SECS", value_parser = args::lease_ms, allow_negative_numbers = true)]
    lease: Option<u64>,

    /// When the holder has a claim already, answer with that one instead of refusing
    #[arg(long)]
    resume: bool,
}

impl HowArgs {
    fn options(&self, generation: Option<u64>) -> ClaimOptions {
        ClaimOptions { generation, lease_ms: self.lease, resume: self.resume }
    }
}

/// Runs `claim`.
pub fn claim(context: &Context, args: ClaimArgs) -> Result<Exit, CliError> {
    let node = context.node(&args.node)?;
    let worker = context.open()?.worker(&args.holder.holder)?;
    let claim = worker.claim_with(node, &args.how.options(args.generation))?;
    context.out.mark_changed();
    if context.json || claim.id() != node {
        return tell(context, &claim);
    }
    context.out.line(&format!("gen={}", claim.generation()))?;
    Ok(Exit::Done)
}

/// Runs `claim-next`.
pub fn claim_next(context: &Context, args: ClaimNextArgs) -> Result<Exit, CliError> {
    let worker = context.open()?.worker(&args.holder.holder)?.with_roles(&args.roles)?;
    let claim = worker.claim_next_with(&args.how.options(None))?;
    context.out.mark_changed();
    tell(context, &claim)
}

/// Prints `NODE gen=N`. A `claim --resume` that answers with another node than the one asked for is told this way too,
/// since `gen=N` alone would be taken for that of the node asked for.
fn tell(context: &Context, claim: &Claim<'_>) -> Result<Exit, CliError> {
    let granted = claim.granted()?;
    if context.json {
        context.out.json(&granted)?;
        return Ok(Exit::Done);
    }
    let label = answer::label(granted.name.as_deref(), granted.id);
    if granted.resumed {
        out::note(&format!("tenure: {label} was held already; this is that claim"));
    }
    context.out.line(&format!("{label} gen={}", granted.generation))?;
    Ok(Exit::Done)
}
