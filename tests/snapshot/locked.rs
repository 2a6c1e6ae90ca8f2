//! The lock around the rename: whoever has it, dead or stopped, holds up other snapshotters and nobody else (P1).

use std::fs::File;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenure::{Outcome, SNAPSHOT_PATIENCE, SnapshotError};

use super::crew::{Crew, Orders, fresh_table, say};
use super::help::{names, node, take, tenure};

pub fn hold_the_lock(orders: &Orders) {
    let file = File::options().write(true).open(orders.dir.join("snapshot.lock")).expect("the lock file");
    fs2::FileExt::lock_exclusive(&file).expect("the lock");
    say("ready");
    std::thread::sleep(Duration::from_secs(600));
}

#[test]
fn a_stopped_holder_stalls_snapshotters_which_say_so_and_nobody_else() {
    let (dir, table) = fresh_table();
    table.import(&(0..200).map(|n| node(&format!("n{n}"))).collect::<Vec<_>>()).expect("room");
    take(&table);
    let before = std::fs::read(dir.path().join("snapshot")).expect("a snapshot");
    let mut crew = Crew::new();
    let holder = crew.add("hold_the_lock", dir.path(), &[]);
    assert_eq!(holder.hear().as_deref(), Some("ready"));
    holder.signal(Signal::STOP);

    let (waiter, dir_of_waiter) = (table.clone(), dir.path().to_owned());
    let waiting = std::thread::spawn(move || {
        let began = Instant::now();
        let mut said_after = Vec::new();
        let refused =
            waiter.snapshot(Duration::from_millis(2_500), || said_after.push(began.elapsed())).expect_err("locked");
        (refused, said_after, began.elapsed(), dir_of_waiter)
    });
    // Every verb meanwhile, and in no more time than ever.
    let worker = table.worker("w").expect("a name");
    let began = Instant::now();
    for n in 0..100 {
        let claim = worker.claim_next().expect("200 are ready");
        claim.renew().expect("held");
        claim.complete(Outcome::Done).expect("held");
        table.upsert(&node(&format!("new {n}")), false).expect("room");
        table.ready().expect("rows");
    }
    assert!(began.elapsed() < Duration::from_secs(2), "a hundred rounds took {:?}", began.elapsed());
    let (refused, said_after, took, _) = waiting.join().expect("no panic");
    assert!(matches!(refused, SnapshotError::Locked { waited_ms: 2_500.., .. }), "{refused}");
    assert!(took < Duration::from_secs(4), "it waited for {took:?}");
    assert!(matches!(said_after[..], [once] if (1_000..2_000).contains(&once.as_millis())), "{said_after:?}");
    assert_eq!(std::fs::read(dir.path().join("snapshot")).expect("still there"), before);
    assert_eq!(names(dir.path()), ["snapshot", "snapshot.lock"], "the one that gave up left something");

    let (exit, _, err) = tenure(dir.path(), &["snapshot", "--timeout", "1.2"]);
    assert_eq!(exit, Some(1), "{err}");
    assert!(err.contains("waiting for it") && err.contains("fuser"), "{err}");
    let (exit, _, err) = tenure(dir.path(), &["snapshot", "--timeout", "0", "--json"]);
    assert_eq!(exit, Some(1), "{err}");
    assert!(err.starts_with("{\"error\":\"locked\""), "{err}");

    // Dead, it holds up nobody, although it never let go.
    crew.hands[0].kill();
    table.snapshot(SNAPSHOT_PATIENCE, || panic!("nobody has the lock")).expect("a snapshot");
}

#[test]
fn a_snapshotter_that_waits_goes_on_when_the_lock_is_free() {
    let (dir, table) = fresh_table();
    take(&table);
    let lock = File::options().write(true).open(dir.path().join("snapshot.lock")).expect("the lock file");
    fs2::FileExt::lock_exclusive(&lock).expect("the lock");
    let waiting = std::thread::spawn(move || table.snapshot(SNAPSHOT_PATIENCE, || ()));
    std::thread::sleep(Duration::from_millis(1_200));
    assert!(!waiting.is_finished());
    drop(lock);
    waiting.join().expect("no panic").expect("a snapshot");
}

#[test]
fn lock_files_that_are_left_over_block_nothing() {
    let (dir, table) = fresh_table();
    let (lock, dead) = (dir.path().join("snapshot.lock"), dir.path().join(".new-snapshot-4000000-1-0000"));
    for content in [&b""[..], b"4000000"] {
        std::fs::write(&lock, content).expect("a lock file");
        std::fs::write(&dead, b"half").expect("a left-over");
        take(&table);
        assert_eq!(names(dir.path()), ["snapshot", "snapshot.lock"]);
    }
}
