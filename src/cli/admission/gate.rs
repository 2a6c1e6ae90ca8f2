//! Nodes that name a surface: whether one can start, and its command under an admission. The ledger is opened when the
//! first such node is met, so whoever has none pays nothing.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tenure::admission::open::{self, Address};
use tenure::admission::{
    Attempt, AttemptKey, Home, Identity, Ledger, MachineId, Refusal, RequestId, Subject, SurfaceKey, SurfaceView,
};
use tenure::run::{GateAnswer, Gatekeeper, Start};

use crate::cli::context::Context;
use crate::cli::out;

/// Codes of refusals that another time may not meet.
const NOT_NOW: [&str; 4] = ["busy", "busy_legacy", "waiting_exists", "previous_open"];

/// Who asks the ledger about nodes.
pub struct NodeGate {
    /// What `--dir` named: the commands are to find the same ledger.
    dir: Option<PathBuf>,
    /// Whether a surface that this user has open on this machine counts: for who goes on with it, not for who starts anew.
    with_mine: bool,
    desk: OnceLock<Result<Desk, String>>,
    /// What was said already.
    said: Mutex<BTreeSet<String>>,
}

struct Desk {
    ledger: Box<dyn Ledger>,
    machine: MachineId,
    subject: Subject,
}

impl fmt::Debug for NodeGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeGate").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl NodeGate {
    /// For who looks: a surface that is free, or this user's on this machine.
    pub fn for_lookers(context: &Context) -> NodeGate {
        NodeGate { with_mine: true, ..NodeGate::for_starters(context) }
    }

    /// For who starts: a surface that is free.
    pub fn for_starters(context: &Context) -> NodeGate {
        let (desk, said) = (OnceLock::new(), Mutex::default());
        NodeGate { dir: context.dir.clone(), with_mine: false, desk, said }
    }

    /// As a worker asks.
    pub fn into_gate(self) -> tenure::Gate {
        Arc::new(move |surface: &str| self.is_startable(surface))
    }

    fn desk(&self) -> Result<&Desk, String> {
        self.desk.get_or_init(|| Desk::open(self.dir.clone())).as_ref().map_err(String::clone)
    }

    fn view(&self, surface: &str) -> Result<Option<SurfaceView>, String> {
        let key: SurfaceKey = surface.parse().map_err(|bad| format!("{surface:?} is no surface: {bad}"))?;
        match self.desk()?.ledger.surface(&key) {
            Ok(view) => Ok(Some(view)),
            Err(Refusal::NotFound { .. }) => Ok(None),
            Err(refusal) => Err(refusal.to_string()),
        }
    }

    /// Says a thing once.
    fn say(&self, what: &str) {
        if self.said.lock().unwrap_or_else(PoisonError::into_inner).insert(what.to_owned()) {
            out::note(&format!("tenure: {what}"));
        }
    }

    fn ask(&self, start: &Start<'_>) -> Result<GateAnswer, String> {
        let request: RequestId = start.request.parse().map_err(|bad| format!("{bad}"))?;
        let attempt = Attempt::try_from(1).map_err(|bad| bad.to_string())?;
        let ledger = &self.desk()?.ledger;
        match ledger.find(&AttemptKey { request: request.clone(), attempt }) {
            Ok(_) => return Ok(GateAnswer::Admitted),
            Err(Refusal::NotFound { .. }) => {}
            Err(refusal) => return Err(refusal.to_string()),
        }
        let refusals = ledger.refusals(None).map_err(|refusal| refusal.to_string())?;
        let refused = refusals.into_iter().find(|refused| refused.request == request);
        let refused = refused.ok_or("the ledger does not know of the request")?;
        let why = format!("{}: {}", refused.code, refused.reason);
        Ok(match NOT_NOW.contains(&refused.code.as_str()) {
            true => GateAnswer::NotNow { why },
            false => GateAnswer::Refused { why },
        })
    }
}

impl Desk {
    fn open(dir: Option<PathBuf>) -> Result<Desk, String> {
        let home = Home::from_env(dir);
        let address = Address::read(std::env::var("TENURE_LEDGER").ok().as_deref(), &home);
        let subject: Subject = Home::user().parse().map_err(|bad| format!("{bad}"))?;
        let keys = open::seal_keys(&home, &address, false).map_err(|error| error.to_string())?;
        let ledger = open::open(&home, &address, keys, subject.clone(), &open::Times::default())
            .map_err(|error| error.to_string())?;
        let machine = Identity::own(&home).map_err(|error| error.to_string())?.machine;
        Ok(Desk { ledger, machine, subject })
    }
}

impl Gatekeeper for NodeGate {
    fn is_startable(&self, surface: &str) -> bool {
        let (view, desk) = match self.view(surface).and_then(|view| Ok((view, self.desk()?))) {
            Ok(both) => both,
            Err(why) => {
                self.say(&format!("nodes on the surface {surface:?} are passed over: {why}"));
                return false;
            }
        };
        let Some(view) = view else {
            self.say(&format!(
                "nodes on the surface {surface:?} are passed over: the ledger does not know it (`tenure adm surface add`, \
                 then `tenure adm place`)"
            ));
            return false;
        };
        let is_here = view.placements.iter().any(|it| it.live && it.destination.machine == desk.machine);
        let is_free = match &view.owner {
            Some(owner) => self.with_mine && owner.destination.machine == desk.machine && owner.subject == desk.subject,
            None => view.legacy.is_none(),
        };
        is_here && is_free
    }

    fn under_admission(&self, start: &Start<'_>, command: Vec<OsString>) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["/proc/self/exe".into(), "admission".into()];
        if let Some(dir) = &self.dir {
            let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
            words.extend(["--dir".into(), dir.into()]);
        }
        words.extend(["start", start.surface, "--request", start.request, "--"].map(Into::into));
        words.extend(command);
        words
    }

    fn answer(&self, start: &Start<'_>) -> GateAnswer {
        self.ask(start).unwrap_or_else(|why| GateAnswer::NotNow { why })
    }
}
