//! Every verb of the library, every write, from several states.

use crate::full::FULL;
use crate::points::{crash, report};

/// Nobody has anything yet.
const OPEN: &str = "upsert a summary=s;upsert b needs=a;upsert c;group g 1;register w1;register w2";
/// One holds, one is behind it, one is in a group that is full by that.
const HELD: &str = "group g 1;upsert a group=g summary=s;upsert b needs=a;upsert c group=g;claim w1 a;register w2";
/// Everything that can end has ended in some way, and there is a snapshot of before.
const ENDED: &str = "upsert a attempts=2 delay=500;upsert b needs=a~skip;upsert c needs=a~continue;snapshot;\
                     claim w1 a;complete a failed by=w1 summary=t;tick 600;claim w2 a;complete a failed by=w2 summary=u;\
                     complete c done summary=v;archive c";
/// Two leases have run out and nobody has noticed.
const LATE: &str = "upsert a;upsert b;upsert c attempts=1;claim w1 a;claim w2 b;claim w3 c;tick 2000";

const VERBS: &[&str] = &[
    "upsert n needs=a summary=new",
    "upsert a summary=changed",
    "upsert b parent=a group=g attempts=3",
    "import n m o",
    "link a c",
    "unlink a b",
    "group g 2",
    "group h 1",
    "register w9",
    "claim w2 a",
    "claim w2 c lease=7000",
    "claim w9 b",
    "next w2",
    "next w1 resume=1",
    "next w9",
    "wait w2 100",
    "renew w1 a lease=9000",
    "release w1 a",
    "force a",
    "complete a done by=w1",
    "complete a failed by=w1 summary=why",
    "complete b cancelled summary=no",
    "complete c done",
    "reclaim",
    "reclaim quiet=0",
    "reopen a",
    "reopen c",
    "archive a",
    "archive c",
    "unarchive c",
    "snapshot",
    "restore force=1",
];

fn all(setup: &str) {
    let found = VERBS.iter().flat_map(|verb| crash(setup, verb)).collect();
    report(found);
}

#[test]
fn quick_from_nothing_claimed() {
    all(OPEN);
}

#[test]
fn quick_from_a_claim_and_a_full_group() {
    all(HELD);
}

#[test]
fn from_ends_of_every_kind() {
    all(ENDED);
}

#[test]
fn from_leases_that_have_run_out() {
    all(LATE);
}

#[test]
fn from_a_full_table() {
    let setup = format!(
        "{FULL};link n1 n2;complete n8 done summary=q;complete n7 failed;complete n6 done;complete n5 cancelled;claim w1 n1;register w2"
    );
    let verbs = [
        "upsert n9 needs=n1",
        "import n9 n10",
        "claim w2 n3",
        "next w2",
        "reopen n8",
        "complete n4 done",
        "archive n8",
        "link n1 n3",
    ];
    report(verbs.iter().flat_map(|verb| crash(&setup, verb)).collect());
}

/// A process died in the middle of a claim, another in the middle of a change: the words that they left are met by every
/// verb, and that one dies as well.
#[test]
fn from_what_a_claim_left_half_done() {
    for k in 0..crate::points::writes(OPEN, "claim w1 a") {
        all(&format!("{OPEN};@{k} claim w1 a"));
    }
}

#[test]
fn from_what_a_reopening_left_half_done() {
    let setup = format!("{OPEN};complete a done summary=t;claim w1 b");
    // The last writes are those around the root: the change is pending, its steps done or not.
    let writes = crate::points::writes(&setup, "reopen a");
    for k in writes.saturating_sub(6)..writes {
        all(&format!("{setup};@{k} reopen a"));
    }
}

#[test]
fn from_what_a_link_left_half_done() {
    let writes = crate::points::writes(HELD, "link b c");
    for k in writes.saturating_sub(5)..writes {
        all(&format!("{HELD};@{k} link b c"));
    }
}
