//! A table that was opened before a fork is refused in the child, whatever way it was forked; the child may open its own.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use tenure::{CreateOptions, NodeSpec, Outcome, Refusal, Table};

#[test]
fn a_forked_child_cannot_write_through_its_parents_table_and_can_through_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let (table, _) = Table::open_or_create(dir.path(), &CreateOptions::default()).unwrap();
    for name in ["a", "b"] {
        table.upsert(&NodeSpec { name: Some(name.into()), ..NodeSpec::default() }, false).unwrap();
    }
    let worker = table.worker("parent").unwrap();
    let claim = worker.claim_next().unwrap();
    let path = dir.path().to_owned();
    let inherited = table.worker("inherited").unwrap();
    let in_child = move || {
        if !matches!(inherited.claim_next(), Err(Refusal::Forked)) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let own = Table::open(&path).map_err(|_| io::ErrorKind::NotFound)?;
        let worker = own.worker("child").map_err(|_| io::ErrorKind::AddrInUse)?;
        let done = worker.claim_next().and_then(|claim| claim.complete(Outcome::Done));
        // And still, now that the child has opened one of its own.
        match (done, inherited.claim_next()) {
            (Ok(_), Err(Refusal::Forked)) => Ok(()),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        }
    };
    let mut command = Command::new("true");
    // SAFETY: this process has one thread that holds locks, the one that forks, and the C library's allocator works in a
    // forked child; nothing else is relied on there.
    unsafe { command.pre_exec(in_child) };
    assert!(command.status().expect("what the child did was refused and taken as said above").success());
    claim.renew().expect("the parent goes on with its own");
    assert_eq!(table.stats().unwrap().done, 1);
}
