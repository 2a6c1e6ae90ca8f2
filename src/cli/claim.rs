//! `claim` and `claim-next`: take a node under a lease.

use tenure::{Claim, ClaimOptions};

use super::answer;
use super::args::{self, HolderArg};
use super::context::Context;
use super::exit::{CliError, Exit};
use super::out;
use super::quick::Words;
use super::surfaces;

/// Claims one node, and prints the generation that fences the claim
///
/// The node must be ready and the holder must hold nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  tenure claim build --holder w1         prints: gen=1
  tenure renew build --holder w1 --gen 1
  tenure complete build --holder w1 --gen 1")]
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
  tenure claim-next --holder w1 --role compile     prints: build gen=1
  tenure claim-next --holder w1 --wait 60          the same, or sleeps until one is ready")]
pub struct ClaimNextArgs {
    #[command(flatten)]
    holder: HolderArg,

    /// A role that this worker offers; may be given several times. Nodes that name no role go to anybody
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<String>,

    /// Sleep until a node is ready: at most this many seconds, or for as long as it takes
    #[arg(long, value_name = "SECS", num_args = 0..=1, default_missing_value = "forever", value_parser = wait)]
    wait: Option<Wait>,

    #[command(flatten)]
    how: HowArgs,
}

impl ClaimArgs {
    /// See `quick`.
    pub fn from_words(words: &mut Words) -> Option<ClaimArgs> {
        Some(ClaimArgs {
            node: words.node()?,
            holder: HolderArg::from_words(words)?,
            generation: words.generation()?,
            how: HowArgs::from_words(words)?,
        })
    }
}

impl ClaimNextArgs {
    /// See `quick`. A line with `--wait` is left to clap.
    pub fn from_words(words: &mut Words) -> Option<ClaimNextArgs> {
        Some(ClaimNextArgs {
            holder: HolderArg::from_words(words)?,
            roles: std::iter::from_fn(|| words.option("role")).collect(),
            wait: None,
            how: HowArgs::from_words(words)?,
        })
    }
}

/// How long to wait, in milliseconds; `None` is for as long as it takes.
#[derive(Clone, Copy, Debug)]
struct Wait(Option<u64>);

fn wait(text: &str) -> Result<Wait, String> {
    if text == "forever" { Ok(Wait(None)) } else { args::wait_ms(text).map(|ms| Wait(Some(ms))) }
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

    /// The process that the claim stands and falls with: when it is gone, the lease counts as run out
    #[arg(long, allow_negative_numbers = true)]
    pid: Option<u32>,
}

impl HowArgs {
    fn from_words(words: &mut Words) -> Option<HowArgs> {
        Some(HowArgs { lease: words.lease_ms()?, resume: words.flag("resume"), pid: None })
    }

    /// A process that is not there is an error: the claim would come free at once.
    fn options(&self, generation: Option<u64>) -> Result<ClaimOptions, CliError> {
        if let Some(pid) = self.pid.filter(|&pid| !tenure::is_running(pid)) {
            return Err(CliError::usage("usage", format!("--pid {pid}: there is no such process")));
        }
        Ok(ClaimOptions { generation, lease_ms: self.lease, resume: self.resume, pid: self.pid })
    }
}

/// Runs `claim`.
pub fn claim(context: &Context, args: ClaimArgs) -> Result<Exit, CliError> {
    let node = context.node(&args.node)?;
    let worker = context.open_to_change()?.worker(&args.holder.holder)?;
    let claim = worker.claim_with(node, &args.how.options(args.generation)?)?;
    context.out.mark_changed();
    if context.json || claim.id() != node {
        return tell(context, &claim);
    }
    context.out.line(&format!("gen={}", claim.generation()))?;
    Ok(Exit::Done)
}

/// Runs `claim-next`.
pub fn claim_next(context: &Context, args: ClaimNextArgs) -> Result<Exit, CliError> {
    let worker = context.open_to_change()?.worker(&args.holder.holder)?.with_roles(&args.roles)?;
    let worker = surfaces::with_gate(context, worker);
    let options = args.how.options(None)?;
    let claim = match args.wait {
        None => worker.claim_next_with(&options)?,
        Some(Wait(wait_ms)) => worker.wait_claim_next(&options, wait_ms)?,
    };
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
