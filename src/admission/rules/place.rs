//! Surfaces, where they are, and their owner by the legacy path.

use super::*;
use crate::admission::ledger::{Overlap, Placed};
use crate::admission::names::Kinship;
use crate::admission::record::Destination;
use crate::admission::request::{Placing, STORAGE_BYTES_MAX};

/// Another surface, as far as it matters for warnings.
#[derive(Clone, Debug)]
pub(in crate::admission) struct Neighbour {
    pub key: SurfaceKey,
    pub placements: Vec<Placement>,
}

/// Keys that look like the same place, or a place inside the other, with no sharing declared between them (A8).
pub(in crate::admission) fn overlaps(
    key: &SurfaceKey,
    placements: &[Placement],
    others: &[Neighbour],
    shares: &[SurfaceKey],
) -> Vec<Overlap> {
    let mut found = Vec::new();
    for other in others.iter().filter(|other| other.key != *key && !shares.contains(&other.key)) {
        let why = match key.kinship(&other.key) {
            Kinship::Same | Kinship::DeclaredSplit => continue,
            kinship => same_place(placements, &other.placements).or(match kinship {
                Kinship::Within => Some("one key lies inside the other".to_owned()),
                Kinship::LetterCase => Some("the keys differ in letter case only".to_owned()),
                _ => None,
            }),
        };
        found.extend(why.map(|why| Overlap { surface: other.key.clone(), why }));
    }
    found
}

fn same_place(mine: &[Placement], theirs: &[Placement]) -> Option<String> {
    let pairs = mine.iter().flat_map(|a| theirs.iter().map(move |b| (a, b)));
    let mut live = pairs.filter(|(a, b)| a.live && b.live && a.destination.machine == b.destination.machine);
    live.find_map(|(a, b)| {
        let (mine, theirs) = (&a.destination.place, &b.destination.place);
        if mine == theirs {
            Some(format!("both are placed at {mine}"))
        } else if mine.contains(theirs) || theirs.contains(mine) {
            Some(format!("{mine} and {theirs} lie one inside the other"))
        } else {
            None
        }
    })
}

/// Says where a surface is. The same words again change nothing; anything else is a new generation.
pub(in crate::admission) fn place(placing: &Placing, ground: &Ground, now_ms: u64) -> Ruling<Placed> {
    let Some(row) = &ground.surface else { return Err(no_surface(&placing.surface).into()) };
    let storage = placing.storage.as_deref().unwrap_or_default();
    if storage.len() > STORAGE_BYTES_MAX || storage.chars().any(char::is_control) {
        let what = format!("the storage is a name of at most {STORAGE_BYTES_MAX} bytes without control characters");
        return Err(Refusal::Usage { what }.into());
    }
    let there = ground.placements.iter().find(|p| p.destination.machine == placing.machine);
    if let Some(there) = there.filter(|p| p.live && same_words(p, placing)) {
        return Ok(Ruled::new(placed(there.clone(), false, ground), []));
    }
    let destination =
        Destination { machine: placing.machine, place: placing.place.clone(), generation: next_generation(row)? };
    let placement = Placement {
        surface: placing.surface.clone(),
        destination,
        storage: placing.storage.clone(),
        work: placing.work.clone(),
        live: true,
        changed_ms: now_ms,
    };
    let write = Write::Place(Box::new(placement.clone()));
    Ok(Ruled::new(placed(placement, true, ground), [write]))
}

fn same_words(placement: &Placement, placing: &Placing) -> bool {
    placement.destination.place == placing.place
        && placement.storage == placing.storage
        && placement.work == placing.work
}

/// Says that it is no longer there. The generation stays: what comes after gets the next one.
pub(in crate::admission) fn gone(
    surface: &SurfaceKey,
    machine: &MachineId,
    ground: &Ground,
    now_ms: u64,
) -> Ruling<Placed> {
    if ground.surface.is_none() {
        return Err(no_surface(surface).into());
    }
    let there = ground.placements.iter().find(|p| p.destination.machine == *machine);
    let Some(there) = there else {
        return Err(Refusal::NotFound { what: format!("placement of {surface} on {machine}") }.into());
    };
    if !there.live {
        return Ok(Ruled::new(placed(there.clone(), false, ground), []));
    }
    let placement = Placement { live: false, changed_ms: now_ms, ..there.clone() };
    let write = Write::Place(Box::new(placement.clone()));
    Ok(Ruled::new(placed(placement, true, ground), [write]))
}

fn placed(placement: Placement, changed: bool, ground: &Ground) -> Placed {
    let stops = |owner: &&Record| {
        owner.destination.machine == placement.destination.machine
            && !(placement.live && owner.destination.generation == placement.destination.generation)
    };
    let stopping = ground.owner.iter().filter(stops).cloned().collect();
    Placed { placement, changed, stopping, warnings: Vec::new() }
}

pub(in crate::admission) fn no_surface(surface: &SurfaceKey) -> Refusal {
    Refusal::NotFound { what: format!("surface {surface}; `surface add` makes it") }
}

/// The legacy path takes a surface: not while an admission is open on it (A51).
pub(in crate::admission) fn legacy_take(
    surface: &SurfaceKey,
    who: &Subject,
    ground: &Ground,
    now_ms: u64,
) -> Ruling<LegacyOwner> {
    let Some(row) = &ground.surface else { return Err(no_surface(surface).into()) };
    if let Some(mine) = row.legacy.as_ref().filter(|legacy| legacy.who == *who) {
        return Ok(Ruled::new(mine.clone(), []));
    }
    ground.free(surface)?;
    let owner = LegacyOwner { who: who.clone(), since_ms: now_ms };
    Ok(Ruled::new(owner.clone(), [Write::Legacy(surface.clone(), Some(owner))]))
}

/// Gives it back; only who has it may.
pub(in crate::admission) fn legacy_drop(surface: &SurfaceKey, who: &Subject, ground: &Ground) -> Ruling<()> {
    let Some(row) = &ground.surface else { return Err(no_surface(surface).into()) };
    match &row.legacy {
        Some(legacy) if legacy.who == *who => Ok(Ruled::new((), [Write::Legacy(surface.clone(), None)])),
        other => {
            let owner = other.as_ref().map(|legacy| legacy.who.to_string());
            Err(Refusal::NotOwner { surface: surface.clone(), owner, record: None }.into())
        }
    }
}
