//! The launcher: a process between a worker and its command, so that the command never outlives the worker's claim.
//!
//! A process that is killed takes nobody with it, so a command of a killed runner would go on while somebody else begins
//! the node anew. Therefore the command is started by a *launcher*, a process of its own, and the claim names the launcher
//! as the process that it stands and falls with:
//!
//! | what happens | what follows |
//! |---|---|
//! | the runner is killed | its end of the socket closes; the launcher kills all that the command has started, waits until the last of it is gone, and ends: only then is the node free |
//! | the runner is stopped | the launcher was told how long the lease runs, and kills the command before that |
//! | the launcher is killed | the kernel kills the command's first process; the runner kills the rest of the session |
//!
//! The launcher is the *subreaper* of what it starts: whoever loses its parent becomes its child, however it has changed
//! its group or session. So when the launcher has no child left, nothing of the command is left. It lives for one command
//! and is there before the claim, which has to name it.
//!
//! The two speak through a socket in lines of JSON. The runner's end is closed on exec, so nobody else holds it; the
//! launcher's is its standard input, which the command does not inherit.

mod client;
mod guard;
mod tree;

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use super::Interrupt;
use super::command::Told;

pub(super) use client::Launched;

/// The argument that tells the launcher to become the command.
const BECOME: &str = "become";

/// How to start a launcher: a program that calls [`launch`] with the arguments after these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// The program.
    pub program: PathBuf,
    /// Its first arguments.
    pub args: Vec<OsString>,
}

impl Launcher {
    /// This program, started with these arguments; also when its file has been replaced since.
    pub fn this_program<S: Into<OsString>>(args: impl IntoIterator<Item = S>) -> Launcher {
        Launcher { program: "/proc/self/exe".into(), args: args.into_iter().map(Into::into).collect() }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg0("tenure").args(&self.args);
        command
    }
}

/// What a runner tells its launcher.
#[derive(Debug, Serialize, Deserialize)]
enum Tell {
    /// Start the command. It must have ended by this moment of the lease clock, unless it is put off.
    Start { command: Vec<OsString>, env: Vec<(String, OsString)>, until_ms: u64 },
    /// The lease was renewed: the command may run until then.
    Until { at_ms: u64 },
    /// Pass this on to the command's process group.
    Signal(Interrupt),
    /// End all that the command has left running.
    Kill,
}

/// Does the work of a launcher; `args` are those behind [`Launcher::args`].
///
/// It returns the exit code of the process when the work is over, and is to be called before the program has started a thread.
pub fn launch(launcher: &Launcher, args: impl IntoIterator<Item = OsString>) -> u8 {
    let mut args = args.into_iter();
    match args.next() {
        None => guard::run(launcher),
        Some(first) if first == BECOME => become_command(args.next().as_deref(), args),
        Some(_) => guard::not_by_hand(),
    }
}

/// Becomes the command, which dies with the launcher.
fn become_command(parent: Option<&OsStr>, mut args: impl Iterator<Item = OsString>) -> u8 {
    let parent = parent.and_then(OsStr::to_str).and_then(|parent| Pid::from_raw(parent.parse().ok()?));
    let (Some(parent), Some(program)) = (parent, args.next()) else { return guard::not_by_hand() };
    // In this order: a launcher that died before the first line is noticed by the second.
    if set_parent_process_death_signal(Some(Signal::KILL)).is_err() || getppid() != Some(parent) {
        return 126;
    }
    let error = Command::new(&program).args(args).exec();
    guard::complain(&format!("cannot start {program:?}: {error}"));
    // As a shell says it.
    if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }
}
