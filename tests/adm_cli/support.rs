//! A home of its own for each test, and ways to run the program in it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// A directory with a state directory and a place in it; the surface `docs` is at the place.
pub struct World {
    root: TempDir,
    ledger: Option<String>,
}

/// What a run of the program left behind.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl World {
    /// Nothing in it yet.
    pub fn empty() -> World {
        let root = tempfile::tempdir().expect("a scratch directory");
        std::fs::create_dir(root.path().join("place")).unwrap();
        World { root, ledger: None }
    }

    /// With `docs` added and placed.
    pub fn new() -> World {
        let world = World::empty();
        world.set_up();
        world
    }

    /// The same with the ledger on a server.
    pub fn on(ledger: String) -> World {
        let mut world = World::empty();
        world.ledger = Some(ledger);
        world.ok(["migrate"]);
        world.set_up();
        world
    }

    /// A second host of that server, which has no keys yet.
    pub fn on_without_keys(ledger: String) -> World {
        let mut world = World::empty();
        world.ledger = Some(ledger);
        std::fs::create_dir(world.state()).unwrap();
        world
    }

    fn set_up(&self) {
        self.ok(["surface", "add", "docs"]);
        self.ok(["place", "docs", "--path", self.place().to_str().unwrap()]);
    }

    pub fn root(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    pub fn state(&self) -> PathBuf {
        self.root().join("state")
    }

    pub fn place(&self) -> PathBuf {
        self.root().join("place")
    }

    /// The file of the ledger.
    pub fn ledger_file(&self) -> PathBuf {
        self.state().join(tenure::admission::LEDGER_FILE)
    }

    /// Writes a file into the root.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.root().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Puts a policy in place by renaming it there.
    pub fn policy(&self, text: &str) {
        let new = self.file("policy.new", text);
        std::fs::rename(new, self.state().join("policy.toml")).unwrap();
    }

    /// The program, in the middle of `adm`, with this world in its environment and nothing else.
    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        self.environment(&mut command);
        command.arg("adm").args(args);
        command
    }

    pub fn environment(&self, command: &mut Command) {
        for key in ["TENURE_DIR", "TENURE_LEDGER", "TENURE_MACHINE", "TENURE_CREDENTIAL", "XDG_RUNTIME_DIR"] {
            command.env_remove(key);
        }
        command.env("TENURE_STATE_DIR", self.state()).stdin(Stdio::null());
        if let Some(ledger) = &self.ledger {
            command.env("TENURE_LEDGER", ledger);
        }
    }

    /// Runs it to its end.
    #[track_caller]
    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        finish(&mut self.command(args))
    }

    /// Runs it; it must succeed.
    #[track_caller]
    pub fn ok<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.out.trim_end_matches('\n').to_owned()
    }

    /// Runs it with `--json`, which must succeed and print one object.
    #[track_caller]
    pub fn one<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Value {
        let mut all = self.all(args);
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    /// Runs it with `--json`, which must succeed, and answers with the objects.
    #[track_caller]
    pub fn all<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Vec<Value> {
        let ran = finish(self.command([] as [&str; 0]).arg("--json").args(args));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line:?}"))).collect()
    }

    /// Starts it and lets it run.
    pub fn spawn<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Running {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(Some(command.spawn().expect("the program starts")))
    }

    /// What `show` says of a request.
    #[track_caller]
    pub fn shown(&self, request: &str) -> Value {
        self.one(["show", request])
    }

    /// Waits until the request is in this phase, and answers with its admission.
    #[track_caller]
    pub fn until(&self, request: &str, phase: &str) -> String {
        wait_for(&format!("{request} to be {phase}"), || {
            let ran = self.run(["show", request, "--json"]);
            let shown: Value = serde_json::from_str(ran.out.trim()).unwrap_or_default();
            (shown["phase"] == phase).then(|| shown["admission"].as_str().unwrap().to_owned())
        })
    }

    /// State and last answer of each file in the outbox, by name.
    #[track_caller]
    pub fn outbox(&self) -> Vec<(String, String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let entries = self.all(["outbox", "list", "--all"]);
        let mut files: Vec<_> =
            entries.iter().map(|e| (text(&e["name"]), text(&e["state"]), text(&e["last"]["code"]))).collect();
        files.sort();
        files
    }
}

impl Ran {
    /// The exit code, a complaint on standard error with these words, and nothing on standard output.
    #[track_caller]
    pub fn refused(&self, code: i32, words: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.err.contains("tenure: "), "{self:?}");
        assert!(self.err.contains(words), "no {words:?} in {self:?}");
        assert!(!self.err.contains("panicked"), "{self:?}");
        assert_eq!(self.out, "", "{self:?}");
    }

    /// The exit code and the `error` of the object on standard error, which is the answer.
    #[track_caller]
    pub fn refused_json(&self, code: i32, error: &str) -> Value {
        assert_eq!(self.code, Some(code), "{self:?}");
        let last = self.err.lines().last().unwrap_or_default();
        let object: Value = serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {self:?}"));
        assert_eq!(object["error"], error, "{self:?}");
        assert!(object["message"].as_str().is_some_and(|message| !message.is_empty()), "{self:?}");
        object
    }
}

/// A program that runs; killed when it is dropped.
pub struct Running(Option<Child>);

impl Running {
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(self.0.as_ref().expect("it runs"));
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits for its end.
    #[track_caller]
    pub fn end(mut self) -> Ran {
        ran(self.0.take().expect("it runs").wait_with_output().expect("its output"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub fn finish(command: &mut Command) -> Ran {
    ran(command.output().expect("the program starts"))
}

fn ran(Output { status, stdout, stderr }: Output) -> Ran {
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8 output");
    Ran { code: status.code(), out: text(stdout), err: text(stderr) }
}

/// Looks again and again until there is an answer; not for ever.
#[track_caller]
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until there is such a file.
#[track_caller]
pub fn wait_for_file(path: &Path) -> String {
    wait_for(&path.display().to_string(), || std::fs::read_to_string(path).ok().filter(|text| text.ends_with('\n')))
}

/// Runs a command with its standard output going there.
pub fn finish_into(command: &mut Command, out: std::fs::File) -> Ran {
    let child = command.stdout(out).stderr(Stdio::piped()).spawn().expect("the program starts");
    ran(child.wait_with_output().expect("its output"))
}
