//! A scratch directory with a table, a graph file and a log that the commands write to.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use tenure::{Filter, NodeId, NodeView, Table};

/// Longer than anything here takes on a busy machine; what takes longer hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

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
    /// With these lines as `graph.jsonl`, in which `$LOG` stands for the path of the log.
    pub fn new(lines: &[&str]) -> Sandbox {
        let sandbox = Sandbox { root: tempfile::tempdir().expect("a scratch directory") };
        let text = lines.join("\n").replace("$LOG", sandbox.log_path().to_str().expect("a plain path"));
        sandbox.write("graph.jsonl", text);
        sandbox
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file is written");
        path
    }

    fn log_path(&self) -> PathBuf {
        self.path("log")
    }

    /// The lines that commands have written so far.
    pub fn log(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.log_path()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The program, in the scratch directory, on its table.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command.args(args).current_dir(self.root.path()).stdin(Stdio::null());
        for key in ["TENURE_HOLDER", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"] {
            command.env_remove(key);
        }
        command.env("TENURE_DIR", self.path("table"));
        command
    }

    /// Runs the program to its end.
    pub fn tenure(&self, args: &[&str]) -> Ran {
        finish(self.start(args))
    }

    /// Runs `run graph.jsonl` with more arguments to its end.
    pub fn run(&self, args: &[&str]) -> Ran {
        finish(self.start_run(args))
    }

    pub fn start(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
    }

    pub fn start_run(&self, args: &[&str]) -> Child {
        self.start(&[&["run", "graph.jsonl"], args].concat())
    }

    /// The summary that `run --json` prints, and its exit code.
    pub fn run_json(&self, args: &[&str]) -> (Value, Option<i32>) {
        let ran = self.run(&[&["--json"], args].concat());
        let summary = serde_json::from_str(ran.out.trim_end()).unwrap_or_else(|e| panic!("{e}: {ran:?}"));
        (summary, ran.code)
    }

    pub fn table(&self) -> Table {
        Table::open(self.path("table")).expect("the table opens")
    }

    pub fn node(&self, name: &str) -> NodeView {
        self.table().get(NodeId::of_name(name)).expect("the node is there")
    }

    /// The status of each node, as words.
    pub fn statuses(&self) -> Vec<(String, &'static str)> {
        let nodes = self.table().list(Filter { terminal: true, archived: true }).expect("a list");
        nodes.iter().map(|node| (node.label(), node.status.name())).collect()
    }

    /// Waits until a command has written this line.
    #[track_caller]
    pub fn await_log(&self, line: &str) {
        await_that(&format!("{line:?} in the log"), || self.log().iter().any(|found| found == line));
    }
}

/// Waits for the end of the program, taking its output meanwhile.
#[track_caller]
pub fn finish(child: Child) -> Ran {
    let pid = child.id();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(child.wait_with_output()));
    let Ok(output) = told.recv_timeout(PATIENCE) else {
        signal(pid, "KILL");
        panic!("it does not end: {:?}", told.recv());
    };
    let Output { status, stdout, stderr } = output.expect("its output");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8 output");
    Ran { code: status.code(), out: text(stdout), err: text(stderr) }
}

#[track_caller]
pub fn await_that(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal to a process.
pub fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().expect("kill runs");
    assert!(status.success());
}

/// Whether a process runs. One that has ended and waits to be reaped does not.
pub fn runs(pid: &str) -> bool {
    let Ok(stat) = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")) else { return false };
    let (_, behind_the_name) = stat.rsplit_once(") ").expect("a stat line");
    !behind_the_name.starts_with('Z')
}
