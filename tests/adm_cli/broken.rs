//! A ledger that cannot be used: a clear message with what to do, the input kept, and the file left as it was.

use std::os::unix::fs::PermissionsExt;

use crate::support::World;

/// The message, and that neither the input nor the file suffers.
fn check(world: &World, code: i32, words: &str) {
    let file = world.ledger_file();
    let before = std::fs::read(&file).unwrap();
    let input = world.file("in", "precious");
    let ran = world.run(["submit", "docs", "--request", "late", "--input", &input, "--", "true"]);
    ran.refused(code, words);
    assert_eq!(std::fs::read(&file).unwrap(), before, "the file was touched");
    assert_eq!(world.outbox_of("late"), "new");
    assert!(!ran.err.contains("os error") || ran.err.contains(file.to_str().unwrap()), "{ran:?}");
}

impl World {
    /// Where the file of a request is in the outbox, without asking the ledger.
    fn outbox_of(&self, request: &str) -> String {
        let name = format!("{request}.1");
        let states = ["tmp", "new", "refused", "sent"];
        let found = states.into_iter().find(|state| self.state().join("outbox").join(state).join(&name).exists());
        found.unwrap_or("nowhere").to_owned()
    }
}

fn used() -> World {
    let world = World::new();
    world.ok(["admit", "docs", "--request", "r1"]);
    world
}

#[test]
fn a_ledger_that_was_cut_short() {
    let world = used();
    let whole = std::fs::read(world.ledger_file()).unwrap();
    for (length, code) in [(0, 30), (100, 30), (5000, 30)] {
        std::fs::write(world.ledger_file(), &whole[..length]).unwrap();
        check(&world, code, world.ledger_file().to_str().unwrap());
        assert_eq!(world.run(["history"]).code, Some(code), "{length}");
    }
    // Restored from a copy, it goes on.
    std::fs::write(world.ledger_file(), whole).unwrap();
    world.ok(["outbox", "send", "late"]);
    assert_eq!(world.shown("late")["phase"], "queued");
}

#[test]
fn a_file_that_is_no_ledger() {
    let world = used();
    std::fs::write(world.ledger_file(), "Dear diary, ".repeat(1000)).unwrap();
    check(&world, 30, "not a ledger");
}

#[test]
fn a_ledger_that_can_only_be_read() {
    let world = used();
    std::fs::set_permissions(world.ledger_file(), PermissionsExt::from_mode(0o400)).unwrap();
    check(&world, 5, "cannot be written");
    assert_eq!(world.all(["history"]).len(), 1, "reading goes on");
}

#[test]
fn a_ledger_of_a_newer_version() {
    let world = used();
    let connection = rusqlite::Connection::open(world.ledger_file()).unwrap();
    connection.pragma_update(None, "user_version", 999).unwrap();
    let mode: String = connection.query_row("pragma journal_mode=delete", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "delete");
    drop(connection);
    check(&world, 5, "newer version");
}

#[test]
fn a_ledger_that_somebody_else_holds() {
    let world = used();
    let connection = rusqlite::Connection::open(world.ledger_file()).unwrap();
    connection.execute_batch("begin immediate").unwrap();
    let ran = world.run(["submit", "docs", "--timeout", "0.3", "--request", "late", "--", "true"]);
    ran.refused(75, "held by others");
    assert_eq!(world.outbox_of("late"), "new");
    connection.execute_batch("rollback").unwrap();
    world.ok(["outbox", "send", "late"]);
}

#[test]
fn a_key_that_others_may_read_is_not_used() {
    let world = used();
    let key = world.state().join("credential.key");
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
    let ran = world.run(["admit", "docs", "--request", "r1"]);
    ran.refused(5, "may be used by others");
}

#[test]
fn no_ledger_is_an_empty_one_to_whoever_reads() {
    let world = World::empty();
    assert_eq!(world.all(["history"]).len(), 0);
    assert_eq!(world.run(["show", "r1"]).code, Some(4));
    assert!(!world.ledger_file().exists());
}

/// The end cannot be recorded: the next pickup on this machine does it.
#[test]
fn an_end_that_could_not_be_recorded_is_recorded_later() {
    end_is_recorded_by(&["pickup", "--exec"]);
}

#[test]
fn an_end_that_could_not_be_recorded_is_recorded_by_a_pickup_that_waits() {
    end_is_recorded_by(&["pickup", "--exec", "--wait", "0"]);
}

fn end_is_recorded_by(pickup: &[&str]) {
    let world = World::new();
    let script = format!("chmod 400 {}", world.ledger_file().display());
    let ran = world.run(["start", "docs", "--request", "r1", "--", "sh", "-c", &format!("{script}; exit 4")]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.err.contains("could not be recorded"), "{ran:?}");
    std::fs::set_permissions(world.ledger_file(), PermissionsExt::from_mode(0o600)).unwrap();
    assert_eq!(world.shown("r1")["phase"], "started");
    // What waits for the surface is taken by the same pickup.
    world.ok(["submit", "docs", "--request", "r2", "--", "echo", "next"]);
    assert_eq!(world.ok(pickup), "next");
    let shown = world.shown("r1");
    assert_eq!((shown["closing"].as_str(), shown["exit_code"].as_i64()), (Some("failed"), Some(4)));
    assert_eq!(std::fs::read_dir(world.state().join("runs")).unwrap().count(), 0);
}
