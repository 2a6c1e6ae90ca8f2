//! Admissions for people and for scripts.

use comfy_table::{Table, presets};
use serde::Serialize;
use tenure::admission::{Ledger, Record, Stop};

use crate::cli::escape;
use crate::cli::render::{duration, time};

/// A record with what follows from it at this moment.
#[derive(Debug, Serialize)]
pub struct View<'a> {
    #[serde(flatten)]
    record: &'a Record,
    /// Open, and no credential is good any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    uncertain: Option<bool>,
    /// Why it should end: `asked` or `placement`.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopping: Option<&'static str>,
    /// `live`, `lapsed` or `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    credential: Option<&'static str>,
    next_attempt: bool,
}

impl<'a> View<'a> {
    /// What the record alone says.
    pub fn plain(record: &'a Record) -> View<'a> {
        View { record, uncertain: None, stopping: None, credential: None, next_attempt: record.allows_next() }
    }

    /// With what the ledger's clock and placements say now. What cannot be asked is left out.
    pub fn now(record: &'a Record, ledger: &dyn Ledger) -> View<'a> {
        let now_ms = ledger.now_ms().ok();
        let stopping = match ledger.stopping(&record.admission) {
            Ok(Some(Stop::Asked)) => Some("asked"),
            Ok(Some(Stop::Placement)) => Some("placement"),
            _ => None,
        };
        let credential = now_ms.map(|now_ms| match record.deadline_ms {
            Some(deadline) if !record.is_open() || deadline < now_ms => "lapsed",
            Some(_) => "live",
            None => "none",
        });
        let uncertain = now_ms.map(|now_ms| record.is_uncertain(now_ms));
        View { uncertain, stopping, credential, ..View::plain(record) }
    }

    /// The state in a word or two.
    fn state(&self) -> String {
        let record = self.record;
        let mut words = match record.closing {
            Some(kind) => kind.name().to_owned(),
            None => record.phase.name().to_owned(),
        };
        if self.stopping.is_some() {
            words.push_str(", stopping");
        }
        if self.uncertain == Some(true) {
            words.push_str(", uncertain");
        }
        words
    }
}

/// Rows under headings.
pub fn table(headings: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(headings.to_vec()).add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A row for each admission.
pub fn records(views: &[View<'_>]) -> String {
    let rows = views.iter().map(|view| {
        let record = view.record;
        vec![
            record.admission.to_string(),
            record.key().to_string(),
            record.surface.to_string(),
            view.state(),
            format!("{} (gen {})", record.destination.place, record.destination.generation),
            time(record.created_ms),
        ]
    });
    table(&["ADMISSION", "REQUEST", "SURFACE", "STATE", "PLACE", "CREATED"], rows.collect())
}

/// One line about an admission, for the answer of a verb that changed it.
pub fn line(record: &Record) -> String {
    let view = View::plain(record);
    format!("{} {} {} {}\n", record.admission, record.key(), record.surface, view.state())
}

/// Everything about one admission.
pub fn record(view: &View<'_>) -> String {
    let record = view.record;
    let mut out = String::new();
    let mut line = |key: &str, value: String| {
        if !value.is_empty() {
            out.push_str(&format!("{key:<12} {value}\n"));
        }
    };
    line("admission", record.admission.to_string());
    line("request", record.key().to_string());
    line("surface", record.surface.to_string());
    line("state", view.state());
    line("machine", record.destination.machine.to_string());
    line("place", record.destination.place.to_string());
    line("generation", record.destination.generation.to_string());
    line("work", record.work.as_ref().map(|work| escape::cell(work.as_str())).unwrap_or_default());
    line("entrance", record.entrance.to_string());
    line("sent by", escape::cell(record.subject.as_str()));
    line("command", record.command.iter().map(|part| escape::cell(part)).collect::<Vec<_>>().join(" "));
    line("digest", record.digest.to_string());
    line("after", record.after.as_ref().map(ToString::to_string).unwrap_or_default());
    line("created", time(record.created_ms));
    line("admitted", record.admitted_ms.map(time).unwrap_or_default());
    line("started", record.started_ms.map(time).unwrap_or_default());
    line("credential", credential(view));
    line("stop", record.stop_reason.as_deref().map(escape::cell).unwrap_or_default());
    line("closed", record.closed_ms.map(time).unwrap_or_default());
    line("closed by", record.closed_by.as_deref().map(escape::cell).unwrap_or_default());
    line("exit code", record.exit_code.map(|code| code.to_string()).unwrap_or_default());
    line("reason", record.reason.as_deref().map(escape::cell).unwrap_or_default());
    line("successor", record.successor.map(|id| id.to_string()).unwrap_or_default());
    line("supersedes", record.supersedes.map(|id| id.to_string()).unwrap_or_default());
    if record.closing.is_some() && view.next_attempt {
        line("next", format!("attempt {} is allowed", record.attempt.get().saturating_add(1)));
    }
    out
}

fn credential(view: &View<'_>) -> String {
    let record = view.record;
    match (view.credential, record.deadline_ms) {
        _ if !record.is_open() => String::new(),
        (_, None) => "none".to_owned(),
        (Some(state), Some(deadline)) => {
            format!("number {}, {state}, good until {}", record.attach_number, time(deadline))
        }
        (None, Some(deadline)) => format!("number {}, good until {}", record.attach_number, time(deadline)),
    }
}

/// How long ago, for people.
pub fn ago(now_ms: u64, then_ms: u64) -> String {
    duration(i64::try_from(now_ms.saturating_sub(then_ms)).unwrap_or(i64::MAX))
}
