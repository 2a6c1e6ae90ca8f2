//! `legacy`: the path that takes surfaces without an admission, as long as there is one.

use tenure::admission::{Subject, SurfaceKey};

use super::desk::Desk;
use super::refusal::refused;
use super::request::surface;
use crate::cli::escape;
use crate::cli::exit::{CliError, Exit};

/// Takes and gives back a surface for a path that knows no admissions
#[derive(Debug, clap::Subcommand)]
pub enum LegacyVerb {
    /// Takes the surface; no admission is given while it is taken
    Take(LegacyArgs),
    /// Gives it back
    Drop(LegacyArgs),
}

/// Which surface, and who.
#[derive(Debug, clap::Args)]
pub struct LegacyArgs {
    /// The surface
    #[arg(value_name = "SURFACE", value_parser = surface)]
    surface: SurfaceKey,
    /// Who has it
    #[arg(value_name = "WHO")]
    who: Subject,
}

/// Runs the verb.
pub fn run(desk: &Desk<'_>, verb: LegacyVerb) -> Result<Exit, CliError> {
    match verb {
        LegacyVerb::Take(args) => {
            let owner = desk.ledger.legacy_take(&args.surface, &args.who).map_err(refused)?;
            let who = escape::cell(owner.who.as_str());
            desk.changed(&owner, || format!("{} is owned by {who}\n", args.surface))
        }
        LegacyVerb::Drop(args) => {
            desk.ledger.legacy_drop(&args.surface, &args.who).map_err(refused)?;
            let answer = serde_json::json!({ "surface": args.surface, "owner": null });
            desk.changed(&answer, || format!("{} is free\n", args.surface))
        }
    }
}
