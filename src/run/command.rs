//! A node's command: a shell in a process group of its own, watched until it ends.
//!
//! The watcher learns that the shell has ended without reaping it. Until the worker reaps it, the number of the
//! process group cannot be given to anybody else, so a signal to the group never hits a stranger.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};

use crossbeam::channel::{self, Receiver, Sender};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::{GRACE, Interrupt};

/// Tells a watcher which process to watch, and hears when it has ended.
pub(super) struct Watch {
    pids: Sender<Pid>,
    ends: Receiver<()>,
}

/// The thread that waits for processes, one after the other.
pub(super) struct Watched {
    pids: Receiver<Pid>,
    ends: Sender<()>,
}

/// The two ends of a watcher. It lives as long as its worker.
pub(super) fn watcher() -> (Watch, Watched) {
    let (send_pid, pids) = channel::unbounded();
    let (send_end, ends) = channel::unbounded();
    (Watch { pids: send_pid, ends }, Watched { pids, ends: send_end })
}

impl Watched {
    /// Watches until the worker has gone.
    pub(super) fn run(self) {
        for pid in &self.pids {
            let watched = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            // Any error but an interruption says that there is no such child, which is an end too.
            while let Err(rustix::io::Errno::INTR) = rustix::process::waitid(WaitId::Pid(pid), watched) {}
            if self.ends.send(()).is_err() {
                return;
            }
        }
    }
}

/// What the command is told about its claim.
pub(super) struct Claimed<'a> {
    pub(super) node: &'a str,
    pub(super) generation: u64,
    pub(super) holder: &'a str,
    pub(super) dir: &'a Path,
}

/// A command that runs.
pub(super) struct Running<'w> {
    child: Child,
    group: Pid,
    watch: &'w Watch,
}

impl<'w> Running<'w> {
    /// Starts `command`, its input empty, its output where ours goes.
    pub(super) fn start(
        command: &str,
        claimed: &Claimed<'_>,
        output_to_stderr: bool,
        watch: &'w Watch,
    ) -> io::Result<Running<'w>> {
        let mut shell = std::process::Command::new("/bin/sh");
        // The `--` keeps a command that begins with a dash from being read as an option of the shell.
        shell.args(["-c", "--", command]);
        shell.env("TENURE_NODE", claimed.node);
        shell.env("TENURE_GEN", claimed.generation.to_string());
        shell.env("TENURE_HOLDER", claimed.holder);
        // Made absolute, because the command may change its directory.
        shell.env("TENURE_DIR", std::path::absolute(claimed.dir)?);
        shell.stdin(Stdio::null()).process_group(0);
        if output_to_stderr {
            shell.stdout(io::stderr().as_fd().try_clone_to_owned()?);
        }
        let child = shell.spawn()?;
        let group = Pid::from_child(&child);
        // The watcher lives as long as this worker.
        let _ = watch.pids.send(group);
        Ok(Running { child, group, watch })
    }

    /// Hears when the command has ended.
    pub(super) fn ended(&self) -> &Receiver<()> {
        &self.watch.ends
    }

    /// Passes an interrupt on to the group.
    pub(super) fn interrupt(&self, interrupt: Interrupt) {
        self.signal(match interrupt {
            Interrupt::Hangup => Signal::HUP,
            Interrupt::Int => Signal::INT,
            Interrupt::Term => Signal::TERM,
        });
    }

    /// Kills the group at once.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Ends the group: SIGTERM, then SIGKILL to whatever is left when the shell has ended or the grace is over.
    pub(super) fn terminate(self) {
        self.signal(Signal::TERM);
        if self.ended().recv_timeout(GRACE).is_err() {
            self.kill();
            let _ = self.ended().recv();
        }
        self.kill();
        let _ = self.reap();
    }

    /// How it ended; call it after [`Running::ended`] was heard.
    pub(super) fn reap(mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    fn signal(&self, signal: Signal) {
        // The group is there until the shell is reaped; that everybody in it has ended is no reason to complain.
        let _ = rustix::process::kill_process_group(self.group, signal);
    }
}

/// How a command failed, in words; `None` when it did not.
pub(super) fn failure(status: &ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("exit {code}")),
        (None, Some(signal)) => Some(format!("killed by signal {signal}")),
        (None, None) => Some("ended in an unknown way".to_owned()),
    }
}
