//! A22 to A25: attempts come one after the other, and only where the earlier one allows it.

use tenure::admission::{Kind as K, Phase, Request};

use crate::bench::*;

on_both! {
    fn a22_the_next_attempt_waits_for_the_one_before(bench) {
        let first = bench.ledger.submit(&local("r", 1, "d")).unwrap();
        assert_eq!(code(bench.ledger.submit(&local("r", 2, "d"))), "previous_open");
        bench.start(&first);
        assert_eq!(code(bench.ledger.submit(&local("r", 2, "d"))), "previous_open");
        bench.close(&first, K::Interrupted).unwrap();
        bench.ledger.submit(&queued("q", 1, "d")).unwrap();
        assert_eq!(code(bench.ledger.submit(&queued("q", 2, "d"))), "previous_open");
        assert!(bench.ledger.submit(&local("r", 2, "d")).unwrap().created);
    }

    fn a23_each_closing_says_whether_there_is_another_attempt(bench) {
        let allowed = [K::FailedBeforeStart, K::Interrupted, K::Released, K::Expired];
        for kind in K::ALL.iter().copied() {
            let request = local(&format!("r-{kind}"), 1, "d");
            let ended = bench.ended(&request, kind);
            assert_eq!(ended.closing, Some(kind));
            assert_eq!(bench.owner(S), None, "{kind} frees the surface");
            let next = bench.ledger.submit(&Request { attempt: attempt(2), ..request.clone() });
            if allowed.contains(&kind) {
                assert!(bench.close(&next.unwrap(), K::FailedBeforeStart).is_ok());
            } else {
                assert_eq!(code(next), "previous_final", "{kind}");
            }
            // Resent, it is what the closing table says.
            match (kind, bench.ledger.submit(&request)) {
                (K::Canceled, again) => assert_eq!(code(again), "canceled"),
                (K::Expired, again) => assert_eq!(code(again), "expired"),
                (_, Ok(again)) => {
                    assert_eq!((again.phase(), again.credential.is_none()), (Phase::Closed, true));
                    assert_eq!(again.next_attempt, allowed.contains(&kind));
                    assert_eq!(again.record.successor.is_some(), kind == K::Superseded);
                }
                (_, Err(refusal)) => panic!("{kind}: {refusal}"),
            }
        }
        bench.sound();
    }

    fn a23_the_next_attempt_is_on_the_same_surface_and_may_bring_other_contents(bench) {
        bench.add("T");
        bench.place("T", m1(), "/srv/t");
        let first = bench.ended(&local("r", 1, "d"), K::FailedBeforeStart);
        let elsewhere = bench.ledger.submit(&on("T", local("r", 2, "d"))).unwrap_err();
        assert_eq!((elsewhere.code(), bench.owner("T")), ("conflict", None));
        // Pinned to another machine, say, which the digest covers.
        let next = bench.ledger.submit(&local("r", 2, "e")).unwrap();
        assert!(next.created && next.admission() != first.admission);
        // A11: each attempt has its own contents, which do not change.
        assert_eq!(code(bench.ledger.submit(&local("r", 2, "d"))), "conflict");
        assert_eq!(code(bench.ledger.submit(&local("r", 1, "e"))), "conflict");
        assert_eq!(bench.ledger.submit(&local("r", 2, "e")).unwrap().admission(), next.admission());
        bench.sound();
    }

    fn a24_an_attempt_that_is_missing_is_not_a_closed_one(bench) {
        assert_eq!(code(bench.ledger.submit(&local("r", 2, "d"))), "previous_unknown");
        let after = Request { after: Some("never/1".parse().unwrap()), ..local("q", 1, "d") };
        assert_eq!(code(bench.ledger.submit(&after)), "previous_unknown");
        assert_eq!(bench.rows(), []);
    }

    fn a25_attempts_have_no_gaps(bench) {
        bench.ended(&local("r", 1, "d"), K::Interrupted);
        assert_eq!(code(bench.ledger.submit(&local("r", 3, "d"))), "previous_unknown");
        bench.ended(&local("r", 2, "d"), K::Interrupted);
        assert!(bench.ledger.submit(&local("r", 3, "d")).unwrap().created);
        let linked = Request { after: Some("r/2".parse().unwrap()), ..queued("q", 1, "d") };
        assert_eq!(bench.ledger.submit(&linked).unwrap().record.after, linked.after);
        bench.sound();
    }
}
