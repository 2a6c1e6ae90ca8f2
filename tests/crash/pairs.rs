//! Every verb, stopped at every access, while every other runs.

use crate::points::{pause, report};

#[test]
fn pause_pairs() {
    let setups = ["upsert a summary=s;upsert b needs=a;upsert c;claim w1 a;register w2"];
    let verbs = [
        "claim w2 c",
        "next w2",
        "claim w1 c",
        "renew w1 a",
        "renew w1 a lease=9000",
        "release w1 a",
        "complete a done by=w1",
        "complete a done by=w1 summary=t",
        "complete a done gen=1",
        "complete c cancelled",
        "complete c done",
        "force a",
        "reclaim",
        "reclaim quiet=0",
        "upsert a summary=u",
        "upsert d needs=b",
        "upsert c summary=u",
        "link c b",
        "link c a",
        "link b c",
        "unlink a b",
        "reopen a",
        "archive a",
        "get a",
        "list",
        "ready",
    ];
    let mut found = Vec::new();
    for setup in setups {
        for verb in verbs {
            for other in verbs {
                found.extend(pause(setup, verb, other));
            }
        }
    }
    report(found);
}

#[test]
fn pause_pairs_ended() {
    let setup =
        "upsert a summary=s;upsert b needs=a;upsert c needs=b;claim w1 a;complete a done by=w1 summary=t;claim w1 b";
    let verbs = [
        "claim w2 b",
        "next w2",
        "release w1 b",
        "complete b done by=w1",
        "complete b failed by=w1 summary=t",
        "complete a done",
        "complete c cancelled",
        "upsert a summary=s",
        "upsert d needs=a",
        "link a c",
        "unlink a b",
        "reopen a",
        "archive a",
        "unarchive a",
        "get a",
        "list",
        "ready",
    ];
    let mut found = Vec::new();
    for verb in verbs {
        for other in verbs {
            found.extend(pause(setup, verb, other));
        }
    }
    report(found);
}
