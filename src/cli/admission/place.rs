//! `place`: where a surface is. Every change of it is a new generation.

use std::path::PathBuf;

use serde::Serialize;
use tenure::admission::names::Fault;
use tenure::admission::{MachineRef, Overlap, Place, Placed, Placing, Refusal, SurfaceKey, Work};

use super::desk::Desk;
use super::refusal::refused;
use super::request::surface;
use super::surface::warn;
use crate::cli::exit::{CliError, Exit};

/// Says where a surface is on a machine, or that it is no longer there
///
/// The same words again change nothing. Anything else is a new generation: an admission that is open is not moved, it is
/// asked to stop, and the next start goes to the new place.
#[derive(Debug, clap::Args)]
pub struct PlaceArgs {
    /// The surface
    #[arg(value_name = "SURFACE", value_parser = surface)]
    surface: SurfaceKey,

    /// The path on that machine
    #[arg(long, value_name = "PATH", required_unless_present = "gone")]
    path: Option<PathBuf>,

    /// What the place is kept on, such as the name of a volume
    #[arg(long, value_name = "NAME", conflicts_with = "gone")]
    storage: Option<String>,

    /// The work that it belongs to
    #[arg(long, value_name = "WORK", conflicts_with = "gone")]
    work: Option<Work>,

    /// It is no longer there; nothing is deleted
    #[arg(long, conflicts_with = "path")]
    gone: bool,

    /// For `--gone`, the machine may stand here
    #[arg(value_name = "MACHINE", requires = "gone")]
    on: Option<MachineRef>,
}

#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    placed: &'a Placed,
    warnings: &'a [Overlap],
}

/// Runs the verb.
pub fn run(desk: &Desk<'_>, args: PlaceArgs) -> Result<Exit, CliError> {
    let sender = desk.sender()?;
    let machine = match args.on.as_ref().or(desk.machine.as_ref()) {
        Some(machine) => desk.machine_id(machine)?,
        None => sender.machine,
    };
    let placed = match &args.path {
        Some(path) => {
            // Links can only be followed on the machine that has them.
            let here = machine == sender.machine;
            let place = if here { Place::on_this_machine(path) } else { as_it_stands(path) };
            let place = place.map_err(|bad| refused(Refusal::Name(bad)))?;
            let (surface, storage, work) = (args.surface.clone(), args.storage, args.work);
            desk.ledger.place(&Placing { surface, machine, place, storage, work })
        }
        None => desk.ledger.place_gone(&args.surface, &machine),
    }
    .map_err(refused)?;
    warn(desk, &placed.warnings);
    let answer = Answer { placed: &placed, warnings: &placed.warnings };
    desk.changed(&answer, || {
        let placement = &placed.placement;
        let (place, generation) = (&placement.destination.place, placement.destination.generation);
        let mut out = match placement.live {
            true => format!("{} is at {place} (gen {generation})\n", placement.surface),
            false => format!("{} is no longer at {place}\n", placement.surface),
        };
        for record in &placed.stopping {
            out.push_str(&format!("{} {} is stopping\n", record.admission, record.key()));
        }
        out
    })
}

fn as_it_stands(path: &std::path::Path) -> Result<Place, tenure::admission::BadName> {
    let not_text = Fault::Spelling { expected: "a path of UTF-8 text" };
    path.to_str().ok_or(tenure::admission::BadName::new("place", not_text))?.parse()
}
