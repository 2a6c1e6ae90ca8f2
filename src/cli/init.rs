//! `init`: makes the table, or says that there is one.

use serde::Serialize;
use tenure::CreateOptions;

use super::args;
use super::context::Context;
use super::escape;
use super::exit::{CliError, Exit};
use super::out;

/// Makes the table, or says that there is one
///
/// `import`, `run` and `upsert` make a table too, with the defaults. The options count only when the table is made now.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  tenure init\n  tenure init --dir ./state --lease 60 --require-fence")]
pub struct InitArgs {
    /// Lease of claims that name none, in seconds [default: 300]
    #[arg(long, value_name = "SECS", value_parser = args::lease_ms, allow_negative_numbers = true)]
    lease: Option<u64>,

    /// Refuse a `complete` that names no generation
    #[arg(long)]
    require_fence: bool,
}

#[derive(Debug, Serialize)]
struct Made {
    dir: String,
    created: bool,
    lease_ms: u64,
    require_fence: bool,
}

/// Runs the verb.
pub fn run(context: &Context, args: InitArgs) -> Result<Exit, CliError> {
    let options = CreateOptions { lease_ms: args.lease, require_fence: args.require_fence };
    let (table, created) = context.make(&options)?;
    let made = Made {
        dir: table.dir().display().to_string(),
        created,
        lease_ms: table.default_lease_ms(),
        require_fence: table.requires_fence(),
    };
    if args.require_fence && !made.require_fence {
        return Err(unfenced(&made.dir));
    }
    if args.lease.is_some_and(|asked| asked != made.lease_ms) {
        out::note(&format!("tenure: --lease has no effect: there is a table, and its lease is {} ms", made.lease_ms));
    }
    if context.json {
        context.out.json(&made)?;
    } else {
        let what = if created { "made a table in" } else { "there is a table already, unchanged, in" };
        context.out.line(&format!("{what} {}", escape::message(&made.dir)))?;
    }
    Ok(Exit::Done)
}

/// Fences were asked for and the table that stands does not want them: going on as if it did would be a promise broken.
fn unfenced(dir: &str) -> CliError {
    let message =
        format!("there is a table already in {dir}, and it was made without --require-fence; it stays as it is");
    CliError::problem(Exit::Refused, "exists", message)
        .with_hint("make one in another directory (--dir), or remove this one when nobody works on it")
}
