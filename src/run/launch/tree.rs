//! Which processes belong to whom, as `/proc` tells it.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// How long a session is looked after that does not end: what is in it cannot be killed then.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is to be known of a process.
struct Stat {
    has_ended: bool,
    is_stopped: bool,
    parent: i32,
    session: i32,
}

/// Kills the children of this process; those whose parent has ended count among them when it is a subreaper.
///
/// Only this process reaps its children, so as long as it does not, their numbers belong to nobody else.
pub(super) fn kill_children() {
    let me = rustix::process::getpid().as_raw_pid();
    for pid in all() {
        if stat(pid).is_some_and(|it| it.parent == me && !it.has_ended) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Kills everybody in the session of `leader` but the leader, until nobody runs there. The caller has not reaped the
/// leader, so the session's number belongs to nobody else.
pub(super) fn kill_session(leader: Pid) {
    let session = leader.as_raw_pid();
    let began = Instant::now();
    loop {
        let is_in_it =
            |pid: &Pid| *pid != leader && stat(*pid).is_some_and(|it| it.session == session && !it.has_ended);
        let left: Vec<Pid> = all().filter(is_in_it).collect();
        if left.is_empty() || began.elapsed() >= PATIENCE {
            return;
        }
        for pid in left {
            // Named by a descriptor before it is looked at again: a number that was given to a stranger is not hit.
            if let Ok(fd) = pidfd_open(pid, PidfdFlags::empty())
                && is_in_it(&pid)
            {
                let _ = pidfd_send_signal(fd, Signal::KILL);
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Whether a process is there, has not ended and is not stopped.
pub(super) fn is_at_work(pid: Pid) -> bool {
    stat(pid).is_some_and(|it| !it.has_ended && !it.is_stopped)
}

/// Every process there is.
fn all() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

/// `None`: it is gone.
fn stat(pid: Pid) -> Option<Stat> {
    let text = fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    // The name in the second field may hold anything, so counting begins behind its last `)`.
    let behind_name = text.iter().rposition(|&byte| byte == b')')? + 1;
    let mut fields = std::str::from_utf8(text.get(behind_name..)?).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let (has_ended, is_stopped) = (matches!(state, "Z" | "X" | "x"), matches!(state, "T" | "t"));
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    Some(Stat { has_ended, is_stopped, parent, session })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    use super::*;

    /// The test's own parent and session may be outside of its PID namespace and so be 0: a child's are not.
    #[test]
    fn a_child_is_found_with_its_parent_and_its_session() {
        let mut echo = Command::new("setsid").arg("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let child = Pid::from_child(&echo);
        echo.stdin.take().unwrap().write_all(b"begun").unwrap();
        let mut answer = [0; 5];
        echo.stdout.as_mut().unwrap().read_exact(&mut answer).unwrap();

        // Its input has ended, so it may have ended as well: it is not reaped yet, and keeps both numbers until then.
        let it = stat(child).unwrap();
        assert_eq!(it.parent, rustix::process::getpid().as_raw_pid());
        assert_eq!(it.session, child.as_raw_pid());
        assert!(all().any(|pid| pid == child));

        echo.wait().unwrap();
        assert!(stat(child).is_none());
    }
}
