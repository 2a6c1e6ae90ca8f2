//! `reclaim`: open again what its holder has gone quiet on.

use super::answer;
use super::args;
use super::context::Context;
use super::escape;
use super::exit::{CliError, Exit};
use super::out;

/// Opens again every claim whose lease has run out, and prints each, the longest quiet first
///
/// `claim` and `claim-next` do this by themselves; nothing needs to call it regularly.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  tenure reclaim --lease 60      also what has been quiet for a minute, whatever its lease"
)]
pub struct ReclaimArgs {
    /// Every claim that has been quiet for this many seconds or longer; 0 takes back every claim
    #[arg(long, value_name = "SECS", value_parser = args::quiet_ms, allow_negative_numbers = true)]
    lease: Option<u64>,
}

/// Runs the verb.
pub fn run(context: &Context, args: ReclaimArgs) -> Result<Exit, CliError> {
    let reclaimed = context.open_to_change()?.reclaim(args.lease)?;
    if reclaimed.is_empty() {
        if !context.json {
            out::note("no claim has run out");
        }
        return Ok(Exit::Done);
    }
    context.out.mark_changed();
    if context.json {
        context.out.json_lines(&reclaimed)?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    for one in &reclaimed {
        let label = answer::label(one.name.as_deref(), one.id);
        let holder = escape::cell(&one.holder);
        text.push_str(&format!("{label} gen={} holder={holder} quiet_ms={}\n", one.generation, one.quiet_ms));
    }
    context.out.block(&text)?;
    Ok(Exit::Done)
}
