//! `init`: makes the table, or says that there is one.

use serde::Serialize;
use tenure::{CreateOptions, Table};

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
}

/// Runs the verb.
pub fn run(context: &Context, args: InitArgs) -> Result<Exit, CliError> {
    let options = CreateOptions { lease_ms: args.lease, require_fence: args.require_fence };
    let (table, created) = Table::open_or_create(context.location.clone(), &options)?;
    if created {
        context.out.mark_changed();
    }
    let made = Made { dir: table.dir().display().to_string(), created, lease_ms: table.default_lease_ms() };
    if context.json {
        context.out.json(&made)?;
    } else {
        let what = if created { "made a table in" } else { "there is a table already, unchanged, in" };
        context.out.line(&format!("{what} {}", escape::message(&made.dir)))?;
    }
    if !created {
        warn_of_options(&args, made.lease_ms);
    }
    Ok(Exit::Done)
}

/// Says which options had no effect because the table stood already.
fn warn_of_options(args: &InitArgs, lease_ms: u64) {
    if args.lease.is_some_and(|asked| asked != lease_ms) {
        out::note(&format!("tenure: --lease has no effect: the table's lease is {lease_ms} ms"));
    }
    if args.require_fence {
        out::note("tenure: --require-fence has no effect on a table that exists; it stays as it was made");
    }
}
