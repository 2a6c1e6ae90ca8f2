//! `admission`: one gate before anything starts in a place. One file per verb, and what the verbs share.

mod admit;
mod append;
mod attach;
mod cancel;
mod close;
mod desk;
mod fsck;
mod gate;
mod legacy;
mod machine;
mod migrate;
mod outbox;
mod pickup;
mod place;
mod reading;
mod refusal;
mod release;
mod render;
mod request;
mod run;
mod send;
mod start;
mod stop;
mod submit;
mod surface;
mod token;

use super::context::Context;
use super::exit::{CliError, Exit};
use desk::{Desk, DeskArgs, Need};
pub use gate::NodeGate;
use request::Asked;
use tenure::admission::{Home, MachineRef};

const AFTER_HELP: &str = "\
A first round, on one machine:
  tenure adm surface add docs
  tenure adm place docs --path /srv/docs
  tenure adm start docs --request r1 -- make
  tenure adm history docs

Exit codes:
   0 done                     2 usage                    3 nothing to pick up
   4 not found                5 ledger unusable         10 busy
  11 conflict                12 placement changed, or stopping
  13 no destination          14 denied
  15 the attempt before is open, 16 final, 24 unknown
  17 closed                  18 canceled                19 not the destination
  20 expired                 21 credential              22 another one waits
  25 busy: the legacy path owns the surface
  28 not the owner any more  29 already started         30 damaged
  75 answer unknown: it stays in the outbox, send it again

`start` ends with the exit code of its command.";

/// Asks for an admission before anything starts: at most one unfinished start per workspace surface
#[derive(Debug, clap::Args)]
#[command(visible_alias = "adm", after_help = AFTER_HELP)]
pub struct AdmissionArgs {
    #[command(flatten)]
    desk: DeskArgs,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    #[command(subcommand)]
    Surface(surface::SurfaceVerb),
    Place(place::PlaceArgs),
    Submit(submit::SubmitArgs),
    Start(start::StartArgs),
    Admit(admit::AdmitArgs),
    Pickup(pickup::PickupArgs),
    Attach(attach::AttachArgs),
    Started(attach::StartedArgs),
    Close(close::CloseArgs),
    Append(append::AppendArgs),
    Stop(stop::StopArgs),
    Cancel(cancel::CancelArgs),
    Revoke(release::RevokeArgs),
    Release(release::ReleaseArgs),
    Show(reading::ShowArgs),
    History(reading::HistoryArgs),
    Refusals(reading::RefusalsArgs),
    #[command(subcommand)]
    Outbox(outbox::OutboxVerb),
    #[command(subcommand)]
    Legacy(legacy::LegacyVerb),
    #[command(subcommand)]
    Machine(machine::MachineVerb),
    Migrate(migrate::MigrateArgs),
    Fsck(fsck::FsckArgs),
}

impl Verb {
    fn need(&self) -> Need {
        match self {
            Verb::Migrate(_) => Need::NewKeys,
            Verb::Outbox(verb) => verb.need(),
            _ => Need::Keys,
        }
    }

    /// What is kept before it is sent, if the verb sends anything.
    fn asked(self, pinned: Option<MachineRef>) -> Option<Result<Asked, CliError>> {
        match self {
            Verb::Submit(args) => Some(args.asked(pinned)),
            Verb::Start(args) => Some(args.asked()),
            Verb::Admit(args) => Some(args.asked()),
            Verb::Append(args) => Some(args.asked()),
            _ => None,
        }
    }
}

/// Runs the verb.
pub fn run(context: &Context, args: AdmissionArgs) -> Result<Exit, CliError> {
    let pinned = args.desk.machine();
    let desk = match Desk::open(context, args.desk, args.verb.need()) {
        Ok(desk) => desk,
        // What somebody wants to start is kept, whatever is the matter with the ledger.
        Err(error) => match args.verb.asked(pinned) {
            Some(asked) => return Err(send::keep_unsent(&Home::from_env(context.dir.clone()), asked?, error)),
            None => return Err(error),
        },
    };
    match args.verb {
        Verb::Surface(verb) => surface::run(&desk, verb),
        Verb::Place(args) => place::run(&desk, args),
        Verb::Submit(args) => submit::run(&desk, args),
        Verb::Start(args) => start::run(&desk, args),
        Verb::Admit(args) => admit::run(&desk, args),
        Verb::Pickup(args) => pickup::run(&desk, args),
        Verb::Attach(args) => attach::attach(&desk, args),
        Verb::Started(args) => attach::started(&desk, args),
        Verb::Close(args) => close::run(&desk, args),
        Verb::Append(args) => append::run(&desk, args),
        Verb::Stop(args) => stop::run(&desk, args),
        Verb::Cancel(args) => cancel::run(&desk, args),
        Verb::Revoke(args) => release::revoke(&desk, args),
        Verb::Release(args) => release::release(&desk, args),
        Verb::Show(args) => reading::show(&desk, args),
        Verb::History(args) => reading::history(&desk, args),
        Verb::Refusals(args) => reading::refusals(&desk, args),
        Verb::Outbox(verb) => outbox::run(&desk, verb),
        Verb::Legacy(verb) => legacy::run(&desk, verb),
        Verb::Machine(verb) => machine::run(&desk, verb),
        Verb::Migrate(_) => migrate::run(&desk),
        Verb::Fsck(_) => fsck::run(&desk),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    /// What is indented is shown as it stands, so it has to fit a usual terminal.
    #[test]
    fn what_is_said_below_the_options_fits_a_terminal() {
        let command = crate::cli::Cli::command();
        let admission = command.find_subcommand("admission").unwrap();
        for verb in std::iter::once(admission).chain(admission.get_subcommands()) {
            let text = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in text.lines().filter(|line| line.starts_with(' ')) {
                assert!(line.len() <= 80, "{}: {line}", verb.get_name());
            }
        }
    }
}
