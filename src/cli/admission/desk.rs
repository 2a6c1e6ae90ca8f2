//! What every verb about admissions is given: the ledger, who asks, which machine this is, and the outbox.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use tenure::admission::open::{self, Address, Times};
use tenure::admission::{
    Home, Identity, Ledger, MachineId, MachineLabel, MachineRef, Outbox, Refusal, SealKeys, Subject,
};

use super::refusal::{self, key_error, refused};
use crate::cli::args;
use crate::cli::context::Context;
use crate::cli::exit::{CliError, Exit};

/// Options of every verb about admissions.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options of every admission verb")]
pub struct DeskArgs {
    /// The ledger: postgres://..., or a directory [default: the directory of --dir, else $TENURE_STATE_DIR, else
    /// $XDG_STATE_HOME/tenure, else ~/.local/state/tenure]
    #[arg(long, global = true, env = "TENURE_LEDGER", hide_env_values = true, value_name = "LEDGER")]
    ledger: Option<String>,

    /// Which machine, by label or id: the destination for `place` and `submit`, who acts for the others
    #[arg(long, global = true, value_name = "MACHINE")]
    machine: Option<MachineRef>,

    /// How long to wait for others that have the ledger, in seconds
    #[arg(long, global = true, value_name = "SECONDS", value_parser = args::wait_ms)]
    timeout: Option<u64>,

    /// How long the credentials that are made now are good, in seconds [default: 300]
    #[arg(long, global = true, value_name = "SECONDS", value_parser = args::lease_ms)]
    credential: Option<u64>,
}

impl DeskArgs {
    /// What `--machine` says.
    pub fn machine(&self) -> Option<MachineRef> {
        self.machine.clone()
    }
}

/// What a verb needs to make and read credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing: it looks at what is kept on this machine.
    Nothing,
    /// The keys.
    Keys,
    /// The keys of several hosts, which are made when there are none.
    NewKeys,
}

/// Who acts when `--machine` does not say.
const MACHINE_VAR: &str = "TENURE_MACHINE";

/// Where the verbs work.
pub struct Desk<'a> {
    pub context: &'a Context,
    pub home: Home,
    pub ledger: Box<dyn Ledger>,
    pub subject: Subject,
    pub outbox: Outbox,
    /// What `--machine` says.
    pub machine: Option<MachineRef>,
    can_issue: bool,
}

impl<'a> Desk<'a> {
    /// Opens the ledger.
    pub fn open(context: &'a Context, args: DeskArgs, need: Need) -> Result<Desk<'a>, CliError> {
        let home = Home::from_env(context.dir.clone());
        let address = Address::read(args.ledger.as_deref(), &home);
        let subject: Subject = Home::user().parse().map_err(|bad| refused(Refusal::Name(bad)))?;
        let keys = match need {
            Need::Nothing => SealKeys::Absent,
            Need::Keys => open::seal_keys(&home, &address, false).map_err(refusal::open_error)?,
            Need::NewKeys => open::seal_keys(&home, &address, true).map_err(refusal::open_error)?,
        };
        let times = Times { wait_ms: args.timeout, credential_ms: args.credential };
        let can_issue = keys.can_issue();
        let ledger = open::open(&home, &address, keys, subject.clone(), &times).map_err(refusal::open_error)?;
        let outbox = Outbox::new(home.outbox());
        Ok(Desk { context, home, ledger, subject, outbox, machine: args.machine, can_issue })
    }

    /// This machine, or the one of its identities that is to act.
    pub fn identity(&self) -> Result<Identity, CliError> {
        match &self.machine {
            Some(machine) => self.identity_called(machine),
            None => self.sender(),
        }
    }

    /// The identity that sends, where `--machine` names a destination.
    pub fn sender(&self) -> Result<Identity, CliError> {
        match std::env::var(MACHINE_VAR) {
            Ok(text) if !text.is_empty() => {
                let machine = text.parse().map_err(|bad| refused(Refusal::Name(bad)))?;
                self.identity_called(&machine)
            }
            _ => Identity::own(&self.home).map_err(key_error),
        }
    }

    /// An identity that is here; a machine that is elsewhere cannot act from here.
    fn identity_called(&self, machine: &MachineRef) -> Result<Identity, CliError> {
        let all = Identity::all(&self.home).map_err(key_error)?;
        let found = all.iter().find(|identity| match machine {
            MachineRef::Id(id) => identity.machine == *id,
            MachineRef::Label(label) => identity.label.as_ref() == Some(label),
        });
        if let Some(identity) = found {
            return Ok(identity.clone());
        }
        if let MachineRef::Label(label) = machine {
            let known = self.labelled(label)?;
            if let Some(identity) = all.into_iter().find(|identity| Some(identity.machine) == known) {
                return Ok(identity);
            }
        }
        let message = format!("this machine has no key of {machine}, so it cannot act as that machine");
        Err(CliError::usage("no_key", message)
            .with_hint(
                "`tenure adm machine list` shows who this machine is; `machine add LABEL` makes one more identity",
            )
            .with_field("machine", machine.to_string()))
    }

    /// The machine that has this label in the ledger.
    fn labelled(&self, label: &MachineLabel) -> Result<Option<MachineId>, CliError> {
        let machines = self.ledger.machines().map_err(refused)?;
        Ok(machines.into_iter().find(|machine| machine.label.as_ref() == Some(label)).map(|machine| machine.machine))
    }

    /// The machine that a person names, wherever it is.
    pub fn machine_id(&self, machine: &MachineRef) -> Result<MachineId, CliError> {
        let label = match machine {
            MachineRef::Id(id) => return Ok(*id),
            MachineRef::Label(label) => label,
        };
        if let Some(identity) = Identity::named(&self.home, label).map_err(key_error)? {
            return Ok(identity.machine);
        }
        self.labelled(label)?.ok_or_else(|| {
            CliError::problem(Exit::NoSuchNode, "not_found", format!("there is no machine called {label}"))
                .with_hint("`tenure adm machine label LABEL`, on that machine, gives it the name; its id does as well")
                .with_field("machine", label.to_string())
        })
    }

    /// Refuses what must make credentials where they cannot be made.
    pub fn must_issue(&self) -> Result<(), CliError> {
        if self.can_issue {
            return Ok(());
        }
        let message = "credentials cannot be made here: this machine has only the issuer's public key";
        Err(CliError::problem(Exit::Number(21), "cannot_issue", message)
            .with_hint("copy issuer.key from the issuer (mode 0600) if this machine is to make its own"))
    }

    /// Answers: with `--json` the value, else the text.
    pub fn answer<T: Serialize>(&self, value: &T, text: impl FnOnce() -> String) -> Result<Exit, CliError> {
        if self.context.json {
            self.context.out.json(value)?;
        } else {
            self.context.out.block(&text())?;
        }
        Ok(Exit::Done)
    }

    /// As [`Desk::answer`], after something was written.
    pub fn changed<T: Serialize>(&self, value: &T, text: impl FnOnce() -> String) -> Result<Exit, CliError> {
        self.context.out.mark_changed();
        self.answer(value, text)
    }

    /// Answers with many: an object a line, or the text.
    pub fn list<T: Serialize>(&self, values: &[T], text: impl FnOnce() -> String) -> Result<Exit, CliError> {
        if self.context.json {
            self.context.out.json_lines(values)?;
        } else {
            self.context.out.block(&text())?;
        }
        Ok(Exit::Done)
    }
}

/// This machine's clock: what the outbox notes, and nothing is decided by.
pub fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
