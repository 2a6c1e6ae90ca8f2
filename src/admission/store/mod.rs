//! A ledger in a database: gathers the facts inside a transaction, asks the rules, writes what they say.
//!
//! The order of locks is the same in every verb: the name that something new is to have, the row of the request (or of the
//! admission), then the row of the surface. Placements and everything else about a surface are read behind its lock. The
//! policy is asked before anything is written and while no transaction is open; the transaction compares its epoch when it
//! begins to decide and once more before it commits.

mod pickup;
mod surfaces;
mod verbs;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::credential::{CREDENTIAL_MS_DEFAULT, Seal};
use super::facts::Policy;
use super::names::{AdmId, MachineId};
use super::record::Record;
use super::refusal::Refusal;
use super::rules::{Ground, Halt, Permit, Ruled, Ruling, Scene};
use super::sql::{Database, End, Mode, Probe, Trouble, Tx, read, write};

/// A clock for the ledger: milliseconds since 1970.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// How long a verb waits for others that have the ledger, unless told otherwise.
pub const WAIT_MS_DEFAULT: u64 = 10_000;

/// How often a policy that changes while it is asked is asked again.
const POLICY_ROUNDS: u32 = 8;

/// What a ledger needs besides its database.
#[derive(Clone)]
pub struct Options {
    /// Says who may start what.
    pub policy: Arc<dyn Policy>,
    /// Makes and reads credentials.
    pub seal: Arc<dyn Seal>,
    /// How long a credential is good.
    pub credential_ms: u64,
    /// How long to wait for others that have the ledger.
    pub wait_ms: u64,
    /// `None`: the ledger's own, which is this host's for a file and the server's for PostgreSQL.
    pub clock: Option<Clock>,
    /// Sees every statement.
    pub probe: Option<Probe>,
}

impl Options {
    /// The defaults, with this policy and seal.
    pub fn new(policy: Arc<dyn Policy>, seal: Arc<dyn Seal>) -> Options {
        let (credential_ms, wait_ms) = (CREDENTIAL_MS_DEFAULT, WAIT_MS_DEFAULT);
        Options { policy, seal, credential_ms, wait_ms, clock: None, probe: None }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Options(credential {} ms, wait {} ms)", self.credential_ms, self.wait_ms)
    }
}

/// What a machine was told last: see [`read::news`].
type News = (u64, u64, u64);

/// Gathers the facts inside a transaction and asks the rules.
type Rule<'a, T> = dyn FnMut(&mut dyn Tx, &Scene<'_>) -> Result<Ruling<T>, Trouble> + 'a;

/// The same for an admission that is there, with the ground of its surface.
type RuleOn<'a, T> = dyn FnMut(&mut dyn Tx, &Record, &Ground, &Scene<'_>) -> Result<Ruling<T>, Trouble> + 'a;

/// A ledger in the database `D`.
pub(super) struct Store<D> {
    db: D,
    options: Options,
    /// What each machine knew when it last picked up, so that waiting misses nothing in between.
    told: Mutex<BTreeMap<MachineId, News>>,
}

/// What a transaction came to.
enum Next<T> {
    Done(Result<T, Refusal>),
    Ask(Box<super::facts::Facts>),
    /// The policy has changed since it was asked.
    Stale,
}

impl<D: Database> Store<D> {
    pub(super) fn new(db: D, options: Options) -> Store<D> {
        Store { db, options, told: Mutex::new(BTreeMap::new()) }
    }

    fn now(&self, tx: &mut dyn Tx) -> Result<u64, Trouble> {
        match &self.options.clock {
            Some(clock) => Ok(clock()),
            None => tx.now_ms(),
        }
    }

    /// One verb: gathers, decides and writes in one transaction, and asks the policy in between as often as needed.
    fn decide<T>(&self, rule: &mut Rule<'_, T>) -> Result<T, Refusal> {
        let mut permit: Option<Permit> = None;
        for _ in 0..POLICY_ROUNDS {
            let next = self.db.transact(Mode::Write, &mut |tx| self.once(tx, permit.as_ref(), rule))?;
            match next {
                Next::Done(answer) => return answer,
                Next::Stale => {}
                Next::Ask(facts) => {
                    let decision = self.options.policy.evaluate(&facts);
                    permit = Some(Permit { facts: *facts, decision });
                }
            }
        }
        let reason = "the policy changed again and again while it was asked; try again".to_owned();
        Err(Refusal::Denied { reason })
    }

    fn once<T>(
        &self,
        tx: &mut dyn Tx,
        permit: Option<&Permit>,
        rule: &mut Rule<'_, T>,
    ) -> Result<End<Next<T>>, Trouble> {
        let epoch = self.options.policy.epoch();
        let now_ms = self.now(tx)?;
        let scene = Scene { now_ms, epoch, permit, credential_ms: self.options.credential_ms };
        let (answer, writes) = match rule(tx, &scene)? {
            Ok(Ruled { answer, writes }) => (Ok(answer), writes),
            Err(Halt::Refused { refusal, writes }) => (Err(refusal), writes),
            Err(Halt::Ask(facts)) => return Ok(End::Rollback(Next::Ask(facts))),
        };
        if writes.is_empty() {
            return Ok(End::Rollback(Next::Done(answer)));
        }
        write::apply(tx, &writes)?;
        if permit.is_some() && self.options.policy.epoch() != epoch {
            return Ok(End::Rollback(Next::Stale));
        }
        Ok(End::Commit(Next::Done(answer)))
    }

    /// One verb about an admission by its id: the row is locked, then its surface.
    fn decide_on<T>(&self, id: &AdmId, rule: &mut RuleOn<'_, T>) -> Result<T, Refusal> {
        self.decide(&mut |tx, scene| {
            let Some(record) = read::by_id_locked(tx, id)? else {
                return Ok(Err(not_found(id).into()));
            };
            let ground = read::ground(tx, &record.surface, true)?;
            rule(tx, &record, &ground, scene)
        })
    }

    /// A look at one moment; nothing is written and nothing is made.
    fn look<T>(&self, look: &mut dyn FnMut(&mut dyn Tx) -> Result<T, Trouble>) -> Result<T, Refusal> {
        Ok(self.db.transact(Mode::Read, &mut |tx| look(tx).map(End::Rollback))?)
    }

    fn was_told(&self, machine: &MachineId) -> Option<News> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).get(machine).copied()
    }

    fn tell(&self, machine: &MachineId, news: News) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(*machine, news);
    }
}

fn not_found(id: &AdmId) -> Refusal {
    Refusal::NotFound { what: format!("admission {id}") }
}
