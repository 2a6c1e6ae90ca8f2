//! What must hold over the whole ledger, whoever wrote it.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::admission::ledger::Fault;

/// The whole ledger.
#[derive(Clone, Debug, Default)]
pub(in crate::admission) struct Everything {
    pub records: Vec<Record>,
    pub surfaces: Vec<SurfaceRow>,
    pub placements: Vec<Placement>,
    /// Admission, number, request and attempt of every input.
    pub inputs: Vec<(String, u64, AttemptKey)>,
}

/// Everything that contradicts the rules.
pub(in crate::admission) fn fsck(all: &Everything) -> Vec<Fault> {
    let mut faults = Vec::new();
    owners(all, &mut faults);
    keys(all, &mut faults);
    attempts(all, &mut faults);
    for record in &all.records {
        one(record, &mut faults);
    }
    successors(all, &mut faults);
    placements(all, &mut faults);
    faults
}

fn owners(all: &Everything, faults: &mut Vec<Fault>) {
    let mut owner: BTreeMap<&SurfaceKey, &Record> = BTreeMap::new();
    let mut waiting: BTreeMap<(&SurfaceKey, MachineId, Generation), &Record> = BTreeMap::new();
    for record in &all.records {
        let to = &record.destination;
        let other = match record.phase {
            Phase::Admitted | Phase::Started => owner.insert(&record.surface, record),
            Phase::Queued => waiting.insert((&record.surface, to.machine, to.generation), record),
            Phase::Closed => None,
        };
        if let Some(other) = other {
            let rule = if record.is_open() { "one_unfinished" } else { "one_waiting" };
            let what = format!("{}: both {} and {}", record.surface, other.admission, record.admission);
            faults.push(Fault { rule, what });
        }
    }
    let known: BTreeSet<&SurfaceKey> = all.surfaces.iter().map(|row| &row.key).collect();
    for surface in owner.keys().filter(|key| !known.contains(*key)) {
        faults.push(Fault { rule: "surface_known", what: format!("{surface} is owned and has no row") });
    }
    for row in all.surfaces.iter().filter(|row| row.legacy.is_some()) {
        if let Some(record) = owner.get(&row.key) {
            let what = format!("{} is owned by {} and through the legacy path", row.key, record.admission);
            faults.push(Fault { rule: "one_path", what });
        }
    }
}

fn keys(all: &Everything, faults: &mut Vec<Fault>) {
    let mut seen: BTreeMap<AttemptKey, String> = BTreeMap::new();
    let rows = all.records.iter().map(|r| (r.key(), r.admission.to_string()));
    let appended = all.inputs.iter().filter(|(_, number, _)| *number > 0);
    for (key, admission) in rows.chain(appended.map(|(admission, _, key)| (key.clone(), admission.clone()))) {
        if let Some(other) = seen.insert(key.clone(), admission.clone()) {
            faults.push(Fault { rule: "one_row_per_key", what: format!("{key}: both {other} and {admission}") });
        }
    }
    let ids: BTreeSet<String> = all.records.iter().map(|r| r.admission.to_string()).collect();
    for (admission, number, _) in all.inputs.iter().filter(|(admission, ..)| !ids.contains(admission)) {
        let what = format!("input {number} is for {admission}, which does not exist");
        faults.push(Fault { rule: "input_belongs", what });
    }
}

fn attempts(all: &Everything, faults: &mut Vec<Fault>) {
    let by_key: BTreeMap<AttemptKey, &Record> = all.records.iter().map(|r| (r.key(), r)).collect();
    for record in &all.records {
        let Some(attempt) = record.attempt.previous() else { continue };
        let earlier = AttemptKey { request: record.request.clone(), attempt };
        if !by_key.get(&earlier).is_some_and(|earlier| earlier.allows_next()) {
            let what = format!("{} was made while {earlier} did not allow it", record.key());
            faults.push(Fault { rule: "attempts_follow", what });
        }
    }
}

fn one(record: &Record, faults: &mut Vec<Fault>) {
    let mut must = |holds: bool, rule: &'static str, what: &str| {
        if !holds {
            faults.push(Fault { rule, what: format!("{}: {what}", record.admission) });
        }
    };
    let is_closed = record.phase == Phase::Closed;
    must(is_closed == record.closing.is_some(), "closed_with_a_kind", "closed and kind of closing disagree");
    must(
        is_closed == record.closed_ms.is_some(),
        "closed_with_a_kind",
        "closed without a time, or a time and not closed",
    );
    must(record.phase != Phase::Started || record.started_ms.is_some(), "times", "started without a time");
    must(!record.is_open() || record.admitted_ms.is_some(), "times", "open without a time of admission");
    let ran = matches!(record.closing, Some(Kind::Succeeded | Kind::Failed | Kind::Interrupted));
    must(!ran || record.started_ms.is_some(), "closing_fits", "closed as having run, and never started");
    let idle =
        matches!(record.closing, Some(Kind::FailedBeforeStart | Kind::Canceled | Kind::Expired | Kind::Superseded));
    must(!idle || record.started_ms.is_none(), "closing_fits", "closed as not having run, and started");
}

fn successors(all: &Everything, faults: &mut Vec<Fault>) {
    let by_id: BTreeMap<_, &Record> = all.records.iter().map(|r| (r.admission, r)).collect();
    for record in &all.records {
        let superseded = record.closing == Some(Kind::Superseded);
        let back = record.successor.and_then(|id| by_id.get(&id)).and_then(|next| next.supersedes);
        if superseded && back != Some(record.admission) {
            let what = format!("{}: its successor does not name it", record.admission);
            faults.push(Fault { rule: "replaced_on_both", what });
        }
        let Some(old) = record.supersedes else { continue };
        let fits = by_id.get(&old).is_some_and(|old| {
            old.closing == Some(Kind::Superseded)
                && old.successor == Some(record.admission)
                && old.destination == record.destination
                && old.surface == record.surface
        });
        if !fits {
            let what = format!("{} replaced {old}, which does not say so or went elsewhere", record.admission);
            faults.push(Fault { rule: "replaced_on_both", what });
        }
    }
}

fn placements(all: &Everything, faults: &mut Vec<Fault>) {
    let newest: BTreeMap<&SurfaceKey, u64> = all.surfaces.iter().map(|row| (&row.key, row.generation)).collect();
    let given = all.placements.iter().map(|p| (&p.surface, p.destination.generation));
    for (surface, generation) in given.chain(all.records.iter().map(|r| (&r.surface, r.destination.generation))) {
        if newest.get(surface).is_none_or(|newest| *newest < generation.get()) {
            let what = format!("{surface}: generation {generation} was never given");
            faults.push(Fault { rule: "generation_given", what });
        }
    }
}
