//! `work`: works on a table that others fill.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use tenure::run::{Report, RunOptions};

use super::args::{self, HolderArg};
use super::context::Context;
use super::exit::{CliError, Exit};
use super::run::{self, Shift};
use super::snapshot;

/// Works on the nodes of a table that others fill, until Ctrl-C
///
/// Every node that it claims is given to CMD, or to the node's own command when no CMD is named. While nothing is ready it
/// sleeps in the kernel until there is, which costs nothing. CMD is started anew for each node, without a shell, in the
/// directory where `tenure work` was started, in a session of its own, with no input; its output goes where that of
/// `tenure work` goes, unchanged. It finds TENURE_NODE, TENURE_GEN, TENURE_HOLDER and TENURE_DIR in its environment. Exit 0
/// makes the node done, anything else failed. Without CMD a node that has no command is done as soon as it is its turn.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A node that fails does not end the work. Several `work` and `run` processes may share a table; give each
`work` a holder name of its own.

Ctrl-C takes no new node, passes the signal on to the commands and waits for them; a second one kills them. What is
unfinished is handed back, for this or another process to take.

When `tenure work` itself is killed (SIGKILL), its commands and all that they have started are killed before other
processes can do the nodes again. When it is stopped (SIGSTOP, Ctrl-Z), a command is killed shortly before the lease
runs out: a tenth of the lease, half a second at most. A claim that somebody takes away by force is noticed within a
third of the lease; the command is then sent SIGTERM, and SIGKILL 2 seconds later. What a command leaves running is let
be if it made the node done, and killed otherwise.

Exit codes: 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP. With --drain as `run`: 0 only if every node of the
table is done (archived ones are not counted), 1 otherwise. With --max-nodes 0 when it did so many and none failed.

Examples:
  tenure work --holder w1 --role compile -- ./compile.sh
  tenure work --holder w1 -j 4 --drain
  tenure work --holder w1 --max-nodes 1 -- sh -c 'echo \"$TENURE_NODE\"'"
)]
pub struct WorkArgs {
    #[command(flatten)]
    holder: HolderArg,

    /// A role that the workers offer; may be given several times. Nodes that name no role go to anybody
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<String>,

    /// Number of workers: the first is called HOLDER, the others HOLDER-2, HOLDER-3 and so on
    #[arg(short = 'j', long, value_name = "N", value_parser = run::workers, default_value_t = 1)]
    jobs: usize,

    /// Seconds until a claim may be taken away unless it is renewed, which is done every third of that [default: the
    /// table's]
    #[arg(long, value_name = "SECS", value_parser = args::lease_ms, allow_negative_numbers = true)]
    lease: Option<u64>,

    /// End when nothing is left that could be done with these roles and nobody is at work
    #[arg(long)]
    drain: bool,

    /// End when so many nodes were taken
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_nodes: Option<u64>,

    /// Take a snapshot of the table every so many seconds; one is taken at the end in any case
    #[arg(long, value_name = "SECS", value_parser = snapshot::every_ms, allow_negative_numbers = true)]
    snapshot_every: Option<u64>,

    /// The program that is run for every node, and its arguments
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Runs the verb.
pub fn run(context: &Context, args: WorkArgs) -> Result<Exit, CliError> {
    let command = (!args.command.is_empty()).then_some(args.command);
    if let Some(program) = command.iter().flatten().next() {
        find(program)?;
    }
    let table = context.open_to_change()?;
    let shift = Shift::begin(&table, args.snapshot_every)?;
    let options = RunOptions {
        holders: holders(&args.holder.holder, args.jobs),
        roles: args.roles,
        lease_ms: args.lease,
        keep_going: true,
        command,
        stay: !args.drain,
        max_nodes: args.max_nodes,
        ..RunOptions::default()
    };
    let report = shift.work(context, options)?;
    run::tell(context, &report)?;
    Ok(if did_its_share(&report, args.max_nodes) { Exit::Done } else { run::exit(&report) })
}

/// Whether it took as many nodes as it was to take, and all of them are done.
fn did_its_share(report: &Report, max_nodes: Option<u64>) -> bool {
    let went_well = report.failed_here + report.to_retry + report.lost + report.released == 0;
    report.stopped_by.is_none() && went_well && max_nodes.is_some_and(|max| report.ran as u64 >= max)
}

/// The names of the workers.
fn holders(first: &str, jobs: usize) -> Vec<String> {
    let others = (2..=jobs).map(|worker| format!("{first}-{worker}"));
    std::iter::once(first.to_owned()).chain(others).collect()
}

/// A program that cannot be started would fail every node of the table, so it is looked for before the first.
fn find(program: &OsStr) -> Result<(), CliError> {
    let may_run = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = if program.as_bytes().contains(&b'/') {
        may_run(Path::new(program))
    } else {
        std::env::split_paths(&path).any(|dir: PathBuf| may_run(&dir.join(program)))
    };
    if found {
        return Ok(());
    }
    let shown = program.to_string_lossy();
    Err(CliError::usage("usage", format!("cannot start {shown}: there is no such program, or it may not be run"))
        .with_hint("name a program, with its path if it is not on PATH; a shell command is `-- sh -c \"...\"`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_worker_has_the_name_itself() {
        assert_eq!(holders("w", 1), ["w"]);
        assert_eq!(holders("w", 3), ["w", "w-2", "w-3"]);
    }

    #[test]
    fn a_program_is_looked_for_where_it_would_be_started_from() {
        for program in ["sh", "/bin/sh"] {
            assert!(find(OsStr::new(program)).is_ok(), "{program}");
        }
        for program in ["", "/", "/bin", "/etc/passwd", "no-such-program", "./no-such-program"] {
            assert!(find(OsStr::new(program)).is_err(), "{program}");
        }
    }
}
