//! The runner's side of a launcher.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crossbeam::channel::{self, Receiver, RecvTimeoutError, Sender};
use rustix::process::Pid;

use super::{Interrupt, Launcher, Tell, Told, tree};

/// How long the launcher may take to hear. One that is stopped hears nothing.
const PATIENCE: Duration = Duration::from_secs(2);

/// A launcher, for one command.
#[derive(Debug)]
pub(crate) struct Launched {
    child: Child,
    socket: Arc<UnixStream>,
    told: Receiver<Told>,
    /// Nothing that it has started is to be killed any more.
    is_clear: bool,
}

impl Launched {
    pub(crate) fn start(launcher: &Launcher, output_to_stderr: bool) -> io::Result<Launched> {
        // Both ends are closed on exec; only the launcher's comes through, as its standard input.
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_write_timeout(Some(PATIENCE))?;
        // One descriptor for each worker, not two: there may be a thousand of them.
        let socket = Arc::new(socket);
        let listening = Arc::clone(&socket);
        let mut command = launcher.command();
        command.stdin(OwnedFd::from(theirs));
        if output_to_stderr {
            command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
        }
        let child = command.spawn()?;
        // The command keeps the launcher's end open, and its death would not be noticed.
        drop(command);
        let (tell, told) = channel::unbounded();
        let launched = Launched { child, socket, told, is_clear: false };
        thread::Builder::new().name("launcher".into()).spawn(move || listen(&listening, &tell))?;
        Ok(launched)
    }

    /// The process that claims stand and fall with.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it is there to start a command.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Starts the command, which is killed at this moment of the lease clock unless that is put off.
    pub(crate) fn begin(&self, command: Vec<OsString>, env: Vec<(String, OsString)>, until_ms: u64) -> io::Result<()> {
        self.tell(&Tell::Start { command, env, until_ms })
    }

    /// The lease was renewed.
    pub(crate) fn put_off(&self, at_ms: u64) {
        // A launcher that does not hear it kills the command in time for the lease as it was.
        let _ = self.tell(&Tell::Until { at_ms });
    }

    /// Hears how the command ends.
    pub(crate) fn told(&self) -> &Receiver<Told> {
        &self.told
    }

    pub(crate) fn signal(&self, interrupt: Interrupt) {
        let _ = self.tell(&Tell::Signal(interrupt));
    }

    pub(crate) fn kill(&self) {
        let _ = self.tell(&Tell::Kill);
    }

    /// Kills all that the command has started, and comes back when nothing of it is there. The launcher stays, and with it
    /// the claim.
    pub(crate) fn end_all(&mut self) {
        if self.tell(&Tell::Kill).is_ok() && self.is_cleared() {
            self.is_clear = true;
        } else {
            self.end_by_force();
        }
    }

    /// Waits until the launcher says that nothing is left. False: it will not say it any more.
    fn is_cleared(&self) -> bool {
        loop {
            match self.told.recv_timeout(PATIENCE) {
                Ok(Told::Clear) => return true,
                Ok(Told::Gone) | Err(RecvTimeoutError::Disconnected) => return false,
                Ok(_) => {}
                // Something in it cannot be killed, or not yet; the launcher sees to it as long as it is at work.
                Err(RecvTimeoutError::Timeout) if tree::is_at_work(Pid::from_child(&self.child)) => {}
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }

    /// Kills the launcher, with which the kernel kills the command's first process, and everybody else in its session.
    fn end_by_force(&mut self) {
        let _ = self.child.kill();
        // Not reaped yet: the number of its session belongs to nobody else.
        tree::kill_session(Pid::from_child(&self.child));
        let _ = self.child.wait();
        self.is_clear = true;
    }

    /// What the command has left running stays: the launcher is killed before it can see that the socket is closed.
    pub(crate) fn leave(mut self) {
        self.is_clear = true;
    }

    fn tell(&self, tell: &Tell) -> io::Result<()> {
        let mut line = serde_json::to_vec(tell)?;
        line.push(b'\n');
        (&*self.socket).write_all(&line)
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        if !self.is_clear {
            self.end_all();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Passes on what the launcher says, until it is gone.
fn listen(socket: &UnixStream, tell: &Sender<Told>) {
    for line in BufReader::new(socket).lines() {
        let Some(told) = line.ok().and_then(|line| serde_json::from_str(&line).ok()) else { break };
        if tell.send(told).is_err() {
            return;
        }
    }
    let _ = tell.send(Told::Gone);
}
