//! A policy as a program: the facts go in as one line of JSON, the exit code is the answer.
//!
//! 0 is yes; 1 is no, with the first line of output as the reason. Anything else, and no answer within two seconds, is no
//! as well: nobody decided. The program runs in a process group of its own, which is killed when the time is up. What it
//! says on standard error is passed on, made harmless for a terminal.

use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crossbeam::channel;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use xxhash_rust::xxh3::xxh3_64;

use super::{allowed, denied, harmless, unavailable};
use crate::admission::facts::{Decision, Facts, Policy};

/// How long a program may take to answer.
pub const HOOK_PATIENCE: Duration = Duration::from_secs(2);

/// What is read of its output; the reason is the first line of it. The same for its standard error.
const OUTPUT_BYTES_MAX: u64 = 4096;

/// How long the end of its standard error is waited for after its own end: somebody else may hold it open.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// A program that decides.
#[derive(Clone, Debug)]
pub struct Hook {
    program: String,
    arguments: Vec<String>,
    patience: Duration,
}

impl Hook {
    /// The program and its arguments; `None` when there is no program.
    pub fn new(command: &[String]) -> Option<Hook> {
        let (program, arguments) = command.split_first().filter(|(program, _)| !program.is_empty())?;
        Some(Hook { program: program.clone(), arguments: arguments.to_vec(), patience: HOOK_PATIENCE })
    }

    /// As it is, with another patience.
    pub fn with_patience(self, patience: Duration) -> Hook {
        Hook { patience, ..self }
    }

    fn ask(&self, facts: &Facts) -> Result<(ExitStatus, String), String> {
        let line = serde_json::to_vec(facts).map_err(|e| format!("the facts cannot be written: {e}"))?;
        // A patience longer than the clock has room for has no end.
        let until = Instant::now().checked_add(self.patience);
        let spawned = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn();
        let mut child = spawned.map_err(|e| format!("{} cannot be run: {e}", self.program))?;
        let group = Pid::from_child(&child);
        tell(&mut child, line);
        let (output, complaints) = (hear(child.stdout.take()), hear(child.stderr.take()));
        let in_time = by(&watch(group), until).is_some();
        // Also after an end: what it left running must not outlive the question. The group's number is not given to
        // anybody else before the child is reaped below.
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
        let status = child.wait().map_err(|e| format!("{} cannot be waited for: {e}", self.program))?;
        pass_on(&complaints.recv_timeout(LAST_WORDS).unwrap_or_default());
        if !in_time {
            return Err(format!("{} gave no answer within {:?}", self.program, self.patience));
        }
        // Its output ends with it, unless somebody who left the group holds it open.
        let text = by(&output, until).unwrap_or_default();
        Ok((status, text))
    }
}

impl Policy for Hook {
    /// What can be seen of the program from outside; another one in its place is another policy.
    fn epoch(&self) -> u64 {
        let seen = std::fs::metadata(&self.program)
            .map(|meta| (meta.dev(), meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec()))
            .ok();
        xxh3_64(format!("{} {:?} {seen:?}", self.program, self.arguments).as_bytes())
    }

    fn evaluate(&self, facts: &Facts) -> Decision {
        let epoch = self.epoch();
        match self.ask(facts) {
            Err(why) => unavailable(epoch, why),
            Ok((status, text)) => match status.code() {
                Some(0) => allowed(epoch),
                Some(1) => denied(epoch, text),
                _ => unavailable(epoch, format!("{} ended with {status}", self.program)),
            },
        }
    }
}

/// What comes until then; `None`: nothing did.
fn by<T>(from: &channel::Receiver<T>, until: Option<Instant>) -> Option<T> {
    match until {
        Some(until) => from.recv_deadline(until).ok(),
        None => from.recv().ok(),
    }
}

/// Hands the line over, in a thread: a program that reads nothing holds up nobody but itself.
fn tell(child: &mut Child, mut line: Vec<u8>) {
    line.push(b'\n');
    if let Some(mut stdin) = child.stdin.take() {
        std::thread::spawn(move || {
            // A program that decides without reading is free to.
            let _ = stdin.write_all(&line);
        });
    }
}

/// Hears what is said, in a thread: a program that writes without end holds up nobody but itself.
fn hear(pipe: Option<impl Read + Send + 'static>) -> channel::Receiver<String> {
    let (tell, heard) = channel::bounded(1);
    if let Some(mut pipe) = pipe {
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            let _ = pipe.by_ref().take(OUTPUT_BYTES_MAX).read_to_end(&mut kept);
            let _ = tell.send(String::from_utf8_lossy(&kept).into_owned());
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        });
    }
    heard
}

/// Passes on what the program complains of, to where our own complaints go.
fn pass_on(complaints: &str) {
    let mut stderr = std::io::stderr().lock();
    for line in complaints.lines() {
        // Nobody who listens is no reason to decide otherwise.
        let _ = writeln!(stderr, "{}", harmless(line));
    }
}

/// Tells when the process has ended, without reaping it.
fn watch(pid: Pid) -> channel::Receiver<()> {
    let (tell, ended) = channel::bounded(1);
    std::thread::spawn(move || {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = rustix::process::waitid(WaitId::Pid(pid), how) {}
        let _ = tell.send(());
    });
    ended
}
