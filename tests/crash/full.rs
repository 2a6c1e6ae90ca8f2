//! A table that is full, holders that come and go, and slots that are used again.

use crate::points::{pause, report};

pub(crate) const FULL: &str = "upsert n1;upsert n2;upsert n3;upsert n4;upsert n5;upsert n6;upsert n7;upsert n8";

#[test]
fn pause_pairs_full() {
    let setup = format!(
        "{FULL};link n1 n2;complete n8 done summary=q;complete n7 failed;register w1;register w2;register w3;claim w1 n1"
    );
    let verbs = [
        "claim w1 n3",
        "claim w2 n3",
        "claim w4 n3",
        "next w2",
        "next w4",
        "register w5",
        "complete n1 done by=w1",
        "release w1 n1",
        "complete n8 done",
        "complete n6 cancelled summary=r",
        "archive n8",
        "reopen n8",
        "reopen n7",
        "upsert n9",
        "upsert n9 needs=n1;upsert n10",
        "reclaim",
        "link n1 n3",
        "get n8",
        "get n1",
        "list",
    ];
    let mut found = Vec::new();
    for verb in verbs.iter().filter(|v| !v.contains(';')) {
        for other in verbs {
            found.extend(pause(&setup, verb, other));
        }
    }
    report(found);
}
