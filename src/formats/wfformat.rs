//! WfFormat 1.5: traces of real workflow runs, as the WfCommons project collects them.
//!
//! A task becomes a node: its id the name, its name without the trailing `_ID000123` the kind, its parents the
//! dependencies, its measured run time the cost. Its command is not taken over, since the programs of the trace are
//! not here; `run --replay` sleeps the measured time instead.
//!
//! An edge stands twice in a trace, in the `parents` of one task and in the `children` of the other. One that stands
//! on one side only is an edge all the same, and a note says how many there were: leaving it out would let a task
//! start before what it needs, while an edge too many costs at most some waiting.
//!
//! Ids can be longer than a name may be, or be spelled like one of our ids. Such an id is shortened to its first 47
//! bytes (fewer where that would split a character), a `~` and the XXH3-64 of the whole id in 16 hex digits, so the
//! same id is the same node in every import.

use std::io::{BufRead, Read};

use ahash::{AHashMap, AHashSet};
use serde::Deserialize;
use xxhash_rust::xxh3::xxh3_64;

use super::{Entry, FormatError, Graph, INPUT_BYTES_MAX, Place, jsonl::BYTE_ORDER_MARK};
use crate::error::NameError;
use crate::id::{NAME_BYTES_MAX, NodeId, check_name};
use crate::node::{Need, NodeSpec};

/// What a shortened id keeps of the original: the rest is the `~` and 16 digits.
const PREFIX_BYTES_MAX: usize = NAME_BYTES_MAX - 17;

/// The one field that every version of the format has.
#[derive(Deserialize)]
#[serde(expecting = "a trace")]
struct Stamp {
    #[serde(rename = "schemaVersion")]
    schema_version: Option<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(expecting = "a trace")]
struct Document {
    workflow: Workflow,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Workflow {
    specification: Specification,
    execution: Option<Execution>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Specification {
    tasks: Vec<Task>,
}

#[derive(Deserialize)]
#[serde(expecting = "a task")]
struct Task {
    id: String,
    name: String,
    parents: Vec<String>,
    children: Vec<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Execution {
    tasks: Vec<Measured>,
}

#[derive(Deserialize)]
#[serde(expecting = "a measured task")]
struct Measured {
    id: String,
    #[serde(rename = "runtimeInSeconds")]
    runtime_s: f64,
}

/// Reads a whole trace.
///
/// # Errors
/// [`FormatError`] with the position in the JSON, or the task, that is wrong.
pub fn read(input: &mut dyn BufRead) -> Result<Graph, FormatError> {
    let mut bytes = Vec::new();
    input.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        return Err(FormatError::InputTooLong);
    }
    let json = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
    let hint = "; is this a WfFormat trace? (JSON Lines needs --format jsonl)";
    let stamp: Stamp = serde_json::from_slice(json).map_err(|error| FormatError::json(&error, 0, hint))?;
    match stamp.schema_version {
        Some(serde_json::Value::String(version)) if version == "1.5" => {}
        Some(serde_json::Value::String(found)) => return Err(FormatError::OtherVersion { found }),
        Some(other) => return Err(FormatError::OtherVersion { found: other.to_string() }),
        None => return Err(FormatError::OtherVersion { found: "without a schemaVersion".to_owned() }),
    }
    let document: Document = serde_json::from_slice(json).map_err(|error| FormatError::json(&error, 0, ""))?;
    build(&document.workflow)
}

/// Makes the nodes.
fn build(workflow: &Workflow) -> Result<Graph, FormatError> {
    let tasks = &workflow.specification.tasks;
    let mut graph = Graph::default();
    for task in tasks {
        graph.push(node(task)?)?;
    }
    let index: AHashMap<&str, usize> = tasks.iter().enumerate().map(|(i, task)| (task.id.as_str(), i)).collect();
    let (needs, one_sided) = edges(tasks, &graph.entries, &index)?;
    for (entry, needs) in graph.entries.iter_mut().zip(needs) {
        entry.spec.needs = needs.into_iter().map(Need::from).collect();
    }
    if one_sided > 0 {
        graph
            .notes
            .push(format!("edges that only one of their two tasks lists, taken as edges all the same: {one_sided}"));
    }
    costs(&mut graph, workflow.execution.as_ref(), &index)?;
    Ok(graph)
}

/// One task, as yet without its edges and cost.
fn node(task: &Task) -> Result<Entry, FormatError> {
    let at = Place::Task(task.id.clone());
    let name = name_of(&task.id).map_err(|source| FormatError::Name { at: at.clone(), source })?;
    let id = NodeId::of_name(&name);
    let kind = kind_of(&task.name);
    let spec = NodeSpec { id: Some(id), name: Some(name.clone()), kind, ..NodeSpec::default() };
    Ok(Entry { at, id, label: name, spec, written: Vec::new() })
}

/// The node's name for a task id, shortened if it cannot be a name as it stands.
fn name_of(id: &str) -> Result<String, NameError> {
    match check_name("id", id) {
        Ok(()) => Ok(id.to_owned()),
        Err(NameError::TooLong { .. } | NameError::LooksLikeAnId { .. }) => {
            let short = shorten(id);
            check_name("id", &short).map(|()| short)
        }
        Err(other) => Err(other),
    }
}

/// The prefix of `text` that fits, and a hash of the whole.
fn shorten(text: &str) -> String {
    let mut end = PREFIX_BYTES_MAX.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}~{:016x}", text.get(..end).unwrap_or_default(), xxh3_64(text.as_bytes()))
}

/// What a task's name says about its kind: the name without the trailing number of the task.
fn kind_of(name: &str) -> Option<String> {
    let kind = match name.rsplit_once("_ID") {
        Some((kind, digits)) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => kind,
        _ => name,
    };
    match kind {
        "" => None,
        kind if kind.contains('\0') => None,
        kind if kind.len() > NAME_BYTES_MAX => Some(shorten(kind)),
        kind => Some(kind.to_owned()),
    }
}

/// What each task waits for, from both lists, and how many edges stand in one of them only.
fn edges(
    tasks: &[Task],
    entries: &[Entry],
    index: &AHashMap<&str, usize>,
) -> Result<(Vec<Vec<NodeId>>, usize), FormatError> {
    let find = |task: &Task, own: usize, field: &'static str, other: &String| -> Result<usize, FormatError> {
        let at = Place::Task(task.id.clone());
        match index.get(other.as_str()) {
            Some(&found) if found == own => Err(FormatError::SelfReference { at, field }),
            Some(&found) => Ok(found),
            None => Err(FormatError::UnknownNode { at, field, node: other.clone() }),
        }
    };
    let mut needs: Vec<Vec<NodeId>> = vec![Vec::new(); tasks.len()];
    let mut by_parents = AHashSet::new();
    let mut by_children = AHashSet::new();
    for (child, task) in tasks.iter().enumerate() {
        for other in &task.parents {
            by_parents.insert((find(task, child, "parents", other)?, child));
        }
    }
    for (parent, task) in tasks.iter().enumerate() {
        for other in &task.children {
            by_children.insert((parent, find(task, parent, "children", other)?));
        }
    }
    let mut all: Vec<(usize, usize)> = by_parents.union(&by_children).copied().collect();
    all.sort_unstable();
    for &(parent, child) in &all {
        if let (Some(needs), Some(entry)) = (needs.get_mut(child), entries.get(parent)) {
            needs.push(entry.id);
        }
    }
    Ok((needs, by_parents.symmetric_difference(&by_children).count()))
}

/// Fills in the measured times. A task that was not measured keeps the default cost.
fn costs(graph: &mut Graph, execution: Option<&Execution>, index: &AHashMap<&str, usize>) -> Result<(), FormatError> {
    let mut strangers = 0;
    for measured in execution.map(|execution| execution.tasks.as_slice()).unwrap_or_default() {
        let ms = (measured.runtime_s * 1_000.0).round();
        let at = Place::Task(measured.id.clone());
        // A negative time, one past the range, or not a number at all is no measurement.
        if !(0.0..=f64::from(u32::MAX)).contains(&ms) {
            let what = format!("must be 0 to {} seconds, not {}", u32::MAX / 1_000, measured.runtime_s);
            return Err(FormatError::Field { at, field: "runtimeInSeconds", what });
        }
        let entry = index.get(measured.id.as_str()).and_then(|&i| graph.entries.get_mut(i));
        match entry {
            None => strangers += 1,
            Some(entry) if entry.spec.cost.is_some() => {
                return Err(FormatError::Duplicate { first: at.clone(), node: measured.id.clone(), at });
            }
            Some(entry) => entry.spec.cost = Some(ms as u32),
        }
    }
    let unmeasured = graph.entries.iter().filter(|entry| entry.spec.cost.is_none()).count();
    if unmeasured > 0 {
        graph.notes.push(format!("tasks without a measured run time, left at the default cost: {unmeasured}"));
    }
    if strangers > 0 {
        graph.notes.push(format!("measured tasks that the specification does not have, left out: {strangers}"));
    }
    Ok(())
}
