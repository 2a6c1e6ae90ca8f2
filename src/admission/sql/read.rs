//! Every question that is asked of the tables.

use super::{Columns, Row, Trouble, Tx, int, text};
use crate::admission::facts::Subject;
use crate::admission::names::{AdmId, Attempt, Generation, MachineId, SurfaceKey};
use crate::admission::record::{AttemptKey, Destination, Input, LegacyOwner, MachineView, Placement, Record, Refused};
use crate::admission::request::History;
use crate::admission::rules::{Everything, Ground, SurfaceRow};

/// The columns of an admission, in the order in which [`record`] reads them.
pub(super) const RECORD: &str = "admission, request, attempt, digest, surface, machine, place, generation, work, phase, \
    entrance, subject, after_request, after_attempt, command, created_ms, admitted_ms, started_ms, closed_ms, \
    attach_number, started_attach, deadline_ms, policy_epoch, stop_ms, stop_reason, closing, closed_by, reason, \
    exit_code, successor, supersedes";

fn record(row: Row) -> Result<Record, Trouble> {
    let mut c = Columns::of(row);
    Ok(Record {
        admission: c.name()?,
        request: c.name()?,
        attempt: attempt(c.count()?)?,
        digest: c.name()?,
        surface: c.name()?,
        destination: Destination { machine: c.name()?, place: c.name()?, generation: generation(c.count()?)? },
        work: c.name_or_null()?,
        phase: c.name()?,
        entrance: c.name()?,
        subject: c.name()?,
        after: after(c.name_or_null()?, c.count_or_null()?)?,
        command: command(&c.name::<String>()?)?,
        created_ms: c.count()?,
        admitted_ms: c.count_or_null()?,
        started_ms: c.count_or_null()?,
        closed_ms: c.count_or_null()?,
        attach_number: c.count()?,
        started_attach: c.count_or_null()?,
        deadline_ms: c.count_or_null()?,
        policy_epoch: c.text_or_null()?,
        stop_ms: c.count_or_null()?,
        stop_reason: c.text_or_null()?,
        closing: c.name_or_null()?,
        closed_by: c.text_or_null()?,
        reason: c.text_or_null()?,
        exit_code: c.int_or_null()?.and_then(|n| i32::try_from(n).ok()),
        successor: c.name_or_null()?,
        supersedes: c.name_or_null()?,
    })
}

fn attempt(n: u64) -> Result<Attempt, Trouble> {
    let attempt = u32::try_from(n).ok().and_then(|n| Attempt::try_from(n).ok());
    attempt.ok_or_else(|| Trouble::Damaged(format!("{n} is no number of an attempt")))
}

fn generation(n: u64) -> Result<Generation, Trouble> {
    Generation::try_from(n).map_err(|_| Trouble::Damaged(format!("{n} is no generation")))
}

fn after(
    request: Option<crate::admission::names::RequestId>,
    number: Option<u64>,
) -> Result<Option<AttemptKey>, Trouble> {
    let both = request.zip(number);
    both.map(|(request, number)| Ok(AttemptKey { request, attempt: attempt(number)? })).transpose()
}

fn command(json: &str) -> Result<Vec<String>, Trouble> {
    serde_json::from_str(json).map_err(|_| Trouble::Damaged("a command is not a list of texts".to_owned()))
}

fn one(tx: &mut dyn Tx, tail: &str, values: &[super::Value]) -> Result<Option<Record>, Trouble> {
    let rows = tx.query(&format!("select {RECORD} from tenure_admission {tail}"), values)?;
    rows.into_iter().next().map(record).transpose()
}

fn many(tx: &mut dyn Tx, tail: &str, values: &[super::Value]) -> Result<Vec<Record>, Trouble> {
    let rows = tx.query(&format!("select {RECORD} from tenure_admission {tail}"), values)?;
    rows.into_iter().map(record).collect()
}

/// The row of a request, locked. It comes first in every transaction that has one (A13).
pub(in crate::admission) fn by_key_locked(tx: &mut dyn Tx, key: &AttemptKey) -> Result<Option<Record>, Trouble> {
    let values = [text(&key.request), int(key.attempt.get().into())];
    one(tx, "where request = $1 and attempt = $2 for update", &values)
}

/// The row of a request as it is, behind the lock of its surface.
pub(in crate::admission) fn by_key(tx: &mut dyn Tx, key: &AttemptKey) -> Result<Option<Record>, Trouble> {
    one(tx, "where request = $1 and attempt = $2", &[text(&key.request), int(key.attempt.get().into())])
}

/// The row with this id, locked.
pub(in crate::admission) fn by_id_locked(tx: &mut dyn Tx, id: &AdmId) -> Result<Option<Record>, Trouble> {
    one(tx, "where admission = $1 for update", &[text(id)])
}

/// The row with this id.
pub(in crate::admission) fn by_id(tx: &mut dyn Tx, id: &AdmId) -> Result<Option<Record>, Trouble> {
    one(tx, "where admission = $1", &[text(id)])
}

/// Locks the rows that wait on a surface. Whoever holds one of them waits for the surface, which the caller has, so
/// waiting here would be a deadlock: it gives way instead, and tries again.
pub(in crate::admission) fn lock_waiting(tx: &mut dyn Tx, surface: &SurfaceKey) -> Result<(), Trouble> {
    let sql = "select admission from tenure_admission where surface = $1 and phase = 'queued' for update nowait";
    tx.query(sql, &[text(surface)]).map(|_| ())
}

/// The surface, locked, and all that stands on it. Every verb that changes a row has this lock, so behind it nothing on
/// the surface changes.
pub(in crate::admission) fn ground(tx: &mut dyn Tx, surface: &SurfaceKey, lock: bool) -> Result<Ground, Trouble> {
    let key = [text(surface)];
    let tail = if lock { "where surface = $1 for update" } else { "where surface = $1" };
    let row = surface_rows(tx, tail, &key)?.into_iter().next();
    let mut open = many(tx, "where surface = $1 and phase in ('admitted', 'started')", &key)?;
    if open.len() > 1 {
        return Err(Trouble::Damaged(format!("{surface} has {} owners", open.len())));
    }
    let waiting = many(tx, "where surface = $1 and phase = 'queued' order by created_ms, admission", &key)?;
    let placements = placements(tx, "where surface = $1 order by machine", &key)?;
    Ok(Ground { surface: row, owner: open.pop(), waiting, placements })
}

pub(in crate::admission) fn surface_rows(
    tx: &mut dyn Tx,
    tail: &str,
    values: &[super::Value],
) -> Result<Vec<SurfaceRow>, Trouble> {
    let sql = format!("select surface, created_ms, generation, legacy_who, legacy_since_ms from tenure_surface {tail}");
    let read = |row: Row| {
        let mut c = Columns::of(row);
        let (key, created_ms, generation) = (c.name()?, c.count()?, c.count()?);
        let legacy: Option<(Subject, u64)> = c.name_or_null()?.zip(c.count_or_null()?);
        let legacy = legacy.map(|(who, since_ms)| LegacyOwner { who, since_ms });
        Ok(SurfaceRow { key, created_ms, generation, legacy })
    };
    tx.query(&sql, values)?.into_iter().map(read).collect()
}

pub(in crate::admission) fn placements(
    tx: &mut dyn Tx,
    tail: &str,
    values: &[super::Value],
) -> Result<Vec<Placement>, Trouble> {
    let sql = format!(
        "select surface, machine, place, generation, storage, work, live, changed_ms from tenure_placement {tail}"
    );
    let read = |row: Row| {
        let mut c = Columns::of(row);
        Ok(Placement {
            surface: c.name()?,
            destination: Destination { machine: c.name()?, place: c.name()?, generation: generation(c.count()?)? },
            storage: c.text_or_null()?,
            work: c.name_or_null()?,
            live: c.count()? == 1,
            changed_ms: c.count()?,
        })
    };
    tx.query(&sql, values)?.into_iter().map(read).collect()
}

/// The keys with which a surface is declared to share a place.
pub(in crate::admission) fn shares(tx: &mut dyn Tx, surface: &SurfaceKey) -> Result<Vec<SurfaceKey>, Trouble> {
    let sql = "select case when surface = $1 then with_surface else surface end from tenure_share \
        where surface = $1 or with_surface = $1 order by 1";
    tx.query(sql, &[text(surface)])?.into_iter().map(|row| Columns::of(row).name()).collect()
}

const INPUT: &str = "select admission, number, request, attempt, digest, subject, at_ms, content from tenure_input";

fn input(row: Row) -> Result<Input, Trouble> {
    let mut c = Columns::of(row);
    Ok(Input {
        admission: c.name()?,
        number: c.count()?,
        request: c.name()?,
        attempt: attempt(c.count()?)?,
        digest: c.name()?,
        subject: c.name()?,
        at_ms: c.count()?,
        bytes: c.bytes()?,
    })
}

/// The input that was appended under this request and attempt.
pub(in crate::admission) fn appended(tx: &mut dyn Tx, key: &AttemptKey) -> Result<Option<Input>, Trouble> {
    let sql = format!("{INPUT} where request = $1 and attempt = $2 and number > 0");
    let rows = tx.query(&sql, &[text(&key.request), int(key.attempt.get().into())])?;
    rows.into_iter().next().map(input).transpose()
}

/// The inputs of an admission from this number on.
pub(in crate::admission) fn inputs(tx: &mut dyn Tx, id: &AdmId, from: u64) -> Result<Vec<Input>, Trouble> {
    let sql = format!("{INPUT} where admission = $1 and number >= $2 order by number");
    tx.query(&sql, &[text(id), int(from)])?.into_iter().map(input).collect()
}

/// The number that the next appended input of an admission gets; 0 is kept for what came with the request.
pub(in crate::admission) fn next_input(tx: &mut dyn Tx, id: &AdmId) -> Result<u64, Trouble> {
    let sql = "select coalesce(max(number), 0) + 1 from tenure_input where admission = $1";
    tx.query(sql, &[text(id)])?.into_iter().next().map_or(Ok(1), |row| Columns::of(row).count())
}

/// What a machine has open or waiting, the oldest first.
pub(in crate::admission) fn of_machine(tx: &mut dyn Tx, machine: &MachineId) -> Result<Vec<Record>, Trouble> {
    many(tx, "where machine = $1 and phase <> 'closed' order by created_ms, admission", &[text(machine)])
}

/// Two numbers that change whenever there may be something new for a machine: how many rows wait for it, and how many of
/// them wait for nothing else.
pub(in crate::admission) fn news(tx: &mut dyn Tx, machine: &MachineId) -> Result<(u64, u64, u64), Trouble> {
    let sql = "select count(*), coalesce(max(a.created_ms), 0), \
        coalesce(sum(case when s.legacy_who is null and not exists (select 1 from tenure_admission o \
            where o.surface = a.surface and o.phase in ('admitted', 'started')) then 1 else 0 end), 0) \
        from tenure_admission a left join tenure_surface s on s.surface = a.surface \
        where a.machine = $1 and a.phase = 'queued'";
    let row = tx.query(sql, &[text(machine)])?.into_iter().next().unwrap_or_default();
    let mut c = Columns::of(row);
    Ok((c.count()?, c.count()?, c.count()?))
}

pub(in crate::admission) fn machines(
    tx: &mut dyn Tx,
    tail: &str,
    values: &[super::Value],
) -> Result<Vec<MachineView>, Trouble> {
    let rows = tx.query(&format!("select machine, label, seen_ms from tenure_machine {tail}"), values)?;
    let read = |row: Row| {
        let mut c = Columns::of(row);
        Ok(MachineView { machine: c.name()?, label: c.name_or_null()?, seen_ms: c.count_or_null()? })
    };
    rows.into_iter().map(read).collect()
}

pub(in crate::admission) fn refusals(tx: &mut dyn Tx, surface: Option<&SurfaceKey>) -> Result<Vec<Refused>, Trouble> {
    let columns = "request, attempt, surface, code, reason, subject, first_ms, at_ms, times";
    let which = if surface.is_some() { "where surface = $1 " } else { "" };
    let sql = format!("select {columns} from tenure_refusal {which}order by at_ms desc, request, attempt, code");
    let values: Vec<super::Value> = surface.iter().map(text).collect();
    let read = |row: Row| {
        let mut c = Columns::of(row);
        Ok(Refused {
            request: c.name()?,
            attempt: attempt(c.count()?)?,
            surface: c.name()?,
            code: c.name()?,
            reason: c.name()?,
            subject: c.name()?,
            first_ms: c.count()?,
            at_ms: c.count()?,
            times: c.count()?,
        })
    };
    tx.query(&sql, &values)?.into_iter().map(read).collect()
}

/// The records that fit, the oldest first.
pub(in crate::admission) fn history(tx: &mut dyn Tx, which: &History, now_ms: u64) -> Result<Vec<Record>, Trouble> {
    let mut values = Vec::new();
    let mut fits = vec!["1 = 1".to_owned()];
    let mut must = |column: &str, value: Option<super::Value>| {
        if let Some(value) = value {
            values.push(value);
            fits.push(format!("{column} ${}", values.len()));
        }
    };
    must("surface =", which.surface.as_ref().map(text));
    must("request =", which.request.as_ref().map(text));
    must("machine =", which.machine.as_ref().map(text));
    must("created_ms >=", which.since_ms.map(int));
    must("phase <> 'closed' and 0 <", which.unfinished.then_some(super::Value::Int(1)));
    let uncertain = "phase in ('admitted', 'started') and coalesce(deadline_ms, -1) <";
    must(uncertain, which.uncertain.then_some(int(now_ms)));
    let limit = which.limit.map(|n| format!(" limit {n}")).unwrap_or_default();
    let tail = format!("where {} order by created_ms desc, admission desc{limit}", fits.join(" and "));
    let mut found = many(tx, &tail, &values)?;
    found.reverse();
    Ok(found)
}

/// The whole ledger, for `fsck`.
pub(in crate::admission) fn everything(tx: &mut dyn Tx) -> Result<Everything, Trouble> {
    let inputs = tx.query("select admission, number, request, attempt from tenure_input", &[])?;
    let key = |row: Row| {
        let mut c = Columns::of(row);
        let (admission, number) = (c.name::<String>()?, c.count()?);
        Ok((admission, number, AttemptKey { request: c.name()?, attempt: attempt(c.count()?)? }))
    };
    Ok(Everything {
        records: many(tx, "order by created_ms, admission", &[])?,
        surfaces: surface_rows(tx, "", &[])?,
        placements: placements(tx, "", &[])?,
        inputs: inputs.into_iter().map(key).collect::<Result<_, Trouble>>()?,
    })
}
