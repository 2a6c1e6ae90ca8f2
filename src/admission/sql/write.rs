//! Every change of the tables: what the rules say is to be written, put down as statements.

use super::read::RECORD;
use super::{Trouble, Tx, Value, int, int_or_null, text, text_or_null};
use crate::admission::names::{MachineId, MachineLabel, SurfaceKey};
use crate::admission::record::{Input, LegacyOwner, Placement, Record, Refused};
use crate::admission::rules::Write;

/// Writes all of it, in order.
pub(in crate::admission) fn apply(tx: &mut dyn Tx, writes: &[Write]) -> Result<(), Trouble> {
    for write in writes {
        match write {
            Write::Insert(record) => insert(tx, record)?,
            Write::Update(record) => update(tx, record)?,
            Write::Note(refused) => note(tx, refused)?,
            Write::Input(input) => put_input(tx, input)?,
            Write::Place(placement) => put_placement(tx, placement)?,
            Write::Legacy(surface, owner) => legacy(tx, surface, owner.as_ref())?,
            Write::Wake(machine) => tx.wake(&machine.to_string())?,
        }
    }
    Ok(())
}

/// A new row. The conflict target is not named: the same request arriving twice at once meets one of two unique indexes,
/// and naming one of them would make the other an error.
fn insert(tx: &mut dyn Tx, record: &Record) -> Result<(), Trouble> {
    let mut values = vec![
        text(record.admission),
        text(&record.request),
        int(record.attempt.get().into()),
        text(record.digest),
        text(&record.surface),
        text(record.destination.machine),
        text(&record.destination.place),
        int(record.destination.generation.get()),
        text_or_null(record.work.as_ref()),
        text(record.phase),
        text(record.entrance),
        text(&record.subject),
        text_or_null(record.after.as_ref().map(|after| &after.request)),
        int_or_null(record.after.as_ref().map(|after| after.attempt.get().into())),
        text(serde_json::Value::from(record.command.clone())),
        int(record.created_ms),
    ];
    values.extend(changing(record));
    let marks: Vec<String> = (1..=values.len()).map(|n| format!("${n}")).collect();
    let sql = format!("insert into tenure_admission ({RECORD}) values ({}) on conflict do nothing", marks.join(", "));
    if tx.execute(&sql, &values)? == 1 {
        return Ok(());
    }
    // Somebody wrote a row with this key, or for this surface, between the look and now; look again.
    let key = [text(&record.request), int(record.attempt.get().into())];
    let there = tx.query("select admission from tenure_admission where request = $1 and attempt = $2", &key)?;
    let what = if there.is_empty() { "the surface" } else { "the request" };
    Err(Trouble::Again(format!("another start was written for {what} at the same moment")))
}

/// What may change about an admission, in the order of [`CHANGING`]. Its destination is not among it (A28).
fn changing(record: &Record) -> Vec<Value> {
    vec![
        int_or_null(record.admitted_ms),
        int_or_null(record.started_ms),
        int_or_null(record.closed_ms),
        int(record.attach_number),
        int_or_null(record.started_attach),
        int_or_null(record.deadline_ms),
        text_or_null(record.policy_epoch.as_ref()),
        int_or_null(record.stop_ms),
        text_or_null(record.stop_reason.as_ref()),
        text_or_null(record.closing.as_ref()),
        text_or_null(record.closed_by.as_ref()),
        text_or_null(record.reason.as_ref()),
        record.exit_code.map_or(Value::Null, |code| Value::Int(code.into())),
        text_or_null(record.successor.as_ref()),
        text_or_null(record.supersedes.as_ref()),
    ]
}

const CHANGING: [&str; 15] = [
    "admitted_ms",
    "started_ms",
    "closed_ms",
    "attach_number",
    "started_attach",
    "deadline_ms",
    "policy_epoch",
    "stop_ms",
    "stop_reason",
    "closing",
    "closed_by",
    "reason",
    "exit_code",
    "successor",
    "supersedes",
];

fn update(tx: &mut dyn Tx, record: &Record) -> Result<(), Trouble> {
    let mut values = vec![text(record.admission), text(record.phase)];
    values.extend(changing(record));
    let sets: Vec<String> = CHANGING.iter().zip(3..).map(|(column, n)| format!("{column} = ${n}")).collect();
    // A closed row is never written again, whatever the code above thinks.
    let sql = format!(
        "update tenure_admission set phase = $2, {} where admission = $1 and phase <> 'closed'",
        sets.join(", ")
    );
    match tx.execute(&sql, &values)? {
        1 => Ok(()),
        _ => Err(Trouble::Again(format!("{} was closed at the same moment", record.admission))),
    }
}

/// One note for each request, attempt and code, however often it is refused.
fn note(tx: &mut dyn Tx, refused: &Refused) -> Result<(), Trouble> {
    let sql = "insert into tenure_refusal (request, attempt, surface, code, reason, subject, first_ms, at_ms, times) \
        values ($1, $2, $3, $4, $5, $6, $7, $8, 1) on conflict (request, attempt, code) do update set \
        surface = excluded.surface, reason = excluded.reason, subject = excluded.subject, at_ms = excluded.at_ms, \
        times = tenure_refusal.times + 1";
    let values = [
        text(&refused.request),
        int(refused.attempt.get().into()),
        text(&refused.surface),
        text(&refused.code),
        // What a policy says may be anything; a database keeps no NUL in a text.
        text(refused.reason.replace('\0', "\u{fffd}")),
        text(&refused.subject),
        int(refused.first_ms),
        int(refused.at_ms),
    ];
    tx.execute(sql, &values).map(|_| ())
}

fn put_input(tx: &mut dyn Tx, input: &Input) -> Result<(), Trouble> {
    let sql = "insert into tenure_input (admission, number, request, attempt, digest, subject, at_ms, content) \
        values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing";
    let values = [
        text(input.admission),
        int(input.number),
        text(&input.request),
        int(input.attempt.get().into()),
        text(input.digest),
        text(&input.subject),
        int(input.at_ms),
        Value::Bytes(input.bytes.clone()),
    ];
    match tx.execute(sql, &values)? {
        1 => Ok(()),
        _ => Err(Trouble::Again("another input was written under the same request at the same moment".to_owned())),
    }
}

fn put_placement(tx: &mut dyn Tx, placement: &Placement) -> Result<(), Trouble> {
    let to = &placement.destination;
    let sql = "insert into tenure_placement (surface, machine, place, generation, storage, work, live, changed_ms) \
        values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict (surface, machine) do update set place = excluded.place, \
        generation = excluded.generation, storage = excluded.storage, work = excluded.work, live = excluded.live, \
        changed_ms = excluded.changed_ms";
    let values = [
        text(&placement.surface),
        text(to.machine),
        text(&to.place),
        int(to.generation.get()),
        text_or_null(placement.storage.as_ref()),
        text_or_null(placement.work.as_ref()),
        Value::Int(placement.live.into()),
        int(placement.changed_ms),
    ];
    tx.execute(sql, &values)?;
    let newest = "update tenure_surface set generation = $2 where surface = $1 and generation < $2";
    tx.execute(newest, &[text(&placement.surface), int(to.generation.get())]).map(|_| ())
}

fn legacy(tx: &mut dyn Tx, surface: &SurfaceKey, owner: Option<&LegacyOwner>) -> Result<(), Trouble> {
    let sql = "update tenure_surface set legacy_who = $2, legacy_since_ms = $3 where surface = $1";
    let values =
        [text(surface), text_or_null(owner.map(|owner| &owner.who)), int_or_null(owner.map(|owner| owner.since_ms))];
    tx.execute(sql, &values).map(|_| ())
}

/// True: it is new.
pub(in crate::admission) fn add_surface(tx: &mut dyn Tx, key: &SurfaceKey, now_ms: u64) -> Result<bool, Trouble> {
    let sql = "insert into tenure_surface (surface, created_ms) values ($1, $2) on conflict do nothing";
    Ok(tx.execute(sql, &[text(key), int(now_ms)])? == 1)
}

/// Declares that two surfaces share a place.
pub(in crate::admission) fn add_share(tx: &mut dyn Tx, a: &SurfaceKey, b: &SurfaceKey) -> Result<(), Trouble> {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    let sql = "insert into tenure_share (surface, with_surface) values ($1, $2) on conflict do nothing";
    tx.execute(sql, &[text(low), text(high)]).map(|_| ())
}

/// Notes that a machine came.
pub(in crate::admission) fn seen(tx: &mut dyn Tx, machine: &MachineId, now_ms: u64) -> Result<(), Trouble> {
    let sql = "insert into tenure_machine (machine, seen_ms) values ($1, $2) \
        on conflict (machine) do update set seen_ms = excluded.seen_ms";
    tx.execute(sql, &[text(machine), int(now_ms)]).map(|_| ())
}

pub(in crate::admission) fn set_label(
    tx: &mut dyn Tx,
    machine: &MachineId,
    label: Option<&MachineLabel>,
) -> Result<(), Trouble> {
    let sql = "insert into tenure_machine (machine, label) values ($1, $2) \
        on conflict (machine) do update set label = excluded.label";
    tx.execute(sql, &[text(machine), text_or_null(label)]).map(|_| ())
}

/// False: there was none.
pub(in crate::admission) fn forget(tx: &mut dyn Tx, machine: &MachineId) -> Result<bool, Trouble> {
    Ok(tx.execute("delete from tenure_machine where machine = $1", &[text(machine)])? > 0)
}
