//! A machine comes for what waits: one transaction for each row, so that a machine that dies half-way has lost nothing.

use super::Store;
use crate::admission::ledger::{Pickup, Waiting};
use crate::admission::names::MachineId;
use crate::admission::record::{Phase, Record};
use crate::admission::refusal::Refusal;
use crate::admission::rules::{self, Halt, Picked, Scene};
use crate::admission::sql::{Database, End, Mode, Trouble, Tx, read, write};

impl<D: Database> Store<D> {
    pub(super) fn pick_up(&self, machine: &MachineId) -> Result<Pickup, Refusal> {
        let (rows, news) = self.db.transact(Mode::Write, &mut |tx| {
            let now_ms = self.now(tx)?;
            write::seen(tx, machine, now_ms)?;
            Ok(End::Commit((read::of_machine(tx, machine)?, read::news(tx, machine)?)))
        })?;
        self.tell(machine, news);
        let mut pickup = Pickup::default();
        for row in &rows {
            if row.phase == Phase::Queued {
                self.pick(row, machine, &mut pickup)?;
            } else {
                self.keep_or_expire(row, machine, &mut pickup)?;
            }
        }
        Ok(pickup)
    }

    /// One row that waits.
    fn pick(&self, row: &Record, machine: &MachineId, pickup: &mut Pickup) -> Result<(), Refusal> {
        let take = pickup.admitted.is_none();
        let picked = self.decide_on(&row.admission, &mut |_, row, ground, scene| {
            Ok(rules::pickup(row, machine, ground, take, scene))
        })?;
        match picked {
            Picked::Admitted(record, grant) => pickup.admitted = Some(self.answer(*record, false, Some(&grant))?),
            Picked::Expired(record) => pickup.expired.push(*record),
            Picked::Changed(record) => pickup.refused.push(*record),
            Picked::Kept(refusal) => pickup.waiting.push(kept(row, &refusal)),
            Picked::Left => pickup.waiting.push(Waiting { record: row.clone(), kept_by: None, why: None }),
            Picked::Passed => {}
        }
        Ok(())
    }

    /// One admission that is open.
    fn keep_or_expire(&self, row: &Record, machine: &MachineId, pickup: &mut Pickup) -> Result<(), Refusal> {
        let picked = self.decide_on(&row.admission, &mut |_, row, ground, scene| {
            let stopping = rules::stopping(row, ground).is_some();
            let ruled = rules::expire_admitted(row, machine, scene);
            let (is_open, row) = (row.is_open(), row.clone());
            Ok(Ok(rules::Ruled { answer: (ruled.answer, is_open, row, stopping), writes: ruled.writes }))
        })?;
        match picked {
            (Picked::Expired(record), ..) => pickup.expired.push(*record),
            (_, true, record, stopping) => {
                if stopping {
                    pickup.stopping.push(record.admission);
                }
                pickup.open.push(record);
            }
            _ => {}
        }
        Ok(())
    }

    /// The same as a look. What would expire or has moved is listed with that as the reason.
    pub(super) fn look_at_what_waits(&self, machine: &MachineId) -> Result<Pickup, Refusal> {
        self.look(&mut |tx| {
            let now_ms = self.now(tx)?;
            let scene = Scene { now_ms, epoch: 0, permit: None, credential_ms: self.options.credential_ms };
            let mut pickup = Pickup::default();
            for row in read::of_machine(tx, machine)? {
                look_at(tx, row, machine, &scene, &mut pickup)?;
            }
            Ok(pickup)
        })
    }
}

fn look_at(
    tx: &mut dyn Tx,
    row: Record,
    machine: &MachineId,
    scene: &Scene<'_>,
    pickup: &mut Pickup,
) -> Result<(), Trouble> {
    let ground = read::ground(tx, &row.surface, false)?;
    if row.is_open() {
        if rules::stopping(&row, &ground).is_some() {
            pickup.stopping.push(row.admission);
        }
        pickup.open.push(row);
        return Ok(());
    }
    let kept_by = |code: &str, why: &str| (Some(code.to_owned()), Some(why.to_owned()));
    let (kept_by, why) = match rules::pickup(&row, machine, &ground, false, scene) {
        Ok(ruled) => match ruled.answer {
            Picked::Expired(_) => kept_by("expired", "older than half a day; the next pickup records that"),
            Picked::Changed(_) => kept_by("placement_changed", "its placement has changed; the next pickup closes it"),
            Picked::Kept(refusal) => {
                let waiting = kept(&row, &refusal);
                (waiting.kept_by, waiting.why)
            }
            _ => (None, None),
        },
        Err(Halt::Refused { refusal, .. }) => (Some(refusal.code().to_owned()), Some(refusal.to_string())),
        Err(Halt::Ask(_)) => (None, None),
    };
    pickup.waiting.push(Waiting { record: row, kept_by, why });
    Ok(())
}

fn kept(row: &Record, refusal: &Refusal) -> Waiting {
    let code = match refusal {
        Refusal::NoDestination { .. } => "not_live",
        other => other.code(),
    };
    Waiting { record: row.clone(), kept_by: Some(code.to_owned()), why: Some(refusal.to_string()) }
}
