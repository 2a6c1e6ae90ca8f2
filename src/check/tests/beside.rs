//! A table that others work on all the time is never said to be wrong.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;
use crate::Refusal;

const HOLDERS: usize = 3;

/// One of many: claims what there is, ends it in different ways, opens it again.
fn work(table: &Table, holder: usize, stop: &AtomicBool, did: &AtomicU64) {
    let worker = table.worker(&format!("w{holder}")).unwrap();
    while !stop.load(Ordering::Relaxed) {
        let Ok(claim) = worker.claim_next() else {
            for i in 0..20 {
                let _ = table.reopen(id(&format!("n{i}")));
            }
            continue;
        };
        let n = did.fetch_add(1, Ordering::Relaxed);
        let done = match n % 4 {
            0 => claim.release().map(drop),
            1 => claim.complete_with(Outcome::Failed, "it broke").map(drop),
            _ => claim.complete(Outcome::Done).map(drop),
        };
        // Others reopen, reclaim and restore meanwhile.
        if let Err(refusal) = done {
            assert!(!matches!(refusal, Refusal::Damaged(_) | Refusal::Contended { .. }), "{refusal}");
        }
    }
}

/// Changes the graph in every way.
fn edit(table: &Table, stop: &AtomicBool, did: &AtomicU64) {
    let mut n = 0u32;
    while !stop.load(Ordering::Relaxed) {
        n += 1;
        let (a, b) = (n % 20, n / 20 % 20);
        let (a, b) = (id(&format!("n{}", a.min(b))), id(&format!("n{}", a.max(b))));
        let changed = match n % 6 {
            0 => table.link(a, b).map(drop),
            1 => table.unlink(a, b).map(drop),
            2 => table.set_group("g", 1 + n % 3).map(drop),
            3 => table.reclaim(Some(0)).map(drop),
            4 => table
                .upsert(
                    &NodeSpec { id: Some(a), summary: Some("y".repeat(n as usize % 300)), ..NodeSpec::default() },
                    false,
                )
                .map(drop),
            _ => table.archive(a).map(drop),
        };
        if let Err(refusal) = changed {
            assert!(!matches!(refusal, Refusal::Damaged(_)), "{refusal}");
        }
        did.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn nothing_is_reported_that_is_only_on_its_way() {
    let dir = tempfile::tempdir().unwrap();
    let (table, _) = Table::open_or_create(dir.path(), &CreateOptions::default()).unwrap();
    table.set_group("g", 2).unwrap();
    for i in 0..20 {
        let group = Some(if i % 2 == 0 { "g" } else { "" }.to_owned());
        table.upsert(&NodeSpec { group, ..spec(&format!("n{i}"), &[]) }, false).unwrap();
    }
    let (stop, claims, edits) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let looks = std::thread::scope(|scope| {
        for holder in 0..HOLDERS {
            let (table, stop, claims) = (&table, &stop, &claims);
            scope.spawn(move || work(table, holder, stop, claims));
        }
        scope.spawn(|| edit(&table, &stop, &edits));
        let until = std::time::Instant::now() + Duration::from_secs(3);
        let mut looks = 0;
        let mut wrong = None;
        // On a busy machine it takes longer until enough has happened.
        let little =
            |looks| looks <= 20 || claims.load(Ordering::Relaxed) <= 100 || edits.load(Ordering::Relaxed) <= 100;
        while wrong.is_none() && (std::time::Instant::now() < until || little(looks)) {
            let report = super::table(dir.path()).unwrap();
            looks += 1;
            wrong = (!report.sound).then_some(report);
        }
        stop.store(true, Ordering::Relaxed);
        assert!(wrong.is_none(), "{wrong:#?}");
        looks
    });
    assert!(looks > 20, "only {looks} looks");
    assert!(claims.load(Ordering::Relaxed) > 100 && edits.load(Ordering::Relaxed) > 100, "nobody was at work");
    let report = super::table(dir.path()).unwrap();
    assert!(report.sound, "{report:#?}");
    assert_eq!((report.counts.reserved, report.counts.unjudged), (0, 0), "{report:#?}");
}
