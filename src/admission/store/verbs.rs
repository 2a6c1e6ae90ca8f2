//! The verbs about one admission. Each gathers its facts and leaves the rest to the rules.

use std::time::{Duration, Instant};

use super::{Store, not_found};
use crate::admission::credential::Grant;
use crate::admission::facts::Subject;
use crate::admission::ledger::{Answer, Fault, Ledger, Migrated, Pickup, Placed, Stop, SurfaceAdded};
use crate::admission::names::{AdmId, MachineId, MachineLabel, SurfaceKey};
use crate::admission::record::{AttemptKey, Input, Kind, LegacyOwner, MachineView, Record, Refused, SurfaceView};
use crate::admission::refusal::Refusal;
use crate::admission::request::{Append, By, Closing, History, IfWaiting, Placing, Request};
use crate::admission::rules::{self, Closer, Halt, Standing};
use crate::admission::sql::{Database, Trouble, Tx, read};

impl<D: Database> Store<D> {
    /// What the ledger has for a request, in the order of locks.
    fn standing(&self, tx: &mut dyn Tx, request: &Request) -> Result<(Standing, rules::Ground), Trouble> {
        let key = AttemptKey { request: request.request.clone(), attempt: request.attempt };
        tx.lock_name(&key.to_string())?;
        let locked = read::by_key_locked(tx, &key)?;
        let ground = read::ground(tx, &request.surface, true)?;
        // There was nothing to lock: whoever was faster on this surface is done by now.
        let row = match locked {
            Some(row) => Some(row),
            None => read::by_key(tx, &key)?,
        };
        if row.is_none() && request.if_waiting == IfWaiting::Replace {
            read::lock_waiting(tx, &request.surface)?;
        }
        let previous = match request.attempt.previous() {
            Some(attempt) if row.is_none() => read::by_key(tx, &AttemptKey { attempt, ..key.clone() })?,
            _ => None,
        };
        let appended = read::appended(tx, &key)?;
        let after_known = match &request.after {
            Some(after) => read::by_key(tx, after)?.is_some(),
            None => true,
        };
        Ok((Standing { row, previous, appended, after_known }, ground))
    }

    pub(super) fn answer(&self, record: Record, created: bool, grant: Option<&Grant>) -> Result<Answer, Refusal> {
        let credential = grant.map(|grant| self.options.seal.seal(grant)).transpose()?;
        let next_attempt = record.allows_next();
        Ok(Answer { record, created, credential, next_attempt })
    }
}

impl<D: Database> Ledger for Store<D> {
    fn submit(&self, request: &Request) -> Result<Answer, Refusal> {
        let fresh = AdmId::fresh();
        let granted = self.decide(&mut |tx, scene| {
            let (standing, ground) = self.standing(tx, request)?;
            Ok(rules::submit(request, &standing, &ground, scene, fresh))
        })?;
        self.answer(granted.record, granted.created, granted.grant.as_ref())
    }

    fn pickup(&self, machine: &MachineId) -> Result<Pickup, Refusal> {
        self.pick_up(machine)
    }

    fn pickup_list(&self, machine: &MachineId) -> Result<Pickup, Refusal> {
        self.look_at_what_waits(machine)
    }

    fn wait_for_work(&self, machine: &MachineId, at_most: Duration) -> Result<bool, Refusal> {
        // A wait longer than the clock has room for has no end.
        let end = Instant::now().checked_add(at_most);
        let mut listener = self.db.listener()?;
        loop {
            let news = self.look(&mut |tx| read::news(tx, machine))?;
            if self.was_told(machine) != Some(news) {
                self.tell(machine, news);
                return Ok(true);
            }
            let left = end.map_or(at_most, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(false);
            }
            listener.doze(left)?;
        }
    }

    fn attach(&self, admission: &AdmId, subject: &Subject, caller: &MachineId) -> Result<Answer, Refusal> {
        let (record, grant) = self.decide_on(admission, &mut |_, record, ground, scene| {
            Ok(rules::attach(record, subject, caller, ground, scene))
        })?;
        self.answer(record, false, Some(&grant))
    }

    fn mark_started(
        &self,
        admission: &AdmId,
        token: &str,
        subject: &Subject,
        caller: &MachineId,
    ) -> Result<Record, Refusal> {
        let grant = self.options.seal.open(token)?;
        self.decide_on(admission, &mut |_, record, ground, scene| {
            Ok(rules::start(record, &grant, subject, caller, ground, scene))
        })
    }

    fn check(&self, token: &str, caller: &MachineId) -> Result<Record, Refusal> {
        let grant = self.options.seal.open(token)?;
        self.look(&mut |tx| {
            let Some(record) = read::by_id(tx, &grant.admission)? else { return Ok(Err(not_found(&grant.admission))) };
            let ground = read::ground(tx, &record.surface, false)?;
            let now_ms = self.now(tx)?;
            Ok(rules::check(&record, &grant, caller, &ground, now_ms))
        })?
    }

    fn append(&self, append: &Append) -> Result<Input, Refusal> {
        let key = AttemptKey { request: append.request.clone(), attempt: append.attempt };
        self.decide(&mut |tx, scene| {
            // Starts and inputs share their names and stand in two tables, so no index keeps one name from being both.
            tx.lock_name(&key.to_string())?;
            let Some(record) = read::by_id_locked(tx, &append.admission)? else {
                return Ok(Err(not_found(&append.admission).into()));
            };
            let ground = read::ground(tx, &record.surface, true)?;
            let (row, before) = (read::by_key(tx, &key)?, read::appended(tx, &key)?);
            let next = read::next_input(tx, &append.admission)?;
            Ok(rules::append(append, &record, (row.as_ref(), before.as_ref()), next, &ground, scene))
        })
    }

    fn inputs(&self, admission: &AdmId, after: Option<u64>) -> Result<Vec<Input>, Refusal> {
        let from = after.map_or(0, |number| number.saturating_add(1));
        self.look(&mut |tx| read::inputs(tx, admission, from))
    }

    fn close(&self, admission: &AdmId, by: &By, closing: &Closing) -> Result<Record, Refusal> {
        let closer = match by {
            By::Destination { token, caller } => Closer::Destination { grant: self.options.seal.open(token)?, caller },
            By::Submitter(subject) => Closer::Submitter(subject),
            By::Operator { who, .. } => Closer::Operator(who),
        };
        let mut closing = closing.clone();
        if let By::Operator { reason, .. } = by {
            closing.reason = Some(reason.clone());
        }
        self.decide_on(admission, &mut |_, record, ground, scene| {
            Ok(rules::close(record, &closer, &closing, ground, scene))
        })
    }

    fn cancel(&self, key: &AttemptKey, subject: &Subject) -> Result<Record, Refusal> {
        let closing = Closing { kind: Kind::Canceled, exit_code: None, reason: None };
        self.decide(&mut |tx, scene| {
            let Some(record) = read::by_key_locked(tx, key)? else {
                return Ok(Err(Halt::from(Refusal::NotFound { what: format!("request {key}") })));
            };
            let ground = read::ground(tx, &record.surface, true)?;
            let closer = Closer::Submitter(subject);
            Ok(rules::close(&record, &closer, &closing, &ground, scene))
        })
    }

    fn stop(&self, admission: &AdmId, subject: &Subject, reason: &str) -> Result<Record, Refusal> {
        self.decide_on(admission, &mut |_, record, _, scene| Ok(rules::stop(record, subject, reason, scene)))
    }

    fn revoke(&self, admission: &AdmId, subject: &Subject) -> Result<Record, Refusal> {
        self.decide_on(admission, &mut |_, record, _, scene| Ok(rules::revoke(record, subject, scene)))
    }

    fn surface_add(&self, surface: &SurfaceKey, shares: &[SurfaceKey]) -> Result<SurfaceAdded, Refusal> {
        self.add_surface(surface, shares)
    }

    fn surfaces(&self) -> Result<Vec<SurfaceView>, Refusal> {
        self.all_surfaces()
    }

    fn surface(&self, surface: &SurfaceKey) -> Result<SurfaceView, Refusal> {
        self.one_surface(surface)
    }

    fn place(&self, placing: &Placing) -> Result<Placed, Refusal> {
        self.put_in_place(placing)
    }

    fn place_gone(&self, surface: &SurfaceKey, machine: &MachineId) -> Result<Placed, Refusal> {
        self.decide(&mut |tx, scene| {
            let ground = read::ground(tx, surface, true)?;
            Ok(rules::gone(surface, machine, &ground, scene.now_ms))
        })
    }

    fn machine_label(&self, machine: &MachineId, label: Option<&MachineLabel>) -> Result<MachineView, Refusal> {
        self.label(machine, label)
    }

    fn machines(&self) -> Result<Vec<MachineView>, Refusal> {
        self.look(&mut |tx| read::machines(tx, "order by machine", &[]))
    }

    fn machine_forget(&self, machine: &MachineId) -> Result<bool, Refusal> {
        self.forget(machine)
    }

    fn legacy_take(&self, surface: &SurfaceKey, who: &Subject) -> Result<LegacyOwner, Refusal> {
        self.decide(&mut |tx, scene| {
            let ground = read::ground(tx, surface, true)?;
            Ok(rules::legacy_take(surface, who, &ground, scene.now_ms))
        })
    }

    fn legacy_drop(&self, surface: &SurfaceKey, who: &Subject) -> Result<(), Refusal> {
        self.decide(&mut |tx, _| {
            let ground = read::ground(tx, surface, true)?;
            Ok(rules::legacy_drop(surface, who, &ground))
        })
    }

    fn show(&self, admission: &AdmId) -> Result<Record, Refusal> {
        self.look(&mut |tx| read::by_id(tx, admission))?.ok_or_else(|| not_found(admission))
    }

    fn find(&self, key: &AttemptKey) -> Result<Record, Refusal> {
        let found = self.look(&mut |tx| read::by_key(tx, key))?;
        found.ok_or_else(|| Refusal::NotFound { what: format!("request {key}") })
    }

    fn history(&self, which: &History) -> Result<Vec<Record>, Refusal> {
        self.look(&mut |tx| {
            let now_ms = self.now(tx)?;
            read::history(tx, which, now_ms)
        })
    }

    fn refusals(&self, surface: Option<&SurfaceKey>) -> Result<Vec<Refused>, Refusal> {
        self.look(&mut |tx| read::refusals(tx, surface))
    }

    fn stopping(&self, admission: &AdmId) -> Result<Option<Stop>, Refusal> {
        self.look(&mut |tx| {
            let Some(record) = read::by_id(tx, admission)? else { return Ok(Err(not_found(admission))) };
            let ground = read::ground(tx, &record.surface, false)?;
            Ok(Ok(rules::stopping(&record, &ground)))
        })?
    }

    fn fsck(&self) -> Result<Vec<Fault>, Refusal> {
        let mut faults: Vec<Fault> =
            self.db.self_check()?.into_iter().map(|what| Fault { rule: "database", what }).collect();
        let everything = self.look(&mut |tx| read::everything(tx))?;
        faults.extend(rules::fsck(&everything));
        Ok(faults)
    }

    fn migrate(&self) -> Result<Migrated, Refusal> {
        Ok(self.db.migrate()?)
    }

    fn now_ms(&self) -> Result<u64, Refusal> {
        self.look(&mut |tx| self.now(tx))
    }

    fn at(&self) -> String {
        self.db.at()
    }
}
