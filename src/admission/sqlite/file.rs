//! Finding, checking, making and opening the file of a ledger.
//!
//! A ledger is made whole under another name and then linked to its own, so an empty file is never one that is just being
//! made: it is one that was cut short, and it is refused rather than filled anew.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use rustix::fs::{FlockOperation, Mode, OFlags};

use super::{Found, trouble};
use crate::admission::refusal::LedgerError;
use crate::admission::sql::schema::{APPLICATION_ID, SCHEMA, for_sqlite};
use crate::admission::sql::{Probe, Trouble, WAIT_MAX, probed};
use crate::error::OpenError;
use crate::location::Location;

/// How the name of a ledger begins that is being made.
const NEW: &str = "ledger.new-";

/// How the name of its lock ends.
const LOCK: &str = ".lock";

/// How the names of the files end that stand beside one.
const COMPANIONS: [&str; 4] = ["-journal", "-wal", "-shm", LOCK];

/// Where the ledger is kept.
pub(super) struct LedgerFile {
    location: Location,
    path: PathBuf,
}

impl LedgerFile {
    pub(super) fn new(location: Location, name: &str) -> LedgerFile {
        let path = location.dir().join(name);
        LedgerFile { location, path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The file, after the checks of its directory and its owner; `None` when there is none.
    pub(super) fn look(&self) -> Result<Option<Found>, LedgerError> {
        self.location.check().map_err(of_directory)?;
        let meta = match fs::symlink_metadata(&self.path) {
            Ok(meta) => meta,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(self.io("look at", &source)),
        };
        let not_a_file = |what: &str| LedgerError::NotAFile { path: self.path.clone(), what: what.to_owned() };
        if meta.is_symlink() {
            return Err(not_a_file("a symbolic link, which is not followed"));
        }
        if !meta.is_file() {
            return Err(not_a_file("not a file"));
        }
        let me = rustix::process::geteuid().as_raw();
        if meta.uid() != me {
            return Err(LedgerError::NotOurs { path: self.path.clone(), owner: meta.uid(), me });
        }
        if meta.len() == 0 {
            let why = "it is empty: it was cut short, or something else made it".to_owned();
            return Err(LedgerError::Damaged { at: self.at(), why });
        }
        let writable = meta.mode() & 0o200 != 0;
        Ok(Some(Found { inode: (meta.dev(), meta.ino()), mode: meta.mode() & 0o7777, writable }))
    }

    fn at(&self) -> String {
        self.path.display().to_string()
    }

    fn io(&self, what: &'static str, source: &std::io::Error) -> LedgerError {
        if matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
            return LedgerError::NoSpace { at: self.at() };
        }
        LedgerError::Io { what, at: self.at(), why: source.to_string() }
    }

    /// Makes the ledger. Somebody else may do so at the same time: the first one stands.
    pub(super) fn create(&self, at: &str, probe: Option<&Probe>) -> Result<(), Trouble> {
        self.location.make().map_err(of_directory)?;
        self.location.check().map_err(of_directory)?;
        let log = self.path.with_extension("sqlite-wal");
        if fs::symlink_metadata(&log).is_ok() {
            let why = format!("{} is there without it; put the ledger back, or move that file away", log.display());
            return Err(LedgerError::Damaged { at: at.to_owned(), why }.into());
        }
        self.sweep();
        let new = New::in_dir(self.location.dir()).map_err(|e| self.io("make", &e))?;
        probed(probe, "make the file", || fill(&new.path, at))?;
        probed(probe, "put it in place", || self.put_in_place(&new.path))
    }

    /// Removes what creations have left that were killed: nobody holds their lock. Only that is opened, and never what may be
    /// a ledger: closing it would take away the locks that SQLite has on it in this process.
    pub(super) fn sweep(&self) {
        let dir = self.location.dir();
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| name.starts_with(NEW)) else { continue };
            let made = COMPANIONS.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
            let lock = dir.join(format!("{made}{LOCK}"));
            let is_alone = fs::symlink_metadata(&lock).is_err();
            // Held while its file is removed: whoever waits for it then finds that it is gone.
            let held = if is_alone { None } else { held(&lock) };
            if is_alone || held.is_some() {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn put_in_place(&self, made: &Path) -> Result<(), Trouble> {
        File::open(made).and_then(|file| file.sync_all()).map_err(|e| self.io("write", &e))?;
        match fs::hard_link(made, &self.path) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::AlreadyExists => return Ok(()),
            Err(e) => return Err(self.io("make", &e).into()),
        }
        let synced = File::open(self.location.dir()).and_then(|dir| dir.sync_all());
        Ok(synced.map_err(|e| self.io("write", &e))?)
    }

    /// A connection for reading and writing.
    pub(super) fn open(&self, at: &str, wait: Duration) -> Result<Connection, Trouble> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let connection = self.connect(flags, at, wait)?;
        set_up(&connection, at, wait)?;
        Ok(connection)
    }

    /// A connection to a file that nobody may write.
    pub(super) fn open_read_only(&self, at: &str, wait: Duration) -> Result<Connection, Trouble> {
        let connection = self.connect(OpenFlags::SQLITE_OPEN_READ_ONLY, at, wait)?;
        is_ours(&connection, at, wait)?;
        Ok(connection)
    }

    fn connect(&self, flags: OpenFlags, at: &str, wait: Duration) -> Result<Connection, Trouble> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        // SQLite compares whole paths when it is told not to follow links, so those above the directory are resolved here.
        let dir = fs::canonicalize(self.location.dir()).map_err(|e| self.io("open", &e))?;
        let path = self.path.file_name().map_or_else(|| dir.clone(), |name| dir.join(name));
        let told = |error: rusqlite::Error| trouble(at, wait, &error);
        let connection = Connection::open_with_flags(path, flags).map_err(told)?;
        connection.busy_timeout(wait.min(WAIT_MAX)).map_err(told)?;
        Ok(connection)
    }
}

/// A ledger that is being made, in a file of our own, mode 0600. Beside it stands a lock for as long as this lives, so that
/// nobody takes it for what a dead process left.
struct New {
    path: PathBuf,
    lock: PathBuf,
    _held: File,
}

impl New {
    fn in_dir(dir: &Path) -> std::io::Result<New> {
        let create = |path: &Path| {
            use std::os::unix::fs::OpenOptionsExt;
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
        };
        loop {
            let name = format!("{NEW}{}", uuid::Uuid::now_v7().simple());
            let path = dir.join(&name);
            let lock = dir.join(format!("{name}{LOCK}"));
            let held = create(&lock)?;
            rustix::fs::flock(&held, FlockOperation::LockExclusive)?;
            // Before it was locked, somebody may have swept it away.
            if held.metadata()?.nlink() > 0 {
                let new = New { path, lock, _held: held };
                create(&new.path)?;
                return Ok(new);
            }
        }
    }
}

impl Drop for New {
    /// Its own name is all that a ledger keeps; what is left under this one is nobody's.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(&self.lock);
    }
}

/// The lock, if nobody holds it.
fn held(lock: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::open(lock, flags, Mode::empty()).ok()?;
    rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive).ok().map(|()| fd)
}

/// Writes the tables into a new file, which nobody else knows yet.
fn fill(path: &Path, at: &str) -> Result<(), Trouble> {
    let told = |error: rusqlite::Error| trouble(at, Duration::ZERO, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(told)?;
    tables(&mut connection).map_err(told)?;
    connection.close().map_err(|(_, error)| told(error))
}

fn tables(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for sql in for_sqlite() {
        transaction.execute_batch(&sql)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", i64::try_from(SCHEMA).unwrap_or(i64::MAX))?;
    transaction.commit()
}

/// What a ledger that is not there looks like.
pub(super) fn empty(at: &str) -> Result<Connection, Trouble> {
    let told = |error: rusqlite::Error| trouble(at, Duration::ZERO, &error);
    let mut connection = Connection::open_in_memory().map_err(told)?;
    tables(&mut connection).map_err(told)?;
    Ok(connection)
}

fn set_up(connection: &Connection, at: &str, wait: Duration) -> Result<(), Trouble> {
    is_ours(connection, at, wait)?;
    let told = |error: rusqlite::Error| trouble(at, wait, &error);
    let mode: String = connection.query_row("pragma journal_mode = wal", [], |row| row.get(0)).map_err(told)?;
    if mode != "wal" {
        let why = format!("its file system does not allow a write-ahead log (it says {mode:?})");
        return Err(LedgerError::NotAFile { path: at.into(), what: why }.into());
    }
    connection.pragma_update(None, "synchronous", "full").map_err(told)
}

/// Our mark, and a schema that this version knows.
fn is_ours(connection: &Connection, at: &str, wait: Duration) -> Result<(), Trouble> {
    let pragma = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let told = |error: rusqlite::Error| trouble(at, wait, &error);
    let mark = pragma("pragma application_id").map_err(told)?;
    let found = pragma("pragma user_version").map_err(told)?;
    if mark != APPLICATION_ID {
        let why = "it is a database of something else".to_owned();
        return Err(LedgerError::NotALedger { at: at.to_owned(), why }.into());
    }
    let found = u64::try_from(found).unwrap_or(0);
    if found > SCHEMA {
        return Err(LedgerError::Newer { at: at.to_owned(), found, known: SCHEMA }.into());
    }
    if found < SCHEMA {
        return Err(LedgerError::Older { at: at.to_owned(), found, known: SCHEMA }.into());
    }
    Ok(())
}

fn of_directory(error: OpenError) -> LedgerError {
    match error {
        OpenError::NotOurs { path, owner, me } => LedgerError::NotOurs { path, owner, me },
        OpenError::NotAFile { path, what } => LedgerError::NotAFile { path, what: what.to_owned() },
        OpenError::NetworkFileSystem { dir, kind } => {
            let what =
                format!("on {kind}, where a write-ahead log does not work; use a local directory, or PostgreSQL");
            LedgerError::NotAFile { path: dir, what }
        }
        OpenError::Io { what, path, source } => {
            LedgerError::Io { what, at: path.display().to_string(), why: source.to_string() }
        }
        other => LedgerError::Io { what: "use", at: "its directory".to_owned(), why: other.to_string() },
    }
}
