//! Waiting for a node, and being rung: whoever is stopped anywhere on its way into sleep is not left there.

use crate::points::{pause, report};

#[test]
fn a_waiter_gets_what_becomes_ready_and_sleeps_for_nothing() {
    let cases = [
        ("upsert a;claim w1 a;worker w2", "release w1 a"),
        ("upsert a;claim w1 a;worker w2", "force a"),
        ("upsert a;upsert b needs=a;claim w1 a;worker w2", "complete a done by=w1"),
        ("upsert a;upsert b needs=a~continue;claim w1 a;worker w2", "complete a failed by=w1"),
        ("upsert a attempts=3;claim w1 a;worker w2", "complete a failed by=w1"),
        ("group g 1;upsert a group=g;upsert b group=g;claim w1 a;worker w2", "complete a done by=w1"),
        ("group g 1;upsert a group=g;upsert b group=g;claim w1 a;worker w2", "group g 2"),
        ("worker w2", "upsert a"),
        ("upsert a;upsert b needs=a;complete a failed;worker w2", "unlink a b"),
        ("upsert a;upsert b needs=a;complete a failed;worker w2", "link a~continue b"),
        ("upsert a;complete a failed;worker w2", "reopen a"),
        ("upsert a;snapshot;complete a done;worker w2", "restore force=1"),
    ];
    let mut found = Vec::new();
    for (setup, other) in cases {
        let setup = setup.replace("worker", "!worker");
        // Whoever is stopped after its sleep is over has slept; only those before it must not.
        let awake = |f: &String| f.contains("none of the orders") && f.contains("| now: 1000000\n");
        found.extend(pause(&setup, "wait w2 500", &format!("now;{other}")).into_iter().filter(awake));
    }
    report(found);
}
