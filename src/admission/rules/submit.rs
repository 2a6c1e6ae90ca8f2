//! Asking for an admission, for the first time or again.
//!
//! The order of refusals: conflict, closed or canceled, previous attempt, destination, denied, busy. Who may not start is
//! not told who owns the surface.

use super::*;
use crate::admission::facts::Entrance;
use crate::admission::names::{AdmId, Attempt};
use crate::admission::record::Destination;
use crate::admission::request::{INPUT_BYTES_MAX, IfWaiting, Request};

/// What the ledger has for a request, besides its surface.
#[derive(Clone, Debug, Default)]
pub(in crate::admission) struct Standing {
    /// The row with its request and attempt.
    pub row: Option<Record>,
    /// The row of the attempt before it.
    pub previous: Option<Record>,
    /// The input that was appended under its request and attempt.
    pub appended: Option<Input>,
    /// Whether what it follows (`after`) is known.
    pub after_known: bool,
}

/// What a request gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::admission) struct Granted {
    pub record: Record,
    pub created: bool,
    pub grant: Option<Grant>,
}

/// `fresh` is the id that a new row gets.
pub(in crate::admission) fn submit(
    request: &Request,
    standing: &Standing,
    ground: &Ground,
    scene: &Scene<'_>,
    fresh: AdmId,
) -> Ruling<Granted> {
    well_formed(request)?;
    let key = AttemptKey { request: request.request.clone(), attempt: request.attempt };
    let asked = Asked { key: &key, surface: &request.surface, subject: &request.subject };
    let ruling = match &standing.row {
        Some(row) => again(request, row, ground, scene),
        None => first(request, &key, standing, ground, scene, fresh),
    };
    asked.noted(ruling, scene.now_ms)
}

fn well_formed(request: &Request) -> Result<(), Refusal> {
    let usage = |what: &str| Err(Refusal::Usage { what: what.to_owned() });
    match (request.entrance, &request.input) {
        (Entrance::Append, _) => usage("`append` gives input to an open admission; it does not ask for a new one"),
        (Entrance::Local, Some(_)) => usage("the input of a start on this machine stays on this machine"),
        _ if request.command.iter().any(|word| word.contains('\0')) => usage("the command contains a NUL character"),
        (_, Some(input)) if input.len() > INPUT_BYTES_MAX => Err(too_long(input.len())),
        _ => Ok(()),
    }
}

pub(super) fn too_long(bytes: usize) -> Refusal {
    let what = format!(
        "the input is {bytes} bytes long; the ledger carries at most {INPUT_BYTES_MAX}, and nothing is cut. Leave the \
         input on the destination and send the path"
    );
    Refusal::Usage { what }
}

/// The row is there: the same contents get the same admission (A10), whatever else has changed meanwhile.
fn again(request: &Request, row: &Record, ground: &Ground, scene: &Scene<'_>) -> Ruling<Granted> {
    if row.digest != request.digest || row.surface != request.surface {
        return Err(Refusal::Conflict { key: row.key(), admission: Some(row.admission) }.into());
    }
    if let Some(kind) = row.closing {
        let record = Box::new(row.clone());
        return match kind {
            Kind::Canceled => Err(Refusal::Canceled { record }.into()),
            Kind::Expired => Err(Refusal::Expired { record }.into()),
            _ => Ok(receipt(row)),
        };
    }
    if !ground.stands(row) {
        return Err(moved(row).into());
    }
    let mut facts = facts_of(row, &request.subject, Occasion::Resend);
    facts.entrance = request.entrance;
    let epoch = scene.allowed(facts)?;
    // Only the destination itself, and only where the start happens, gets a credential; others get the receipt.
    if request.entrance != Entrance::Local || request.caller != row.destination.machine {
        return Ok(receipt(row));
    }
    let mut record = row.clone();
    if record.phase == Phase::Queued {
        ground.free(&row.surface)?;
        record.phase = Phase::Admitted;
        record.admitted_ms = Some(scene.now_ms);
    }
    let grant = scene.grant(&mut record, epoch);
    let write = Write::Update(Box::new(record.clone()));
    Ok(Ruled::new(Granted { record, created: false, grant: Some(grant) }, [write]))
}

fn receipt(row: &Record) -> Ruled<Granted> {
    Ruled::new(Granted { record: row.clone(), created: false, grant: None }, [])
}

/// There is no row: everything must fit before one is written (A14).
fn first(
    request: &Request,
    key: &AttemptKey,
    standing: &Standing,
    ground: &Ground,
    scene: &Scene<'_>,
    fresh: AdmId,
) -> Ruling<Granted> {
    if let Some(input) = &standing.appended {
        return Err(Refusal::Conflict { key: key.clone(), admission: Some(input.admission) }.into());
    }
    follows(request, key, standing)?;
    let placement = destination(request, ground)?;
    let facts = Facts {
        subject: request.subject.clone(),
        surface: request.surface.clone(),
        machine: placement.destination.machine,
        place: placement.destination.place.clone(),
        generation: placement.destination.generation,
        work: placement.work.clone(),
        entrance: request.entrance,
        occasion: Occasion::First,
    };
    let epoch = scene.allowed(facts)?;
    let mut record = new_record(request, placement, fresh, scene.now_ms);
    if request.entrance == Entrance::Local {
        ground.free(&request.surface)?;
        record.phase = Phase::Admitted;
        record.admitted_ms = Some(scene.now_ms);
        let grant = scene.grant(&mut record, epoch);
        let write = Write::Insert(Box::new(record.clone()));
        return Ok(Ruled::new(Granted { record, created: true, grant: Some(grant) }, [write]));
    }
    let mut writes = Vec::new();
    if let Some(other) = waits_for(ground, &record.destination) {
        if request.if_waiting == IfWaiting::Fail {
            return Err(Refusal::WaitingExists { record: Box::new(other.clone()) }.into());
        }
        let by = request.subject.as_str();
        let mut old = closed(other, Kind::Superseded, by, Some(format!("{key} took its place")), scene.now_ms);
        old.successor = Some(record.admission);
        record.supersedes = Some(old.admission);
        writes.push(Write::Update(Box::new(old)));
    }
    writes.push(Write::Insert(Box::new(record.clone())));
    writes.extend(input_of(request, &record, scene.now_ms));
    writes.push(Write::Wake(record.destination.machine));
    Ok(Ruled::new(Granted { record, created: true, grant: None }, writes))
}

/// The earlier attempts allow this one (A22 to A25), and what it says it follows is known.
fn follows(request: &Request, key: &AttemptKey, standing: &Standing) -> Result<(), Refusal> {
    if let Some(previous) = key.attempt.previous() {
        let earlier = AttemptKey { request: key.request.clone(), attempt: previous };
        let Some(record) = &standing.previous else { return Err(Refusal::PreviousUnknown { key: earlier }) };
        // An attempt is another try of the same start, with what has to be different for it: another pinned machine after a
        // move, the command with its name spelt right. On another surface it is another start.
        if record.surface != request.surface {
            return Err(Refusal::Conflict { key: earlier, admission: Some(record.admission) });
        }
        let record = Box::new(record.clone());
        match record.closing {
            None => return Err(Refusal::PreviousOpen { record }),
            Some(kind) if !kind.allows_next() => return Err(Refusal::PreviousFinal { record }),
            Some(_) => {}
        }
    }
    match &request.after {
        Some(after) if !standing.after_known => Err(Refusal::PreviousUnknown { key: after.clone() }),
        _ => Ok(()),
    }
}

/// Where the request goes: resolved here, once, and written on the row.
fn destination<'a>(request: &Request, ground: &'a Ground) -> Result<&'a Placement, Refusal> {
    let none = |why: &str| Refusal::NoDestination { surface: request.surface.clone(), why: why.to_owned() };
    if ground.surface.is_none() {
        return Err(none("there is no such surface; `surface add` it, then `place` it"));
    }
    let live: Vec<&Placement> = ground.placements.iter().filter(|p| p.live).collect();
    let local = request.entrance == Entrance::Local;
    let wanted = request.machine.or(local.then_some(request.caller));
    let found = match (wanted, live.as_slice()) {
        (_, []) => return Err(none("it is not placed on any machine; `place` it")),
        (Some(machine), _) => live.iter().copied().find(|p| p.destination.machine == machine),
        (None, [only]) => Some(*only),
        (None, _) => return Err(none("it is placed on several machines; name one with --machine")),
    };
    let elsewhere = || Refusal::NotDestination { machine: request.caller, destination: only_machine(&live) };
    let placement = match (found, request.machine) {
        (Some(placement), _) => placement,
        (None, Some(_)) => return Err(none("it is not placed on that machine; `place` it there")),
        (None, None) => return Err(elsewhere()),
    };
    if local && placement.destination.machine != request.caller {
        let destination = Some(placement.destination.machine);
        return Err(Refusal::NotDestination { machine: request.caller, destination });
    }
    match request.generation {
        Some(pinned) if pinned != placement.destination.generation => {
            Err(Refusal::PlacementChanged { surface: request.surface.clone(), record: None, stopping: false })
        }
        _ => Ok(placement),
    }
}

fn only_machine(live: &[&Placement]) -> Option<MachineId> {
    if let [only] = live { Some(only.destination.machine) } else { None }
}

/// The row that waits for the same surface and destination.
fn waits_for<'a>(ground: &'a Ground, destination: &Destination) -> Option<&'a Record> {
    ground.waiting.iter().find(|row| row.destination == *destination)
}

fn new_record(request: &Request, placement: &Placement, fresh: AdmId, now_ms: u64) -> Record {
    Record {
        admission: fresh,
        request: request.request.clone(),
        attempt: request.attempt,
        digest: request.digest,
        surface: request.surface.clone(),
        destination: placement.destination.clone(),
        work: placement.work.clone(),
        phase: Phase::Queued,
        entrance: request.entrance,
        subject: request.subject.clone(),
        after: request.after.clone(),
        command: request.command.clone(),
        created_ms: now_ms,
        admitted_ms: None,
        started_ms: None,
        closed_ms: None,
        attach_number: 0,
        started_attach: None,
        deadline_ms: None,
        policy_epoch: None,
        stop_ms: None,
        stop_reason: None,
        closing: None,
        closed_by: None,
        reason: None,
        exit_code: None,
        successor: None,
        supersedes: None,
    }
}

/// The input that comes along with a row that waits: another machine will run it.
fn input_of(request: &Request, record: &Record, now_ms: u64) -> Option<Write> {
    let bytes = request.input.clone()?;
    let (admission, digest) = (record.admission, record.digest);
    let attempt: Attempt = record.attempt;
    let (request, subject) = (record.request.clone(), record.subject.clone());
    Some(Write::Input(Box::new(Input {
        admission,
        number: 0,
        request,
        attempt,
        digest,
        subject,
        at_ms: now_ms,
        bytes,
    })))
}
