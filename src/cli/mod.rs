//! The command line: one file per verb, and what the verbs share.
//!
//! A verb is a struct of arguments and a `run` function. It talks to the library only; what it prints goes through
//! `out` and `render`, and how it ends is decided in `exit`.

mod args;
mod context;
mod escape;
mod exit;
mod export;
mod import;
mod out;
mod refusal;
mod report;
mod run;
mod sigbus;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use args::GlobalArgs;
use context::Context;
use exit::{CliError, Exit};

const AFTER_HELP: &str = "\
A first round:
  tenure upsert fetch
  tenure upsert build --needs fetch
  tenure claim-next --holder me      prints: fetch gen=2
  tenure complete fetch --holder me --gen 2
  tenure list --all

Exit codes: 0 done, 1 refused by the state of the graph, 2 usage, 3 nothing ready, 4 no such node,
5 table unusable, 6 full, 7 the answer could not be written.";

/// Hands out the nodes of a task graph to worker processes on this host.
///
/// Workers claim a node under a lease, renew it while they work, and complete it. Everything happens by
/// compare-and-swap on one file that all of them map: there is no server.
#[derive(Debug, Parser)]
#[command(name = "tenure", version, after_help = AFTER_HELP)]
struct Cli {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Import(import::ImportArgs),
    Export(export::ExportArgs),
    Run(run::RunArgs),
}

/// Runs the program.
pub fn main() -> ExitCode {
    sigbus::install();
    let exit = match Cli::try_parse() {
        Ok(cli) => start(cli),
        Err(error) => report::command_line(&error),
    };
    exit.into()
}

fn start(cli: Cli) -> Exit {
    let json = cli.global.json;
    let context = match cli.global.context() {
        Ok(context) => context,
        Err(error) => return report::error(error, json),
    };
    dispatch(&context, cli.verb).unwrap_or_else(|error| report::error(context.as_typed(error), json))
}

fn dispatch(context: &Context, verb: Verb) -> Result<Exit, CliError> {
    match verb {
        Verb::Import(args) => import::run(context, args),
        Verb::Export(args) => export::run(context, args),
        Verb::Run(args) => run::run(context, args),
    }
}
