//! What every verb is given: where the table is, how to answer, and the names as the user typed them.

use std::cell::RefCell;
use std::path::PathBuf;

use tenure::{CreateOptions, Location, NodeId, OpenError, Snapshot, Table};

use super::exit::CliError;
use super::out::Out;
use super::refusal;
use super::snapshot;

/// Where and how a verb runs.
#[derive(Debug)]
pub struct Context {
    /// The table's directory, from `--dir` or the environment.
    pub location: Location,
    /// What `--dir` named, if it did. Only who opens a ledger asks.
    #[cfg_attr(not(any(feature = "sqlite", feature = "postgres")), expect(dead_code))]
    pub dir: Option<PathBuf>,
    /// Answer in JSON.
    pub json: bool,
    /// Standard output.
    pub out: Out,
    typed: RefCell<Vec<(NodeId, String)>>,
}

impl Context {
    /// A context for the global options.
    pub fn new(dir: Option<PathBuf>, json: bool) -> Context {
        let location = Location::from_env(dir.clone());
        Context { location, dir, json, out: Out::default(), typed: RefCell::new(Vec::new()) }
    }

    /// Opens the table; an absent one is an error.
    pub fn open(&self) -> Result<Table, CliError> {
        Ok(Table::open(self.location.clone())?)
    }

    /// Opens the table to change something in it. One of an earlier boot that left a snapshot comes back from that.
    pub fn open_to_change(&self) -> Result<Table, CliError> {
        match Table::open(self.location.clone()) {
            Err(OpenError::Stale { dir }) if Snapshot::read(dir.join("snapshot")).is_ok() => self.open_or_create(),
            other => Ok(other?),
        }
    }

    /// Opens the table, making it first when there is none.
    pub fn open_or_create(&self) -> Result<Table, CliError> {
        let (table, _made) = self.make(&CreateOptions::default())?;
        Ok(table)
    }

    /// Opens the table, making it with these options when there is none, and says whether it was made now.
    pub fn make(&self, options: &CreateOptions) -> Result<(Table, bool), CliError> {
        let (table, made) = Table::open_or_create(self.location.clone(), options)?;
        if made {
            self.out.mark_changed();
        }
        snapshot::tell_found(&table, made);
        Ok((table, made))
    }

    /// Reads a name or id from the command line, and remembers how it was typed for messages.
    pub fn node(&self, text: &str) -> Result<NodeId, CliError> {
        let id = NodeId::resolve(text)?;
        self.typed.borrow_mut().push((id, text.to_owned()));
        Ok(id)
    }

    /// The error with every node named the way the user typed it.
    pub fn as_typed(&self, error: CliError) -> CliError {
        let CliError::Refused(mut refused) = error else { return error };
        let typed = self.typed.borrow();
        refusal::rename(&mut refused, |label| {
            let id = NodeId::resolve(label).ok();
            if let Some((_, text)) = typed.iter().find(|(known, _)| Some(*known) == id) {
                text.clone_into(label);
            }
        });
        CliError::Refused(refused)
    }
}
