//! The ledger on a PostgreSQL server, for several hosts.
//!
//! Every transaction runs at `read committed` with explicit row locks, so each look behind a lock sees what was committed
//! before it. What another transaction caused (a deadlock, a lock that somebody keeps, a serialization failure) is tried
//! again here and never shown as a refusal. A connection that is lost before the commit was sent has changed nothing, so
//! the verb begins anew; lost while the commit was on its way, the answer is not known.

mod address;
mod migrate;

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use postgres::Client;
use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::private::BytesMut;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::ledger::{Ledger, Migrated};
use super::refusal::LedgerError;
use super::sql::{Database, End, Listener, Mode, Probe, Row, Trouble, Tx, Value, WAIT_MAX, Work, probed};
use super::store::{Options, Store};
use address::Address;

/// What no code path can break, as long as the database has it.
const UNIQUE: [&str; 5] = [
    "tenure_one_unfinished",
    "tenure_one_waiting",
    "tenure_admission_request_attempt_key",
    "tenure_input_request_attempt_key",
    "tenure_placement_surface_generation_key",
];

/// What `wake` is heard on.
const CHANNEL: &str = "tenure_work";

/// How often a verb begins anew after its connection was lost before the commit.
const RECONNECTS: u32 = 3;

/// How long a listener believes that silence means nothing new.
const POLL: Duration = Duration::from_secs(1);

/// The ledger at this address, such as `postgres://user@/db?host=/run/postgresql`. Nothing is connected to yet.
///
/// # Errors
/// [`LedgerError::Address`] when it is none, or asks for a connection that this build does not make: there is no TLS, so a
/// server on another host needs `sslmode=disable` said in so many words, or a tunnel.
pub fn open_postgres(url: &str, options: Options) -> Result<Box<dyn Ledger>, LedgerError> {
    let wait = Duration::from_millis(options.wait_ms);
    let address = Address::new(url, wait)?;
    let db = Postgres { address, wait, probe: options.probe.clone(), client: Mutex::new(None) };
    Ok(Box::new(Store::new(db, options)))
}

struct Postgres {
    address: Address,
    wait: Duration,
    probe: Option<Probe>,
    client: Mutex<Option<Client>>,
}

/// How one try ended.
enum Tried<T> {
    Done(T),
    /// Nothing was committed.
    Failed(Trouble),
    /// The commit was sent and its answer did not come.
    Undecided(String),
}

impl Postgres {
    fn once<T>(&self, mode: Mode, work: &mut Work<'_, T>) -> Tried<T> {
        let mut slot = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        let client = match slot.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => match self.connect().and_then(|client| migrate::checked(client, &self.address)) {
                Ok(client) => client,
                Err(trouble) => return Tried::Failed(trouble),
            },
        };
        let client = slot.insert(client);
        let mut tx = Open { client, address: &self.address, probe: self.probe.as_ref() };
        let tried = tx.whole(mode, work);
        // A connection that failed in any way is not used again: nobody has to think about what state it is in.
        if !matches!(tried, Tried::Done(_)) {
            *slot = None;
        }
        tried
    }

    fn connect(&self) -> Result<Client, Trouble> {
        let mut client = self.address.connect().map_err(Trouble::Ledger)?;
        let millis = self.wait.min(WAIT_MAX).as_millis().max(2);
        // A party that freezes inside a transaction is ended by the server in time for the others.
        let set_up = format!(
            "set synchronous_commit = on; set default_transaction_isolation = 'read committed'; set lock_timeout = {millis}; \
             set idle_in_transaction_session_timeout = {}; set client_min_messages = warning",
            millis / 2
        );
        client.batch_execute(&set_up).map_err(|error| trouble(&self.address, &error))?;
        Ok(client)
    }
}

impl Database for Postgres {
    fn transact<T>(&self, mode: Mode, work: &mut Work<'_, T>) -> Result<T, Trouble> {
        let begun = Instant::now();
        let mut reconnects = 0;
        let mut pause = Duration::from_millis(1);
        loop {
            match self.once(mode, work) {
                Tried::Done(done) => return Ok(done),
                Tried::Undecided(why) => return Err(Trouble::Lost(why)),
                Tried::Failed(Trouble::Again(_)) if begun.elapsed() < self.wait => {
                    // Different for each process, so that two that met do not meet again.
                    let spread = u64::from(std::process::id()) % 7;
                    std::thread::sleep(pause + Duration::from_millis(spread));
                    pause = (pause * 2).min(Duration::from_millis(100));
                }
                Tried::Failed(Trouble::Again(_)) => {
                    let waited_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
                    return Err(LedgerError::Held { at: self.at(), waited_ms }.into());
                }
                Tried::Failed(Trouble::Lost(_)) if reconnects < RECONNECTS => reconnects += 1,
                Tried::Failed(Trouble::Lost(why)) => {
                    return Err(LedgerError::Unreachable { at: self.at(), why }.into());
                }
                Tried::Failed(trouble) => return Err(trouble),
            }
        }
    }

    fn migrate(&self) -> Result<Migrated, Trouble> {
        migrate::migrate(self.connect()?, &self.address)
    }

    fn self_check(&self) -> Result<Vec<String>, Trouble> {
        self.transact(Mode::Read, &mut |tx| {
            let mut found = Vec::new();
            for index in UNIQUE {
                let sql = "select count(*) from pg_index where indexrelid = to_regclass($1::text) and indisvalid and indisunique";
                let rows = tx.query(sql, &[Value::Text(index.to_owned())])?;
                if rows.first().and_then(|row| row.first()) != Some(&Value::Int(1)) {
                    found.push(format!("the unique index {index} is missing or not valid"));
                }
            }
            Ok(End::Rollback(found))
        })
    }

    fn listener(&self) -> Result<Box<dyn Listener>, Trouble> {
        let mut client = self.connect()?;
        client.batch_execute(&format!("listen {CHANNEL}")).map_err(|error| trouble(&self.address, &error))?;
        Ok(Box::new(Ear { client }))
    }

    fn at(&self) -> String {
        self.address.shown().to_owned()
    }
}

/// Hears of new rows at once. It looks now and then all the same: a surface may have become free, which nobody says.
struct Ear {
    client: Client,
}

impl Listener for Ear {
    fn doze(&mut self, at_most: Duration) -> Result<(), Trouble> {
        let heard = self.client.notifications().timeout_iter(at_most.min(POLL)).next();
        heard.map(|_| ()).map_err(|error| Trouble::Lost(error.to_string()))
    }
}

/// An open transaction.
struct Open<'a> {
    client: &'a mut Client,
    address: &'a Address,
    probe: Option<&'a Probe>,
}

impl Open<'_> {
    fn whole<T>(&mut self, mode: Mode, work: &mut Work<'_, T>) -> Tried<T> {
        let begin = match mode {
            Mode::Write => "begin",
            Mode::Read => "begin isolation level repeatable read read only",
        };
        if let Err(trouble) = self.run(begin) {
            return Tried::Failed(trouble);
        }
        match work(self) {
            Err(trouble) => Tried::Failed(trouble),
            Ok(End::Rollback(done)) => {
                // Nothing was written; a connection that does not even roll back shows at its next use.
                let _ = self.run("rollback");
                Tried::Done(done)
            }
            Ok(End::Commit(done)) => match self.run("commit") {
                Ok(()) => Tried::Done(done),
                Err(Trouble::Lost(why)) => Tried::Undecided(why),
                Err(trouble) => Tried::Failed(trouble),
            },
        }
    }

    fn run(&mut self, sql: &str) -> Result<(), Trouble> {
        let ran = probed(self.probe, sql, || self.client.batch_execute(sql));
        ran.map_err(|error| trouble(self.address, &error))
    }
}

impl Tx for Open<'_> {
    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Trouble> {
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
        let rows = probed(self.probe, sql, || self.client.query(sql, &values));
        rows.map_err(|error| trouble(self.address, &error))?.iter().map(read).collect()
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, Trouble> {
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
        let changed = probed(self.probe, sql, || self.client.execute(sql, &values));
        changed.map_err(|error| trouble(self.address, &error))
    }

    /// By a number made of the name: two names with the same number wait for each other, which does no harm.
    fn lock_name(&mut self, name: &str) -> Result<(), Trouble> {
        let sql = "select pg_advisory_xact_lock(hashtextextended($1, 0))::text";
        self.query(sql, &[Value::Text(name.to_owned())]).map(|_| ())
    }

    /// The server's clock as of now, not as of the beginning of the transaction: it may have waited for a lock.
    fn now_ms(&mut self) -> Result<u64, Trouble> {
        let rows = self.query("select (extract(epoch from clock_timestamp()) * 1000)::bigint", &[])?;
        match rows.first().and_then(|row| row.first()) {
            Some(Value::Int(ms)) => Ok(u64::try_from(*ms).unwrap_or(0)),
            _ => Err(Trouble::Damaged("the server does not tell the time".to_owned())),
        }
    }

    fn wake(&mut self, machine: &str) -> Result<(), Trouble> {
        self.query(&format!("select pg_notify('{CHANNEL}', $1)::text"), &[Value::Text(machine.to_owned())]).map(|_| ())
    }
}

fn read(row: &postgres::Row) -> Result<Row, Trouble> {
    let odd = |error: postgres::Error| Trouble::Damaged(error.to_string());
    let value = |(i, column): (usize, &postgres::Column)| {
        Ok(match *column.type_() {
            Type::INT8 => row.try_get::<_, Option<i64>>(i).map_err(odd)?.map_or(Value::Null, Value::Int),
            Type::INT4 => row.try_get::<_, Option<i32>>(i).map_err(odd)?.map_or(Value::Null, |n| Value::Int(n.into())),
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(i).map_err(odd)?.map_or(Value::Null, Value::Bytes),
            _ => row.try_get::<_, Option<String>>(i).map_err(odd)?.map_or(Value::Null, Value::Text),
        })
    };
    row.columns().iter().enumerate().map(value).collect()
}

impl ToSql for Value {
    fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Value::Null => Ok(IsNull::Yes),
            // What is compared with a number written in the statement is taken for a smaller one.
            Value::Int(n) if *of == Type::INT4 => i32::try_from(*n)?.to_sql(of, out),
            Value::Int(n) => n.to_sql(of, out),
            Value::Text(text) => text.to_sql(of, out),
            Value::Bytes(bytes) => bytes.to_sql(of, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// What an error of the server or of the connection means for the caller.
fn trouble(address: &Address, error: &postgres::Error) -> Trouble {
    let at = address.shown().to_owned();
    let Some(db) = error.as_db_error() else {
        return Trouble::Lost(full(error));
    };
    let why = db.message().to_owned();
    let code = db.code();
    let again = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::UNIQUE_VIOLATION,
    ];
    let lost = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        SqlState::QUERY_CANCELED,
    ];
    if again.contains(code) {
        return Trouble::Again(why);
    }
    if lost.contains(code) || code.code().starts_with("08") {
        return Trouble::Lost(why);
    }
    Trouble::Ledger(match *code {
        SqlState::UNDEFINED_TABLE | SqlState::INVALID_SCHEMA_NAME => {
            LedgerError::Absent { at, make: "`tenure admission migrate`" }
        }
        SqlState::DISK_FULL | SqlState::OUT_OF_MEMORY => LedgerError::NoSpace { at },
        SqlState::READ_ONLY_SQL_TRANSACTION | SqlState::INSUFFICIENT_PRIVILEGE => LedgerError::ReadOnly { at, why },
        SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => LedgerError::Damaged { at, why },
        SqlState::CHECK_VIOLATION | SqlState::NOT_NULL_VIOLATION => {
            return Trouble::Damaged(format!("the tables refuse: {why}"));
        }
        SqlState::TOO_MANY_CONNECTIONS => LedgerError::Unreachable { at, why },
        _ => LedgerError::Io { what: "use", at, why: format!("{why} ({})", code.code()) },
    })
}

/// An error with its causes.
fn full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
