//! The command of an admission: a process group of its own, watched until it ends.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};

use crossbeam::channel::{self, Receiver};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

/// A command that runs.
pub struct Running {
    child: Child,
    group: Pid,
    ended: Receiver<()>,
}

impl Running {
    /// Starts it.
    pub fn start(mut command: Command) -> io::Result<Running> {
        let child = command.process_group(0).spawn()?;
        let group = Pid::from_child(&child);
        let (tell, ended) = channel::bounded(1);
        std::thread::spawn(move || {
            // Not reaped here: until it is, its number cannot be given to anybody else, and a signal hits no stranger.
            let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Err(rustix::io::Errno::INTR) = rustix::process::waitid(WaitId::Pid(group), how) {}
            let _ = tell.send(());
        });
        Ok(Running { child, group, ended })
    }

    /// Hears when it has ended.
    pub fn ended(&self) -> &Receiver<()> {
        &self.ended
    }

    /// Sends a signal to everything that it started and that has stayed in its group.
    pub fn signal(&self, signal: Signal) {
        // That all of them have ended is no reason to complain.
        let _ = rustix::process::kill_process_group(self.group, signal);
    }

    /// How it ended. What is left of its group is killed: nothing of it may go on in the place.
    pub fn reap(mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        self.child.wait()
    }
}
