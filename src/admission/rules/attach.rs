//! Credentials: a new one for the destination, checking one, and the start that uses it.

use super::*;

/// A new credential for an open admission. Only its destination gets one, and only while its placement stands.
pub(in crate::admission) fn attach(
    record: &Record,
    subject: &Subject,
    caller: &MachineId,
    ground: &Ground,
    scene: &Scene<'_>,
) -> Ruling<(Record, Grant)> {
    let ruling = attach_quietly(record, subject, caller, ground, scene);
    Asked { key: &record.key(), surface: &record.surface, subject }.noted(ruling, scene.now_ms)
}

fn attach_quietly(
    record: &Record,
    subject: &Subject,
    caller: &MachineId,
    ground: &Ground,
    scene: &Scene<'_>,
) -> Ruling<(Record, Grant)> {
    if record.phase == Phase::Closed {
        return Err(is_closed(record).into());
    }
    is_destination(record, caller)?;
    is_admitted(record)?;
    if !ground.stands(record) {
        return Err(moved(record).into());
    }
    let epoch = scene.allowed(facts_of(record, subject, Occasion::Attach))?;
    let mut record = record.clone();
    let grant = scene.grant(&mut record, epoch);
    let write = Write::Update(Box::new(record.clone()));
    Ok(Ruled::new((record, grant), [write]))
}

/// A row that waits has no credential, and none is good for it.
fn is_admitted(record: &Record) -> Result<(), Refusal> {
    if record.phase == Phase::Queued {
        return Err(Refusal::StillWaiting { record: Box::new(record.clone()) });
    }
    Ok(())
}

pub(super) fn is_destination(record: &Record, caller: &MachineId) -> Result<(), Refusal> {
    if record.destination.machine == *caller {
        return Ok(());
    }
    Err(Refusal::NotDestination { machine: *caller, destination: Some(record.destination.machine) })
}

/// Whether the credential is the newest one of the admission.
pub(super) fn is_newest(record: &Record, grant: &Grant) -> Result<(), Refusal> {
    if grant.attach_number == record.attach_number && record.deadline_ms.is_some() {
        return Ok(());
    }
    Err(Refusal::Credential { why: "has been cut or replaced by a newer one" })
}

/// Whether the credential is one of this admission.
fn is_for(record: &Record, grant: &Grant) -> Result<(), Refusal> {
    if grant.admission == record.admission {
        return Ok(());
    }
    Err(Refusal::Credential { why: "is for another admission" })
}

/// Machine, then token: a copy on another machine is told that it is elsewhere, whatever the token says (A32).
pub(super) fn belongs(record: &Record, grant: &Grant, caller: &MachineId) -> Result<(), Refusal> {
    is_for(record, grant)?;
    is_destination(record, caller)?;
    if grant.machine != *caller || grant.generation != record.destination.generation {
        return Err(Refusal::Credential { why: "does not say what the admission says" });
    }
    Ok(())
}

fn in_time(grant: &Grant, now_ms: u64) -> Result<(), Refusal> {
    if now_ms <= grant.deadline_ms {
        return Ok(());
    }
    Err(Refusal::Credential { why: "has run out" })
}

/// Everything about a credential: the row is open, the caller is its machine, it is the newest and in time, and the
/// placement stands.
pub(in crate::admission) fn check(
    record: &Record,
    grant: &Grant,
    caller: &MachineId,
    ground: &Ground,
    now_ms: u64,
) -> Result<Record, Refusal> {
    if record.phase == Phase::Closed {
        return Err(is_closed(record));
    }
    belongs(record, grant, caller)?;
    is_admitted(record)?;
    is_newest(record, grant)?;
    in_time(grant, now_ms)?;
    if !ground.stands(record) {
        return Err(moved(record));
    }
    Ok(record.clone())
}

/// The command is about to run. At a place that has changed it does not, and the admission ends with that (A27).
///
/// The same credential again: the first answer was lost, and nothing runs yet. So all that the first call needed must still
/// hold (A17, A27, A33), and then it is answered again; when it does not, nothing is ended, for by the record it runs.
pub(in crate::admission) fn start(
    record: &Record,
    grant: &Grant,
    subject: &Subject,
    caller: &MachineId,
    ground: &Ground,
    scene: &Scene<'_>,
) -> Ruling<Record> {
    let ruling = start_quietly(record, grant, subject, caller, ground, scene);
    Asked { key: &record.key(), surface: &record.surface, subject }.noted(ruling, scene.now_ms)
}

fn start_quietly(
    record: &Record,
    grant: &Grant,
    subject: &Subject,
    caller: &MachineId,
    ground: &Ground,
    scene: &Scene<'_>,
) -> Ruling<Record> {
    // Before anything is said about an admission that was named by mistake.
    is_for(record, grant)?;
    if record.phase == Phase::Closed {
        return Err(is_closed(record).into());
    }
    belongs(record, grant, caller)?;
    is_admitted(record)?;
    let is_again = record.phase == Phase::Started;
    if is_again && record.started_attach != Some(grant.attach_number) {
        return Err(Refusal::AlreadyStarted { record: Box::new(record.clone()), again: true }.into());
    }
    // What ends an admission, or lets a command run, is done by a credential that is good.
    is_newest(record, grant)?;
    in_time(grant, scene.now_ms)?;
    if !ground.stands(record) {
        return Err(at_a_changed_place(record, scene));
    }
    if record.stop_ms.is_some() {
        return Err(Refusal::Stopping { record: Box::new(record.clone()) }.into());
    }
    scene.allowed(facts_of(record, subject, Occasion::Start))?;
    if is_again {
        return Ok(Ruled::new(record.clone(), []));
    }
    let mut record = record.clone();
    record.phase = Phase::Started;
    record.started_ms = Some(scene.now_ms);
    record.started_attach = Some(grant.attach_number);
    let write = Write::Update(Box::new(record.clone()));
    Ok(Ruled::new(record, [write]))
}

/// Nothing starts there any more: what has not started ends here.
fn at_a_changed_place(record: &Record, scene: &Scene<'_>) -> Halt {
    if record.phase == Phase::Started {
        return moved(record).into();
    }
    let reason = Some("placement_changed".to_owned());
    let ended = closed(record, Kind::FailedBeforeStart, "the check before the start", reason, scene.now_ms);
    Halt::Refused { refusal: moved(&ended), writes: vec![Write::Update(Box::new(ended))] }
}
