//! A table in a directory of its own, and a way to run the program on it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A scratch directory with the place for a table in it.
pub struct Sandbox {
    root: TempDir,
}

/// What a run of the program left behind.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Sandbox {
    /// Without a table.
    pub fn empty() -> Sandbox {
        Sandbox { root: tempfile::tempdir().expect("a scratch directory") }
    }

    /// With a table in `dir`.
    pub fn new() -> Sandbox {
        let sandbox = Sandbox::empty();
        sandbox.ok(["init"]);
        sandbox
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The table's directory.
    pub fn dir(&self) -> PathBuf {
        self.root().join("t")
    }

    /// The table's file: the one whose name begins with `table`.
    pub fn file(&self) -> PathBuf {
        table_file(&self.dir())
    }

    /// The program, with the table's directory in the environment and nothing else that could lead it elsewhere.
    pub fn command(&self) -> Command {
        let mut command = bare();
        command.env("TENURE_DIR", self.dir());
        command
    }

    /// Runs the program to its end.
    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        finish(self.command().args(args))
    }

    /// Runs the program, which must succeed, and answers with what it printed, without the last line end.
    pub fn ok<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.out.trim_end_matches('\n').to_owned()
    }

    /// Runs the program with `--json`, which must succeed, and answers with the objects that it printed.
    pub fn json<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Vec<Value> {
        let args: Vec<_> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        let out = self.ok(args.iter().map(|arg| arg.as_os_str()).chain([OsStr::new("--json")]));
        out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line:?}"))).collect()
    }

    /// As [`Sandbox::json`], for exactly one object.
    pub fn one<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Value {
        let mut all = self.json(args);
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    /// Claims a node and answers with the generation.
    pub fn claim(&self, node: &str, holder: &str) -> u64 {
        generation(&self.ok(["claim", node, "--holder", holder]))
    }

    /// What a reader sees of a node.
    pub fn status(&self, node: &str) -> String {
        self.one(["get", node])["status"].as_str().expect("a status").to_owned()
    }
}

impl Ran {
    /// Checks the exit code, and that the complaint stands on standard error and nothing on standard output.
    #[track_caller]
    pub fn refused(&self, code: i32, words: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.err.starts_with("tenure: "), "{self:?}");
        assert!(self.err.contains(words), "no {words:?} in {self:?}");
        assert!(!self.err.contains("panicked"), "{self:?}");
        assert_eq!(self.out, "", "{self:?}");
    }

    /// Checks exit code and `error` of the JSON object on standard error, and answers with the object.
    #[track_caller]
    pub fn refused_json(&self, code: i32, error: &str) -> Value {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.out, "", "{self:?}");
        let object: Value = serde_json::from_str(self.err.trim_end()).unwrap_or_else(|e| panic!("{e}: {self:?}"));
        assert_eq!(object["error"], error, "{self:?}");
        assert!(object["message"].as_str().is_some_and(|message| !message.is_empty()), "{self:?}");
        object
    }
}

/// The program with an environment that names no table.
pub fn bare() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    for key in ["TENURE_DIR", "TENURE_HOLDER", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"] {
        command.env_remove(key);
    }
    command.stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub fn finish(command: &mut Command) -> Ran {
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8 output");
    Ran { code: status.code(), out: text(stdout), err: text(stderr) }
}

/// The `N` of `gen=N` at the end of a line.
#[track_caller]
pub fn generation(line: &str) -> u64 {
    let (_, number) = line.rsplit_once("gen=").unwrap_or_else(|| panic!("no gen= in {line:?}"));
    number.parse().unwrap_or_else(|e| panic!("{e}: {line:?}"))
}

/// The file of the table in a directory.
#[track_caller]
pub fn table_file(dir: &Path) -> PathBuf {
    let names = std::fs::read_dir(dir).expect("the table's directory").map(|entry| entry.expect("an entry").path());
    let mut tables: Vec<PathBuf> = names
        .filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"table")))
        .collect();
    assert_eq!(tables.len(), 1, "{tables:?}");
    tables.remove(0)
}
