//! What the two databases have in common: values, statements, transactions, and what can go wrong with them.
//!
//! Statements are written once, in PostgreSQL's dialect; for SQLite the numbers of parameters are spelled otherwise and the
//! row locks are left out, because a writing transaction there locks the whole file.

pub(super) mod read;
pub(super) mod schema;
pub(super) mod write;

use std::sync::Arc;
use std::time::Duration;

use super::refusal::{LedgerError, Refusal};

/// Longest wait that both databases can be told; they count milliseconds in 31 bits.
pub(super) const WAIT_MAX: Duration = Duration::from_millis(i32::MAX.unsigned_abs() as u64);

/// A value in or out of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// One row of an answer.
pub(super) type Row = Vec<Value>;

/// Why a transaction did not come to its end.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Another transaction was in the way and this one was rolled back; the same again will do.
    Again(String),
    /// The connection is gone. A file has none.
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "only a server can be lost"))]
    Lost(String),
    /// The ledger as a whole cannot be used.
    Ledger(LedgerError),
    /// What is in it cannot be.
    Damaged(String),
}

impl From<LedgerError> for Trouble {
    fn from(error: LedgerError) -> Trouble {
        Trouble::Ledger(error)
    }
}

impl From<Trouble> for Refusal {
    fn from(trouble: Trouble) -> Refusal {
        match trouble {
            Trouble::Again(why) | Trouble::Lost(why) => Refusal::Unknown { why },
            Trouble::Ledger(error) => Refusal::Unusable(error),
            Trouble::Damaged(why) => Refusal::Damaged { why },
        }
    }
}

/// How a transaction ends.
pub(super) enum End<T> {
    Commit(T),
    Rollback(T),
}

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Looks only, at one moment. Makes no ledger.
    Read,
    /// Writes. Makes a ledger where that needs no decision of anybody.
    Write,
}

/// An open transaction.
pub(super) trait Tx {
    /// The rows of an answer.
    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Trouble>;

    /// How many rows were changed.
    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, Trouble>;

    /// Lets nobody else have this name until the transaction has ended. A name that no row has yet cannot be locked as a
    /// row; where a writing transaction is alone anyway there is nothing to do.
    fn lock_name(&mut self, name: &str) -> Result<(), Trouble>;

    /// The ledger's wall clock, milliseconds since 1970.
    fn now_ms(&mut self) -> Result<u64, Trouble>;

    /// Tells whoever listens that this machine should look, when the transaction is committed.
    fn wake(&mut self, machine: &str) -> Result<(), Trouble>;
}

/// What a transaction does.
pub(super) type Work<'a, T> = dyn FnMut(&mut dyn Tx) -> Result<End<T>, Trouble> + 'a;

/// A database that holds a ledger.
pub(super) trait Database: Send + Sync {
    /// Runs `work` in one transaction. What stands in the way for a moment only is waited for and tried again, so `work`
    /// may be called several times. `Ok` after a commit means that it is on disk.
    fn transact<T>(&self, mode: Mode, work: &mut Work<'_, T>) -> Result<T, Trouble>;

    /// Makes the ledger or brings it up to this version.
    fn migrate(&self) -> Result<super::ledger::Migrated, Trouble>;

    /// What the database itself finds wrong with its files.
    fn self_check(&self) -> Result<Vec<String>, Trouble>;

    /// Something that waits until there may be news.
    fn listener(&self) -> Result<Box<dyn Listener>, Trouble>;

    /// Where it is, without any password.
    fn at(&self) -> String;
}

/// Waits until there may be news.
pub(super) trait Listener {
    /// At most this long; it may end earlier for no reason.
    fn doze(&mut self, at_most: Duration) -> Result<(), Trouble>;
}

/// When a [`Probe`] is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before a statement is sent.
    Before,
    /// After its answer came.
    After,
}

/// Sees every statement, `begin` and `commit` among them, right before and after it. For tests, which die there, and for
/// whoever wants to know what a verb does.
pub type Probe = Arc<dyn Fn(Moment, &str) + Send + Sync>;

/// Calls the probe around one statement.
pub(super) fn probed<T>(probe: Option<&Probe>, sql: &str, run: impl FnOnce() -> T) -> T {
    if let Some(probe) = probe {
        probe(Moment::Before, sql);
    }
    let answer = run();
    if let Some(probe) = probe {
        probe(Moment::After, sql);
    }
    answer
}

/// Reads the columns of a row one after the other.
pub(super) struct Columns {
    values: std::vec::IntoIter<Value>,
}

impl Columns {
    pub(super) fn of(row: Row) -> Columns {
        Columns { values: row.into_iter() }
    }

    fn wrong(what: &str) -> Trouble {
        Trouble::Damaged(format!("a column holds {what}"))
    }

    pub(super) fn int_or_null(&mut self) -> Result<Option<i64>, Trouble> {
        match self.values.next() {
            Some(Value::Int(n)) => Ok(Some(n)),
            Some(Value::Null) => Ok(None),
            _ => Err(Columns::wrong("no number where one belongs")),
        }
    }

    pub(super) fn text_or_null(&mut self) -> Result<Option<String>, Trouble> {
        match self.values.next() {
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(Value::Null) => Ok(None),
            _ => Err(Columns::wrong("no text where one belongs")),
        }
    }

    pub(super) fn bytes(&mut self) -> Result<Vec<u8>, Trouble> {
        match self.values.next() {
            Some(Value::Bytes(bytes)) => Ok(bytes),
            _ => Err(Columns::wrong("no bytes where some belong")),
        }
    }

    /// A number that is never negative.
    pub(super) fn count_or_null(&mut self) -> Result<Option<u64>, Trouble> {
        let n = self.int_or_null()?;
        n.map(|n| u64::try_from(n).map_err(|_| Columns::wrong("a negative number"))).transpose()
    }

    pub(super) fn count(&mut self) -> Result<u64, Trouble> {
        self.count_or_null()?.ok_or_else(|| Columns::wrong("nothing where a number belongs"))
    }

    /// A text that is one of ours.
    pub(super) fn name_or_null<T: std::str::FromStr>(&mut self) -> Result<Option<T>, Trouble> {
        let text = self.text_or_null()?;
        text.map(|text| text.parse().map_err(|_| Columns::wrong(&format!("{text:?}")))).transpose()
    }

    pub(super) fn name<T: std::str::FromStr>(&mut self) -> Result<T, Trouble> {
        self.name_or_null()?.ok_or_else(|| Columns::wrong("nothing where a name belongs"))
    }
}

pub(super) fn text(of: impl ToString) -> Value {
    Value::Text(of.to_string())
}

pub(super) fn text_or_null<T: std::fmt::Display>(of: Option<&T>) -> Value {
    of.map_or(Value::Null, text)
}

/// Numbers above the largest that a database holds are kept as that one: times and counters never get there.
pub(super) fn int(of: u64) -> Value {
    Value::Int(i64::try_from(of).unwrap_or(i64::MAX))
}

pub(super) fn int_or_null(of: Option<u64>) -> Value {
    of.map_or(Value::Null, int)
}
