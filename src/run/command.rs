//! A node's command, watched until it ends.
//!
//! With a launcher it is that one's child, see `launch`. Without, it is a child of this process in a process group of its
//! own. The watcher learns that it has ended without reaping it: until the worker does that, the number of the process
//! group cannot be given to anybody else, so a signal to the group never hits a stranger.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};

use crossbeam::channel::{self, Receiver, Sender};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use serde::{Deserialize, Serialize};

use super::launch::Launched;
use super::{GRACE, Interrupt};
use crate::clock;

/// What becomes of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Told {
    /// Its first process has ended.
    Exited { code: Option<i32>, signal: Option<i32> },
    /// It could not be started.
    NotStarted { why: String },
    /// Its launcher kills it, because the lease was not renewed in time.
    OutOfTime,
    /// Nothing that it has started is left.
    Clear,
    /// Its launcher is gone.
    Gone,
}

/// Tells a watcher which process to watch, and hears when it has ended.
pub(super) struct Watch {
    pids: Sender<Pid>,
    told: Receiver<Told>,
}

/// The thread that waits for processes, one after the other.
pub(super) struct Watched {
    pids: Receiver<Pid>,
    tell: Sender<Told>,
}

/// The two ends of a watcher. It lives as long as its worker.
pub(super) fn watcher() -> (Watch, Watched) {
    let (send_pid, pids) = channel::unbounded();
    let (tell, told) = channel::unbounded();
    (Watch { pids: send_pid, told }, Watched { pids, tell })
}

impl Watched {
    /// Watches until the worker has gone.
    pub(super) fn run(self) {
        for pid in &self.pids {
            let watched = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let ended = loop {
                match rustix::process::waitid(WaitId::Pid(pid), watched) {
                    Err(rustix::io::Errno::INTR) => {}
                    ended => break ended.ok().flatten(),
                }
            };
            // Any error but an interruption says that there is no such child, which is an end too.
            let told = ended.map_or(Told::Gone, |status| Told::Exited {
                code: status.exit_status(),
                signal: status.terminating_signal(),
            });
            if self.tell.send(told).is_err() {
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

impl Claimed<'_> {
    fn env(&self) -> io::Result<Vec<(String, OsString)>> {
        Ok(vec![
            ("TENURE_NODE".into(), self.node.into()),
            ("TENURE_GEN".into(), self.generation.to_string().into()),
            ("TENURE_HOLDER".into(), self.holder.into()),
            // Made absolute, because the command may change its directory.
            ("TENURE_DIR".into(), std::path::absolute(self.dir)?.into()),
        ])
    }
}

/// The program and arguments that run a shell command.
pub(super) fn shell(command: &str) -> Vec<OsString> {
    // The `--` keeps a command that begins with a dash from being read as an option of the shell.
    ["/bin/sh", "-c", "--", command].map(OsString::from).into()
}

/// A child of this process in a process group of its own.
pub(super) struct Direct<'w> {
    child: Child,
    group: Pid,
    watch: &'w Watch,
}

/// A command that runs, or has ended and is not settled yet.
pub(super) enum Running<'w> {
    Direct(Direct<'w>),
    Launched(Launched),
}

impl<'w> Running<'w> {
    /// Starts `command`, its input empty, its output where ours goes; through its launcher when there is one, which kills
    /// it at this moment of the lease clock unless that is put off.
    pub(super) fn start(
        command: Vec<OsString>,
        claimed: &Claimed<'_>,
        launched: Option<Launched>,
        until_ms: u64,
        output_to_stderr: bool,
        watch: &'w Watch,
    ) -> io::Result<Running<'w>> {
        let env = claimed.env()?;
        if let Some(launched) = launched {
            launched.begin(command, env, until_ms)?;
            return Ok(Running::Launched(launched));
        }
        let mut words = command.into_iter();
        let mut command = std::process::Command::new(words.next().unwrap_or_default());
        command.args(words).envs(env).stdin(Stdio::null()).process_group(0);
        if output_to_stderr {
            command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
        }
        let child = command.spawn()?;
        let group = Pid::from_child(&child);
        // The watcher lives as long as this worker.
        let _ = watch.pids.send(group);
        Ok(Running::Direct(Direct { child, group, watch }))
    }

    /// Hears what becomes of it.
    pub(super) fn told(&self) -> &Receiver<Told> {
        match self {
            Running::Direct(direct) => &direct.watch.told,
            Running::Launched(launched) => launched.told(),
        }
    }

    /// The lease was renewed: it may run until then.
    pub(super) fn put_off(&self, at_ms: u64) {
        if let Running::Launched(launched) = self {
            launched.put_off(at_ms);
        }
    }

    /// Passes an interrupt on to the process group.
    pub(super) fn interrupt(&self, interrupt: Interrupt) {
        match self {
            Running::Direct(direct) => direct.signal(interrupt.signal()),
            Running::Launched(launched) => launched.signal(interrupt),
        }
    }

    /// Kills it at once.
    pub(super) fn kill(&self) {
        match self {
            Running::Direct(direct) => direct.signal(Signal::KILL),
            Running::Launched(launched) => launched.kill(),
        }
    }

    /// Asks it to end, and gives it its grace. [`Running::end_all`] comes next.
    pub(super) fn terminate(&self) {
        let grace_ms = u64::try_from(GRACE.as_millis()).unwrap_or(u64::MAX);
        // The launcher would kill it when the lease, which is not renewed any more, is over.
        self.put_off(clock::lease_now_ms().saturating_add(grace_ms));
        self.interrupt(Interrupt::Term);
        let _ = self.told().recv_timeout(GRACE);
    }

    /// Kills all that it has left running, as far as that is known, and comes back when that is gone.
    pub(super) fn end_all(&mut self) {
        match self {
            Running::Direct(direct) => {
                direct.signal(Signal::KILL);
                let _ = direct.child.wait();
            }
            Running::Launched(launched) => launched.end_all(),
        }
    }

    /// Lets be what it has left running.
    pub(super) fn leave(self) {
        match self {
            Running::Direct(mut direct) => drop(direct.child.wait()),
            Running::Launched(launched) => launched.leave(),
        }
    }
}

impl Direct<'_> {
    fn signal(&self, signal: Signal) {
        // The group is there until the child is reaped; that everybody in it has ended is no reason to complain.
        let _ = rustix::process::kill_process_group(self.group, signal);
    }
}

/// How a command failed, in words; `None` when it did not.
pub(super) fn failure(code: Option<i32>, signal: Option<i32>) -> Option<String> {
    match (code, signal) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("exit {code}")),
        (None, Some(signal)) => Some(format!("killed by signal {signal}")),
        (None, None) => Some("ended in an unknown way".to_owned()),
    }
}
