//! The program from outside: what it prints, how it ends, and what it leaves alone.

mod exits;
mod full;
mod hostile;
mod json;
mod output;
mod place;
mod race;
mod signals;
mod support;
mod usage;
mod verbs;

/// A file of tests that nobody names here would never run.
#[test]
fn every_file_here_is_named_here() {
    let named: Vec<&str> =
        include_str!("main.rs").lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')).collect();
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli")).expect("this directory") {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a plain file name").to_owned();
        if path.extension().is_some_and(|extension| extension == "rs") && stem != "main" {
            assert!(named.contains(&stem.as_str()), "{stem}.rs is not in main.rs");
        }
    }
}
