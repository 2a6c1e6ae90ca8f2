//! `snapshot` and `restore`: the whole table to a file, and back.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use tenure::run::Keeper;
use tenure::{Restored, SNAPSHOT_PATIENCE, SnapshotError, Snapshotted, Table};

use super::context::Context;
use super::escape;
use super::exit::{CliError, Exit};
use super::out;
use super::render;

/// Writes the whole table to the file `snapshot` in its directory, for the next boot
///
/// It is a cut of one moment, checksummed, synced to the disk and put in the place of the last snapshot in one step.
/// Nobody waits for it, and it may be taken at any time. A table of an earlier boot is replaced by its last snapshot by
/// whoever makes the new one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  tenure snapshot\n  tenure snapshot --timeout 60")]
pub struct SnapshotArgs {
    /// Seconds to wait for other processes that are replacing the snapshot [default: 10]
    #[arg(long, value_name = "SECS", value_parser = timeout_ms, allow_negative_numbers = true)]
    timeout: Option<u64>,
}

/// Fills the table from a snapshot: the one in its directory, or FILE
///
/// Claimed nodes come back open, ended ones as they were. Every generation moves on, past all that were ever given out,
/// so whoever still holds a claim is refused. A table that does not exist is made.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenure restore
  tenure --dir ./state restore --force /backup/snapshot")]
pub struct RestoreArgs {
    /// Replace the nodes that the table has, and take back every claim
    #[arg(long)]
    force: bool,

    /// The snapshot [default: `snapshot` in the table's directory]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Reads how long to wait: seconds, up to a day.
fn timeout_ms(text: &str) -> Result<u64, String> {
    seconds(text, 0.0)
}

/// Reads the time between two snapshots: seconds, up to a day.
pub fn every_ms(text: &str) -> Result<u64, String> {
    seconds(text, 0.1)
}

fn seconds(text: &str, least: f64) -> Result<u64, String> {
    const MOST: f64 = 86_400.0;
    match text.parse::<f64>() {
        // In range, so the conversion loses nothing.
        Ok(seconds) if (least..=MOST).contains(&seconds) => Ok((seconds * 1000.0).round() as u64),
        _ => Err(format!("give seconds as a number, {least} to {MOST}")),
    }
}

#[derive(Serialize)]
struct Taken {
    path: String,
    nodes: u32,
    edges: u32,
    bytes: u64,
    version: u64,
    covered: bool,
}

#[derive(Serialize)]
struct Back {
    path: String,
    nodes: u32,
    edges: u32,
    handed_back: u32,
    taken_at_ms: u64,
}

/// Runs `snapshot`.
pub fn snapshot(context: &Context, args: SnapshotArgs) -> Result<Exit, CliError> {
    let patience = args.timeout.map_or(SNAPSHOT_PATIENCE, Duration::from_millis);
    let table = context.open()?;
    let taken = table.snapshot(patience, waiting)?;
    context.out.mark_changed();
    let path = taken.path.display().to_string();
    if context.json {
        let (nodes, edges, bytes) = (taken.nodes, taken.edges, taken.bytes);
        let (version, covered) = (taken.version, taken.covered);
        context.out.json(&Taken { path, nodes, edges, bytes, version, covered })?;
    } else {
        let also = if taken.covered { " (another process was a moment later, and its snapshot stands)" } else { "" };
        context.out.line(&format!("{} nodes in {}{also}", taken.nodes, escape::message(&path)))?;
    }
    Ok(Exit::Done)
}

/// Runs `restore`.
pub fn restore(context: &Context, args: RestoreArgs) -> Result<Exit, CliError> {
    let (_table, restored) = Table::open_restored(context.location.clone(), args.file.as_deref(), args.force)?;
    context.out.mark_changed();
    if context.json {
        let Restored { nodes, edges, handed_back, taken_at_ms, .. } = restored;
        context.out.json(&Back {
            path: restored.path.display().to_string(),
            nodes,
            edges,
            handed_back,
            taken_at_ms,
        })?;
    } else {
        context.out.line(&in_words(&restored))?;
    }
    Ok(Exit::Done)
}

/// Takes snapshots beside a run, if that was asked for.
pub fn keeper(table: &Table, every_ms: Option<u64>) -> Result<Option<Keeper>, CliError> {
    let tell = |taken: Result<Snapshotted, SnapshotError>| taken.map(drop).unwrap_or_else(not_taken);
    let started = every_ms.map(|ms| Keeper::start(table, Duration::from_millis(ms), tell)).transpose();
    started.map_err(|why| CliError::problem(Exit::Refused, "no_thread", format!("no thread for snapshots: {why}")))
}

/// Takes the snapshot at the end of a run. The run has ended well or not whatever becomes of it.
pub fn at_the_end(table: &Table) {
    if let Err(why) = table.snapshot(SNAPSHOT_PATIENCE, waiting) {
        not_taken(why);
    }
}

fn not_taken(why: SnapshotError) {
    out::note(&format!("tenure: no snapshot was taken: {}", escape::message(&why.to_string())));
}

/// Says that the snapshot has to wait.
fn waiting() {
    out::note("tenure: another process is replacing the snapshot (it has locked snapshot.lock); waiting for it");
}

/// Says what became of a table of an earlier boot and of the snapshot beside it.
pub fn tell_found(table: &Table, made: bool) {
    let was =
        if table.replaced_stale() { "the table here was from before the last reboot" } else { "there was no table" };
    if let Some(restored) = table.restored() {
        out::note(&format!("tenure: {was}; its snapshot takes its place: {}", in_words(restored)));
    } else if let Some(why) = table.not_restored() {
        let why = escape::message(&why.to_string());
        out::note(&format!("tenure: {was}, and its snapshot cannot be used: {why}. An empty table takes its place"));
        out::note("hint: the next snapshot does not overwrite the file; it moves it to snapshot.unreadable");
    } else if table.replaced_stale() {
        out::note("tenure: the table here was from before the last reboot; an empty one takes its place");
    } else if made && table.snapshot_path().exists() {
        out::note("tenure: a snapshot of an earlier table is here; `tenure restore` brings it back");
    }
}

fn in_words(restored: &Restored) -> String {
    let Restored { nodes, handed_back, taken_at_ms, .. } = restored;
    let path = escape::message(&restored.path.display().to_string());
    let taken = render::time(*taken_at_ms);
    format!("{nodes} nodes from {path} of {taken}, {handed_back} of them claimed then and open now")
}

impl From<SnapshotError> for CliError {
    fn from(error: SnapshotError) -> CliError {
        let exit = match error {
            SnapshotError::Refused(refusal) => return CliError::Refused(refusal),
            SnapshotError::Open(error) => return CliError::Open(error),
            SnapshotError::NotEmpty { .. } | SnapshotError::Locked { .. } => Exit::Refused,
            SnapshotError::NoSpace { .. } => Exit::Full,
            _ => Exit::TableUnusable,
        };
        let problem = CliError::problem(exit, error.code(), error.to_string());
        match &error {
            SnapshotError::NotEmpty { nodes } => problem.with_field("nodes", *nodes),
            SnapshotError::Locked { path, waited_ms } => problem
                .with_hint("`fuser -v` names the process; end it if it is stopped. Nothing else waits for it")
                .with_field("path", path.display().to_string())
                .with_field("waited_ms", *waited_ms),
            SnapshotError::NoSpace { dir, bytes } => problem
                .with_hint("make room there; the table goes on without a snapshot")
                .with_field("dir", dir.display().to_string())
                .with_field("bytes", *bytes),
            SnapshotError::Absent { path }
            | SnapshotError::NotASnapshot { path, .. }
            | SnapshotError::OtherVersion { path, .. }
            | SnapshotError::NotOurs { path, .. }
            | SnapshotError::NotAFile { path, .. }
            | SnapshotError::Damaged { path, .. }
            | SnapshotError::Io { path, .. } => problem.with_field("path", path.display().to_string()),
            _ => problem,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure::Refusal;

    #[test]
    fn seconds_are_numbers_in_a_range() {
        assert_eq!((timeout_ms("0"), timeout_ms("1.2"), every_ms("0.1")), (Ok(0), Ok(1_200), Ok(100)));
        for text in ["", "-1", "nan", "inf", "86401", "5m"] {
            assert!(timeout_ms(text).is_err() && every_ms(text).is_err(), "{text:?}");
        }
        assert!(every_ms("0").is_err());
    }

    #[test]
    fn every_refusal_has_the_exit_of_its_kind() {
        let path = || PathBuf::from("/x/snapshot");
        let cases = [
            (SnapshotError::Absent { path: path() }, 5),
            (SnapshotError::Damaged { path: path(), why: "it was cut".into() }, 5),
            (SnapshotError::OtherVersion { path: path(), found: 2, known: 1 }, 5),
            (SnapshotError::NotEmpty { nodes: 3 }, 1),
            (SnapshotError::Locked { path: path(), waited_ms: 10_000 }, 1),
            (SnapshotError::NoSpace { dir: path(), bytes: 9 }, 6),
            (SnapshotError::Refused(Refusal::Forked), 5),
        ];
        for (error, code) in cases {
            let name = error.code();
            let error = CliError::from(error);
            assert_eq!((error.code(), error.exit().code()), (name, code));
        }
    }
}
