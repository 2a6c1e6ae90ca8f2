//! Surfaces, places and machines in the database.

use super::Store;
use crate::admission::ledger::{Overlap, Placed, SurfaceAdded};
use crate::admission::names::{MachineId, MachineLabel, SurfaceKey};
use crate::admission::record::{MachineView, Placement, SurfaceView};
use crate::admission::refusal::Refusal;
use crate::admission::request::Placing;
use crate::admission::rules::{self, Neighbour, SurfaceRow};
use crate::admission::sql::{Database, End, Mode, Trouble, Tx, read, text, write};

impl<D: Database> Store<D> {
    pub(super) fn add_surface(&self, key: &SurfaceKey, shares: &[SurfaceKey]) -> Result<SurfaceAdded, Refusal> {
        for other in shares {
            if other == key {
                return Err(Refusal::Usage { what: format!("{key} cannot share its place with itself") });
            }
        }
        Ok(self.db.transact(Mode::Write, &mut |tx| {
            let now_ms = self.now(tx)?;
            let created = write::add_surface(tx, key, now_ms)?;
            for other in shares {
                write::add_share(tx, key, other)?;
            }
            let warnings = overlaps(tx, key)?;
            match view(tx, key)? {
                Some(surface) => Ok(End::Commit(SurfaceAdded { surface, created, warnings })),
                None => Err(Trouble::Again(format!("{key} went away again"))),
            }
        })?)
    }

    pub(super) fn all_surfaces(&self) -> Result<Vec<SurfaceView>, Refusal> {
        self.look(&mut |tx| {
            let rows = read::surface_rows(tx, "order by surface", &[])?;
            rows.into_iter().map(|row| around(tx, row)).collect()
        })
    }

    pub(super) fn one_surface(&self, key: &SurfaceKey) -> Result<SurfaceView, Refusal> {
        self.look(&mut |tx| view(tx, key))?.ok_or_else(|| rules::no_surface(key))
    }

    pub(super) fn put_in_place(&self, placing: &Placing) -> Result<Placed, Refusal> {
        let mut placed = self.decide(&mut |tx, scene| {
            let ground = read::ground(tx, &placing.surface, true)?;
            Ok(rules::place(placing, &ground, scene.now_ms))
        })?;
        placed.warnings = self.look(&mut |tx| overlaps(tx, &placing.surface))?;
        Ok(placed)
    }

    pub(super) fn label(&self, machine: &MachineId, label: Option<&MachineLabel>) -> Result<MachineView, Refusal> {
        let taken = |label: &MachineLabel| Refusal::Usage { what: format!("another machine is called {label}") };
        let view = self.db.transact(Mode::Write, &mut |tx| {
            let others = read::machines(tx, "order by machine", &[])?;
            if label.is_some() && others.iter().any(|m| m.machine != *machine && m.label.as_ref() == label) {
                return Ok(End::Rollback(None));
            }
            write::set_label(tx, machine, label)?;
            let mine = read::machines(tx, "where machine = $1", &[text(machine)])?.into_iter().next();
            Ok(End::Commit(mine))
        })?;
        match (view, label) {
            (Some(view), _) => Ok(view),
            (None, Some(label)) => Err(taken(label)),
            (None, None) => Err(Refusal::NotFound { what: format!("machine {machine}") }),
        }
    }

    pub(super) fn forget(&self, machine: &MachineId) -> Result<bool, Refusal> {
        Ok(self.db.transact(Mode::Write, &mut |tx| write::forget(tx, machine).map(End::Commit))?)
    }
}

fn view(tx: &mut dyn Tx, key: &SurfaceKey) -> Result<Option<SurfaceView>, Trouble> {
    let row = read::surface_rows(tx, "where surface = $1", &[text(key)])?.into_iter().next();
    row.map(|row| around(tx, row)).transpose()
}

fn around(tx: &mut dyn Tx, row: SurfaceRow) -> Result<SurfaceView, Trouble> {
    let ground = read::ground(tx, &row.key, false)?;
    let shares = read::shares(tx, &row.key)?;
    Ok(SurfaceView {
        surface: row.key,
        created_ms: row.created_ms,
        owner: ground.owner,
        waiting: ground.waiting,
        placements: ground.placements,
        legacy: row.legacy,
        shares,
    })
}

/// Other keys that look like the same place as this one.
fn overlaps(tx: &mut dyn Tx, key: &SurfaceKey) -> Result<Vec<Overlap>, Trouble> {
    let (mut mine, mut others) = (Vec::<Placement>::new(), Vec::<Placement>::new());
    for placement in read::placements(tx, "order by surface, machine", &[])? {
        if placement.surface == *key { mine.push(placement) } else { others.push(placement) }
    }
    let rows = read::surface_rows(tx, "order by surface", &[])?;
    let neighbour = |row: SurfaceRow| {
        let placements = others.iter().filter(|p| p.surface == row.key).cloned().collect();
        Neighbour { key: row.key, placements }
    };
    let neighbours: Vec<Neighbour> = rows.into_iter().map(neighbour).collect();
    Ok(rules::overlaps(key, &mine, &neighbours, &read::shares(tx, key)?))
}
