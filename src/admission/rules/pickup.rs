//! The destination comes for what waits. It does not choose a machine: it checks that the row names the one that came
//! (A39), and it is the only one whose coming makes anything expire (A42, A43).

use super::*;

/// What becomes of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::admission) enum Picked {
    /// It owns the surface now.
    Admitted(Box<Record>, Grant),
    /// It was too old.
    Expired(Box<Record>),
    /// Its placement has changed, so it can never start.
    Changed(Box<Record>),
    /// It goes on waiting.
    Kept(Refusal),
    /// It could be taken, and was not asked for: one row is taken at a time.
    Left,
    /// Somebody else dealt with it meanwhile, or it is not this machine's.
    Passed,
}

/// `take`: whether it is to become an admission if it can; too old and changed rows are closed in any case.
pub(in crate::admission) fn pickup(
    row: &Record,
    machine: &MachineId,
    ground: &Ground,
    take: bool,
    scene: &Scene<'_>,
) -> Result<Ruled<Picked>, Halt> {
    if row.phase != Phase::Queued || row.destination.machine != *machine {
        return Ok(Ruled::new(Picked::Passed, []));
    }
    let (key, by) = (row.key(), format!("machine {machine}"));
    let asked = Asked { key: &key, surface: &row.surface, subject: &row.subject };
    if is_old(row.created_ms, scene.now_ms) {
        return Ok(expired(row, &by, &asked, scene));
    }
    let there = ground.placements.iter().find(|p| p.destination.machine == *machine);
    if there.is_none_or(|p| !p.live) {
        let why = "its placement is marked as gone".to_owned();
        return Ok(Ruled::new(Picked::Kept(Refusal::NoDestination { surface: row.surface.clone(), why }), []));
    }
    if !ground.stands(row) {
        let reason = Some("placement_changed".to_owned());
        let record = Box::new(closed(row, Kind::FailedBeforeStart, &by, reason, scene.now_ms));
        let writes = vec![Write::Update(record.clone()), asked.note(&moved(row), scene.now_ms)];
        return Ok(Ruled { answer: Picked::Changed(record), writes });
    }
    if !take {
        return Ok(Ruled::new(ground.free(&row.surface).map_or_else(Picked::Kept, |()| Picked::Left), []));
    }
    let allowed = scene.allowed(facts_of(row, &row.subject, Occasion::Resend)).and_then(|epoch| {
        ground.free(&row.surface)?;
        Ok(epoch)
    });
    let epoch = match allowed {
        Ok(epoch) => epoch,
        Err(Halt::Refused { refusal, .. }) => {
            // A busy surface is what queues are for; only what somebody must act on is noted.
            let denied = matches!(refusal, Refusal::Denied { .. });
            let writes = if denied { vec![asked.note(&refusal, scene.now_ms)] } else { Vec::new() };
            return Ok(Ruled { answer: Picked::Kept(refusal), writes });
        }
        Err(ask) => return Err(ask),
    };
    let mut record = row.clone();
    record.phase = Phase::Admitted;
    record.admitted_ms = Some(scene.now_ms);
    let grant = scene.grant(&mut record, epoch);
    let record = Box::new(record);
    Ok(Ruled::new(Picked::Admitted(record.clone(), grant), [Write::Update(record)]))
}

/// An admission that was never started, for more than half a day, and for which no credential is good any more.
pub(in crate::admission) fn expire_admitted(row: &Record, machine: &MachineId, scene: &Scene<'_>) -> Ruled<Picked> {
    let idle = row.phase == Phase::Admitted && row.is_uncertain(scene.now_ms);
    let old = is_old(row.admitted_ms.unwrap_or(row.created_ms), scene.now_ms);
    if row.destination.machine != *machine || !idle || !old {
        return Ruled::new(Picked::Passed, []);
    }
    let key = row.key();
    let asked = Asked { key: &key, surface: &row.surface, subject: &row.subject };
    expired(row, &format!("machine {machine}"), &asked, scene)
}

fn expired(row: &Record, by: &str, asked: &Asked<'_>, scene: &Scene<'_>) -> Ruled<Picked> {
    let reason = Some("nothing ran for more than half a day".to_owned());
    let record = Box::new(closed(row, Kind::Expired, by, reason, scene.now_ms));
    let note = asked.note(&Refusal::Expired { record: record.clone() }, scene.now_ms);
    Ruled { answer: Picked::Expired(record.clone()), writes: vec![Write::Update(record), note] }
}
