//! `import`, `export` and `run` from outside: what they print, how they end, and that nothing is lost or done twice.

mod failures;
mod files;
mod interrupts;
mod order;
mod sharing;
mod support;
mod surfaces;
mod takeover;
mod work;

/// A file of tests that nobody names here would never run.
#[test]
fn every_file_here_is_named_here() {
    let named: Vec<&str> =
        include_str!("main.rs").lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')).collect();
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/run")).expect("this directory") {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a plain file name").to_owned();
        assert!(stem == "main" || named.contains(&stem.as_str()), "{stem}.rs is not in main.rs");
    }
}
