//! What can be wrong with the file of a ledger, or with the server: each has its error, and nothing is lost.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure::Location;
use tenure::admission::{LEDGER_FILE, Ledger, LedgerError, Moment, Refusal, open_postgres, open_sqlite};

use crate::bench::*;

fn options_now() -> tenure::admission::Options {
    options(&Arc::new(Rules::default()), &Arc::new(AtomicU64::new(1_800_000_000_000)))
}

/// A ledger with one admission in it, and closed again, so that all of it is in the one file.
fn kept() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let ledger = at(dir.path());
    ledger.surface_add(&key(S), &[]).unwrap();
    ledger.place(&placing(S, m1(), "/srv/s")).unwrap();
    ledger.submit(&local("r", 1, "d")).unwrap();
    drop(ledger);
    let path = dir.path().join(LEDGER_FILE);
    (dir, path)
}

fn at(dir: &std::path::Path) -> Box<dyn Ledger> {
    open_sqlite(&Location::named(dir), options_now())
}

fn why<T: std::fmt::Debug>(refused: Result<T, Refusal>) -> LedgerError {
    match refused.unwrap_err() {
        Refusal::Unusable(error) => error,
        other => panic!("{other}"),
    }
}

/// Both a verb that writes and one that reads say it, and the file stays as it is.
fn refused(path: &std::path::Path, expected: &str) {
    let before = fs::read(path).unwrap();
    let ledger = at(path.parent().unwrap());
    assert_eq!(why(ledger.submit(&local("r2", 1, "d"))).code(), expected);
    assert_eq!(why(ledger.history(&Default::default())).code(), expected);
    assert!(fs::read(path).unwrap() == before, "the file was changed");
}

#[test]
fn a_read_makes_no_ledger_and_sees_an_empty_one() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let ledger = at(&state);
    assert_eq!(ledger.history(&Default::default()).unwrap(), []);
    assert_eq!(code(ledger.surface(&key(S))), "not_found");
    assert_eq!(ledger.fsck().unwrap(), []);
    assert!(!state.exists());
    ledger.surface_add(&key(S), &[]).unwrap();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(state.clone()), mode(state.join(LEDGER_FILE))), (0o700, 0o600));
    let names: Vec<_> = fs::read_dir(&state).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().all(|name| name.starts_with(LEDGER_FILE)), "something was left behind: {names:?}");
}

#[test]
fn sixteen_that_make_it_at_once_make_one() {
    let dir = tempfile::tempdir().unwrap();
    let barrier = std::sync::Barrier::new(16);
    std::thread::scope(|scope| {
        for i in 0..16 {
            let (dir, barrier) = (dir.path(), &barrier);
            scope.spawn(move || {
                barrier.wait();
                at(dir).surface_add(&key(&format!("s{i}")), &[]).unwrap();
            });
        }
    });
    assert_eq!(at(dir.path()).surfaces().unwrap().len(), 16);
}

#[test]
fn a_file_that_was_cut_short_is_refused_and_left_alone() {
    let (_dir, path) = kept();
    let whole = fs::read(&path).unwrap();
    for length in [whole.len() / 2, 4096, 512, 50, 1, 0] {
        fs::write(&path, &whole[..length]).unwrap();
        let before = fs::read(&path).unwrap();
        let ledger = at(path.parent().unwrap());
        let error = why(ledger.submit(&local("r2", 1, "d")));
        assert!(["ledger_damaged", "not_a_ledger"].contains(&error.code()), "{length}: {error}");
        assert!(fs::read(&path).unwrap() == before, "{length}: the file was changed");
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(at(path.parent().unwrap()).history(&Default::default()).unwrap().len(), 1);
}

/// SQLite keeps no checksums, so a changed byte may go unseen where it is in a text. What it may not do is end the program
/// or make a second owner.
#[test]
fn a_changed_byte_anywhere_is_an_error_or_harmless() {
    let (_dir, path) = kept();
    let whole = fs::read(&path).unwrap();
    let (mut seen, step) = (0, whole.len() / 400);
    for at in (0..whole.len()).step_by(step.max(1)) {
        let mut changed = whole.clone();
        changed[at] ^= 0x55;
        fs::write(&path, &changed).unwrap();
        let ledger = at_path(&path);
        let looked = ledger.history(&Default::default());
        let faults = ledger.fsck();
        let second = ledger.submit(&local("r2", 1, "d"));
        if looked.is_err() || faults.as_ref().is_ok_and(|faults| !faults.is_empty()) || faults.is_err() {
            seen += 1;
        }
        if let Ok(second) = second {
            // Only where the first owner can no longer be read at all.
            let owners = ledger.history(&Default::default()).unwrap().into_iter().filter(|row| row.is_open()).count();
            assert_eq!(owners, 1, "byte {at}: {second:?}");
        }
        drop(ledger);
        for extra in ["sqlite-wal", "sqlite-shm"] {
            let _ = fs::remove_file(path.with_extension(extra));
        }
    }
    assert!(seen > 20, "only {seen} were seen");
}

fn at_path(path: &std::path::Path) -> Box<dyn Ledger> {
    at(path.parent().unwrap())
}

#[test]
fn something_else_is_not_a_ledger() {
    let (_dir, path) = kept();
    fs::write(&path, "a letter to a friend, long enough to be looked at".repeat(100)).unwrap();
    refused(&path, "not_a_ledger");
    fs::remove_file(&path).unwrap();
    rusqlite::Connection::open(&path).unwrap().execute_batch("create table recipes (name text)").unwrap();
    refused(&path, "not_a_ledger");
}

#[test]
fn a_newer_schema_is_refused() {
    let (_dir, path) = kept();
    let newer = rusqlite::Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 7).unwrap();
    drop(newer);
    refused(&path, "ledger_newer");
}

#[test]
fn a_read_only_file_can_be_read() {
    let (_dir, path) = kept();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    let ledger = at(path.parent().unwrap());
    let error = why(ledger.submit(&local("r2", 1, "d")));
    assert_eq!(error.code(), "ledger_read_only");
    assert!(error.to_string().contains("0400"), "{error}");
    assert_eq!(ledger.history(&Default::default()).unwrap().len(), 1);
}

#[test]
fn links_directories_and_a_log_without_its_ledger_are_refused() {
    let (_dir, path) = kept();
    let elsewhere = path.with_file_name("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert_eq!(why(at(path.parent().unwrap()).now_ms()).code(), "not_a_file");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(why(at(path.parent().unwrap()).submit(&local("r", 1, "d"))).code(), "not_a_file");
    fs::remove_dir(&path).unwrap();
    fs::write(path.with_extension("sqlite-wal"), "frames").unwrap();
    assert_eq!(why(at(path.parent().unwrap()).submit(&local("r", 1, "d"))).code(), "ledger_damaged");
    assert!(!path.exists());
}

#[test]
fn a_ledger_put_in_the_place_of_another_is_seen() {
    let (dir, path) = kept();
    let (other_dir, other) = kept();
    at(other_dir.path()).surface_add(&key("only-here"), &[]).unwrap();
    let ledger = at(dir.path());
    assert_eq!(ledger.surfaces().unwrap().len(), 1);
    fs::rename(&other, &path).unwrap();
    assert_eq!(ledger.surfaces().unwrap().len(), 2);
}

#[test]
fn a_ledger_that_somebody_keeps_is_said_to_be_held() {
    let (dir, path) = kept();
    let holder = rusqlite::Connection::open(&path).unwrap();
    holder.execute_batch("begin immediate").unwrap();
    let mut options = options_now();
    options.wait_ms = 50;
    let ledger = open_sqlite(&Location::named(dir.path()), options);
    assert_eq!(why(ledger.submit(&local("r2", 1, "d"))).code(), "ledger_held");
    assert_eq!(ledger.history(&Default::default()).unwrap().len(), 1, "reading goes on");
    holder.execute_batch("rollback").unwrap();
    assert_eq!(code(ledger.submit(&local("r2", 1, "d"))), "busy");
}

#[test]
fn what_a_killed_creation_left_is_removed_by_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let names = || {
        let names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.starts_with("ledger.new")).collect();
        names.sort();
        names
    };
    for name in ["ledger.new-1", "ledger.new-1-journal", "ledger.new-2-journal", "ledger.new-3", "ledger.newer"] {
        fs::write(dir.path().join(name), "cut short").unwrap();
    }
    // One that somebody is making now.
    let making = fs::File::create(dir.path().join("ledger.new-3.lock")).unwrap();
    rustix::fs::flock(&making, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let ledger = at(dir.path());
    ledger.surface_add(&key(S), &[]).unwrap();
    assert_eq!(names(), ["ledger.new-3", "ledger.new-3.lock", "ledger.newer"]);
    // Killed after it had put the ledger in place: a second name of it.
    fs::hard_link(dir.path().join(LEDGER_FILE), dir.path().join("ledger.new-4")).unwrap();
    fs::write(dir.path().join("ledger.new-4.lock"), "").unwrap();
    ledger.migrate().unwrap();
    assert_eq!(names(), ["ledger.new-3", "ledger.new-3.lock", "ledger.newer"]);
    assert_eq!(ledger.surfaces().unwrap().len(), 1);
}

#[test]
fn many_who_make_one_ledger_at_once_have_one() {
    for _ in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for n in 0..6 {
                let path = dir.path();
                scope.spawn(move || at(path).surface_add(&key(&format!("s{n}")), &[]).unwrap());
            }
        });
        let ledger = at(dir.path());
        assert_eq!(ledger.surfaces().unwrap().len(), 6);
        assert_eq!(ledger.fsck().unwrap(), []);
    }
}

/// A small disk of this test alone; it is full when [`Small::fill`] says so.
struct Small(tempfile::TempDir);

impl Small {
    /// `None`: this user or this kernel may not mount one.
    fn new() -> Option<Small> {
        let dir = tempfile::tempdir().unwrap();
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs"]).arg(dir.path());
        let is_mounted = mount.output().is_ok_and(|ran| ran.status.success());
        is_mounted.then(|| Small(dir))
    }

    fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }

    fn free(&self) {
        let _ = fs::remove_file(self.filler());
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

/// Writes until nothing more goes in.
fn fill(path: &std::path::Path) {
    use std::io::Write;
    let mut file = fs::File::create(path).unwrap();
    for size in [65_536, 4096, 1] {
        while file.write_all(&vec![7; size]).is_ok() {}
    }
}

/// Race 26: the disk is full from any statement on.
#[test]
fn the_disk_is_full_from_any_statement_on() {
    let Some(disk) = Small::new() else {
        eprintln!("left out: no tmpfs can be mounted here (root is needed)");
        return;
    };
    let mut codes = std::collections::BTreeMap::<&str, u32>::new();
    for point in 0..200 {
        // The first rounds find no ledger, so making one is among the statements.
        let (count, filler) = (Arc::new(AtomicU64::new(0)), disk.filler());
        let is_full = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let mut options = options_now();
        let (tell, counted) = (is_full.clone(), count.clone());
        options.probe = Some(Arc::new(move |moment, _: &str| {
            if moment == Moment::Before && counted.fetch_add(1, Ordering::SeqCst) == point {
                tell.store(true, Ordering::SeqCst);
                fill(&filler);
            }
        }));
        let ledger = open_sqlite(&Location::named(disk.path()), options);
        let request =
            tenure::admission::Request { input: Some(vec![7; 10_000]), ..queued(&format!("r{point}"), 1, "d") };
        let round = || {
            ledger.surface_add(&key(S), &[])?;
            ledger.place(&placing(S, m1(), "/srv/s"))?;
            ledger.submit(&request)
        };
        let came = round();
        if let Err(refusal) = &came {
            let Refusal::Unusable(error) = refusal else { panic!("{point}: {refusal}") };
            *codes.entry(error.code()).or_default() += 1;
            assert!(error.to_string().contains("no room"), "{point}: {error}");
        }
        // From here on there is room, and no statement counts.
        count.store(1_000_000, Ordering::SeqCst);
        disk.free();
        let again = round().unwrap();
        assert_eq!(came.ok().map(|came| came.admission()).unwrap_or(again.admission()), again.admission());
        let rows = ledger.history(&Default::default()).unwrap();
        assert_eq!(rows.iter().filter(|row| row.request == request.request).count(), 1);
        assert_eq!(ledger.inputs(&again.admission(), None).unwrap()[0].bytes, request.input.clone().unwrap());
        assert_eq!(ledger.fsck().unwrap(), []);
        ledger.cancel(&again.record.key(), &who("ann")).unwrap();
        if !is_full.load(Ordering::SeqCst) {
            assert!(point > 20 && codes.contains_key("no_space"), "{point} statements, {codes:?}");
            return;
        }
    }
    panic!("it never gets through");
}

#[test]
fn a_full_disk_changes_nothing() {
    let (dir, path) = kept();
    let filler = rusqlite::Connection::open(&path).unwrap();
    let pages: i64 = filler.query_row("pragma page_count", [], |row| row.get(0)).unwrap();
    drop(filler);
    // The limit of this one connection stands in for the disk: SQLite meets it as a full disk.
    let mut options = options_now();
    options.probe = None;
    let ledger = open_sqlite(&Location::named(dir.path()), options);
    let big = tenure::admission::Request { input: Some(vec![7; 3 << 20]), ..queued("big", 1, "d") };
    tenure_limit(&path, pages, || {
        let error = ledger.submit(&big).unwrap_err();
        assert!(matches!(error, Refusal::Unusable(_)), "{error}");
    });
    assert_eq!(ledger.history(&Default::default()).unwrap().len(), 1);
    assert!(ledger.submit(&big).unwrap().created);
    assert_eq!(ledger.fsck().unwrap(), []);
}

/// While `run` runs, this process can write no file beyond the size of the ledger.
fn tenure_limit(path: &std::path::Path, pages: i64, run: impl FnOnce()) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // SIGXFSZ would end the process before the error shows.
    let before = getrlimit(Resource::Fsize);
    signal_hook::flag::register(25, Arc::new(std::sync::atomic::AtomicBool::new(false))).unwrap();
    let limit = fs::metadata(path).unwrap().len().max(u64::try_from(pages).unwrap() * 4096) + (256 << 10);
    setrlimit(Resource::Fsize, Rlimit { current: Some(limit), maximum: before.maximum }).unwrap();
    run();
    setrlimit(Resource::Fsize, before).unwrap();
}

#[test]
fn a_server_without_the_schema_is_told_to_migrate() {
    let schema = crate::server::Schema::new();
    let ledger = open_postgres(&schema.url(), options_now()).unwrap();
    let error = why(ledger.history(&Default::default()));
    assert_eq!(error.code(), "ledger_absent");
    assert!(error.to_string().contains("migrate"), "{error}");
    assert_eq!(why(ledger.submit(&local("r", 1, "d"))).code(), "ledger_absent");
    assert_eq!((ledger.migrate().unwrap().from, ledger.migrate().unwrap().from), (None, Some(1)));
    assert_eq!(ledger.history(&Default::default()).unwrap(), []);
    schema.client().execute("update tenure_ledger set schema_version = 9", &[]).unwrap();
    let ledger = open_postgres(&schema.url(), options_now()).unwrap();
    assert_eq!(why(ledger.history(&Default::default())).code(), "ledger_newer");
    assert_eq!(why(ledger.migrate()).code(), "ledger_newer");
}

#[test]
fn a_server_that_is_not_there_is_said_to_be_unreachable() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("postgres:///x?user=u&password=secret&host={}", dir.path().display());
    let ledger = open_postgres(&url, options_now()).unwrap();
    let error = why(ledger.submit(&local("r", 1, "d")));
    assert_eq!(error.code(), "ledger_unreachable");
    assert!(!error.to_string().contains("secret"), "{error}");
    assert!(open_postgres("postgres://u@db.example/x", options_now()).is_err());
}
