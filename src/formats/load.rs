//! Putting a graph into a table, all or nothing, with the place of whatever is refused.

use serde::Serialize;
use thiserror::Error;

use super::{FormatError, Graph, Place};
use crate::error::Refusal;
use crate::id::NodeId;
use crate::node::{Change, NodeSpec};
use crate::verbs::Table;

/// What came of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Loaded {
    /// Nodes that are new.
    pub created: usize,
    /// Nodes that were there and changed.
    pub updated: usize,
    /// Nodes that were there and already as asked.
    pub unchanged: usize,
}

/// Why a graph was not loaded. The table is as it was.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The input refers to a node that is nowhere.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The table refused it.
    #[error("{}{source}", at.as_ref().map(|at| format!("{at}: ")).unwrap_or_default())]
    Refused {
        /// Where the node that the refusal is about stands.
        at: Option<Place>,
        /// The refusal.
        source: Refusal,
    },
}

impl Graph {
    /// Creates or updates every node with its edges, or nothing.
    ///
    /// # Errors
    /// [`LoadError`]; the table is then unchanged.
    pub fn load(&self, table: &Table) -> Result<Loaded, LoadError> {
        self.check_references(table)?;
        let specs: Vec<NodeSpec> = self.entries.iter().map(|entry| entry.spec.clone()).collect();
        let changes =
            table.import(&specs).map_err(|source| LoadError::Refused { at: self.place_of(&source), source })?;
        let mut loaded = Loaded::default();
        for (_, change) in changes {
            match change {
                Change::Created => loaded.created += 1,
                Change::Updated => loaded.updated += 1,
                Change::Unchanged => loaded.unchanged += 1,
            }
        }
        Ok(loaded)
    }

    /// Looks up the nodes that the input refers to and does not hold, so that a mistyped name is reported with its
    /// line. The import checks them again, in one step with everything else.
    fn check_references(&self, table: &Table) -> Result<(), LoadError> {
        let mut known = ahash::AHashSet::new();
        for entry in &self.entries {
            let needs = entry.spec.needs.iter().map(|need| ("needs", need.node));
            let parent = entry.spec.parent.flatten().map(|id| ("parent", id));
            for (field, id) in needs.chain(parent) {
                if self.contains(id) || !known.insert(id) {
                    continue;
                }
                match table.get(id) {
                    Ok(_) => {}
                    Err(Refusal::NoSuchNode { .. }) => {
                        let written = entry.written.iter().find(|(known, _)| *known == id);
                        let node = written.map_or_else(|| id.to_string(), |(_, text)| text.clone());
                        return Err(FormatError::UnknownNode { at: entry.at.clone(), field, node }.into());
                    }
                    Err(source) => return Err(LoadError::Refused { at: None, source }),
                }
            }
        }
        Ok(())
    }

    /// Where the node stands that a refusal names.
    fn place_of(&self, refusal: &Refusal) -> Option<Place> {
        if let Refusal::NoSuchGroup { group } = refusal {
            let entry = self.entries.iter().find(|entry| entry.spec.group.as_ref() == Some(group))?;
            return Some(entry.at.clone());
        }
        let label = match refusal {
            Refusal::Ended { node, .. }
            | Refusal::Held { node, .. }
            | Refusal::SelfLink { node }
            | Refusal::Duplicate { node }
            | Refusal::Exhausted { node, .. } => node,
            Refusal::NameMismatch { name, .. } => name,
            Refusal::Cycle { path } => path.first()?,
            _ => return None,
        };
        let id = NodeId::resolve(label).ok()?;
        let entry = self.index.get(&id).and_then(|&i| self.entries.get(i))?;
        Some(entry.at.clone())
    }
}
