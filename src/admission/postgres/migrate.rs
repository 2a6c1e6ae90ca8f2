//! The schema on the server: made by `migrate` alone, looked at on every connection.

use postgres::Client;

use super::address::Address;
use super::trouble;
use crate::admission::ledger::Migrated;
use crate::admission::refusal::LedgerError;
use crate::admission::sql::Trouble;
use crate::admission::sql::schema::{SCHEMA, for_postgres};

/// A lock for as long as the schema is being changed; the number means nothing to anybody else.
const LOCK: i64 = 0x7465_6e75_7265;

/// The connection, if the schema there is ours and of this version.
pub(super) fn checked(mut client: Client, address: &Address) -> Result<Client, Trouble> {
    let at = address.shown().to_owned();
    match version(&mut client).map_err(|error| trouble(address, &error))? {
        None => Err(LedgerError::Absent { at, make: "`tenure admission migrate`" }.into()),
        Some(found) if found > SCHEMA => Err(LedgerError::Newer { at, found, known: SCHEMA }.into()),
        Some(found) if found < SCHEMA => Err(LedgerError::Older { at, found, known: SCHEMA }.into()),
        Some(_) => Ok(client),
    }
}

/// The version of the schema there; `None`: there is none.
fn version(client: &mut Client) -> Result<Option<u64>, postgres::Error> {
    let there: bool = client.query_one("select to_regclass('tenure_ledger') is not null", &[])?.try_get(0)?;
    if !there {
        return Ok(None);
    }
    let row = client.query_opt("select schema_version from tenure_ledger", &[])?;
    let version = row.map(|row| row.try_get::<_, i64>(0)).transpose()?;
    Ok(Some(version.and_then(|n| u64::try_from(n).ok()).unwrap_or(0)))
}

/// Makes the tables, all or none. Two that do so at once: the second finds them made.
pub(super) fn migrate(mut client: Client, address: &Address) -> Result<Migrated, Trouble> {
    let told = |error: postgres::Error| trouble(address, &error);
    let mut transaction = client.transaction().map_err(told)?;
    transaction.execute("select pg_advisory_xact_lock($1)", &[&LOCK]).map_err(told)?;
    let there: bool = transaction
        .query_one("select to_regclass('tenure_ledger') is not null", &[])
        .and_then(|row| row.try_get(0))
        .map_err(told)?;
    if !there {
        for sql in for_postgres() {
            transaction.batch_execute(&sql).map_err(told)?;
        }
        transaction.commit().map_err(told)?;
        return Ok(Migrated { from: None, to: SCHEMA });
    }
    transaction.rollback().map_err(told)?;
    checked(client, address)?;
    Ok(Migrated { from: Some(SCHEMA), to: SCHEMA })
}
