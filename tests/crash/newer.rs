//! Groups, attempts, modes of edges, and restoring.

use crate::points::{crash, pause, report};

const GROUP: &str = "group g 1;upsert a group=g;upsert b group=g;register w1;register w2;register w3";

scenario!(crash_group_claim, crash, GROUP, "claim w1 a");
scenario!(crash_group, crash, "group g 1;upsert a group=g", "group g 2");
scenario!(crash_group_new, crash, "upsert a", "group g 2");
scenario!(crash_hand_back, crash, "upsert a attempts=3 delay=500;claim w1 a", "complete a failed by=w1");
scenario!(crash_last_attempt, crash, "upsert a attempts=1;claim w1 a;tick 2000", "reclaim");
scenario!(crash_skip, crash, "upsert a;upsert b needs=a~skip;upsert c needs=b;claim w1 a", "complete a failed by=w1");
scenario!(crash_restore, crash, "upsert a summary=x;claim w1 a;snapshot;upsert b;claim w2 b", "restore force=1");
scenario!(a_group_has_one_winner, pause, GROUP, "claim w1 a", "claim w2 b//groups");
scenario!(
    a_group_has_one_winner_after_a_release,
    pause,
    GROUP,
    "claim w1 a",
    "claim w2 b;release w2 b;claim w3 a//groups"
);
scenario!(a_group_with_next, pause, GROUP, "next w1", "next w2;complete a done;next w3");
scenario!(
    a_limit_is_lowered,
    pause,
    "group g 2;upsert a group=g;upsert b group=g;claim w1 a",
    "claim w2 b",
    "group g 1"
);

#[test]
fn pause_pairs_newer() {
    let setup = "group g 1;upsert a attempts=2 delay=500 group=g;upsert b needs=a~skip group=g;upsert c needs=a~continue;\
                 claim w1 a;register w2";
    let verbs = [
        "complete a failed by=w1",
        "complete a done by=w1",
        "complete a cancelled by=w1",
        "release w1 a",
        "tick 2000;reclaim",
        "tick 2000;next w2",
        "claim w2 b",
        "claim w2 c",
        "link a~block b",
        "unlink a c",
        "group g 2",
        "upsert a attempts=1",
        "upsert a group=",
        "reopen a",
        "list",
        "groups",
        "attempts a",
    ];
    let mut found = Vec::new();
    for verb in verbs.iter().filter(|verb| !verb.contains(';')) {
        for other in verbs {
            found.extend(pause(setup, verb, other));
        }
    }
    report(found);
}

#[test]
fn pause_pairs_skipped() {
    let setup =
        "upsert a;upsert b needs=a~skip;upsert c needs=b~continue;upsert d needs=b;complete a failed;register w1";
    let verbs = [
        "reopen a",
        "reopen b",
        "complete b done",
        "complete b cancelled",
        "claim w1 b",
        "claim w1 c",
        "next w1",
        "unlink a b",
        "link a~continue b",
        "upsert e needs=b",
        "list",
        "get d",
    ];
    let mut found = Vec::new();
    for verb in verbs {
        for other in verbs {
            found.extend(pause(setup, verb, other));
        }
    }
    report(found);
}

#[test]
fn pause_pairs_restored() {
    let setup = "upsert a summary=x;upsert b needs=a;claim w1 a;snapshot;complete a done by=w1;upsert c;claim w2 c";
    let verbs = [
        "restore force=1",
        "claim w1 b",
        "next w1",
        "renew w2 c",
        "complete c done by=w2",
        "complete b cancelled summary=y",
        "upsert d",
        "reopen a",
        "archive a",
        "list",
    ];
    let mut found = Vec::new();
    for other in verbs {
        found.extend(pause(setup, "restore force=1", other));
        found.extend(pause(setup, other, "restore force=1"));
    }
    report(found);
}
