//! `surface`: the keys that starts are counted by.

use serde::Serialize;
use tenure::admission::{Overlap, SurfaceKey, SurfaceView};

use super::desk::Desk;
use super::refusal::refused;
use super::render;
use super::request::surface;
use crate::cli::escape;
use crate::cli::exit::{CliError, Exit};
use crate::cli::out;

/// The surfaces: what may be started on once at a time
#[derive(Debug, clap::Subcommand)]
pub enum SurfaceVerb {
    /// Adds a surface; warns of keys that look like the same place
    Add {
        /// A name, or the whole path of the place; KEY#PART says that several works share a place on purpose
        #[arg(value_name = "SURFACE", value_parser = surface)]
        surface: SurfaceKey,
        /// Another key that may share its place
        #[arg(long, value_name = "KEY", value_parser = surface)]
        shares: Vec<SurfaceKey>,
    },
    /// Lists the surfaces
    List,
    /// Shows one surface: its owner, what waits for it, where it is
    Show {
        /// Its key
        #[arg(value_name = "SURFACE", value_parser = surface)]
        surface: SurfaceKey,
    },
}

#[derive(Serialize)]
struct Added<'a> {
    #[serde(flatten)]
    surface: &'a SurfaceView,
    created: bool,
    warnings: &'a [Overlap],
}

/// Runs the verb.
pub fn run(desk: &Desk<'_>, verb: SurfaceVerb) -> Result<Exit, CliError> {
    match verb {
        SurfaceVerb::Add { surface, shares } => add(desk, &surface, &shares),
        SurfaceVerb::List => list(desk),
        SurfaceVerb::Show { surface } => show(desk, &surface),
    }
}

fn add(desk: &Desk<'_>, surface: &SurfaceKey, shares: &[SurfaceKey]) -> Result<Exit, CliError> {
    let added = desk.ledger.surface_add(surface, shares).map_err(refused)?;
    warn(desk, &added.warnings);
    let answer = Added { surface: &added.surface, created: added.created, warnings: &added.warnings };
    desk.changed(&answer, || format!("{surface} {}\n", if added.created { "added" } else { "is there" }))
}

/// Tells of keys that look like the same place; with `--json` they stand in the answer.
pub fn warn(desk: &Desk<'_>, warnings: &[Overlap]) {
    if desk.context.json {
        return;
    }
    for overlap in warnings {
        let text = format!(
            "tenure: warning: {} may be the same place: {}; --shares {} says that this is meant",
            overlap.surface, overlap.why, overlap.surface
        );
        out::note(&escape::message(&text));
    }
}

fn list(desk: &Desk<'_>) -> Result<Exit, CliError> {
    let surfaces = desk.ledger.surfaces().map_err(refused)?;
    let now_ms = desk.ledger.now_ms().map_err(refused)?;
    desk.list(&surfaces, || {
        let rows = surfaces.iter().map(|view| {
            let live = view.placements.iter().filter(|placement| placement.live).count();
            vec![
                view.surface.to_string(),
                owner(view),
                view.waiting.len().to_string(),
                live.to_string(),
                render::ago(now_ms, view.created_ms),
            ]
        });
        render::table(&["SURFACE", "OWNER", "WAITING", "PLACED", "AGE"], rows.collect())
    })
}

fn owner(view: &SurfaceView) -> String {
    match (&view.owner, &view.legacy) {
        (Some(owner), _) => format!("{} ({})", owner.admission, owner.phase),
        (None, Some(legacy)) => format!("{} (legacy)", escape::cell(legacy.who.as_str())),
        (None, None) => "-".to_owned(),
    }
}

fn show(desk: &Desk<'_>, surface: &SurfaceKey) -> Result<Exit, CliError> {
    let view = desk.ledger.surface(surface).map_err(refused)?;
    desk.answer(&view, || {
        let mut out = format!("surface      {}\nowner        {}\n", view.surface, owner(&view));
        for shared in &view.shares {
            out.push_str(&format!("shares with  {shared}\n"));
        }
        for placement in &view.placements {
            let destination = &placement.destination;
            let gone = if placement.live { "" } else { ", gone" };
            let (machine, place, generation) = (destination.machine, &destination.place, destination.generation);
            out.push_str(&format!("placed       {place} on {machine} (gen {generation}{gone})\n"));
        }
        for record in &view.waiting {
            out.push_str(&format!("waiting      {} {}\n", record.admission, record.key()));
        }
        out
    })
}
