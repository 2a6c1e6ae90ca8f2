//! More input for work that is open: the third entrance. It starts nothing, and what is stopping takes none (A30).

use super::submit::too_long;
use super::*;
use crate::admission::facts::Entrance;
use crate::admission::request::{Append, INPUT_BYTES_MAX};

/// `same_key` are the admission and the input that the ledger has under the request and attempt; `next` is the number that
/// the input gets.
pub(in crate::admission) fn append(
    sent: &Append,
    record: &Record,
    same_key: (Option<&Record>, Option<&Input>),
    next: u64,
    ground: &Ground,
    scene: &Scene<'_>,
) -> Ruling<Input> {
    if sent.input.len() > INPUT_BYTES_MAX {
        return Err(too_long(sent.input.len()).into());
    }
    let key = AttemptKey { request: sent.request.clone(), attempt: sent.attempt };
    let ruling = append_quietly(sent, &key, record, same_key, next, ground, scene);
    Asked { key: &key, surface: &record.surface, subject: &sent.subject }.noted(ruling, scene.now_ms)
}

fn append_quietly(
    sent: &Append,
    key: &AttemptKey,
    record: &Record,
    (row, before): (Option<&Record>, Option<&Input>),
    next: u64,
    ground: &Ground,
    scene: &Scene<'_>,
) -> Ruling<Input> {
    let conflict = |admission| Halt::from(Refusal::Conflict { key: key.clone(), admission: Some(admission) });
    if let Some(row) = row {
        return Err(conflict(row.admission));
    }
    let mut facts = facts_of(record, &sent.subject, Occasion::First);
    facts.entrance = Entrance::Append;
    if let Some(before) = before {
        if before.digest != sent.digest || before.admission != sent.admission {
            return Err(conflict(before.admission));
        }
        // Accepted before; the answer was lost. It is in, also when the admission has ended since.
        facts.occasion = Occasion::Resend;
        scene.allowed(facts)?;
        return Ok(Ruled::new(before.clone(), []));
    }
    match record.phase {
        Phase::Closed => return Err(is_closed(record).into()),
        Phase::Queued => return Err(Refusal::StillWaiting { record: Box::new(record.clone()) }.into()),
        Phase::Admitted | Phase::Started => {}
    }
    if !ground.stands(record) {
        let (surface, record) = (record.surface.clone(), Some(Box::new(record.clone())));
        return Err(Refusal::PlacementChanged { surface, record, stopping: true }.into());
    }
    if record.stop_ms.is_some() {
        return Err(Refusal::Stopping { record: Box::new(record.clone()) }.into());
    }
    scene.allowed(facts)?;
    let input = Input {
        admission: sent.admission,
        number: next,
        request: sent.request.clone(),
        attempt: sent.attempt,
        digest: sent.digest,
        subject: sent.subject.clone(),
        at_ms: scene.now_ms,
        bytes: sent.input.clone(),
    };
    let writes = [Write::Input(Box::new(input.clone())), Write::Wake(record.destination.machine)];
    Ok(Ruled::new(input, writes))
}
