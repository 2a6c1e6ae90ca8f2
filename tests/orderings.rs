//! `docs/orderings.md` lists every access in `src/table` that releases something or takes part in one order of all.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// By file and function, how many there are.
type Counts = BTreeMap<(String, String), usize>;

fn in_source(top: &Path) -> Counts {
    let mut counts = Counts::new();
    for entry in fs::read_dir(top.join("src/table")).expect("the transitions") {
        let path = entry.expect("an entry").path();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut function = String::new();
        for line in fs::read_to_string(&path).expect("a source file").lines() {
            let code = line.split("//").next().unwrap_or_default();
            if let Some((_, rest)) = code.split_once("fn ") {
                function = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            }
            let found =
                ["Release", "AcqRel", "SeqCst"].map(|order| code.matches(&format!("Ordering::{order}")).count());
            let found: usize = found.iter().sum();
            if found > 0 {
                *counts.entry((file.clone(), function.clone())).or_default() += found;
            }
        }
    }
    assert!(counts.len() > 20, "the source was not found: {counts:?}");
    counts
}

fn rows(top: &Path) -> Vec<Vec<String>> {
    let page = fs::read_to_string(top.join("docs/orderings.md")).expect("the page");
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    page.lines().filter(|line| line.starts_with("| ") && line.contains(".rs |")).map(cells).collect()
}

#[test]
fn every_release_has_its_row_and_every_row_its_release() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed: Counts = rows(top)
        .iter()
        .map(|row| ((row[0].clone(), row[1].clone()), row[2].parse().expect("a number in the third column")))
        .collect();
    assert_eq!(listed, in_source(top), "left: docs/orderings.md, right: src/table");
}

#[test]
fn every_mutant_that_a_row_names_is_there() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut known = String::new();
    for entry in fs::read_dir(top.join("mutants")).expect("the mutants") {
        known += &fs::read_to_string(entry.expect("an entry").path()).expect("a list of mutants");
    }
    let mut named = 0;
    for row in rows(top) {
        let mutants = row.last().map_or("-", String::as_str);
        for mutant in mutants.split(", ").filter(|mutant| *mutant != "-") {
            assert!(known.contains(&format!("\n[{mutant}] ")), "{mutant}, of {} in {}, is not there", row[1], row[0]);
            named += 1;
        }
    }
    assert!(named > 20, "hardly a row names a mutant");
}
