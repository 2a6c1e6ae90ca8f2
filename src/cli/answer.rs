//! What the changing verbs answer with: a short line for scripts, one object with `--json`.

use serde::Serialize;
use tenure::{NodeId, Table};

use super::context::Context;
use super::escape;
use super::exit::{CliError, Exit};

/// The node in a line that a script takes apart: its name, or its id when it has none or when the name holds characters
/// that must not reach a terminal raw. Every verb takes either.
pub fn label(name: Option<&str>, id: NodeId) -> String {
    match name {
        Some(name) if escape::is_plain(name) => name.to_owned(),
        _ => id.to_string(),
    }
}

/// The node's name: what was typed if that is a name, else what the table says, if it still has the node.
pub fn name_of(table: &Table, id: NodeId, typed: &str) -> Option<String> {
    if id == NodeId::of_name(typed) {
        return Some(typed.to_owned());
    }
    table.get(id).ok().and_then(|view| view.name)
}

/// A node whose generation has moved.
#[derive(Debug, Serialize)]
struct Moved {
    id: NodeId,
    name: Option<String>,
    generation: u64,
}

/// Answers for a verb that moved the generation: `gen=N`.
pub fn moved(context: &Context, table: &Table, id: NodeId, typed: &str, generation: u64) -> Result<Exit, CliError> {
    context.out.mark_changed();
    if context.json {
        context.out.json(&Moved { id, name: name_of(table, id, typed), generation })?;
    } else {
        context.out.line(&format!("gen={generation}"))?;
    }
    Ok(Exit::Done)
}
