//! PostgreSQL: connections that are cut, sessions that are ended, a server that is started anew, transactions that are in
//! each other's way.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::admission::{Kind as K, Ledger, Moment, Phase, Refusal, open_postgres};

use crate::bench::*;
use crate::server;

/// When the wire is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// The commit reaches the server and its answer does not come back.
    AfterCommit,
    /// The commit does not reach the server.
    BeforeCommit,
    /// With the n-th message of the client, counted over all its connections.
    At(u64),
}

/// Stands between a client and the server, and cuts the wire once.
struct Wire {
    url: String,
    cut: Arc<AtomicBool>,
}

fn is_commit(message: &[u8]) -> bool {
    message.windows(7).any(|seven| seven == b"commit\0")
}

impl Wire {
    fn new(schema: &server::Schema, when: Cut) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = schema.url();
        let socket = server::socket();
        let url = format!(
            "postgres://postgres@127.0.0.1:{port}/postgres?{}",
            url.split_once("&host").unwrap().1.split_once('&').unwrap().1
        );
        let cut = Arc::new(AtomicBool::new(false));
        let (is_cut, count) = (cut.clone(), Arc::new(AtomicU64::new(0)));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), UnixStream::connect(&socket).unwrap());
                // Small messages are not to wait for each other.
                client.set_nodelay(true).unwrap();
                let (is_cut, count) = (is_cut.clone(), count.clone());
                std::thread::spawn(move || carry(client, server, when, &is_cut, &count));
            }
        });
        Wire { url, cut }
    }
}

fn carry(mut client: TcpStream, mut server: UnixStream, when: Cut, is_cut: &AtomicBool, count: &AtomicU64) {
    let (mut to_client, mut from_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let silent = Arc::new(AtomicBool::new(false));
    let mute = silent.clone();
    let back = std::thread::spawn(move || {
        let mut buffer = [0; 16384];
        while let Ok(n @ 1..) = from_server.read(&mut buffer) {
            if mute.load(Ordering::SeqCst) {
                // What was on its way before may still come; the answer to the commit is what says that it is done.
                if buffer[..n].windows(7).any(|seven| seven == b"COMMIT\0") {
                    break;
                }
                continue;
            }
            if to_client.write_all(&buffer[..n]).is_err() {
                break;
            }
        }
        let _ = to_client.shutdown(std::net::Shutdown::Both);
    });
    let mut buffer = [0; 16384];
    while let Ok(n @ 1..) = client.read(&mut buffer) {
        let message = &buffer[..n];
        let number = count.fetch_add(1, Ordering::SeqCst);
        let now = match when {
            Cut::At(at) => number == at,
            Cut::BeforeCommit | Cut::AfterCommit => is_commit(message),
        };
        if now && !is_cut.swap(true, Ordering::SeqCst) {
            if when == Cut::AfterCommit {
                silent.store(true, Ordering::SeqCst);
                server.write_all(message).unwrap();
                // The answer of the server ends the other thread, so the commit is done by then.
                back.join().unwrap();
            }
            break;
        }
        if server.write_all(message).is_err() {
            break;
        }
    }
    let _ = client.shutdown(std::net::Shutdown::Both);
    let _ = server.shutdown(std::net::Shutdown::Both);
}

fn schema(bench: &Bench) -> &server::Schema {
    match &bench.home {
        Base::Schema(schema) => schema,
        Base::Directory(_) => panic!("these are tests of PostgreSQL"),
    }
}

fn through(bench: &Bench, when: Cut) -> (Wire, Box<dyn Ledger>) {
    let wire = Wire::new(schema(bench), when);
    let ledger = open_postgres(&wire.url, options(&bench.rules, &bench.clock)).unwrap();
    (wire, ledger)
}

#[test]
fn a12_the_connection_is_cut_after_the_commit_and_before_the_answer() {
    let bench = Bench::placed(Which::Postgres);
    let (wire, ledger) = through(&bench, Cut::AfterCommit);
    assert_eq!(code(ledger.submit(&local("r", 1, "d"))), "unknown");
    assert!(wire.cut.load(Ordering::SeqCst));
    let owner = bench.owner(S).expect("the commit arrived");
    let resent = ledger.submit(&local("r", 1, "d")).unwrap();
    assert_eq!((resent.admission(), resent.created), (owner, false));
    assert!(resent.credential.is_some());
    assert_eq!(bench.rows().len(), 1);
    bench.sound();
}

#[test]
fn a12_the_connection_is_cut_before_the_commit_arrives() {
    let bench = Bench::placed(Which::Postgres);
    let (wire, ledger) = through(&bench, Cut::BeforeCommit);
    assert_eq!(code(ledger.submit(&local("r", 1, "d"))), "unknown");
    assert!(wire.cut.load(Ordering::SeqCst));
    assert_eq!(bench.rows(), []);
    assert!(ledger.submit(&local("r", 1, "d")).unwrap().created);
    bench.sound();
}

#[test]
fn race_26_the_connection_is_cut_with_any_message() {
    let bench = Bench::placed(Which::Postgres);
    let mut unknown = 0;
    for at in 0..200 {
        let request = local(&format!("r{at}"), 1, "d");
        let (wire, ledger) = through(&bench, Cut::At(at));
        match ledger.submit(&request) {
            Ok(_) => {}
            Err(refusal) => {
                assert!(["unknown", "ledger_unreachable"].contains(&refusal.code()), "{refusal}");
                unknown += 1;
            }
        }
        // The wire may have been cut with what is sent after the answer: then this is the one that is lost.
        let again = match ledger.submit(&request) {
            Err(Refusal::Unknown { .. }) => {
                unknown += 1;
                ledger.submit(&request).unwrap()
            }
            other => other.unwrap(),
        };
        assert_eq!(bench.owner(S), Some(again.admission()));
        assert_eq!(bench.rows().iter().filter(|row| row.request == request.request).count(), 1);
        bench.sound();
        bench.close(&again, K::FailedBeforeStart).unwrap();
        if !wire.cut.load(Ordering::SeqCst) {
            assert!(at > 20 && unknown > 0, "{at} messages, {unknown} lost answers");
            return;
        }
    }
    panic!("it never gets through");
}

#[test]
fn a_session_that_the_server_ends_at_any_statement() {
    let bench = Bench::placed(Which::Postgres);
    for at in 0..200 {
        let name = format!("ended-{}-{at}", std::process::id());
        let request = local(&format!("r{at}"), 1, "d");
        let url = format!("{}&application_name={name}", schema(&bench).url());
        let (count, ended) = (AtomicU64::new(0), Arc::new(AtomicBool::new(false)));
        let (has_ended, sql) = (
            ended.clone(),
            format!("select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = '{name}'"),
        );
        let admin = Mutex::new(schema(&bench).client());
        let mut options = options(&bench.rules, &bench.clock);
        options.probe = Some(Arc::new(move |moment, _: &str| {
            if moment == Moment::Before && count.fetch_add(1, Ordering::SeqCst) == at {
                has_ended.store(true, Ordering::SeqCst);
                admin.lock().unwrap().execute(&sql, &[]).unwrap();
            }
        }));
        let ledger = open_postgres(&url, options).unwrap();
        match ledger.submit(&request) {
            Ok(_) => {}
            Err(refusal) => assert_eq!(refusal.code(), "unknown", "{refusal}"),
        }
        // It may be the resend that is hit.
        let again = ledger.submit(&request).or_else(|_| ledger.submit(&request)).unwrap();
        assert_eq!(bench.owner(S), Some(again.admission()));
        bench.sound();
        bench.close(&again, K::FailedBeforeStart).unwrap();
        if !ended.load(Ordering::SeqCst) {
            assert!(at > 10, "only {at} statements");
            return;
        }
    }
    panic!("it never gets through");
}

/// A server of this test alone, since it is ended in the middle.
struct Own {
    dir: tempfile::TempDir,
}

impl Own {
    fn script(&self, verb: &str) -> String {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/postgres");
        let dir = self.dir.path().join("server");
        let ran = Command::new(script).arg(verb).env("TENURE_POSTGRES_DIR", dir).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let text = String::from_utf8(ran.stdout).unwrap();
        text.split('\'').nth(1).unwrap_or_default().to_owned()
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.script("stop");
    }
}

#[test]
fn the_server_is_ended_and_started_anew_in_the_middle() {
    use std::os::unix::fs::PermissionsExt;
    let own = Own { dir: tempfile::tempdir().unwrap() };
    std::fs::set_permissions(own.dir.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
    let url = own.script("start");
    let (rules, clock) = (Arc::new(Rules::default()), Arc::new(AtomicU64::new(1_800_000_000_000)));
    let open = || open_postgres(&url, options(&rules, &clock)).unwrap();
    let ledger = open();
    ledger.migrate().unwrap();
    ledger.surface_add(&key(S), &[]).unwrap();
    ledger.place(&placing(S, m1(), "/srv/s")).unwrap();
    let (done, total) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for party in 0..3 {
            let (ledger, done, total) = (open(), &done, &total);
            scope.spawn(move || {
                for n in 0.. {
                    if done.load(Ordering::SeqCst) {
                        break;
                    }
                    work(ledger.as_ref(), &format!("p{party}-{n}"));
                    total.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for _ in 0..3 {
            let before = total.load(Ordering::SeqCst);
            while total.load(Ordering::SeqCst) < before + 6 {
                std::thread::sleep(Duration::from_millis(5));
            }
            own.script("restart");
        }
        done.store(true, Ordering::SeqCst);
    });
    assert_eq!(ledger.fsck().unwrap(), []);
    let open: Vec<_> = ledger.history(&Default::default()).unwrap().into_iter().filter(|r| r.is_open()).collect();
    assert_eq!(open, [], "everything was closed by whoever had it");
}

/// Asks until the answer is known; what it got it closes, also until that is known.
fn work(ledger: &dyn Ledger, name: &str) {
    let known = |refusal: &Refusal| !["unknown", "ledger_unreachable"].contains(&refusal.code());
    let answer = loop {
        match ledger.submit(&local(name, 1, "d")) {
            Ok(answer) => break answer,
            Err(refusal) if !known(&refusal) => std::thread::sleep(Duration::from_millis(5)),
            Err(refusal) => {
                assert_eq!(refusal.code(), "busy", "{refusal}");
                return;
            }
        }
    };
    let key = answer.record.key();
    loop {
        match ledger.cancel(&key, &who("ann")) {
            Ok(record) => return assert_eq!(record.phase, Phase::Closed),
            Err(refusal) => assert!(!known(&refusal), "{refusal}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_deadlock_is_tried_again_and_not_shown() {
    let bench = Bench::placed(Which::Postgres);
    let admitted = bench.ledger.submit(&local("r", 1, "d")).unwrap();
    let mut other = schema(&bench).client();
    // The other side locks the other way round, and is patient enough for ours to be the one that the server ends.
    other.batch_execute("set deadlock_timeout = '60s'; begin").unwrap();
    other.execute("select 1 from tenure_surface where surface = 's' for update", &[]).unwrap();
    let ledger = bench.again();
    std::thread::scope(|scope| {
        let cancel = scope.spawn(|| ledger.cancel(&admitted.record.key(), &who("ann")));
        let mut watcher = schema(&bench).client();
        let waits = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like \
            '%from tenure_surface where surface = $1 for update%' and application_name = 'tenure'";
        while watcher.query_one(waits, &[]).unwrap().get::<_, i64>(0) == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let id = admitted.admission().to_string();
        other.execute("select 1 from tenure_admission where admission = $1 for update", &[&id]).unwrap();
        other.batch_execute("commit").unwrap();
        assert_eq!(cancel.join().unwrap().unwrap().closing, Some(K::Canceled));
    });
    let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
    let mut client = schema(&bench).client();
    while client.query_one(deadlocks, &[]).unwrap().get::<_, i64>(0) == 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a53_a_party_that_freezes_for_good_is_ended_by_the_server() {
    let bench = Bench::placed(Which::Postgres);
    let (reached, is_reached) = channel();
    let (go_on, may_go_on) = channel::<()>();
    let may_go_on = Mutex::new(may_go_on);
    let mut frozen = options(&bench.rules, &bench.clock);
    frozen.wait_ms = 1_000;
    frozen.probe = Some(Arc::new(move |moment, sql: &str| {
        if moment == Moment::Before && sql == "commit" {
            reached.send(()).unwrap();
            may_go_on.lock().unwrap().recv().unwrap();
        }
    }));
    let frozen = open(&bench.home.address(), frozen);
    std::thread::scope(|scope| {
        let admitting = scope.spawn(|| frozen.submit(&local("r", 1, "d")));
        is_reached.recv().unwrap();
        // It has the locks, and does not go on. The other waits for the server to settle it.
        bench.ledger.legacy_take(&key(S), &who("old")).unwrap();
        go_on.send(()).unwrap();
        assert_eq!(code(admitting.join().unwrap()), "unknown");
    });
    assert_eq!(code(bench.ledger.submit(&local("r", 1, "d"))), "busy_legacy");
    assert_eq!(bench.rows(), []);
    bench.sound();
}
