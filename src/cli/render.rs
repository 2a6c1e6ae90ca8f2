//! Nodes for people: a table of many, a block of one. Scripts take `--json`.

use comfy_table::{Table, presets};
use tenure::{NodeView, OnFailure};

use super::escape;

/// How much of a summary a row shows; `get` shows all of it.
const SUMMARY_CHARS_SHOWN: usize = 60;

/// A column: its heading, and what it shows of a node.
type Column = (&'static str, fn(&NodeView) -> String);

/// Columns that no row fills are left out, except the first four.
const COLUMNS: [Column; 11] = [
    ("NODE", |view| escape::cell(&view.label())),
    ("STATUS", |view| match view.startable {
        Some(false) => format!("{}, not startable", view.status.name()),
        _ => view.status.name().to_owned(),
    }),
    ("GEN", |view| view.generation.to_string()),
    ("BELOW", |view| view.waiting_below.to_string()),
    ("HOLDER", |view| text(view.holder.as_deref())),
    ("LEASE", |view| view.lease_left_ms.map(duration).unwrap_or_default()),
    ("KIND", |view| text(view.kind.as_deref())),
    ("ROLE", |view| text(view.role.as_deref())),
    ("ARCHIVED", |view| if view.archived { "yes".to_owned() } else { String::new() }),
    ("NEEDS", needs),
    ("SUMMARY", |view| shortened(view.summary.as_deref().unwrap_or_default())),
];
const COLUMNS_ALWAYS: usize = 4;

/// A row for each node under a row of headings.
pub fn nodes(views: &[NodeView]) -> String {
    let mut headings = Vec::new();
    let mut rows = vec![Vec::new(); views.len()];
    for (index, (heading, show)) in COLUMNS.iter().enumerate() {
        let cells: Vec<String> = views.iter().map(show).collect();
        if index >= COLUMNS_ALWAYS && cells.iter().all(String::is_empty) {
            continue;
        }
        headings.push(*heading);
        for (row, cell) in rows.iter_mut().zip(cells) {
            row.push(cell);
        }
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(headings).add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let mut out = String::new();
    for line in table.lines() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Everything about one node, a line for each field that it has.
pub fn node(view: &NodeView) -> String {
    let mut out = String::new();
    let mut line = |key: &str, value: String| {
        if !value.is_empty() {
            out.push_str(&format!("{key:<14} {value}\n"));
        }
    };
    line("name", text(view.name.as_deref()));
    line("id", view.id.to_string());
    line("status", view.status.name().to_owned());
    line("generation", view.generation.to_string());
    line("holder", text(view.holder.as_deref()));
    line("lease left", view.lease_left_ms.map(duration).unwrap_or_default());
    line("kind", text(view.kind.as_deref()));
    line("role", text(view.role.as_deref()));
    line("parent", text(view.parent.as_deref()));
    let depends_on = view.depends_on.iter().zip(&view.on_failure).map(|(label, on)| dependency(label, *on));
    line("depends on", depends_on.collect::<Vec<_>>().join(", "));
    line("skipped by", text(view.skipped_by.as_deref()));
    line("group", text(view.group.as_deref()));
    line("surface", text(view.surface.as_deref()));
    line("attempts", attempts(view));
    line("retry in", view.retry_in_ms.map(|ms| duration(ms as i64)).unwrap_or_default());
    line("cost", format!("{} ms", view.cost));
    line("waiting below", format!("{} ms", view.waiting_below));
    line("summary", text(view.summary.as_deref()));
    line("run", text(view.run.as_deref()));
    line("archived", if view.archived { "yes".to_owned() } else { String::new() });
    line("created", time(view.created_at_ms));
    line("updated", time(view.updated_at_ms));
    line("finished", view.finished_at_ms.map(time).unwrap_or_default());
    out
}

fn text(value: Option<&str>) -> String {
    value.map(escape::cell).unwrap_or_default()
}

/// A dependency, with what the node does when it fails unless that is the usual thing.
fn dependency(label: &str, on_failure: OnFailure) -> String {
    let label = escape::cell(label);
    match on_failure {
        OnFailure::Block => label,
        OnFailure::Skip => format!("{label} (skip)"),
        OnFailure::Continue => format!("{label} (continue)"),
    }
}

/// How often it was tried, where that says anything.
fn attempts(view: &NodeView) -> String {
    match (view.attempts, view.max_attempts) {
        (0 | 1, 0) => String::new(),
        (attempts, 0) => attempts.to_string(),
        (attempts, most) => format!("{attempts} of {most}"),
    }
}

/// The dependencies of a row: the first few by name, the rest as a number.
fn needs(view: &NodeView) -> String {
    const SHOWN: usize = 3;
    let mut labels: Vec<String> = view.depends_on.iter().take(SHOWN).map(|label| escape::cell(label)).collect();
    if view.depends_on.len() > SHOWN {
        labels.push(format!("+{}", view.depends_on.len() - SHOWN));
    }
    labels.join(", ")
}

pub(super) fn shortened(summary: &str) -> String {
    match summary.char_indices().nth(SUMMARY_CHARS_SHOWN) {
        None => escape::cell(summary),
        Some((end, _)) => escape::cell(summary.get(..end).unwrap_or_default()) + "…",
    }
}

/// Milliseconds as a person says them. Negative: the lease ran out that long ago.
pub(super) fn duration(ms: i64) -> String {
    let sign = if ms < 0 { "-" } else { "" };
    let ms = ms.unsigned_abs();
    let (seconds, minutes, hours) = (ms / 1000, ms / 60_000, ms / 3_600_000);
    match (hours, minutes) {
        (0, 0) => format!("{sign}{seconds}.{}s", ms % 1000 / 100),
        (0, _) => format!("{sign}{minutes}m{:02}s", seconds % 60),
        _ => format!("{sign}{hours}h{:02}m", minutes % 60),
    }
}

/// Wall-clock milliseconds as a UTC time. A value that is no time (a damaged table can hold any) is shown as it is.
pub(super) fn time(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    time.map_or_else(|| format!("{ms} ms"), |time| format!("{time:.0}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure::{NodeId, Seen};

    fn view(name: &str) -> NodeView {
        NodeView {
            id: NodeId::of_name(name),
            name: Some(name.to_owned()),
            status: Seen::Ready,
            generation: 1,
            holder: None,
            lease_left_ms: None,
            kind: None,
            role: None,
            parent: None,
            depends_on: Vec::new(),
            on_failure: Vec::new(),
            skipped_by: None,
            attempts: 0,
            max_attempts: 0,
            retry_delay_ms: 0,
            retry_in_ms: None,
            group: None,
            surface: None,
            startable: None,
            cost: 1,
            waiting_below: 0,
            summary: None,
            run: None,
            archived: false,
            created_at_ms: 0,
            updated_at_ms: 0,
            finished_at_ms: None,
        }
    }

    #[test]
    fn columns_line_up_by_width_and_empty_ones_are_left_out() {
        let text = nodes(&[view("a"), view("日本")]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines, ["NODE  STATUS  GEN  BELOW", "a     ready   1    0", "日本  ready   1    0"]);
    }

    #[test]
    fn a_summary_cannot_forge_a_row() {
        let mut forged = view("a");
        forged.summary = Some("x\nb  done\x1b[2K".to_owned());
        let text = nodes(&[forged.clone()]);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains('\x1b'));
        assert!(!node(&forged).contains('\x1b'));
    }

    #[test]
    fn a_long_summary_is_shortened_in_rows_and_whole_in_get() {
        let mut long = view("a");
        long.summary = Some("ü".repeat(500));
        assert!(nodes(&[long.clone()]).contains('…'));
        assert!(node(&long).contains(&"ü".repeat(500)));
    }

    #[test]
    fn many_needs_are_counted() {
        let mut fan_in = view("a");
        fan_in.depends_on = (0..10).map(|n| format!("n{n}")).collect();
        assert!(nodes(&[fan_in]).contains("n0, n1, n2, +7"));
    }

    #[test]
    fn durations_of_every_size() {
        let cases = [
            (0, "0.0s"),
            (1_250, "1.2s"),
            (-1_250, "-1.2s"),
            (299_999, "4m59s"),
            (3_600_000, "1h00m"),
            (i64::MIN, "-2562047788015h12m"),
        ];
        for (ms, shown) in cases {
            assert_eq!(duration(ms), shown);
        }
    }

    #[test]
    fn times_are_utc_and_any_number_is_shown() {
        assert_eq!(time(1_700_000_000_000), "2023-11-14T22:13:20Z");
        assert_eq!(time(u64::MAX), format!("{} ms", u64::MAX));
    }
}
