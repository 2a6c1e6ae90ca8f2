//! The ledger in a file of this host: SQLite, write-ahead log, every commit on disk before the answer.

mod file;

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, ErrorCode, params_from_iter};

use super::ledger::{Ledger, Migrated};
use super::refusal::LedgerError;
use super::sql::schema::SCHEMA;
use super::sql::{Database, End, Listener, Mode, Probe, Row, Trouble, Tx, Value, Work, probed};
use super::store::{Options, Store};
use crate::location::Location;

/// The name of the file in its directory.
pub const LEDGER_FILE: &str = "ledger.sqlite";

/// How often somebody who waits for work looks.
const POLL: Duration = Duration::from_millis(200);

/// The ledger in this directory. Nothing is opened or made yet: the first verb does that, and only a verb that writes
/// makes a ledger where there is none. To the others one that is not there looks empty.
pub fn open_sqlite(location: &Location, options: Options) -> Box<dyn Ledger> {
    let wait = Duration::from_millis(options.wait_ms);
    let file = file::LedgerFile::new(location.clone(), LEDGER_FILE);
    let db = Sqlite { file, wait, probe: options.probe.clone(), open: Mutex::new(None) };
    Box::new(Store::new(db, options))
}

struct Sqlite {
    file: file::LedgerFile,
    wait: Duration,
    probe: Option<Probe>,
    open: Mutex<Option<Opened>>,
}

/// A connection, and which file it is to: another may be put in its place while a process runs.
struct Opened {
    connection: Connection,
    inode: (u64, u64),
}

impl Sqlite {
    /// Runs `use_it` with a connection that fits the mode.
    fn with<T>(&self, mode: Mode, use_it: impl FnOnce(&mut Connection) -> Result<T, Trouble>) -> Result<T, Trouble> {
        let Some(found) = self.file.look()? else {
            if mode == Mode::Read {
                return use_it(&mut file::empty(&self.at())?);
            }
            self.file.create(&self.at(), self.probe.as_ref())?;
            return self.with_existing(use_it);
        };
        if mode == Mode::Write && !found.writable {
            let why = format!("its mode is {:04o}, which lets nobody write; `chmod u+w` it", found.mode);
            return Err(LedgerError::ReadOnly { at: self.at(), why }.into());
        }
        if !found.writable {
            return use_it(&mut self.file.open_read_only(&self.at(), self.wait)?);
        }
        self.with_existing(use_it)
    }

    /// The connection that is kept, unless another file stands there by now.
    fn with_existing<T>(&self, use_it: impl FnOnce(&mut Connection) -> Result<T, Trouble>) -> Result<T, Trouble> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let inode = self.file.look()?.map(|found| found.inode);
        if open.as_ref().is_some_and(|opened| Some(opened.inode) != inode) {
            *open = None;
        }
        let opened = match open.take() {
            Some(opened) => opened,
            None => {
                let connection = self.file.open(&self.at(), self.wait)?;
                let inode = inode.ok_or_else(|| self.gone())?;
                Opened { connection, inode }
            }
        };
        let opened = open.insert(opened);
        use_it(&mut opened.connection)
    }

    fn gone(&self) -> Trouble {
        Trouble::Again(format!("{} was taken away at this moment", self.at()))
    }

    fn once<T>(&self, mode: Mode, work: &mut Work<'_, T>) -> Result<T, Trouble> {
        self.with(mode, |connection| {
            let at = self.at();
            let mut tx = Open { connection, at: &at, probe: self.probe.as_ref(), wait: self.wait };
            tx.run(if mode == Mode::Write { "begin immediate" } else { "begin" })?;
            match work(&mut tx) {
                Ok(End::Commit(done)) => match tx.run("commit") {
                    Ok(()) => Ok(done),
                    Err(trouble) => {
                        tx.roll_back();
                        Err(trouble)
                    }
                },
                Ok(End::Rollback(done)) => {
                    tx.roll_back();
                    Ok(done)
                }
                Err(trouble) => {
                    tx.roll_back();
                    Err(trouble)
                }
            }
        })
    }
}

impl Database for Sqlite {
    fn transact<T>(&self, mode: Mode, work: &mut Work<'_, T>) -> Result<T, Trouble> {
        let begun = Instant::now();
        loop {
            match self.once(mode, work) {
                // SQLite does not wait for everything: whoever turns the write-ahead log on, or closes it as the last one,
                // makes it say "busy" at once.
                Err(Trouble::Again(_) | Trouble::Ledger(LedgerError::Held { .. })) if begun.elapsed() < self.wait => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(Trouble::Again(_)) => {
                    let waited_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
                    return Err(LedgerError::Held { at: self.at(), waited_ms }.into());
                }
                ended => return ended,
            }
        }
    }

    fn migrate(&self) -> Result<Migrated, Trouble> {
        let from = self.file.look()?.map(|_| SCHEMA);
        self.file.sweep();
        // Opening checks the schema; there is only one so far.
        self.transact(Mode::Write, &mut |_| Ok(End::Rollback(())))?;
        Ok(Migrated { from, to: SCHEMA })
    }

    fn self_check(&self) -> Result<Vec<String>, Trouble> {
        self.transact(Mode::Read, &mut |tx| {
            let rows = tx.query("pragma integrity_check(20)", &[])?;
            let said = rows.into_iter().flatten().filter_map(|value| match value {
                Value::Text(text) if text != "ok" => Some(text),
                _ => None,
            });
            Ok(End::Rollback(said.collect()))
        })
    }

    fn listener(&self) -> Result<Box<dyn Listener>, Trouble> {
        Ok(Box::new(Poll))
    }

    fn at(&self) -> String {
        self.file.path().display().to_string()
    }
}

/// A file tells nobody that it has changed; it is looked at a few times a second.
struct Poll;

impl Listener for Poll {
    fn doze(&mut self, at_most: Duration) -> Result<(), Trouble> {
        std::thread::sleep(at_most.min(POLL));
        Ok(())
    }
}

/// An open transaction.
struct Open<'a> {
    connection: &'a mut Connection,
    at: &'a str,
    probe: Option<&'a Probe>,
    wait: Duration,
}

impl Open<'_> {
    fn run(&mut self, sql: &str) -> Result<(), Trouble> {
        let ran = probed(self.probe, sql, || self.connection.execute_batch(sql));
        ran.map_err(|error| trouble(self.at, self.wait, &error))
    }

    /// Whatever was done is undone; a transaction that has ended by an error is none any more.
    fn roll_back(&mut self) {
        if !self.connection.is_autocommit() {
            // What cannot be rolled back is so when the connection closes.
            let _ = probed(self.probe, "rollback", || self.connection.execute_batch("rollback"));
        }
    }
}

/// The statement as SQLite writes it: parameters with `?`, and no row locks, since `begin immediate` locks all.
fn dialect(sql: &str) -> String {
    sql.replace('$', "?").replace(" for update nowait", "").replace(" for update", "")
}

fn bound(values: &[Value]) -> Vec<Sql> {
    let to = |value: &Value| match value {
        Value::Null => Sql::Null,
        Value::Int(n) => Sql::Integer(*n),
        Value::Text(text) => Sql::Text(text.clone()),
        Value::Bytes(bytes) => Sql::Blob(bytes.clone()),
    };
    values.iter().map(to).collect()
}

fn read_all(connection: &Connection, sql: &str, values: &[Value]) -> rusqlite::Result<Vec<Row>> {
    let mut statement = connection.prepare_cached(sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query(params_from_iter(bound(values)))?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let value = |i| {
            Ok(match row.get::<_, Sql>(i)? {
                Sql::Null => Value::Null,
                Sql::Integer(n) => Value::Int(n),
                // No column of ours holds one.
                Sql::Real(x) => Value::Text(x.to_string()),
                Sql::Text(text) => Value::Text(text),
                Sql::Blob(bytes) => Value::Bytes(bytes),
            })
        };
        all.push((0..columns).map(value).collect::<rusqlite::Result<Row>>()?);
    }
    Ok(all)
}

impl Tx for Open<'_> {
    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Trouble> {
        let spelled = dialect(sql);
        let answer = probed(self.probe, sql, || read_all(self.connection, &spelled, values));
        answer.map_err(|error| trouble(self.at, self.wait, &error))
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, Trouble> {
        let spelled = dialect(sql);
        let answer = probed(self.probe, sql, || {
            self.connection.prepare_cached(&spelled)?.execute(params_from_iter(bound(values)))
        });
        let changed = answer.map_err(|error| trouble(self.at, self.wait, &error))?;
        Ok(u64::try_from(changed).unwrap_or(u64::MAX))
    }

    fn lock_name(&mut self, _name: &str) -> Result<(), Trouble> {
        Ok(())
    }

    fn now_ms(&mut self) -> Result<u64, Trouble> {
        Ok(crate::clock::wall_now_ms())
    }

    fn wake(&mut self, _machine: &str) -> Result<(), Trouble> {
        Ok(())
    }
}

/// What an error of SQLite means for the caller.
fn trouble(at: &str, wait: Duration, error: &rusqlite::Error) -> Trouble {
    let (at, why) = (at.to_owned(), error.to_string());
    let Some(failure) = error.sqlite_error() else {
        return Trouble::Damaged(why);
    };
    let ledger = match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            let waited_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            LedgerError::Held { at, waited_ms }
        }
        ErrorCode::NotADatabase => LedgerError::NotALedger { at, why },
        ErrorCode::DatabaseCorrupt => LedgerError::Damaged { at, why },
        ErrorCode::ReadOnly => LedgerError::ReadOnly { at, why },
        ErrorCode::DiskFull => LedgerError::NoSpace { at },
        // The index of the write-ahead log has no room; SQLite has no code of its own for that.
        ErrorCode::SystemIoFailure if failure.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE => {
            LedgerError::NoSpace { at }
        }
        ErrorCode::SystemIoFailure if failure.extended_code == rusqlite::ffi::SQLITE_IOERR_SHORT_READ => {
            LedgerError::Damaged { at, why }
        }
        ErrorCode::ConstraintViolation => return Trouble::Damaged(format!("the tables refuse: {why}")),
        // Its own words are the same for many things; the number says which.
        _ => LedgerError::Io { what: "use", at, why: format!("{why} (SQLite {})", failure.extended_code) },
    };
    Trouble::Ledger(ledger)
}

/// Where a file stands and what may be done with it.
pub(super) struct Found {
    inode: (u64, u64),
    mode: u32,
    writable: bool,
}

/// The path of a ledger in a directory.
pub fn ledger_path(location: &Location) -> PathBuf {
    location.dir().join(LEDGER_FILE)
}
