//! `fsck`: is everything in a table or a snapshot as it must be?

use std::path::PathBuf;

use tenure::check::{self, CheckError, Kind, Report};

use super::context::Context;
use super::escape;
use super::exit::{CliError, Exit};

/// Checks a table or a snapshot, and lists all that is wrong with it
///
/// Nothing is written, and others may go on working on the table. The exit code is 0 when nothing is wrong and 5 when
/// something is.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenure fsck
  tenure fsck /run/user/1000/tenure/snapshot
  tenure fsck copy-of-a-table --json | jq -r '.findings[].code'")]
pub struct FsckArgs {
    /// A table file or a snapshot, of any boot [default: this boot's table]
    file: Option<PathBuf>,
}

/// Runs the verb.
pub fn run(context: &Context, args: FsckArgs) -> Result<Exit, CliError> {
    let report = match args.file {
        Some(file) if file.is_dir() => {
            let message = format!("{} is a directory; name a file in it, or the directory with --dir", file.display());
            return Err(CliError::usage("usage", message));
        }
        Some(file) => check::file(file).map_err(about_a_file)?,
        None => check::table(context.location.clone())?,
    };
    if context.json {
        context.out.json(&report)?;
    } else {
        context.out.block(&text(&report))?;
    }
    if report.sound {
        return Ok(Exit::Done);
    }
    let wrong = report.findings.len() as u64 + report.more;
    let path = report.path.display().to_string();
    let (what, hint) = match report.kind {
        Kind::Table => {
            ("table", "keep a copy of the file if you want to report this; another directory (--dir) starts afresh")
        }
        Kind::Snapshot => ("snapshot", "a table that is still there can write a new one: `tenure snapshot`"),
    };
    let message = match wrong {
        1 => format!("the {what} {path} is damaged: one thing is wrong"),
        _ => format!("the {what} {path} is damaged: {wrong} things are wrong"),
    };
    let problem = CliError::problem(Exit::TableUnusable, "damaged", message);
    Err(problem.with_hint(hint).with_field("path", path).with_field("wrong", wrong))
}

fn text(report: &Report) -> String {
    let c = &report.counts;
    let counts = [
        (u64::from(c.nodes), "node"),
        (c.edges.into(), "edge"),
        (c.claims.into(), "claim"),
        (c.holders.into(), "holder"),
        (c.groups.into(), "group"),
        (c.text_blocks.into(), "text block"),
    ];
    let counts = counts.map(|(n, what)| format!("{n} {what}{}", if n == 1 { "" } else { "s" })).join(", ");
    let mut lines = vec![format!("{}: {counts}", report.path.display())];
    lines.push(format!("in the hands of running processes: {}; left by ended ones: {}", c.reserved, c.left_over));
    lines.extend(report.notes.iter().map(|note| format!("note: {note}")));
    lines.extend(report.findings.iter().map(|f| format!("wrong: {}: {} ({})", f.about, f.message, f.code.name())));
    if report.more > 0 {
        lines.push(format!("and {} more of these kinds", report.more));
    }
    if report.sound {
        lines.push("nothing is wrong".to_owned());
    }
    lines.iter().map(|line| escape::message(line) + "\n").collect()
}

/// Without the advice to name another directory, which is of no use to whoever named a file.
fn about_a_file(error: CheckError) -> CliError {
    let plain = CliError::from(error);
    let told = CliError::problem(plain.exit(), plain.code(), plain.message());
    plain.fields().into_iter().fold(told, |told, (key, value)| told.with_field(&key, value))
}

impl From<CheckError> for CliError {
    fn from(error: CheckError) -> CliError {
        match error {
            CheckError::Open(error) => CliError::Open(error),
            CheckError::Snapshot(error) => error.into(),
            other => CliError::problem(Exit::TableUnusable, "damaged", other.to_string()),
        }
    }
}
