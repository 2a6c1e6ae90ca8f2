//! Runs a command under its admission: hands over input and credential, renews the credential, passes on what is appended
//! and the wish to stop, and records how it ended.

mod child;
mod keeper;
mod outcome;

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crossbeam::channel::select;
use tenure::admission::home::STATE_DIR_VAR;
use tenure::admission::runs::RunFiles;
use tenure::admission::{Answer, Closing, Credential, Kind, LedgerError, MachineId, Record, Refusal};
use tenure::run::Interrupt;

use super::desk::Desk;
use super::refusal::refused;
use crate::cli::exit::{CliError, Exit};
use crate::cli::run::signals::Signals;
use child::Running;
use keeper::Keeper;

/// How often the ledger is asked about stops and more input.
const TICK: Duration = Duration::from_millis(500);

/// How often a start is tried when somebody else makes credentials for the same admission at the same time.
const START_TRIES: u32 = 5;

/// What is run, and how.
pub struct Job<'a> {
    pub command: &'a [String],
    pub input: &'a [u8],
    /// Between the signal to end and the kill.
    pub grace: Duration,
}

/// What became of a command.
pub struct Done {
    /// The end of the program, if nothing else is to be done.
    pub exit: Exit,
    /// Whether somebody at this machine interrupted it.
    pub interrupted: bool,
}

/// Runs the command under the admission of the answer, and ends as it does.
pub fn execute(desk: &Desk<'_>, machine: MachineId, answer: Answer, job: &Job<'_>) -> Result<Done, CliError> {
    let created = answer.created;
    let Some(credential) = answer.credential else {
        return Err(refused(Refusal::NotDestination { machine, destination: Some(answer.record.destination.machine) }));
    };
    let signals = Signals::install()?;
    let files = RunFiles::new(&desk.home, &answer.record.admission);
    let mut keeper = Keeper::new(desk, machine, answer.record, credential, files);
    let program = match ready(keeper.record(), job) {
        Ok(program) => program,
        Err((code, reason)) => return Err(keeper.never_started(code, "cannot_run", &reason)),
    };
    if let Err(refusal) = mark_started(&mut keeper) {
        let at_an_end = match &refusal {
            Refusal::Denied { .. } | Refusal::Stopping { .. } => created,
            // The check before the start ends it itself, but for a credential that has run out by then.
            Refusal::PlacementChanged { record, .. } => record.as_ref().is_some_and(|record| record.is_open()),
            _ => false,
        };
        if at_an_end {
            keeper.close_unstarted(refusal.code());
        }
        return Err(refused(refusal));
    }
    let spawned = prepare(&keeper, &program, job).and_then(|command| {
        let shown = program.display();
        Running::start(command).map_err(|error| format!("{shown} cannot be run: {error}"))
    });
    let running = match spawned {
        Ok(running) => running,
        // It was recorded as started, and nothing ran: the next attempt must be allowed.
        Err(reason) => {
            let exit = keeper.ended(Kind::Interrupted, Some(126), Some(reason))?;
            return Ok(Done { exit, interrupted: false });
        }
    };
    let interrupted = watch(&mut keeper, &running, &signals, job.grace);
    let status = running.reap();
    let (kind, code, reason) = outcome::of(&status, keeper.stopped());
    let exit = keeper.ended(kind, code, reason)?;
    Ok(Done { exit, interrupted })
}

/// What can be checked before anything is recorded: the place, and that there is such a program.
fn ready(record: &Record, job: &Job<'_>) -> Result<PathBuf, (u8, String)> {
    let place = record.destination.place.as_path();
    if !place.is_dir() {
        return Err((126, format!("{} is not a directory on this machine", place.display())));
    }
    let Some(name) = job.command.first() else { return Err((127, "there is no command".to_owned())) };
    find(Path::new(name), place).ok_or_else(|| (127, format!("there is no program {name}")))
}

/// The program that a name stands for, as a shell in the place would find it.
fn find(name: &Path, place: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 {
        let path = place.join(name);
        return path.is_file().then_some(path);
    }
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|dir| place.join(dir).join(name)).find(|path| path.is_file())
}

/// Records the start. Somebody who sends the same request at the same time gets a newer credential, and only the newest
/// is good: the one that is told so makes a newer one again, until one of the two has started. When the answer is lost, the
/// same credential asks again: left alone, it might be recorded as started with nothing that runs.
fn mark_started(keeper: &mut Keeper<'_, '_>) -> Result<(), Refusal> {
    let mut pause = Duration::from_millis(200);
    for _ in 0..START_TRIES {
        match keeper.mark_started() {
            Err(Refusal::Credential { .. }) => keeper.attach()?,
            Err(Refusal::Unknown { .. } | Refusal::Unusable(LedgerError::Unreachable { .. })) => {
                std::thread::sleep(pause);
                pause *= 2;
            }
            other => return other,
        }
    }
    keeper.mark_started()
}

/// The command with its files and its environment. Only now, after the admission, is the input put where it can read it.
fn prepare(keeper: &Keeper<'_, '_>, program: &Path, job: &Job<'_>) -> Result<Command, String> {
    let (files, record) = (keeper.files(), keeper.record());
    let text = |error: &dyn std::fmt::Display| error.to_string();
    files.make().map_err(|e| text(&e))?;
    files.put_input(job.input).map_err(|e| text(&e))?;
    files.put_credential(keeper.token()).map_err(|e| text(&e))?;
    let mut command = Command::new(program);
    command.args(job.command.iter().skip(1)).current_dir(record.destination.place.as_path());
    command.stdin(Stdio::from(File::open(files.input()).map_err(|e| text(&e))?));
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for (name, value) in [
        ("TENURE_ADMISSION", record.admission.to_string()),
        ("TENURE_REQUEST", record.request.to_string()),
        ("TENURE_ATTEMPT", record.attempt.to_string()),
        ("TENURE_SURFACE", record.surface.to_string()),
        ("TENURE_GENERATION", record.destination.generation.to_string()),
        ("TENURE_PLACE", record.destination.place.to_string()),
    ] {
        command.env(name, value);
    }
    for (name, path) in [
        ("TENURE_INPUT", files.input()),
        ("TENURE_INPUTS", files.inputs()),
        ("TENURE_STOP", files.stop()),
        ("TENURE_CREDENTIAL", files.credential()),
        (STATE_DIR_VAR, keeper.home_dir().to_owned()),
    ] {
        command.env(name, absolute(&path));
    }
    if keeper.json() {
        // Standard output is for the answer then.
        let stderr = std::io::stderr().as_fd().try_clone_to_owned().map_err(|e| text(&e))?;
        command.stdout(stderr);
    }
    Ok(command)
}

/// Watches until the command has ended. True: somebody at this machine interrupted it.
fn watch(keeper: &mut Keeper<'_, '_>, running: &Running, signals: &Signals, grace: Duration) -> bool {
    let mut interrupted = false;
    let mut kill_at: Option<Instant> = None;
    loop {
        let tick = kill_at.map_or(TICK, |at| at.saturating_duration_since(Instant::now()).min(TICK));
        select! {
            recv(running.ended()) -> _ => return interrupted,
            recv(signals.interrupts()) -> interrupt => match (interrupt, kill_at) {
                (Ok(interrupt), None) => {
                    keeper.stop(&format!("{} on its machine", name_of(interrupt)));
                    running.signal(signal_of(interrupt));
                    interrupted = true;
                    kill_at = Some(Instant::now() + grace);
                }
                (Ok(_), Some(_)) => running.signal(rustix::process::Signal::KILL),
                // Without that thread there are no more signals; nothing else changes.
                (Err(_), _) => std::thread::sleep(tick),
            },
            default(tick) => {}
        }
        if kill_at.is_some_and(|at| Instant::now() >= at) {
            running.signal(rustix::process::Signal::KILL);
            kill_at = Some(Instant::now() + TICK);
        }
        if kill_at.is_none() && keeper.look() {
            running.signal(rustix::process::Signal::TERM);
            kill_at = Some(Instant::now() + grace);
        }
    }
}

const fn name_of(interrupt: Interrupt) -> &'static str {
    match interrupt {
        Interrupt::Hangup => "hung up",
        Interrupt::Int => "interrupted",
        Interrupt::Term => "asked to end",
    }
}

const fn signal_of(interrupt: Interrupt) -> rustix::process::Signal {
    match interrupt {
        Interrupt::Hangup => rustix::process::Signal::HUP,
        Interrupt::Int => rustix::process::Signal::INT,
        Interrupt::Term => rustix::process::Signal::TERM,
    }
}

/// A closing as the ledger takes it.
fn closing(kind: Kind, exit_code: Option<i32>, reason: Option<String>) -> Closing {
    Closing { kind, exit_code, reason }
}

/// How long a credential is good from now on.
fn life(desk: &Desk<'_>, credential: &Credential) -> Duration {
    // When the ledger cannot be asked, its clock is taken to be ours: renewing too early does no harm.
    let now_ms = desk.ledger.now_ms().unwrap_or_else(|_| super::desk::wall_ms());
    Duration::from_millis(credential.deadline_ms.saturating_sub(now_ms))
}
