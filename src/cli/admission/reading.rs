//! `show`, `history` and `refusals`: what the ledger knows.

use tenure::admission::{AdmId, AttemptKey, History, MachineRef, Refusal, RequestId, SurfaceKey};

use super::desk::Desk;
use super::refusal::refused;
use super::render::{self, View};
use super::request::surface;
use crate::cli::args;
use crate::cli::escape;
use crate::cli::exit::{CliError, Exit};
use crate::cli::render::time;

/// Shows one admission, by its id or its request, or what is open and waiting on a surface
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// An admission, REQUEST/N, or a surface
    #[arg(value_name = "WHAT")]
    what: String,
}

/// Lists admissions, the oldest first
#[derive(Debug, clap::Args)]
pub struct HistoryArgs {
    /// Of this surface
    #[arg(value_name = "SURFACE", value_parser = surface)]
    surface: Option<SurfaceKey>,

    /// Of this request
    #[arg(long, value_name = "ID")]
    request: Option<RequestId>,

    /// Of the last so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = args::wait_ms)]
    since: Option<u64>,

    /// Only those that are open while no credential is good: nobody can tell whether they run
    #[arg(long)]
    uncertain: bool,

    /// Only those that are not closed
    #[arg(long)]
    unfinished: bool,

    /// The newest so many
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
}

/// Lists what was refused, the latest first, with the reasons
#[derive(Debug, clap::Args)]
pub struct RefusalsArgs {
    /// For this surface
    #[arg(value_name = "SURFACE", value_parser = surface)]
    surface: Option<SurfaceKey>,
}

/// Runs `show`.
pub fn show(desk: &Desk<'_>, args: ShowArgs) -> Result<Exit, CliError> {
    let ledger = desk.ledger.as_ref();
    let record = match args.what.parse::<AdmId>() {
        Ok(id) => ledger.show(&id).map_err(refused)?,
        Err(_) => match by_request(desk, &args.what)? {
            Some(record) => record,
            None => return on_surface(desk, &args.what),
        },
    };
    let view = View::now(&record, ledger);
    desk.answer(&view, || render::record(&view))
}

/// The attempt that a text names, if it is a request's; without a number, the latest one.
fn by_request(desk: &Desk<'_>, text: &str) -> Result<Option<tenure::admission::Record>, CliError> {
    let Ok(key) = text.parse::<AttemptKey>() else { return Ok(None) };
    if text.contains('/') {
        return match desk.ledger.find(&key) {
            Ok(record) => Ok(Some(record)),
            Err(Refusal::NotFound { .. }) => Ok(None),
            Err(refusal) => Err(refused(refusal)),
        };
    }
    let which = History { request: Some(key.request), ..History::default() };
    let all = desk.ledger.history(&which).map_err(refused)?;
    Ok(all.into_iter().max_by_key(|record| record.attempt))
}

fn on_surface(desk: &Desk<'_>, text: &str) -> Result<Exit, CliError> {
    let none =
        || refused(Refusal::NotFound { what: format!("admission, request or surface {}", escape::message(text)) });
    let surface = surface(text).map_err(|_| none())?;
    let view = match desk.ledger.surface(&surface) {
        Ok(view) => view,
        Err(Refusal::NotFound { .. }) => return Err(none()),
        Err(refusal) => return Err(refused(refusal)),
    };
    let ledger = desk.ledger.as_ref();
    let views: Vec<View<'_>> = view.owner.iter().chain(&view.waiting).map(|record| View::now(record, ledger)).collect();
    desk.list(&views, || match views.as_slice() {
        [] => format!("nothing is open or waiting on {surface}\n"),
        views => views.iter().map(render::record).collect::<Vec<_>>().join("\n"),
    })
}

/// Runs `history`.
pub fn history(desk: &Desk<'_>, args: HistoryArgs) -> Result<Exit, CliError> {
    let machine = desk.machine.as_ref().map(|machine: &MachineRef| desk.machine_id(machine)).transpose()?;
    let since_ms = match args.since {
        Some(ms) => Some(desk.ledger.now_ms().map_err(refused)?.saturating_sub(ms)),
        None => None,
    };
    let which = History {
        surface: args.surface,
        request: args.request,
        machine,
        since_ms,
        uncertain: args.uncertain,
        unfinished: args.unfinished,
        limit: args.limit,
    };
    let all = desk.ledger.history(&which).map_err(refused)?;
    let ledger = desk.ledger.as_ref();
    // Only what is open has anything to ask about.
    let view = |record| View::now(record, ledger);
    let views: Vec<View<'_>> =
        all.iter().map(|record| if record.is_open() { view(record) } else { View::plain(record) }).collect();
    desk.list(&views, || render::records(&views))
}

/// Runs `refusals`.
pub fn refusals(desk: &Desk<'_>, args: RefusalsArgs) -> Result<Exit, CliError> {
    let all = desk.ledger.refusals(args.surface.as_ref()).map_err(refused)?;
    desk.list(&all, || {
        let rows = all.iter().map(|refused| {
            vec![
                time(refused.at_ms),
                format!("{}/{}", refused.request, refused.attempt),
                refused.surface.to_string(),
                refused.code.clone(),
                refused.times.to_string(),
                escape::cell(&refused.reason),
            ]
        });
        render::table(&["WHEN", "REQUEST", "SURFACE", "CODE", "TIMES", "REASON"], rows.collect())
    })
}
