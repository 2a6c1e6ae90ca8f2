//! A process dies.

use crate::full::FULL;
use crate::points::{crash, from_environment, report};

#[test]
fn adhoc() {
    report(from_environment());
}

scenario!(crash_claim, crash, "upsert a", "claim w1 a");
scenario!(crash_claim_lease, crash, "upsert a", "claim w1 a lease=5000");
scenario!(crash_next, crash, "upsert a;upsert b;register w1", "next w1");
scenario!(crash_complete, crash, "upsert a;upsert b needs=a;claim w1 a", "complete a done by=w1 summary=x");
scenario!(crash_release, crash, "upsert a;claim w1 a", "release w1 a");
scenario!(crash_renew, crash, "upsert a;claim w1 a", "renew w1 a lease=7000");
scenario!(crash_reclaim, crash, "upsert a;upsert b;claim w1 a;claim w2 b;tick 2000", "reclaim");
scenario!(crash_upsert, crash, "upsert a summary=x", "upsert a summary=y");
scenario!(crash_upsert_new, crash, "upsert a summary=x", "upsert b needs=a");
scenario!(crash_link, crash, "upsert a;upsert b", "link a b");
scenario!(crash_unlink, crash, "upsert a;upsert b needs=a", "unlink a b");
scenario!(crash_reopen, crash, "upsert a summary=x;upsert b needs=a;complete a done summary=y", "reopen a");
scenario!(crash_archive, crash, "upsert a;complete a done", "archive a");
scenario!(crash_evict, crash, "upsert a;register w1;register w2;register w3", "claim w4 a");
scenario!(crash_import, crash, "upsert a;complete a done summary=s", "import b c d");
scenario!(
    crash_prune,
    crash,
    &format!("{FULL};complete n3 done summary=q;complete n8 done;complete n7 done;complete n6 done"),
    "upsert n9"
);
