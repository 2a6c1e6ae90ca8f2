//! The command line: one file per verb, and what the verbs share.
//!
//! A verb is a struct of arguments and a `run` function. It talks to the library only; what it prints goes through
//! `out` and `render`, and how it ends is decided in `exit`.

#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod admission;
mod answer;
mod args;
mod claim;
mod complete;
mod context;
mod entry;
mod escape;
mod exit;
mod export;
mod fsck;
mod get;
mod group;
mod help;
mod import;
mod init;
mod input;
mod link;
mod list;
mod out;
mod quick;
mod reclaim;
mod refusal;
mod release;
mod render;
mod renew;
mod reopen;
mod report;
mod run;
mod sigbus;
mod snapshot;
mod stats;
mod surfaces;
mod upsert;
mod util;
mod why;
mod work;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use args::GlobalArgs;
use context::Context;
use exit::{CliError, Exit};

const AFTER_HELP: &str = "\
A first round:
  tenure upsert fetch
  tenure upsert build --needs fetch
  tenure claim-next --holder me      prints: fetch gen=1
  tenure complete fetch --holder me --gen 1
  tenure list --all

Exit codes: 0 done, 1 refused by the state of the graph, 2 usage, 3 nothing ready, 4 no such node,
5 table unusable, 6 full, 7 the answer could not be written.";

/// Hands out the nodes of a task graph to worker processes on this host.
///
/// Workers claim a node under a lease, renew it while they work, and complete it. Everything happens by
/// compare-and-swap on one file that all of them map: there is no server.
#[derive(Debug, Parser)]
#[command(name = "tenure", version, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Init(init::InitArgs),
    Upsert(upsert::UpsertArgs),
    Link(link::LinkArgs),
    Unlink(link::UnlinkArgs),
    Group(group::GroupArgs),
    Get(get::GetArgs),
    List(list::ListArgs),
    Ready(list::ReadyArgs),
    Why(why::WhyArgs),
    Claim(claim::ClaimArgs),
    ClaimNext(claim::ClaimNextArgs),
    Renew(renew::RenewArgs),
    Release(release::ReleaseArgs),
    Complete(complete::CompleteArgs),
    Reclaim(reclaim::ReclaimArgs),
    Reopen(reopen::ReopenArgs),
    Archive(reopen::ArchiveArgs),
    Unarchive(reopen::UnarchiveArgs),
    Import(import::ImportArgs),
    Export(export::ExportArgs),
    Run(run::RunArgs),
    Work(work::WorkArgs),
    Snapshot(snapshot::SnapshotArgs),
    Restore(snapshot::RestoreArgs),
    Stats(stats::StatsArgs),
    Fsck(fsck::FsckArgs),
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    Admission(admission::AdmissionArgs),
    Util(util::UtilArgs),
}

/// Runs the program.
pub fn main() -> Exit {
    entry::prepare();
    // Before anything else: it is started for every command, and has nothing to do with a table.
    if let Some(ended) = run::launched() {
        return ended;
    }
    sigbus::install();
    // What workers call most takes a short cut; see `quick`.
    match quick::parse(std::env::args_os().skip(1)).map_or_else(|| parse(std::env::args_os()), Ok) {
        Ok(cli) => start(cli),
        Err(error) => report::command_line(&error),
    }
}

/// Reads a command line, the program's name first.
pub(crate) fn parse<S: Into<OsString> + Clone>(words: impl IntoIterator<Item = S>) -> Result<Cli, clap::Error> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// The command line as clap knows it, also for what is made from it: completions and manual pages.
fn command() -> clap::Command {
    help::flowing(Cli::command())
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
        Verb::Init(args) => init::run(context, args),
        Verb::Upsert(args) => upsert::run(context, args),
        Verb::Link(args) => link::link(context, args),
        Verb::Unlink(args) => link::unlink(context, args),
        Verb::Group(args) => group::run(context, args),
        Verb::Get(args) => get::run(context, args),
        Verb::List(args) => list::list(context, args),
        Verb::Ready(args) => list::ready(context, args),
        Verb::Why(args) => why::run(context, args),
        Verb::Claim(args) => claim::claim(context, args),
        Verb::ClaimNext(args) => claim::claim_next(context, args),
        Verb::Renew(args) => renew::run(context, args),
        Verb::Release(args) => release::run(context, args),
        Verb::Complete(args) => complete::run(context, args),
        Verb::Reclaim(args) => reclaim::run(context, args),
        Verb::Reopen(args) => reopen::reopen(context, args),
        Verb::Archive(args) => reopen::archive(context, args),
        Verb::Unarchive(args) => reopen::unarchive(context, args),
        Verb::Import(args) => import::run(context, args),
        Verb::Export(args) => export::run(context, args),
        Verb::Run(args) => run::run(context, args),
        Verb::Work(args) => work::run(context, args),
        Verb::Snapshot(args) => snapshot::snapshot(context, args),
        Verb::Restore(args) => snapshot::restore(context, args),
        Verb::Stats(args) => stats::run(context, args),
        Verb::Fsck(args) => fsck::run(context, args),
        #[cfg(any(feature = "sqlite", feature = "postgres"))]
        Verb::Admission(args) => admission::run(context, args),
        Verb::Util(args) => util::run(context, args),
    }
}
