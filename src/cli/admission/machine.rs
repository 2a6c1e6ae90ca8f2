//! `machine`: who this machine is, and what the machines are called.

use serde::Serialize;
use tenure::admission::{Identity, MachineId, MachineLabel, MachineRef, Refusal};

use super::desk::Desk;
use super::refusal::{key_error, refused};
use super::render;
use crate::cli::exit::{CliError, Exit};
use crate::cli::render::time;

/// Machines: who this one is, and what they are called
#[derive(Debug, clap::Subcommand)]
pub enum MachineVerb {
    /// Prints the id of this machine
    Show,
    /// Lists the machines that the ledger has seen, and those that this machine can act as
    List,
    /// Makes one more identity on this machine, and tells the ledger its label
    Add {
        /// What it is called
        #[arg(value_name = "LABEL")]
        label: MachineLabel,
    },
    /// Gives this machine, or the one of --machine, a label; without one it is taken away
    Label {
        /// What it is called from now on
        #[arg(value_name = "LABEL")]
        label: Option<MachineLabel>,
    },
    /// Removes a machine from the list; its admissions stay as they are
    Forget {
        /// Its label or id
        #[arg(value_name = "MACHINE")]
        which: MachineRef,
    },
}

#[derive(Serialize)]
struct Line {
    machine: MachineId,
    label: Option<MachineLabel>,
    seen_ms: Option<u64>,
    here: bool,
}

/// Runs the verb.
pub fn run(desk: &Desk<'_>, verb: MachineVerb) -> Result<Exit, CliError> {
    match verb {
        MachineVerb::Show => {
            let machine = desk.identity()?.machine;
            desk.answer(&serde_json::json!({ "machine": machine }), || format!("{machine}\n"))
        }
        MachineVerb::List => list(desk),
        MachineVerb::Add { label } => {
            let identity = Identity::add(&desk.home, &label).map_err(key_error)?;
            set_label(desk, &identity.machine, Some(&label))
        }
        MachineVerb::Label { label } => {
            let machine = match &desk.machine {
                Some(machine) => desk.machine_id(machine)?,
                None => desk.identity()?.machine,
            };
            set_label(desk, &machine, label.as_ref())
        }
        MachineVerb::Forget { which } => {
            let machine = desk.machine_id(&which)?;
            if !desk.ledger.machine_forget(&machine).map_err(refused)? {
                return Err(refused(Refusal::NotFound { what: format!("machine {machine} in the ledger") }));
            }
            desk.changed(&serde_json::json!({ "machine": machine }), || format!("{machine} is forgotten\n"))
        }
    }
}

fn set_label(desk: &Desk<'_>, machine: &MachineId, label: Option<&MachineLabel>) -> Result<Exit, CliError> {
    let view = desk.ledger.machine_label(machine, label).map_err(refused)?;
    desk.changed(&view, || match &view.label {
        Some(label) => format!("{machine} is called {label}\n"),
        None => format!("{machine} has no label\n"),
    })
}

fn list(desk: &Desk<'_>) -> Result<Exit, CliError> {
    let here = Identity::all(&desk.home).map_err(key_error)?;
    let is_here = |machine: &MachineId| here.iter().any(|identity| identity.machine == *machine);
    let known = desk.ledger.machines().map_err(refused)?;
    let mut lines: Vec<Line> = known
        .into_iter()
        .map(|view| Line {
            here: is_here(&view.machine),
            machine: view.machine,
            label: view.label,
            seen_ms: view.seen_ms,
        })
        .collect();
    for identity in &here {
        if !lines.iter().any(|line| line.machine == identity.machine) {
            let label = identity.label.clone();
            lines.push(Line { machine: identity.machine, label, seen_ms: None, here: true });
        }
    }
    desk.list(&lines, || {
        let rows = lines.iter().map(|line| {
            vec![
                line.machine.to_string(),
                line.label.as_ref().map(ToString::to_string).unwrap_or_default(),
                if line.here { "here".to_owned() } else { String::new() },
                line.seen_ms.map(time).unwrap_or_default(),
            ]
        });
        render::table(&["MACHINE", "LABEL", "HERE", "LAST PICKUP"], rows.collect())
    })
}
