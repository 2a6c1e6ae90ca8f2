//! `pickup`: the destination comes for what waits for it. It chooses nothing: rows for other machines are not even seen.

use std::time::{Duration, Instant};

use serde::Serialize;
use tenure::admission::runs::RunFiles;
use tenure::admission::{Answer, By, Closing, Entrance, MachineId, Phase, Pickup, Record, Refusal, Waiting};

use super::desk::Desk;
use super::refusal::{is_undecided, refused};
use super::render::{self, View};
use super::run::{Done, Job, execute};
use super::start::GraceArg;
use super::submit::Answered;
use crate::cli::args;
use crate::cli::escape;
use crate::cli::exit::{CliError, Exit};
use crate::cli::out;
use crate::cli::report;
use crate::cli::run::signals::Idle;

/// How long one wait lasts before the machine shows itself to the ledger again.
const WAIT_AT_MOST: Duration = Duration::from_secs(60);

/// Takes what waits for this machine: first what is open, then one waiting start, as an admission
///
/// What has waited for more than half a day is expired. `--exec` runs what was taken; without it the credential is printed,
/// for a program that runs its own.
#[derive(Debug, clap::Args)]
pub struct PickupArgs {
    /// Only look: nothing is taken or expired
    #[arg(long, conflicts_with_all = ["wait", "exec"])]
    list: bool,

    /// Wait for something to take; with a number, at most so many seconds
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "31536000",
          value_parser = args::wait_ms)]
    wait: Option<u64>,

    /// Run what is taken, and go on with the next one while --wait lasts
    #[arg(long)]
    exec: bool,

    #[command(flatten)]
    grace: GraceArg,

    /// The command for starts that bring none
    #[arg(last = true, value_name = "COMMAND", requires = "exec")]
    command: Vec<String>,
}

#[derive(Serialize)]
struct Found<'a> {
    open: Vec<View<'a>>,
    stopping: &'a [tenure::admission::AdmId],
    admitted: Option<Answered<'a>>,
    waiting: Vec<Kept<'a>>,
    expired: Vec<View<'a>>,
    refused: Vec<View<'a>>,
}

#[derive(Serialize)]
struct Kept<'a> {
    #[serde(flatten)]
    view: View<'a>,
    kept_by: Option<&'a str>,
    why: Option<&'a str>,
}

/// Runs the verb.
pub fn run(desk: &Desk<'_>, args: PickupArgs) -> Result<Exit, CliError> {
    let machine = desk.identity()?.machine;
    if args.list {
        let found = desk.ledger.pickup_list(&machine).map_err(refused)?;
        return show(desk, &found);
    }
    desk.must_issue()?;
    let Some(wait_ms) = args.wait else { return once(desk, &machine, &args) };
    let until = Instant::now() + Duration::from_millis(wait_ms);
    let idle = Idle::begin().map_err(|error| {
        CliError::problem(Exit::TableUnusable, "signals", format!("cannot listen for signals: {error}"))
    })?;
    let mut last = Exit::NothingReady;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match look(desk, &machine) {
            Ok(found) => match serve(desk, &machine, found, &args, &idle)? {
                Served::Ended(exit) => return Ok(exit),
                Served::Ran(exit) => {
                    last = exit;
                    continue;
                }
                Served::Nothing if left.is_zero() => return Ok(last),
                Served::Nothing => {}
            },
            Err(refusal) => away(refusal, left)?,
        }
        if let Err(refusal) = desk.ledger.wait_for_work(&machine, left.min(WAIT_AT_MOST)) {
            away(refusal, left)?;
        }
    }
}

/// One look, without waiting.
fn once(desk: &Desk<'_>, machine: &MachineId, args: &PickupArgs) -> Result<Exit, CliError> {
    let found = look(desk, machine).map_err(refused)?;
    let idle = Idle::default();
    if !args.exec {
        return show(desk, &found);
    }
    match serve(desk, machine, found, args, &idle)? {
        Served::Ended(exit) | Served::Ran(exit) => Ok(exit),
        Served::Nothing => Ok(Exit::NothingReady),
    }
}

/// Picks up, and records the ends that were not recorded yet. What waited for one of those is taken in the same go.
fn look(desk: &Desk<'_>, machine: &MachineId) -> Result<Pickup, Refusal> {
    let found = desk.ledger.pickup(machine)?;
    if !record_ends(desk, machine, &found.open) || found.admitted.is_some() {
        return Ok(found);
    }
    let again = desk.ledger.pickup(machine)?;
    // What the first look closed is told once, and this is the only chance.
    let expired = [found.expired, again.expired].concat();
    let refused = [found.refused, again.refused].concat();
    Ok(Pickup { expired, refused, ..again })
}

/// What one round of a pickup that waits came to.
enum Served {
    /// The program is done.
    Ended(Exit),
    /// A command ran; there may be more.
    Ran(Exit),
    Nothing,
}

fn serve(
    desk: &Desk<'_>,
    machine: &MachineId,
    found: Pickup,
    args: &PickupArgs,
    idle: &Idle,
) -> Result<Served, CliError> {
    if !args.exec {
        return if found.admitted.is_some() { show(desk, &found).map(Served::Ended) } else { Ok(Served::Nothing) };
    }
    tell_closed(&found);
    let answer = match take(desk, machine, &found) {
        Ok(Some(answer)) => answer,
        Ok(None) => return Ok(Served::Nothing),
        // One that may not be started now, such as by a right that was withdrawn, does not keep the next one off.
        Err(error) if args.wait.is_some() && matches!(error, CliError::Problem(_)) => {
            report::error(error, desk.context.json);
            return Ok(Served::Nothing);
        }
        Err(error) => return Err(error),
    };
    idle.pause();
    let done = exec(desk, *machine, answer, args);
    idle.resume(done.as_ref().is_ok_and(|done| done.interrupted));
    match done {
        // Whoever interrupts what runs means the whole of it.
        Ok(done) if done.interrupted => Ok(Served::Ended(done.exit)),
        Ok(done) => Ok(Served::Ran(done.exit)),
        // One that cannot be run does not keep the next one off.
        Err(error) if args.wait.is_some() && matches!(error, CliError::Problem(_)) => {
            Ok(Served::Ran(report::error(error, desk.context.json)))
        }
        Err(error) => Err(error),
    }
}

/// A ledger that is away comes back; whoever waits goes on waiting.
fn away(refusal: Refusal, left: Duration) -> Result<(), CliError> {
    if !is_undecided(&refusal) || left.is_zero() {
        return Err(refused(refusal));
    }
    out::note(&format!("tenure: {}", escape::message(&refusal.to_string())));
    std::thread::sleep(left.min(Duration::from_secs(1)));
    Ok(())
}

/// What is to be run now: what was just taken, or one that was taken before and never started by a run that has gone.
fn take(desk: &Desk<'_>, machine: &MachineId, found: &Pickup) -> Result<Option<Answer>, CliError> {
    if let Some(answer) = &found.admitted {
        return Ok(Some(answer.clone()));
    }
    let now_ms = desk.ledger.now_ms().map_err(refused)?;
    let left = found.open.iter().find(|record| {
        let stopping = found.stopping.contains(&record.admission);
        record.phase == Phase::Admitted
            && record.entrance == Entrance::Queue
            && record.is_uncertain(now_ms)
            && !stopping
    });
    match left {
        Some(record) => desk.ledger.attach(&record.admission, &desk.subject, machine).map(Some).map_err(refused),
        None => Ok(None),
    }
}

fn exec(desk: &Desk<'_>, machine: MachineId, answer: Answer, args: &PickupArgs) -> Result<Done, CliError> {
    let inputs = desk.ledger.inputs(&answer.admission(), None).map_err(refused)?;
    let input = inputs.into_iter().find(|input| input.number == 0).map(|input| input.bytes).unwrap_or_default();
    let own = answer.record.command.clone();
    let command = if own.is_empty() { args.command.clone() } else { own };
    if !desk.context.json {
        out::note(render::line(&answer.record).trim_end());
    }
    execute(desk, machine, answer, &Job { command: &command, input: &input, grace: args.grace.duration() })
}

/// Tells the ledger how runs of this machine ended that could not tell it themselves. True: some were recorded.
fn record_ends(desk: &Desk<'_>, machine: &MachineId, open: &[Record]) -> bool {
    let mut any = false;
    for record in open {
        let files = RunFiles::new(&desk.home, &record.admission);
        let Ok(Some((ended, token))) = files.ended() else { continue };
        let closing = Closing { kind: ended.kind, exit_code: ended.exit_code, reason: ended.reason };
        let close = |token: String| {
            desk.ledger.close(&record.admission, &By::Destination { token, caller: *machine }, &closing)
        };
        let closed = match close(token) {
            Err(Refusal::Credential { .. }) => desk
                .ledger
                .attach(&record.admission, &desk.subject, machine)
                .and_then(|answer| close(answer.credential.map(|credential| credential.token).unwrap_or_default())),
            other => other,
        };
        match closed {
            Ok(record) => {
                out::note(&format!("tenure: recorded: {}", render::line(&record).trim_end()));
                let _ = files.remove();
                any = true;
            }
            Err(refusal) => out::note(&format!("tenure: {}", escape::message(&refusal.to_string()))),
        }
    }
    any
}

/// What the pickup closed by itself, for a person who watches `--exec`.
fn tell_closed(found: &Pickup) {
    for record in found.expired.iter().chain(&found.refused) {
        out::note(&format!("tenure: {}", render::line(record).trim_end()));
    }
}

fn show(desk: &Desk<'_>, found: &Pickup) -> Result<Exit, CliError> {
    let ledger = desk.ledger.as_ref();
    let answer = Found {
        open: found.open.iter().map(|record| View::now(record, ledger)).collect(),
        stopping: &found.stopping,
        admitted: found.admitted.as_ref().map(Answered::whole),
        waiting: found.waiting.iter().map(kept).collect(),
        expired: found.expired.iter().map(View::plain).collect(),
        refused: found.refused.iter().map(View::plain).collect(),
    };
    if found.admitted.is_some() {
        desk.context.out.mark_changed();
    }
    desk.answer(&answer, || text(found))?;
    let nothing = found.open.is_empty() && found.admitted.is_none() && found.waiting.is_empty();
    Ok(if nothing { Exit::NothingReady } else { Exit::Done })
}

fn kept(waiting: &Waiting) -> Kept<'_> {
    let (kept_by, why) = (waiting.kept_by.as_deref(), waiting.why.as_deref());
    Kept { view: View::plain(&waiting.record), kept_by, why }
}

fn text(found: &Pickup) -> String {
    let mut out = String::new();
    let mut lines = |what: &str, records: &[Record], more: &str| {
        for record in records {
            out.push_str(&format!("{what:<9}{}{more}\n", render::line(record).trim_end()));
        }
    };
    lines("open", &found.open, "");
    lines("expired", &found.expired, "");
    lines("refused", &found.refused, "");
    if let Some(answer) = &found.admitted {
        lines("admitted", std::slice::from_ref(&answer.record), "");
    }
    for waiting in &found.waiting {
        let why = waiting.why.as_deref().map(|why| format!(": {}", escape::message(why))).unwrap_or_default();
        lines("waiting", std::slice::from_ref(&waiting.record), &why);
    }
    let token = found.admitted.as_ref().and_then(|answer| answer.credential.as_ref());
    out + &token.map(|credential| format!("{}\n", credential.token)).unwrap_or_default()
}
