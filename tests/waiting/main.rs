//! Waiting for a node and what decides when there is one: groups, attempts and delays, what a failure does to those behind
//! it, and claims that stand and fall with a process.

#[path = "../cli/support.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use all of it")]
mod support;

mod attempts;
mod groups;
mod idle;
mod killed;
mod modes;
mod pid;
mod sleeper;
mod starving;
mod surfaces;
mod waking;

/// A file of tests that nobody names here would never run.
#[test]
fn every_file_here_is_named_here() {
    let named: Vec<&str> =
        include_str!("main.rs").lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')).collect();
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/waiting")).expect("this directory") {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a plain file name").to_owned();
        if path.extension().is_some_and(|extension| extension == "rs") && stem != "main" {
            assert!(named.contains(&stem.as_str()), "{stem}.rs is not in main.rs");
        }
    }
}
