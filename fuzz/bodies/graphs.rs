//! Graph files. What can be read goes into a table, out of it, and in again.

use tenure::formats::{Format, Graph, jsonl};
use tenure::{CreateOptions, Filter, Table};

use super::{scratch, within};

pub fn jsonl(bytes: &[u8]) {
    run(Format::Jsonl, bytes);
}

pub fn wfformat(bytes: &[u8]) {
    run(Format::Wfformat, bytes);
}

fn run(format: Format, bytes: &[u8]) {
    let graph = match within("reading", || Graph::read(format, &mut &*bytes)) {
        Ok(graph) => graph,
        Err(error) => return assert!(!error.to_string().is_empty() && !error.code().is_empty()),
    };
    let dir = scratch();
    let (table, _) = Table::open_or_create(dir.path(), &CreateOptions::default()).expect("a table");
    let Some(loaded) = within("loading", || graph.load(&table).ok()) else {
        // All or nothing.
        assert_eq!(table.stats().expect("a look").nodes, 0);
        return;
    };
    let nodes = table.list(Filter { terminal: true, archived: true }).expect("a look");
    assert_eq!(nodes.len(), loaded.created);
    let mut text = Vec::new();
    jsonl::write(&nodes, &mut text).expect("to memory");
    let again =
        Graph::read(Format::Jsonl, &mut &*text).unwrap_or_else(|error| panic!("what was written is refused: {error}"));
    let loaded = again.load(&table).unwrap_or_else(|error| panic!("what was written does not load: {error}"));
    assert_eq!((loaded.created, loaded.updated), (0, 0), "what was written says something else");
    let report = tenure::check::table(dir.path()).expect("the table is there");
    assert!(report.sound, "{report:#?}");
}
