//! What each file of the source may know of, and where the dangerous things are allowed. Reads `src/` as text.
//!
//! Modules that are there for tests, comments and texts are not looked at.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The modules of the library from the bottom up, each with those that it may use besides its own parts.
const LAYERS: &[(&str, &[&str])] = &[
    ("sync", &[]),
    // What callers see; these three speak of each other.
    ("error", &["id", "node"]),
    ("id", &["error"]),
    ("node", &["id"]),
    ("word", &["sync", "node"]),
    ("layout", &["node", "sync", "word"]),
    ("clock", &["sync"]),
    ("process", &["sync", "word"]),
    ("record", &["error", "id", "node"]),
    ("derive", &[]),
    ("graph", &["derive", "id", "layout", "node", "word"]),
    ("standing", &["graph", "node", "word"]),
    ("location", &["error"]),
    ("fork", &["clock", "sync"]),
    ("region", &["error", "fork", "layout", "location", "process", "sync", "word"]),
    (
        "table",
        &[
            "clock", "derive", "error", "graph", "id", "layout", "node", "process", "record", "region", "standing",
            "sync", "word",
        ],
    ),
    ("snapshot", &["clock", "error", "id", "layout", "node", "process", "record", "word"]),
    (
        "verbs",
        &[
            "clock", "derive", "error", "graph", "id", "layout", "location", "node", "process", "record", "region",
            "snapshot", "standing", "sync", "table", "word",
        ],
    ),
    (
        "check",
        &[
            "clock", "error", "graph", "id", "layout", "location", "node", "process", "record", "region", "snapshot",
            "sync", "table", "verbs", "word",
        ],
    ),
    ("formats", &["error", "id", "node", "verbs"]),
    ("run", &["clock", "error", "formats", "id", "node", "verbs"]),
    ("admission", &["clock", "error", "id", "location"]),
    ("lib", &[]),
];

/// Files with `unsafe` in them, each for one thing: the mapping, the page that a fork empties, the entry of the program, the
/// handler for a file cut short.
const MAY_BE_UNSAFE: &[&str] = &["region.rs", "fork.rs", "main.rs", "cli/entry.rs", "cli/sigbus.rs"];

/// The only file that reads a clock that people can set; it hands the time on for display (C8).
const MAY_READ_WALL_CLOCK: &[&str] = &["clock.rs"];

const LINES_MAX: usize = 500;

struct File {
    /// Relative to `src`.
    path: String,
    lines: usize,
    /// Without comments, texts and the tests at its end, each line with its number.
    code: Vec<(usize, String)>,
}

fn source() -> Vec<File> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut dirs = vec![top.clone()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).expect("a directory of the source") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(read(&top, path));
            }
        }
    }
    assert!(found.len() > 20, "the source was not found: {} files", found.len());
    found
}

fn read(top: &Path, path: PathBuf) -> File {
    let text = std::fs::read_to_string(&path).expect("a source file");
    let relative = path.strip_prefix(top).expect("under src").to_string_lossy().into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let tests_begin = lines.windows(2).position(|two| is_for_tests(two[0]) && two[1].ends_with('{'));
    let end = if is_test_file(&path) { 0 } else { tests_begin.unwrap_or(lines.len()) };
    let code = lines[..end].iter().enumerate().map(|(i, line)| (i + 1, bare(line))).collect();
    File { path: relative, lines: lines.len(), code }
}

fn is_for_tests(line: &str) -> bool {
    line.starts_with("#[cfg(") && line.contains("test")
}

/// Whether the file beside this one that declares it as a module does so for tests only, or is there for tests itself.
fn is_test_file(path: &Path) -> bool {
    if path.file_name().is_some_and(|name| name == "mod.rs") {
        return path.parent().is_some_and(is_test_file);
    }
    let above = path.parent().unwrap_or(path).join("mod.rs");
    if above.exists() && is_test_file(&above) {
        return true;
    }
    let declaration = format!("mod {};", path.file_stem().unwrap_or_default().to_string_lossy());
    let dir = path.parent().unwrap_or(path);
    [dir.join("mod.rs"), dir.with_extension("rs"), dir.join("lib.rs")].iter().any(|declares| {
        let text = std::fs::read_to_string(declares).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines.windows(2).any(|two| is_for_tests(two[0]) && two[1].ends_with(&declaration))
    })
}

/// A line without what is in double quotes and without its comment.
fn bare(line: &str) -> String {
    let mut kept = String::new();
    let mut in_text = false;
    let mut escaped = false;
    for c in line.chars() {
        match c {
            '"' if !escaped => in_text = !in_text,
            _ if in_text => {}
            _ => kept.push(c),
        }
        escaped = c == '\\' && !escaped;
    }
    kept.split("//").next().unwrap_or_default().to_owned()
}

impl File {
    fn module(&self) -> &str {
        self.path.split('/').next().unwrap_or_default().trim_end_matches(".rs")
    }

    fn is_program(&self) -> bool {
        matches!(self.module(), "main" | "cli")
    }

    /// The lines that contain one of the words, as words.
    fn mentions(&self, words: &[&str]) -> Vec<String> {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let has = |line: &str, word: &str| {
            line.match_indices(word).any(|(at, _)| {
                let (before, after) = (line[..at].chars().next_back(), line[at + word.len()..].chars().next());
                !before.is_some_and(is_part) && !after.is_some_and(is_part)
            })
        };
        let found = self.code.iter().filter(|(_, line)| words.iter().any(|word| has(line, word)));
        found.map(|(i, line)| format!("{}:{i}: {}", self.path, line.trim())).collect()
    }
}

fn assert_none(what: &str, found: Vec<String>) {
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

/// The modules that a line names through `crate::`, also in a group.
fn modules_named(line: &str) -> Vec<String> {
    let mut named = Vec::new();
    for (at, _) in line.match_indices("crate::") {
        let rest = &line[at + "crate::".len()..];
        let group = rest.strip_prefix('{').map_or(rest, |inner| inner.split('}').next().unwrap_or(inner));
        let parts: Vec<&str> = if rest.starts_with('{') { group.split(',').collect() } else { vec![group] };
        for part in parts {
            let name: String = part.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            named.push(name);
        }
    }
    named
}

#[test]
fn a_file_uses_only_what_stands_below_it() {
    let allowed: BTreeMap<&str, &[&str]> = LAYERS.iter().copied().collect();
    let mut found = Vec::new();
    for file in source().iter().filter(|f| !f.is_program()) {
        let Some(may_use) = allowed.get(file.module()) else {
            found.push(format!("{}: its module has no place in the layers of this test", file.path));
            continue;
        };
        for (i, line) in &file.code {
            for name in modules_named(line) {
                // What the library shows at its top is known to everybody; modules are lower case.
                let is_module = name.starts_with(char::is_lowercase) && allowed.contains_key(name.as_str());
                if is_module && name != file.module() && !may_use.contains(&name.as_str()) {
                    found.push(format!("{}:{i}: `{}` must not know `{name}`", file.path, file.module()));
                }
            }
        }
    }
    assert_none("a layer is broken", found);
}

#[test]
fn the_library_knows_nothing_of_the_program() {
    let words = ["clap", "anyhow", "anstream", "indicatif", "println", "eprintln", "print", "eprint", "jiff"];
    let files = source();
    let library = files.iter().filter(|f| !f.is_program());
    assert_none("the library speaks to a terminal", library.flat_map(|f| f.mentions(&words)).collect());
    let below = files.iter().filter(|f| ["sync", "word", "layout", "table", "derive", "graph"].contains(&f.module()));
    let outside = ["serde_json", "Path", "PathBuf", "File", "fs"];
    assert_none("the words know of files", below.flat_map(|f| f.mentions(&outside)).collect());
}

#[test]
fn unsafe_stands_in_few_files() {
    let files = source();
    let others = files.iter().filter(|f| !MAY_BE_UNSAFE.contains(&f.path.as_str()));
    assert_none("unsafe where it must not be", others.flat_map(|f| f.mentions(&["unsafe"])).collect());
    assert!(files.iter().any(|f| !f.mentions(&["unsafe"]).is_empty()), "this test no longer sees any `unsafe`");
}

/// Loom and the crash points can only stand in for what goes through `sync.rs`.
#[test]
fn atomics_go_through_one_door() {
    let types = [
        "AtomicU64",
        "AtomicU32",
        "AtomicU16",
        "AtomicU8",
        "AtomicUsize",
        "AtomicI64",
        "AtomicI32",
        "AtomicIsize",
        "AtomicBool",
        "AtomicPtr",
        "AtomicCell",
        "atomic",
        "Atomic",
    ];
    let files = source();
    let library = files.iter().filter(|f| !f.is_program() && f.path != "sync.rs");
    assert_none("an atomic that models do not see", library.flat_map(|f| f.mentions(&types)).collect());
    let sync = files.iter().find(|f| f.path == "sync.rs").expect("src/sync.rs");
    assert!(!sync.mentions(&types).is_empty(), "this test no longer sees any atomic");
}

/// C8: a step of the wall clock cannot touch a lease if nothing but the clock module ever reads it.
#[test]
fn only_the_clock_reads_the_wall_clock() {
    let words = ["SystemTime", "UNIX_EPOCH", "Realtime", "RealtimeCoarse", "Timestamp", "Zoned"];
    let files = source();
    let others = files.iter().filter(|f| !f.is_program() && !MAY_READ_WALL_CLOCK.contains(&f.path.as_str()));
    assert_none("the wall clock is read", others.flat_map(|f| f.mentions(&words)).collect());
    let clock = files.iter().find(|f| f.path == "clock.rs").expect("src/clock.rs");
    assert!(!clock.mentions(&words).is_empty(), "this test no longer sees the wall clock");
    let leases = files.iter().filter(|f| f.path == "table/lease.rs" || f.path == "table/claim.rs");
    assert_none("a lease knows the wall clock", leases.flat_map(|f| f.mentions(&["wall_now_ms"])).collect());
}

#[test]
fn a_file_can_be_read_in_one_sitting() {
    let long =
        source().iter().filter(|f| f.lines > LINES_MAX).map(|f| format!("{}: {} lines", f.path, f.lines)).collect();
    assert_none("too long", long);
}

/// G5, and the library's promise that a bad input is an error: nothing outside tests may panic on purpose.
#[test]
fn nothing_panics_on_purpose() {
    let mut found = Vec::new();
    for file in source() {
        found.extend(file.mentions(&["panic!", "unreachable!", "todo!", "unimplemented!", "dbg!"]));
        for (i, line) in &file.code {
            if line.contains(".unwrap()") || line.contains(".expect(") {
                found.push(format!("{}:{i}: {}", file.path, line.trim()));
            }
        }
    }
    assert_none("a panic", found);
}

/// docs/testing.md lists every `unsafe` block with the argument for it: as many rows for a file as it has blocks.
#[test]
fn every_unsafe_block_is_listed_with_its_argument() {
    let doc = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/testing.md");
    let doc = std::fs::read_to_string(doc).expect("docs/testing.md is part of the repository");
    let rows = |file: &str| doc.lines().filter(|line| line.starts_with(&format!("| `src/{file}` |"))).count();
    let files = source();
    let in_line = |line: &str| line.matches("unsafe {").count() + line.matches("#[unsafe(").count();
    let blocks = |file: &File| file.code.iter().map(|(_, line)| in_line(line)).sum::<usize>();
    for file in &files {
        assert_eq!(rows(&file.path), blocks(file), "rows of docs/testing.md about src/{}", file.path);
    }
    let listed = doc.lines().filter(|line| line.starts_with("| `src/")).count();
    assert_eq!(listed, files.iter().map(blocks).sum::<usize>(), "rows about files that are not there");
    assert!(listed > 0, "this test no longer sees any `unsafe`");
}
