//! Writers of fields: nothing that was answered with success is lost (N3, cases 4 and 5).

use std::collections::BTreeSet;

use tenure::{Change, Filter, NodeId, NodeSpec};

use super::crew::{Crew, Orders, depth, fresh_table, say};

/// Upserts `n` names that begin with a word; says how many of them it was the one to create.
pub fn upsert_names(orders: &Orders) {
    let table = orders.table();
    let (prefix, n) = (orders.word(0), orders.number(1));
    let mut created = 0;
    orders.wait_for_start();
    for k in 0..n {
        let name = (!prefix.is_empty()).then(|| format!("{prefix}{k}"));
        let spec = NodeSpec { name, summary: Some(format!("text {k} of {prefix}")), ..NodeSpec::default() };
        let (_, change) = table.upsert(&spec, false).expect("room");
        created += usize::from(change == Change::Created);
    }
    say(created);
}

fn created(said: &[Vec<String>]) -> usize {
    said.iter().flatten().map(|line| line.parse::<usize>().expect("a count")).sum()
}

#[test]
fn a_thousand_upserts_from_four_processes_are_all_there() {
    let (dir, table) = fresh_table();
    let mut crew = Crew::new();
    for i in 0..4 {
        crew.add("upsert_names", dir.path(), &[&format!("p{i}-"), &250]);
    }
    let said = crew.finish();
    assert_eq!(created(&said), 1_000);
    let rows = table.list(Filter::default()).expect("rows");
    let names: BTreeSet<String> = rows.iter().filter_map(|r| r.name.clone()).collect();
    assert_eq!((rows.len(), names.len()), (1_000, 1_000));
    for row in rows {
        let name = row.name.clone().unwrap_or_default();
        let (prefix, k) = name.split_once('-').expect("a name of ours");
        assert_eq!(row.summary, Some(format!("text {k} of {prefix}-")), "{name} carries another's text");
    }
}

#[test]
fn nodes_without_names_are_never_merged() {
    let (dir, table) = fresh_table();
    let mut crew = Crew::new();
    for _ in 0..8 {
        crew.add("upsert_names", dir.path(), &[&"", &125]);
    }
    let said = crew.finish();
    assert_eq!(created(&said), 1_000);
    assert_eq!(table.stats().expect("counts").nodes, 1_000);
}

#[test]
fn the_same_name_from_eight_processes_is_one_node() {
    let (dir, table) = fresh_table();
    let mut crew = Crew::new();
    for _ in 0..8 {
        crew.add("upsert_names", dir.path(), &[&"same-", &300]);
    }
    let said = crew.finish();
    assert_eq!(created(&said), 300, "each name is created by exactly one of them");
    assert_eq!(table.stats().expect("counts").nodes, 300);
    assert_eq!(table.list(Filter::default()).expect("rows").len(), 300);
}

/// Sets one field of the one node again and again, and reads it back: nobody else writes this field.
pub fn set_field(orders: &Orders) {
    let table = orders.table();
    let (field, times) = (orders.word(0), orders.number(1));
    let node = NodeId::of_name("shared");
    orders.wait_for_start();
    for k in 0..times {
        let text = Some(format!("{field} {k}"));
        let mut spec = NodeSpec { id: Some(node), ..NodeSpec::default() };
        match field {
            "kind" => spec.kind = text.clone(),
            "role" => spec.role = text.clone(),
            "run" => spec.run = text.clone(),
            _ => spec.summary = text.clone(),
        }
        table.upsert(&spec, true).expect("an open node");
        let row = table.get(node).expect("the node");
        let found = match field {
            "kind" => row.kind,
            "role" => row.role,
            "run" => row.run,
            _ => row.summary,
        };
        assert_eq!(found, text, "somebody who never writes the {field} undid it");
    }
}

#[test]
fn writers_of_different_fields_do_not_undo_each_other() {
    let times = depth(2_000);
    let fields = ["kind", "role", "run", "summary"];
    let (dir, table) = fresh_table();
    table.upsert(&NodeSpec { name: Some("shared".into()), ..NodeSpec::default() }, false).expect("room");
    let mut crew = Crew::new();
    for field in fields {
        crew.add("set_field", dir.path(), &[&field, &times]);
    }
    crew.finish();
    let row = table.get(NodeId::of_name("shared")).expect("the node");
    let last = |field: &str| Some(format!("{field} {}", times - 1));
    assert_eq!([row.kind, row.role, row.run, row.summary], fields.map(last));
    let stats = table.stats().expect("counts");
    assert!(stats.text_blocks < 32, "texts that were replaced are still taken up: {stats:?}");
    assert_eq!((stats.text_blocks_reserved, stats.versions_reserved), (0, 0));
}
