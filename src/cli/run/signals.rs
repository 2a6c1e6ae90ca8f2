//! Ctrl-C and its kin, handed on as interrupts.

#[cfg(any(feature = "sqlite", feature = "postgres"))]
use std::sync::Arc;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crossbeam::channel::{self, Receiver};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals as Iterator};
use tenure::run::Interrupt;

use crate::cli::exit::{CliError, Exit};

/// The signals, until it is dropped.
pub(in crate::cli) struct Signals {
    interrupts: Receiver<Interrupt>,
    handle: Handle,
}

impl Signals {
    /// Listens. A signal that the program was started to ignore stays ignored: that is how `nohup`, and a shell that
    /// starts something in the background, ask for it.
    pub(in crate::cli) fn install() -> Result<Signals, CliError> {
        let mut signals = Iterator::new(wanted()).map_err(|error| {
            CliError::problem(Exit::Refused, "signals", format!("cannot listen for signals: {error}"))
        })?;
        let handle = signals.handle();
        let (tell, interrupts) = channel::unbounded();
        std::thread::Builder::new()
            .spawn(move || {
                for signal in signals.forever() {
                    let interrupt = match signal {
                        SIGHUP => Interrupt::Hangup,
                        SIGTERM => Interrupt::Term,
                        _ => Interrupt::Int,
                    };
                    if tell.send(interrupt).is_err() {
                        return;
                    }
                }
            })
            .map_err(|error| CliError::problem(Exit::Refused, "run", format!("cannot start a thread: {error}")))?;
        Ok(Signals { interrupts, handle })
    }

    pub(in crate::cli) fn interrupts(&self) -> &Receiver<Interrupt> {
        &self.interrupts
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.handle.close();
    }
}

/// Whether a program that listens now and then is idle: while it is, these signals end it as they do by themselves. Once they
/// have been listened to, the system no longer does that.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
#[derive(Default)]
pub(in crate::cli) struct Idle {
    is_idle: Arc<AtomicBool>,
    /// The signal that came last while it was busy.
    missed: Arc<AtomicUsize>,
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl Idle {
    /// Idle from now on.
    pub(in crate::cli) fn begin() -> std::io::Result<Idle> {
        let idle = Idle { is_idle: Arc::new(AtomicBool::new(true)), ..Idle::default() };
        for signal in wanted() {
            signal_hook::flag::register_conditional_default(signal, idle.is_idle.clone())?;
            signal_hook::flag::register_usize(signal, idle.missed.clone(), signal as usize)?;
        }
        Ok(idle)
    }

    /// Busy with something that listens itself.
    pub(in crate::cli) fn pause(&self) {
        self.missed.store(0, Ordering::SeqCst);
        self.is_idle.store(false, Ordering::SeqCst);
    }

    /// Idle again. A signal that came when nothing listened any more, or not yet, ends the program now; not one that was
    /// `heard`.
    pub(in crate::cli) fn resume(&self, heard: bool) {
        self.is_idle.store(true, Ordering::SeqCst);
        let missed = self.missed.swap(0, Ordering::SeqCst);
        if missed != 0 && !heard {
            // It only returns when there is no such signal.
            let _ = signal_hook::low_level::emulate_default_handler(missed as i32);
        }
    }
}

/// The signals that are listened to.
fn wanted() -> impl std::iter::Iterator<Item = i32> {
    let ignored = ignored();
    [SIGHUP, SIGINT, SIGTERM].into_iter().filter(move |signal| ignored & (1 << (signal - 1)) == 0)
}

/// The signals that this process ignores, a bit each. When the system does not say, none.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}
