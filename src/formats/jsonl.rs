//! JSON Lines: one node a line, as people and scripts write it.
//!
//! The rules, in full: UTF-8, with or without a byte order mark; lines end in LF or CRLF, the last one need not;
//! blank lines are skipped but counted. A line is one JSON object with the fields of [`FIELDS`]; a field that is not
//! among them is an error, because a mistyped one would be lost silently. `name` (or `id`, for a node without a
//! name) is required and stands once in a file. `needs` and `parent` take names or ids of nodes that stand anywhere
//! in the file or in the table; an item of `needs` may also be `{"node": "a", "on_failure": "skip"}`. A field left out
//! stays as it is in the table; `null` or `""` clears it. `needs` only ever adds. A `group` must be in the table.

use std::io::{BufRead, Read, Write};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{Entry, FormatError, Graph, INPUT_BYTES_MAX, Place};
use crate::error::NameError;
use crate::id::{NAME_BYTES_MAX, NodeId, check_name};
use crate::node::{Need, NodeSpec, NodeView, OnFailure, RUN_BYTES_MAX, SUMMARY_BYTES_MAX, SURFACE_BYTES_MAX};

/// The longest line. A node that waits for 4,095 others, with names of 64 bytes each written as `\u00..` escapes,
/// needs 1.6 MB; its own texts add 31 KB. No node needs more, and a reader never buffers more.
pub const LINE_BYTES_MAX: usize = 2 << 20;

/// The fields that a line may have.
pub const FIELDS: [&str; 13] = [
    "name",
    "id",
    "needs",
    "run",
    "cost",
    "role",
    "kind",
    "parent",
    "summary",
    "max_attempts",
    "retry_delay_ms",
    "group",
    "surface",
];

/// What UTF-8 files from some editors begin with; it means nothing.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A line as it stands. A field that is absent is `None`, one that is `null` is `Some(Null)`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default, deserialize_with = "given")]
    name: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    id: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    needs: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    run: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    cost: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    role: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    kind: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    parent: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    summary: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    max_attempts: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    retry_delay_ms: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    group: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    surface: Option<Value>,
}

/// Keeps `null` apart from "not there".
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Reads a whole file.
///
/// # Errors
/// [`FormatError`] with the number of the first line that is wrong.
pub fn read(input: &mut dyn BufRead) -> Result<Graph, FormatError> {
    let mut graph = Graph::default();
    let mut bytes = Vec::new();
    let mut left = INPUT_BYTES_MAX;
    for line in 1.. {
        bytes.clear();
        // One byte for the newline and one to see that a line is too long.
        let taken = input.take(LINE_BYTES_MAX as u64 + 2).read_until(b'\n', &mut bytes)?;
        if taken == 0 {
            break;
        }
        left = left.checked_sub(taken as u64).ok_or(FormatError::InputTooLong)?;
        if bytes.len() > LINE_BYTES_MAX + 1 || (bytes.len() > LINE_BYTES_MAX && !bytes.ends_with(b"\n")) {
            return Err(FormatError::LineTooLong { line });
        }
        let text = if line == 1 { bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes) } else { &bytes };
        let text = std::str::from_utf8(text)
            .map_err(|error| FormatError::NotUtf8 { line, byte: error.valid_up_to() + 1 })?
            .trim_matches([' ', '\t', '\r', '\n']);
        if !text.is_empty() {
            graph.push(parse_line(line, text, graph.entries.is_empty())?)?;
        }
    }
    Ok(graph)
}

/// Reads one line.
fn parse_line(line: usize, text: &str, first: bool) -> Result<Entry, FormatError> {
    // An array would be taken for the fields in their order; only an object is meant.
    if !text.starts_with('{') {
        let what = "a line must be one JSON object, {\"name\": ...}".to_owned();
        return Err(FormatError::Json { line, column: 1, what });
    }
    let raw: Line = serde_json::from_str(text).map_err(|error| {
        let cut_short = first && error.is_eof();
        let hint = if cut_short { "; each line must be a whole object (a trace needs --format wfformat)" } else { "" };
        FormatError::json(&error, line - 1, hint)
    })?;
    let at = Place::Line(line);
    let (id, name) = identity(&at, &raw)?;
    let label = name.clone().unwrap_or_else(|| id.to_string());
    let mut written = Vec::new();
    let spec = NodeSpec {
        id: Some(id),
        name,
        kind: bounded(&at, "kind", raw.kind, NAME_BYTES_MAX)?,
        role: bounded(&at, "role", raw.role, NAME_BYTES_MAX)?,
        parent: parent(&at, id, raw.parent, &mut written)?,
        cost: cost(&at, raw.cost)?,
        summary: bounded(&at, "summary", raw.summary, SUMMARY_BYTES_MAX)?,
        run: bounded(&at, "run", raw.run, RUN_BYTES_MAX)?,
        needs: needs(&at, id, raw.needs, &mut written)?,
        max_attempts: count(&at, "max_attempts", raw.max_attempts, u64::from(u16::MAX))?.map(|n| n as u16),
        retry_delay_ms: count(&at, "retry_delay_ms", raw.retry_delay_ms, u64::from(u32::MAX))?.map(|n| n as u32),
        group: bounded(&at, "group", raw.group, NAME_BYTES_MAX)?,
        surface: bounded(&at, "surface", raw.surface, SURFACE_BYTES_MAX)?,
    };
    Ok(Entry { at, id, label, spec, written })
}

/// Which node the line is about.
fn identity(at: &Place, raw: &Line) -> Result<(NodeId, Option<String>), FormatError> {
    let name = match &raw.name {
        None => None,
        Some(Value::String(name)) => {
            check_name("name", name).map_err(|source| refused(at, source))?;
            Some(name.clone())
        }
        Some(other) => return Err(wrong(at, "name", "a string", other)),
    };
    let id = match &raw.id {
        None => None,
        Some(Value::String(text)) => match NodeId::resolve(text) {
            Ok(id) if id.to_string() == *text => Some(id),
            _ => {
                let what = "must be 32 lowercase hex digits; a name goes into `name`".to_owned();
                return Err(FormatError::Field { at: at.clone(), field: "id", what });
            }
        },
        Some(other) => return Err(wrong(at, "id", "a string of 32 hex digits", other)),
    };
    match (id, name) {
        (None, None) => Err(FormatError::Nameless { at: at.clone() }),
        (None, Some(name)) => Ok((NodeId::of_name(&name), Some(name))),
        (Some(id), Some(name)) if NodeId::of_name(&name) != id => {
            let what = "is not the id of this `name`; give one of the two".to_owned();
            Err(FormatError::Field { at: at.clone(), field: "id", what })
        }
        (Some(id), name) => Ok((id, name)),
    }
}

/// A text field; `null` is the empty text, which clears it.
fn text(at: &Place, field: &'static str, value: Option<Value>) -> Result<Option<String>, FormatError> {
    match value {
        None => Ok(None),
        Some(Value::Null) => Ok(Some(String::new())),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong(at, field, "a string or null", &other)),
    }
}

/// A text field with its limit.
fn bounded(at: &Place, field: &'static str, value: Option<Value>, limit: usize) -> Result<Option<String>, FormatError> {
    let text = text(at, field, value)?;
    match &text {
        Some(text) if text.len() > limit => Err(refused(at, NameError::TooLong { field, bytes: text.len(), limit })),
        Some(text) if text.contains('\0') => Err(refused(at, NameError::Nul { field })),
        _ => Ok(text),
    }
}

/// The cost; `null` is the default of 1.
fn cost(at: &Place, value: Option<Value>) -> Result<Option<u32>, FormatError> {
    if value.as_ref().is_some_and(Value::is_null) {
        return Ok(Some(1));
    }
    Ok(count(at, "cost", value, u64::from(u32::MAX))?.map(|ms| ms as u32))
}

/// A whole number from 0 to `most`; `null` is 0.
fn count(at: &Place, field: &'static str, value: Option<Value>, most: u64) -> Result<Option<u64>, FormatError> {
    let Some(value) = value else { return Ok(None) };
    if value.is_null() {
        return Ok(Some(0));
    }
    match value.as_u64().filter(|&n| n <= most) {
        Some(n) => Ok(Some(n)),
        None => Err(wrong(at, field, &format!("a whole number from 0 to {most}"), &value)),
    }
}

/// The node it belongs under.
fn parent(
    at: &Place,
    own: NodeId,
    value: Option<Value>,
    written: &mut Vec<(NodeId, String)>,
) -> Result<Option<Option<NodeId>>, FormatError> {
    match text(at, "parent", value)? {
        None => Ok(None),
        Some(clear) if clear.is_empty() => Ok(Some(None)),
        Some(parent) => {
            let id = reference(at, "parent", own, &parent)?;
            written.push((id, parent));
            Ok(Some(Some(id)))
        }
    }
}

/// The nodes it waits for. Naming one twice is the same as naming it once; the first time counts.
fn needs(
    at: &Place,
    own: NodeId,
    value: Option<Value>,
    written: &mut Vec<(NodeId, String)>,
) -> Result<Vec<Need>, FormatError> {
    const WANTED: &str = "an array of names or ids";
    let items = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(other) => return Err(wrong(at, "needs", WANTED, &other)),
    };
    let mut seen = ahash::AHashSet::with_capacity(items.len());
    let mut needs = Vec::with_capacity(items.len());
    for item in items {
        let (text, on_failure) = match item {
            Value::String(text) => (text, None),
            Value::Object(_) => {
                let item: NeedItem = serde_json::from_value(item).map_err(|error| {
                    let what = format!("has an item that is no {{\"node\": ..., \"on_failure\": ...}}: {error}");
                    FormatError::Field { at: at.clone(), field: "needs", what }
                })?;
                (item.node, item.on_failure.map(OnFailure::from))
            }
            other => return Err(wrong(at, "needs", WANTED, &other)),
        };
        let id = reference(at, "needs", own, &text)?;
        if seen.insert(id) {
            needs.push(Need { node: id, on_failure });
            written.push((id, text));
        }
    }
    Ok(needs)
}

/// An item of `needs` in its long form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NeedItem {
    node: String,
    on_failure: Option<Mode>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Block,
    Skip,
    Continue,
}

impl From<Mode> for OnFailure {
    fn from(mode: Mode) -> OnFailure {
        match mode {
            Mode::Block => OnFailure::Block,
            Mode::Skip => OnFailure::Skip,
            Mode::Continue => OnFailure::Continue,
        }
    }
}

/// A name or an id in a field that refers to another node.
fn reference(at: &Place, field: &'static str, own: NodeId, text: &str) -> Result<NodeId, FormatError> {
    let id = NodeId::resolve(text).map_err(|source| {
        let what = format!("names a node that cannot be: {source}");
        FormatError::Field { at: at.clone(), field, what }
    })?;
    if id == own {
        return Err(FormatError::SelfReference { at: at.clone(), field });
    }
    Ok(id)
}

/// The error for a value of the wrong type; shows the value if it is short.
fn wrong(at: &Place, field: &'static str, wanted: &str, value: &Value) -> FormatError {
    let found = match value {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.len() > 40 => "a string".to_owned(),
        Value::String(text) => format!("\"{text}\""),
        short => short.to_string(),
    };
    FormatError::Field { at: at.clone(), field, what: format!("must be {wanted}, not {found}") }
}

fn refused(at: &Place, source: NameError) -> FormatError {
    FormatError::Name { at: at.clone(), source }
}

/// A node as a line of the export.
#[derive(Serialize)]
struct Exported<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<NodeId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    needs: Vec<ExportedNeed<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'a str>,
    cost: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
    #[serde(skip_serializing_if = "is_zero")]
    max_attempts: u32,
    #[serde(skip_serializing_if = "is_zero")]
    retry_delay_ms: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    surface: Option<&'a str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// A dependency of the export: the short form unless it has a mode of its own.
#[derive(Serialize)]
#[serde(untagged)]
enum ExportedNeed<'a> {
    Node(&'a str),
    With { node: &'a str, on_failure: OnFailure },
}

impl<'a> ExportedNeed<'a> {
    fn new(node: &'a str, on_failure: OnFailure) -> Self {
        match on_failure {
            OnFailure::Block => ExportedNeed::Node(node),
            on_failure => ExportedNeed::With { node, on_failure },
        }
    }
}

/// Writes nodes so that [`read`] gives the same graph: fields and edges, not who holds what or how it ended.
///
/// A reference to a node that is not among `nodes` (it was pruned) is left out, since no import could find it.
///
/// # Errors
/// Whatever writing to `out` refuses.
pub fn write(nodes: &[NodeView], out: &mut dyn Write) -> std::io::Result<()> {
    let labels: Vec<String> = nodes.iter().map(NodeView::label).collect();
    let known: ahash::AHashSet<&str> = labels.iter().map(String::as_str).collect();
    for node in nodes {
        let needs = node.depends_on.iter().zip(&node.on_failure);
        let line = Exported {
            name: node.name.as_deref(),
            id: node.name.is_none().then_some(node.id),
            needs: needs
                .filter(|(need, _)| known.contains(need.as_str()))
                .map(|(need, &on_failure)| ExportedNeed::new(need, on_failure))
                .collect(),
            run: node.run.as_deref(),
            cost: node.cost,
            role: node.role.as_deref(),
            kind: node.kind.as_deref(),
            parent: node.parent.as_deref().filter(|parent| known.contains(parent)),
            summary: node.summary.as_deref(),
            max_attempts: node.max_attempts.into(),
            retry_delay_ms: node.retry_delay_ms,
            group: node.group.as_deref(),
            surface: node.surface.as_deref(),
        };
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
