//! What hands did, as lines in files.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::crew::now_ns;

/// Groups and their limits; they do not change.
pub const GROUPS: [(&str, u32); 2] = [("one", 1), ("three", 3)];

pub fn logs(dir: &Path) -> PathBuf {
    dir.join("deeds")
}

/// One hand's own file. Each line is one write, so it is there whole or not at all.
pub struct Log(File);

impl Log {
    pub fn open(dir: &Path, number: &str) -> Log {
        let path = logs(dir).join(number);
        Log(OpenOptions::new().create(true).append(true).open(path).expect("a file of its own"))
    }

    /// A node was claimed.
    pub fn claimed(&mut self, node: &str, generation: u64) {
        self.line(&format!("claimed {node} {generation}"));
    }

    /// A claim ended with success: it stood from `from`, when the claim had returned, to `to`, when its end was asked for.
    pub fn done(&mut self, node: &str, generation: u64, group: Option<&str>, from: u128, to: u128) {
        self.line(&format!("done {node} {generation} {} {from} {to}", group.unwrap_or("-")));
    }

    /// Something else, so many times.
    pub fn did(&mut self, what: &str, times: u64) {
        self.line(&format!("did {what} {times}"));
    }

    fn line(&mut self, line: &str) {
        self.0.write_all(format!("{line}\n").as_bytes()).expect("written");
    }
}

pub fn now() -> u128 {
    now_ns()
}

/// A line, read back.
pub enum Deed {
    Claimed { node: String, generation: u64 },
    Done { node: String, generation: u64, group: String, from: u128, to: u128 },
    Did { what: String, times: u64 },
}

pub fn read(line: &str) -> Deed {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |text: &str| text.parse().expect("a number");
    match words[..] {
        ["claimed", node, generation] => Deed::Claimed { node: node.into(), generation: number(generation) },
        ["done", node, generation, group, from, to] => Deed::Done {
            node: node.into(),
            generation: number(generation),
            group: group.into(),
            from: from.parse().expect("a time"),
            to: to.parse().expect("a time"),
        },
        ["did", what, times] => Deed::Did { what: what.into(), times: number(times) },
        _ => panic!("no deed: {line:?}"),
    }
}
