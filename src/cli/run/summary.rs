//! The summary at the end of `run` and `work`.

use serde::Serialize;
use tenure::formats::Loaded;
use tenure::run::Report;

use crate::cli::context::Context;
use crate::cli::escape;
use crate::cli::exit::CliError;
use crate::cli::out;

/// The summary as JSON: what the file changed, if there was one, and how the run went.
#[derive(Serialize)]
struct Summary<'a> {
    #[serde(flatten)]
    loaded: Option<Loaded>,
    #[serde(flatten)]
    report: &'a Report,
}

/// A reader that has gone ends what is printed, not the run, and does not make it a success.
pub(super) fn still(printed: Result<(), CliError>) -> Result<(), CliError> {
    match printed {
        Err(CliError::ClosedPipe) => Ok(()),
        other => other,
    }
}

/// Prints the summary.
pub(super) fn tell(context: &Context, loaded: Option<Loaded>, report: &Report) -> Result<(), CliError> {
    still(print(context, loaded, report))
}

fn print(context: &Context, loaded: Option<Loaded>, report: &Report) -> Result<(), CliError> {
    if context.json {
        return context.out.json(&Summary { loaded, report });
    }
    context.out.line(&format!(
        "done {}, failed {}, blocked {}, cancelled {}, unfinished {}",
        report.done, report.failed, report.blocked, report.cancelled, report.unfinished
    ))?;
    context.out.line(&format!(
        "wall {:.3}s; no schedule beats {:.3}s (critical path {:.3}s, work {:.3}s over {} workers); workers {}% busy",
        report.wall_ms / 1e3,
        report.lower_bound_ms / 1e3,
        report.critical_path_ms / 1e3,
        report.work_ms / 1e3,
        report.workers,
        report.busy_percent
    ))?;
    if let Some(advice) = advice(report) {
        out::note(&format!("tenure: {}", escape::message(&advice)));
    }
    Ok(())
}

/// What to do next, when not everything is done.
fn advice(report: &Report) -> Option<String> {
    if report.stopped_by.is_some() {
        return Some(match report.unfinished {
            0 => "stopped; no node is left".to_owned(),
            left => format!("stopped; {}, and the same command goes on from there", are_left(left)),
        });
    }
    if report.failed > 0 {
        return Some(
            "`tenure list --terminal` shows what failed and why; `tenure reopen NODE` lets it run again".into(),
        );
    }
    if report.unfinished > 0 {
        let left = are_left(report.unfinished);
        return Some(format!("{left}, for workers that offer their roles (--role), or until their surfaces are free"));
    }
    if report.blocked + report.cancelled > 0 {
        return Some("nodes that wait for a cancelled one never start; `reopen` or `unlink` it".into());
    }
    None
}

fn are_left(nodes: usize) -> String {
    if nodes == 1 { "1 node is left".to_owned() } else { format!("{nodes} nodes are left") }
}
