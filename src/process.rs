//! Who is alive: a process is named by pid *and* start time, so that a pid given out again is somebody else.

use std::fs;
use std::io::{ErrorKind, Read};
use std::sync::OnceLock;

use crate::word::{OwnerWord, ProcessWord};

/// This process, as an owner of buffers; `None` when `/proc` does not tell.
pub(crate) fn this_process() -> Option<OwnerWord> {
    #[cfg(tenure_crash)]
    if let Some((pid, start)) = crate::sync::probe::posed() {
        return Some(OwnerWord::new(pid, start));
    }
    let pid = std::process::id();
    match stat(pid) {
        Looked::Running(start) => Some(OwnerWord::new(pid, start)),
        Looked::Gone | Looked::Unknown => None,
    }
}

/// Whether the process that wrote this word is gone. A zombie is; one that cannot be looked at is taken to be alive,
/// since what it writes into must never be given to somebody else.
pub(crate) fn is_gone(owner: OwnerWord) -> bool {
    match stat(owner.pid()) {
        Looked::Running(start) => OwnerWord::new(owner.pid(), start) != owner,
        Looked::Gone => true,
        Looked::Unknown => false,
    }
}

/// A running process, as the one that a claim stands and falls with; `None` when there is none with this pid.
pub(crate) fn process(pid: u32) -> Option<OwnerWord> {
    match stat(pid) {
        Looked::Running(start) => Some(OwnerWord::new(pid, start)),
        Looked::Gone | Looked::Unknown => None,
    }
}

/// Whether there is a process with this pid that has not ended.
pub fn is_running(pid: u32) -> bool {
    process(pid).is_some()
}

/// Whether the process that a claim named is gone, or its pid belongs to another by now.
pub(crate) fn is_other_or_gone(process: ProcessWord) -> bool {
    match stat(process.pid()) {
        Looked::Running(start) => !process.started_at(start),
        Looked::Gone => true,
        Looked::Unknown => false,
    }
}

/// What `/proc` says of a pid.
enum Looked {
    /// It runs since this many clock ticks after boot.
    Running(u64),
    /// No such process, or one that only waits to be reaped.
    Gone,
    /// It could not be read.
    Unknown,
}

/// A small file of the kernel's, in one read: that is how the kernel writes them, and each further one costs a system call.
fn small_file(path: &str) -> std::io::Result<([u8; SMALL], usize)> {
    let mut text = [0; SMALL];
    let length = fs::File::open(path)?.read(&mut text)?;
    Ok((text, length))
}

/// More than any line of those files has.
const SMALL: usize = 1_024;

fn stat(pid: u32) -> Looked {
    match small_file(&format!("/proc/{pid}/stat")) {
        Ok((text, length)) => text.get(..length).and_then(parse_stat).unwrap_or(Looked::Unknown),
        // A process that ends while its file is read gives ESRCH.
        Err(e) if e.kind() == ErrorKind::NotFound || e.raw_os_error() == Some(3) => Looked::Gone,
        Err(_) => Looked::Unknown,
    }
}

/// Fields 3, 20 and 22 of `/proc/PID/stat`. The name in field 2 may hold anything, so counting begins behind its last `)`.
fn parse_stat(text: &[u8]) -> Option<Looked> {
    let behind_name = text.iter().rposition(|&b| b == b')')? + 1;
    let mut fields = std::str::from_utf8(text.get(behind_name..)?).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let threads: u32 = fields.nth(16)?.parse().ok()?;
    let start = fields.nth(1)?.parse().ok()?;
    // A process whose first thread has ended looks like a zombie while its other threads go on.
    let gone = matches!(state, "X" | "x") || (state == "Z" && threads <= 1);
    Some(if gone { Looked::Gone } else { Looked::Running(start) })
}
/// This boot's id, as two words; the kernel is asked once.
pub(crate) fn boot_id() -> Option<(u64, u64)> {
    static KNOWN: OnceLock<Option<(u64, u64)>> = OnceLock::new();
    *KNOWN.get_or_init(read_boot_id)
}

fn read_boot_id() -> Option<(u64, u64)> {
    let (text, length) = small_file("/proc/sys/kernel/random/boot_id").ok()?;
    let id = uuid::Uuid::try_parse_ascii(text.get(..length)?.trim_ascii()).ok()?;
    Some(id.as_u64_pair())
}

/// A number for the pid and time namespace of this process: pids and lease times mean nothing outside them.
pub(crate) fn namespaces() -> u64 {
    let inode = |name: &str| {
        fs::read_link(format!("/proc/self/ns/{name}"))
            .ok()
            .and_then(|link| link.to_str()?.trim_end_matches(']').rsplit('[').next()?.parse::<u64>().ok())
            .unwrap_or(0)
    };
    inode("pid") << 32 | inode("time")
}

#[cfg(all(test, not(tenure_loom)))]
mod tests {
    use super::*;

    #[test]
    fn this_process_runs_and_its_pid_with_another_start_time_is_gone() {
        let me = this_process().unwrap();
        assert!(!is_gone(me));
        assert!(is_gone(OwnerWord::new(me.pid(), me.start() + 1)));
    }

    #[test]
    fn a_zombie_is_gone() {
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let Looked::Running(start) = stat(child.id()) else { panic!("it reads until its input is closed") };
        let word = OwnerWord::new(child.id(), start);
        drop(child.stdin.take());
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !is_gone(word) {
            assert!(std::time::Instant::now() < deadline, "the child ended and still counts as running");
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }

    #[test]
    fn a_name_full_of_parentheses_and_spaces_is_not_counted() {
        let text = b"7 (a) R 1) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 1 18 4711 0";
        assert!(matches!(parse_stat(text), Some(Looked::Running(4711))));
    }
}
