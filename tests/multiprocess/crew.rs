//! Starting workers, letting them go at one moment, and hearing what they have to say.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use tenure::{CreateOptions, Table};

const ROLE: &str = "TENURE_TEST_ROLE";
const DIR: &str = "TENURE_TEST_TABLE";
const WORDS: &str = "TENURE_TEST_WORDS";
/// What marks a line of ours among those of the test runner.
const MARK: &str = "@tenure ";

/// What a worker was told.
pub struct Orders {
    pub dir: PathBuf,
    words: Vec<String>,
}

/// The role this process was started for, if it is a worker.
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

pub fn orders() -> Orders {
    let words = std::env::var(WORDS).unwrap_or_default();
    Orders {
        dir: std::env::var_os(DIR).expect("a worker is told where the table is").into(),
        words: words.split('\n').map(str::to_owned).collect(),
    }
}

impl Orders {
    pub fn table(&self) -> Table {
        Table::open(self.dir.as_path()).expect("the parent made the table")
    }
    pub fn word(&self, i: usize) -> &str {
        &self.words[i]
    }
    pub fn number(&self, i: usize) -> usize {
        self.words[i].parse().expect("a number")
    }
    /// Says that everything is set up, and waits until the parent lets the whole crew go.
    pub fn wait_for_start(&self) {
        say("ready");
        std::io::stdin().read_to_end(&mut Vec::new()).expect("the parent closes the pipe");
    }
}

/// Tells the parent something, in a line of its own.
pub fn say(words: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    write!(out, "\n{MARK}{words}\n").and_then(|()| out.flush()).expect("the parent listens");
}

/// One worker process; it does not outlive this handle.
pub struct Hand {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Hand {
    /// The next thing the worker says; `None` when it has ended.
    pub fn hear(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap_or(0) == 0 {
                return None;
            }
            if let Some(words) = line.trim_end().strip_prefix(MARK) {
                return Some(words.to_owned());
            }
        }
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("SIGKILL to a child");
        self.child.wait().expect("the child's end");
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("a signal to a child");
    }

    /// Everything it still says, after which it must have ended well.
    pub fn finish(mut self) -> Vec<String> {
        let said = std::iter::from_fn(|| self.hear()).collect();
        let status = self.child.wait().expect("the child's end");
        assert!(status.success(), "a worker failed: {status}");
        said
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("the child's state").is_none()
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A number of workers that start at the same moment: all read from one pipe, and its end comes to all at once.
pub struct Crew {
    pub hands: Vec<Hand>,
    start: Option<PipeWriter>,
    wait: PipeReader,
}

impl Crew {
    pub fn new() -> Crew {
        let (wait, start) = std::io::pipe().expect("a pipe");
        Crew { hands: Vec::new(), start: Some(start), wait }
    }

    pub fn add(&mut self, role: &str, dir: &Path, words: &[&dyn std::fmt::Display]) -> &mut Hand {
        let words: Vec<String> = words.iter().map(|w| w.to_string()).collect();
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "worker_entry", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .env(DIR, dir)
            .env(WORDS, words.join("\n"))
            .env("RUST_BACKTRACE", "0")
            .stdin(self.wait.try_clone().expect("the pipe"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts");
        let lines = BufReader::new(child.stdout.take().expect("its output"));
        self.hands.push(Hand { child, lines });
        self.hands.last_mut().expect("just added")
    }

    /// Waits until every worker is set up.
    fn gather(&mut self) {
        for hand in &mut self.hands {
            assert_eq!(hand.hear().as_deref(), Some("ready"), "a worker ended before the start");
        }
    }

    /// Lets all of them go.
    pub fn start(&mut self) {
        self.start_after(|| ());
    }

    /// Waits until every worker is set up, then for something else, then lets all of them go.
    pub fn start_after(&mut self, something: impl FnOnce()) {
        if let Some(start) = self.start.take() {
            self.gather();
            something();
            drop(start);
        }
    }

    /// What each of them said, after all have ended well.
    pub fn finish(mut self) -> Vec<Vec<String>> {
        self.start();
        std::mem::take(&mut self.hands).into_iter().map(Hand::finish).collect()
    }
}

/// A directory in memory where there is one.
pub fn scratch() -> tempfile::TempDir {
    let shm = Path::new("/dev/shm");
    let builder = tempfile::Builder::new();
    if shm.is_dir() { builder.tempdir_in(shm) } else { builder.tempdir() }.expect("a scratch directory")
}

/// A new table in a new directory.
pub fn fresh_table() -> (tempfile::TempDir, Table) {
    let dir = scratch();
    let (table, made) = Table::open_or_create(dir.path(), &CreateOptions::default()).expect("a fresh directory");
    assert!(made, "the directory is new");
    (dir, table)
}

/// How much of a long test to run: `TENURE_TEST_DEPTH=10` is ten times the usual.
pub fn depth(usual: usize) -> usize {
    let times = std::env::var("TENURE_TEST_DEPTH").ok().and_then(|d| d.parse::<usize>().ok()).unwrap_or(1);
    usual * times
}

/// Asks until it is so, for at most ten seconds.
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < Duration::from_secs(10), "ten seconds passed and not yet: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Nanoseconds on the clock that all processes share.
pub fn now_ns() -> u128 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u128 * 1_000_000_000 + t.tv_nsec as u128
}

/// Small random numbers, the same for the same seed (xorshift).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n.max(1)
    }
}
