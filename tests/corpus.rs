//! The fuzz targets as ordinary tests: every file of `fuzz/corpus`, and for a few seconds mutations of them.
//!
//! What is tried is written to a file first, so that input which ends the process is not lost. `scripts/fuzz` runs this for
//! longer when there is no cargo-fuzz. `TENURE_FUZZ_FILE` names one file to take in place of the corpus, for the
//! target whose name is in its path.

#[path = "../fuzz/bodies/arguments.rs"]
mod arguments;
#[path = "../fuzz/bodies/mod.rs"]
mod bodies;
#[path = "../src/cli/mod.rs"]
#[allow(dead_code, missing_docs)]
mod cli;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The targets by name.
fn targets() -> impl Iterator<Item = (&'static str, fn(&[u8]))> {
    bodies::TARGETS.into_iter().chain([("arguments", arguments::run as fn(&[u8]))])
}

/// Longer input than this is not made.
const LEN_MAX: usize = 4_096;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(dir).expect("a corpus").flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("a file of the corpus")).collect()
}

/// Numbers that look random and are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n.max(1)
    }
}

/// Bytes that mean something to one of the readers.
const WORDS: [&[u8]; 16] = [
    b"\"",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\\u0000",
    b"\n",
    b"--",
    b"\"needs\":",
    b"\"name\":",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\0\0\0\0\0\0\0\0",
    b"\x01\0\0\0\0\0\0\0",
    b"-1",
    b"1e309",
    b"\xf0\x9f\x9a\x80",
];

/// One of the corpus, changed in a few places.
fn mutated(corpus: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = corpus[dice.below(corpus.len())].clone();
    for _ in 0..=dice.below(6) {
        let at = dice.below(bytes.len() + 1);
        match dice.below(9) {
            0 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            1 if at < bytes.len() => bytes[at] = dice.below(256) as u8,
            2 => bytes.truncate(at),
            3 if at < bytes.len() => {
                let to = (at + 1 + dice.below(24)).min(bytes.len());
                bytes.drain(at..to);
            }
            4 => {
                let from = dice.below(bytes.len().max(1)).min(bytes.len());
                let piece = bytes[from..(from + dice.below(48)).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            5 => {
                let other = &corpus[dice.below(corpus.len())];
                let from = dice.below(other.len().max(1)).min(other.len());
                let piece = other[from..(from + dice.below(96)).min(other.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            6 => {
                bytes.splice(at..at, WORDS[dice.below(WORDS.len())].iter().copied());
            }
            // An edit of a table: aligned, and of few kinds.
            7 => bytes.extend((0..12).map(|i| if i == 2 { 0 } else { dice.below(256) as u8 })),
            _ => bytes.push(dice.below(256) as u8),
        }
    }
    bytes.truncate(LEN_MAX);
    bytes
}

/// Runs a target; what made it panic is kept and named.
fn run(name: &str, body: fn(&[u8]), bytes: &[u8]) {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let last = dir.join(format!("fuzz-{name}-last-{:?}", std::thread::current().id()));
    std::fs::write(&last, bytes).expect("written");
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(bytes))) {
        let kept = dir.join(format!("fuzz-{name}-{:016x}", xxhash_rust::xxh3::xxh3_64(bytes)));
        std::fs::rename(&last, &kept).expect("kept");
        eprintln!("{name}: the input is in {}", kept.display());
        std::panic::resume_unwind(panic);
    }
}

fn mutations(name: &str) {
    let seconds = std::env::var("TENURE_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(2);
    let seed = std::env::var("TENURE_FUZZ_SEED").ok().and_then(|s| s.parse().ok());
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64);
    let seed = seed.unwrap_or_else(now);
    let (_, body) = targets().find(|(known, _)| *known == name).expect("a target");
    let corpus = corpus(name);
    let mut dice = Dice(seed | 1);
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut runs = 0u64;
    while Instant::now() < until || runs == 0 {
        run(name, body, &mutated(&corpus, &mut dice));
        runs += 1;
    }
    eprintln!("fuzz: {name}: {runs} mutations in {seconds} s (seed {seed})");
}

#[test]
fn every_file_of_the_corpus_is_fine() {
    if let Ok(file) = std::env::var("TENURE_FUZZ_FILE") {
        let (_, body) = targets().find(|(name, _)| file.contains(name)).expect("a target in its path");
        return body(&std::fs::read(file).expect("the file that was named"));
    }
    for (name, body) in targets() {
        let corpus = corpus(name);
        assert!(corpus.len() >= 3, "hardly anything in the corpus of {name}");
        corpus.iter().for_each(|bytes| run(name, body, bytes));
    }
}

#[test]
fn mutations_of_table() {
    mutations("table");
}

#[test]
fn mutations_of_snapshot() {
    mutations("snapshot");
}

#[test]
fn mutations_of_jsonl() {
    mutations("jsonl");
}

#[test]
fn mutations_of_wfformat() {
    mutations("wfformat");
}

#[test]
fn mutations_of_arguments() {
    mutations("arguments");
}
