//! The launcher itself.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam::channel::{self, Receiver, RecvTimeoutError, Sender};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group};

use super::{BECOME, Launcher, Tell, Told, tree};
use crate::clock;

/// The name of the process. Not that of the program: whoever kills every `tenure` by name means the runners, and their
/// launchers then end the commands.
const NAME: &std::ffi::CStr = c"launcher";

/// The longest wait between two looks for what is left of a command that was killed.
const LOOK: Duration = Duration::from_millis(50);

/// What a launcher hears.
enum News {
    Told(Tell),
    /// The runner is gone, or does not need this launcher any more.
    Closed,
    /// The command's first process has ended.
    Ended(Told),
    /// No process of the command is left.
    Empty,
}

/// Says that something is wrong, on standard error.
pub(super) fn complain(what: &str) {
    // Nobody reads it: nothing else is to be done about it.
    let _ = writeln!(io::stderr(), "tenure: {what}");
}

/// It was started by somebody who is no runner.
pub(super) fn not_by_hand() -> u8 {
    complain("this is how `run` and `work` start their commands; there is nothing to do for it by hand");
    2
}

/// The life of a launcher.
pub(super) fn run(launcher: &Launcher) -> u8 {
    let socket = rustix::fs::fstat(io::stdin().as_fd()).map(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode));
    if !matches!(socket, Ok(rustix::fs::FileType::Socket)) {
        return not_by_hand();
    }
    let _ = rustix::thread::set_name(NAME);
    // A session of its own, so that the runner finds what is left should the launcher be killed.
    let alone = rustix::process::setsid().and(rustix::process::set_child_subreaper(Some(rustix::process::getpid())));
    if let Err(error) = alone {
        complain(&format!("cannot look after a command: {error}"));
        return 1;
    }
    let (tell, news) = channel::unbounded();
    let (to_reap, started) = channel::bounded(1);
    let group = Arc::new(Mutex::new(None));
    let threads = {
        let (tell_of_end, group) = (tell.clone(), Arc::clone(&group));
        let reaper = thread::Builder::new().name("reaper".into());
        let reader = thread::Builder::new().name("reader".into());
        reaper.spawn(move || reap(&started, &group, &tell_of_end)).and_then(|_| reader.spawn(move || read(&tell)))
    };
    if let Err(error) = threads {
        complain(&format!("cannot start a thread: {error}"));
        return 1;
    }
    Guard { launcher, news, to_reap, group, is_empty: true, is_closed: false, until_ms: u64::MAX }.work();
    0
}

/// Reads what the runner says.
fn read(tell: &Sender<News>) {
    for line in BufReader::new(io::stdin()).lines() {
        // What cannot be read is from a runner that cannot be understood: it is as good as gone.
        let Some(told) = line.ok().and_then(|line| serde_json::from_str(&line).ok()) else { break };
        if tell.send(News::Told(told)).is_err() {
            return;
        }
    }
    let _ = tell.send(News::Closed);
}

struct Guard<'l> {
    launcher: &'l Launcher,
    news: Receiver<News>,
    /// Tells the reaper what was started.
    to_reap: Sender<Pid>,
    /// The command's process group, as long as its first process has not been reaped. Whoever reaps or kills has the lock,
    /// so no number is used that may belong to a stranger.
    group: Arc<Mutex<Option<Pid>>>,
    /// No process of the command is there.
    is_empty: bool,
    is_closed: bool,
    /// When the command must have ended, on the lease clock.
    until_ms: u64,
}

impl Guard<'_> {
    fn work(&mut self) {
        while !self.is_closed {
            let left = Duration::from_millis(self.until_ms.saturating_sub(clock::lease_now_ms()));
            let news = match self.until_ms {
                u64::MAX => self.news.recv().map_err(|_| RecvTimeoutError::Disconnected),
                _ => self.news.recv_timeout(left),
            };
            match news {
                Ok(News::Told(Tell::Start { command, env, until_ms })) => {
                    self.until_ms = until_ms;
                    // Told by a runner that was stopped after its renewal: somebody else may be at it.
                    if clock::lease_now_ms() >= until_ms {
                        self.until_ms = u64::MAX;
                        report(&Told::OutOfTime);
                    } else if let Err(error) = self.start(&command, &env) {
                        report(&Told::NotStarted { why: error.to_string() });
                    }
                }
                Ok(News::Told(Tell::Until { at_ms })) => self.until_ms = at_ms,
                Ok(News::Told(Tell::Signal(interrupt))) => self.signal(interrupt.signal()),
                Ok(News::Told(Tell::Kill)) => self.end_all(),
                Ok(other) => self.note(other),
                // The wait may end a little early.
                Err(RecvTimeoutError::Timeout) if clock::lease_now_ms() < self.until_ms => {}
                Err(RecvTimeoutError::Timeout) => self.run_out(),
                Err(RecvTimeoutError::Disconnected) => self.is_closed = true,
            }
        }
        self.end_all();
    }

    /// The lease is about to run out.
    fn run_out(&mut self) {
        self.until_ms = u64::MAX;
        if !self.is_empty {
            report(&Told::OutOfTime);
            self.end_all();
        }
    }

    fn note(&mut self, news: News) {
        match news {
            News::Ended(how) => report(&how),
            News::Empty => self.is_empty = true,
            News::Closed => self.is_closed = true,
            News::Told(_) => {}
        }
    }

    /// Starts the command in a process group of its own, its input empty.
    fn start(&mut self, command: &[std::ffi::OsString], env: &[(String, std::ffi::OsString)]) -> io::Result<()> {
        let mut become_it = self.launcher.command();
        become_it.arg(BECOME).arg(rustix::process::getpid().as_raw_pid().to_string()).args(command);
        become_it.envs(env.iter().map(|(key, value)| (key, value))).stdin(Stdio::null()).process_group(0);
        // Locked until the number is noted: the reaper must know it.
        let mut group = lock(&self.group);
        let pid = Pid::from_child(&become_it.spawn()?);
        *group = Some(pid);
        drop(group);
        self.is_empty = false;
        // The reaper lives until it has reaped it and all that came of it.
        let _ = self.to_reap.send(pid);
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = *lock(&self.group) {
            // That everybody in it has ended is no reason to complain.
            let _ = kill_process_group(group, signal);
        }
    }

    /// Kills what the command has left, until nothing is there; then says so.
    fn end_all(&mut self) {
        self.until_ms = u64::MAX;
        self.signal(Signal::KILL);
        let mut wait = Duration::from_millis(2);
        let mut look_at = Instant::now() + wait;
        while !self.is_empty {
            match self.news.recv_deadline(look_at) {
                Ok(News::Told(_)) => {}
                Ok(other) => self.note(other),
                Err(_) => {
                    let group = lock(&self.group);
                    // Those that have left the group are here when their parents are gone, one generation after the other.
                    tree::kill_children();
                    drop(group);
                    wait = LOOK.min(wait * 2);
                    look_at = Instant::now() + wait;
                }
            }
        }
        report(&Told::Clear);
    }
}

/// Reaps whoever ends, until nobody is left.
fn reap(started: &Receiver<Pid>, group: &Mutex<Option<Pid>>, tell: &Sender<News>) {
    let Ok(first) = started.recv() else { return };
    loop {
        match rustix::process::waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => break,
        }
        let mut group = lock(group);
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if pid == first {
                *group = None;
                let how = Told::Exited { code: status.exit_status(), signal: status.terminating_signal() };
                let _ = tell.send(News::Ended(how));
            }
        }
    }
    let _ = tell.send(News::Empty);
}

fn lock(group: &Mutex<Option<Pid>>) -> MutexGuard<'_, Option<Pid>> {
    group.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells the runner. One that is gone is noticed by the reader.
fn report(told: &Told) {
    let Ok(mut line) = serde_json::to_vec(told) else { return };
    line.push(b'\n');
    let mut rest = line.as_slice();
    while let Ok(written @ 1..) = rustix::io::write(io::stdin().as_fd(), rest) {
        rest = rest.get(written..).unwrap_or_default();
        if rest.is_empty() {
            return;
        }
    }
}
