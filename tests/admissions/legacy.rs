//! A50 to A53: the legacy path and admissions are never both owner.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use tenure::admission::{Kind as K, Ledger, Refusal};

use crate::bench::*;

on_both! {
    fn a50_never_both(bench) {
        let parties: Vec<Box<dyn Ledger>> = (0..8).map(|_| bench.again()).collect();
        let barrier = Barrier::new(parties.len());
        let end = Instant::now() + Duration::from_millis(1500);
        let calls: u64 = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (i, ledger) in parties.iter().enumerate() {
                let (barrier, bench) = (&barrier, &bench);
                threads.push(scope.spawn(move || {
                    barrier.wait();
                    let (mut calls, me) = (0, who(&format!("old-{i}")));
                    while Instant::now() < end {
                        calls += 1;
                        if i % 2 == 0 {
                            if ledger.legacy_take(&key(S), &me).is_ok() {
                                assert_eq!(ledger.surface(&key(S)).unwrap().owner, None);
                                ledger.legacy_drop(&key(S), &me).unwrap();
                            }
                        } else if let Ok(answer) = ledger.submit(&local(&format!("r{i}-{calls}"), 1, "d")) {
                            assert_eq!(ledger.surface(&key(S)).unwrap().legacy, None);
                            bench.close(&answer, K::FailedBeforeStart).unwrap();
                        }
                    }
                    calls
                }));
            }
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert!(calls > 16, "only {calls} calls");
        bench.sound();
    }

    fn a51_an_open_admission_keeps_the_legacy_path_out(bench) {
        let admitted = bench.ledger.submit(&local("r", 1, "d")).unwrap();
        let refused = bench.ledger.legacy_take(&key(S), &who("old")).unwrap_err();
        assert_eq!(refused.record().unwrap().admission, admitted.admission());
        bench.close(&admitted, K::FailedBeforeStart).unwrap();
        bench.ledger.legacy_take(&key(S), &who("old")).unwrap();
    }

    fn a52_the_legacy_path_keeps_admissions_out(bench) {
        let taken = bench.ledger.legacy_take(&key(S), &who("old")).unwrap();
        assert_eq!(bench.ledger.legacy_take(&key(S), &who("old")).unwrap(), taken);
        assert_eq!(code(bench.ledger.submit(&local("r", 1, "d"))), "busy_legacy");
        let refused = bench.ledger.legacy_take(&key(S), &who("older")).unwrap_err();
        assert!(matches!(&refused, Refusal::BusyLegacy { who, .. } if who == "old"), "{refused}");
        bench.ledger.submit(&queued("q", 1, "d")).unwrap();
        let kept = &bench.ledger.pickup(&m1()).unwrap().waiting[0];
        assert_eq!(kept.kept_by.as_deref(), Some("busy_legacy"));
        assert_eq!(code(bench.ledger.legacy_drop(&key(S), &who("older"))), "not_owner");
        bench.ledger.legacy_drop(&key(S), &who("old")).unwrap();
        assert_eq!(code(bench.ledger.legacy_drop(&key(S), &who("old"))), "not_owner");
        assert!(bench.ledger.pickup(&m1()).unwrap().admitted.is_some());
        assert_eq!(code(bench.ledger.legacy_take(&key("nowhere"), &who("old"))), "not_found");
    }

    fn a53_neither_answers_before_the_other_is_settled(bench) {
        use std::sync::Arc;
        use std::sync::mpsc::channel;
        // One party stops between its look and its commit, for as long as the test wants.
        let (reached, is_reached) = channel();
        let (go_on, may_go_on) = channel::<()>();
        let may_go_on = std::sync::Mutex::new(may_go_on);
        let mut options = options(&bench.rules, &bench.clock);
        options.probe = Some(Arc::new(move |moment, sql: &str| {
            if moment == tenure::admission::Moment::Before && sql == "commit" {
                reached.send(()).unwrap();
                may_go_on.lock().unwrap().recv().unwrap();
            }
        }));
        let frozen = open(&bench.home.address(), options);
        std::thread::scope(|scope| {
            let admitting = scope.spawn(|| frozen.submit(&local("r", 1, "d")));
            is_reached.recv().unwrap();
            let other = bench.again();
            let legacy = scope.spawn(move || other.legacy_take(&key(S), &who("old")));
            std::thread::sleep(Duration::from_millis(100));
            assert!(!legacy.is_finished(), "it answered while the other was undecided");
            go_on.send(()).unwrap();
            assert!(admitting.join().unwrap().is_ok());
            assert_eq!(code(legacy.join().unwrap()), "busy");
        });
        bench.sound();
    }
}
