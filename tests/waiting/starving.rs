//! Old leaves beside work that never ends, and a watch whose holder is killed: both by the real clock.

use std::time::{Duration, Instant};

use tenure::{CreateOptions, NodeId, NodeSpec, Outcome, Table};

use crate::sleeper::{Sleeper, await_that};
use crate::support::Sandbox;

fn chained(i: u64) -> NodeSpec {
    let needs = if i == 0 { Vec::new() } else { vec![NodeId::of_name(&format!("chain{}", i - 1)).into()] };
    NodeSpec { name: Some(format!("chain{i}")), needs, ..NodeSpec::default() }
}

/// One worker, ten leaves, and a chain that is always longer than they are: by length alone no leaf would ever start.
#[test]
fn old_leaves_beside_an_endless_chain_start_after_thirty_seconds_and_not_before() {
    let dir = tempfile::tempdir().expect("a directory");
    let (table, _) = Table::open_or_create(dir.path(), &CreateOptions::default()).expect("a table");
    let began = Instant::now();
    let leaf = |i| NodeSpec { name: Some(format!("leaf{i}")), ..NodeSpec::default() };
    table.import(&(0..10).map(leaf).collect::<Vec<_>>()).expect("room");
    let mut next = 0;
    let worker = table.worker("w").expect("a name");
    let mut leaves = Vec::new();
    let mut links = 0;
    while leaves.len() < 10 {
        // Three links ahead, so that the one that is ready has more below it than a leaf.
        while next < links + 3 {
            table.upsert(&chained(next), false).expect("room");
            next += 1;
        }
        let claim = worker.claim_next().expect("the chain is ready");
        let name = claim.task().expect("held").name.expect("all have names");
        if name.starts_with("leaf") {
            leaves.push((name, began.elapsed()));
        } else {
            links += 1;
        }
        claim.complete(Outcome::Done).expect("held");
        assert!(began.elapsed() < Duration::from_secs(40), "{links} links done, and of the leaves only {leaves:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    let (first, last) = (&leaves[0], &leaves[9]);
    assert!(links > 500, "the chain went on: {links}");
    assert!(first.1 >= Duration::from_secs(29), "nobody starved yet: {first:?}");
    assert!(last.1 < Duration::from_secs(36), "{last:?}");
    assert_eq!(leaves.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>()[..3], ["leaf0", "leaf1", "leaf2"]);
}

/// Every waiter looks by itself after ten seconds at the latest, and then one of them takes the watch of the dead.
#[test]
fn when_the_one_that_has_the_watch_is_killed_the_others_see_to_leases_within_ten_seconds() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "a"]);
    sandbox.ok(["claim", "a", "--holder", "h", "--lease", "2"]);
    let mut watcher = Sleeper::start(&sandbox, "watcher", &[]);
    let others: Vec<Sleeper> = (0..3).map(|i| Sleeper::start(&sandbox, &format!("other{i}"), &[])).collect();
    watcher.kill();
    let killed = Instant::now();
    let table = Table::open(sandbox.dir()).expect("a table");
    let a = NodeId::of_name("a");
    await_that("somebody who takes the dead one's node", || {
        table.get(a).expect("it is there").holder.is_some_and(|holder| holder.starts_with("other"))
    });
    // Two seconds of lease, ten until the next look, half a second between looks, and a busy machine.
    assert!(killed.elapsed() < Duration::from_secs(15), "{:?}", killed.elapsed());
    drop(others);
}
