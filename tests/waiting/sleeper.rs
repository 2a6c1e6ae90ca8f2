//! Processes that wait for a node, and a look at whether they sleep.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Ran, Sandbox};

/// Less than the ten seconds after which every waiter looks by itself: what takes longer was not rung for.
pub const SOON: Duration = Duration::from_secs(6);

/// A `claim-next --wait` that runs; it does not outlive this handle.
pub struct Sleeper(Option<Child>);

impl Sleeper {
    /// Starts it and comes back when it is asleep.
    pub fn start(sandbox: &Sandbox, holder: &str, args: &[&str]) -> Sleeper {
        let sleeper = Sleeper::awake(sandbox, holder, args);
        sleeper.await_sleep();
        sleeper
    }

    pub fn awake(sandbox: &Sandbox, holder: &str, args: &[&str]) -> Sleeper {
        let mut command = sandbox.command();
        command.args(["claim-next", "--holder", holder]).args(args).arg("--wait");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Sleeper(Some(command.spawn().expect("the program starts")))
    }

    /// One that has the watch over leases and is stopped then: nobody looks at anything unless it is rung for.
    pub fn stopped_watcher(sandbox: &Sandbox) -> Sleeper {
        let watcher = Sleeper::start(sandbox, "watcher", &[]);
        watcher.signal(Signal::STOP);
        let stopped = Instant::now();
        while watcher.stat(0) != "T" {
            assert!(stopped.elapsed() < SOON, "it does not stop");
            std::thread::sleep(Duration::from_millis(1));
        }
        watcher
    }

    /// Asleep: in the kernel at five looks in a row, one millisecond apart, without having been run in between.
    pub fn await_sleep(&self) {
        let began = Instant::now();
        let mut quiet = 0;
        let mut switches = 0;
        while quiet < 5 {
            assert!(began.elapsed() < SOON, "it does not fall asleep");
            std::thread::sleep(Duration::from_millis(1));
            let now = self.switches();
            let in_futex = self.proc("syscall").is_none_or(|call| call.starts_with("202 "));
            quiet = if self.stat(0) == "S" && now == switches && in_futex { quiet + 1 } else { 0 };
            switches = now;
        }
    }

    fn child(&self) -> &Child {
        self.0.as_ref().expect("taken at the end only")
    }

    pub fn pid(&self) -> u32 {
        self.child().id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.child()), signal).expect("a signal to a child");
    }

    fn proc(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.pid())).ok()
    }

    /// A field of `/proc/PID/stat`, counted from the state.
    fn stat(&self, field: usize) -> String {
        let text = self.proc("stat").expect("it has not been reaped");
        let (_, behind_name) = text.rsplit_once(") ").expect("a stat line");
        behind_name.split(' ').nth(field).expect("a field").to_owned()
    }

    /// Processor time so far, in clock ticks.
    pub fn ticks(&self) -> u64 {
        (11..=12).map(|field| self.stat(field).parse::<u64>().expect("ticks")).sum()
    }

    /// How often it went to sleep by itself.
    pub fn switches(&self) -> u64 {
        let text = self.proc("status").expect("it has not been reaped");
        let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.map_or(0, |number| number.trim().parse().expect("a number"))
    }

    pub fn has_ended(&mut self) -> bool {
        self.0.as_mut().expect("taken at the end only").try_wait().expect("its state").is_some()
    }

    pub fn kill(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// What it left behind, if it ends soon.
    #[track_caller]
    pub fn finish(mut self, what: &str) -> Ran {
        let began = Instant::now();
        while !self.has_ended() {
            assert!(began.elapsed() < SOON, "{what} wakes nobody");
            std::thread::sleep(Duration::from_millis(1));
        }
        let output = self.0.take().expect("not taken yet").wait_with_output().expect("its output");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8 output");
        Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits until something holds; answers how long that took.
#[track_caller]
pub fn await_that(what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(20), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
    began.elapsed()
}
