//! A37 to A49 and A57: rows that wait for their destination, and for nobody else.

use std::time::Duration;

use tenure::admission::{IfWaiting, Kind as K, Options, Phase, Request};

use crate::bench::*;

fn replacing(request: &str, contents: &str) -> Request {
    Request { if_waiting: IfWaiting::Replace, ..queued(request, 1, contents) }
}

on_both! {
    fn a37_a_queue_row_names_its_destination(bench) {
        let row = bench.ledger.submit(&queued("r", 1, "d")).unwrap();
        assert_eq!((row.phase(), row.credential.is_none(), row.created), (Phase::Queued, true, true));
        let shown = bench.ledger.find(&"r/1".parse().unwrap()).unwrap();
        assert_eq!((shown.destination.machine, shown.destination.place.as_str()), (m1(), "/srv/s"));
        assert_eq!(shown.destination.generation.get(), 1);
        assert_eq!(shown.command, ["make"]);
        assert_eq!(bench.owner(S), None, "it holds nothing");
        let inputs = bench.ledger.inputs(&row.admission(), None).unwrap();
        assert_eq!((inputs[0].number, inputs[0].bytes.as_slice()), (0, b"d".as_slice()));
    }

    fn a38_without_a_destination_it_is_not_in_the_queue(bench) {
        bench.add("bare");
        assert_eq!(code(bench.ledger.submit(&on("bare", queued("r", 1, "d")))), "no_destination");
        let picked = bench.ledger.pickup(&m1()).unwrap();
        assert_eq!((picked.admitted, picked.waiting), (None, vec![]));
        bench.place("bare", m1(), "/srv/bare");
        assert!(bench.ledger.submit(&on("bare", queued("r", 1, "d"))).unwrap().created, "the same request, later");
    }

    fn a39_pickup_does_not_choose(bench) {
        bench.place(S, m2(), "/srv/s");
        for n in 0..3 {
            let surface = format!("s{n}");
            bench.add(&surface);
            bench.place(&surface, m1(), &format!("/srv/{n}"));
            bench.ledger.submit(&on(&surface, queued(&format!("r{n}"), 1, "d"))).unwrap();
        }
        assert_eq!(bench.ledger.pickup(&m2()).unwrap(), Default::default());
        let mut admitted = Vec::new();
        while let Some(answer) = bench.ledger.pickup(&m1()).unwrap().admitted {
            admitted.push(answer.record.request.to_string());
            bench.pass_ms(1);
        }
        assert_eq!(admitted, ["r0", "r1", "r2"], "the oldest first, one at a time");
    }

    fn a40_a_place_that_is_not_live_is_passed_over_with_a_reason(bench) {
        let row = bench.ledger.submit(&queued("r", 1, "d")).unwrap();
        bench.ledger.place_gone(&key(S), &m1()).unwrap();
        let picked = bench.ledger.pickup(&m1()).unwrap();
        assert_eq!(picked.admitted, None);
        assert_eq!(picked.waiting[0].kept_by.as_deref(), Some("not_live"));
        assert_eq!(bench.ledger.show(&row.admission()).unwrap(), row.record);
        // Back there it is another placement, so this row can never start and says so.
        bench.place(S, m1(), "/srv/s");
        let picked = bench.ledger.pickup(&m1()).unwrap();
        assert_eq!(picked.refused[0].closing, Some(K::FailedBeforeStart));
        assert_eq!(bench.ledger.refusals(None).unwrap()[0].code, "placement_changed");
    }

    fn a41_others_do_not_see_what_waits_for_a_silent_machine(bench) {
        bench.ledger.submit(&queued("r", 1, "d")).unwrap();
        assert_eq!(bench.ledger.pickup_list(&m2()).unwrap(), Default::default());
        assert_eq!(bench.ledger.pickup_list(&m1()).unwrap().waiting.len(), 1);
        assert_eq!(bench.rows()[0].phase, Phase::Queued, "a look admits nothing");
    }

    fn a42_more_than_half_a_day_expires_at_its_own_machines_pickup(bench) {
        bench.ledger.submit(&queued("young", 1, "d")).unwrap();
        bench.pass_ms(12 * HOUR_MS - 60_000);
        let admitted = bench.ledger.pickup(&m1()).unwrap().admitted.unwrap();
        assert_eq!(admitted.record.request.as_str(), "young");
        bench.close(&admitted, K::FailedBeforeStart).unwrap();
        bench.ledger.submit(&queued("edge", 1, "d")).unwrap();
        bench.pass_ms(12 * HOUR_MS);
        let admitted = bench.ledger.pickup(&m1()).unwrap().admitted.unwrap();
        assert_eq!(admitted.record.request.as_str(), "edge", "half a day exactly is not more than half a day");
        bench.close(&admitted, K::FailedBeforeStart).unwrap();
        bench.ledger.submit(&queued("old", 1, "d")).unwrap();
        bench.pass_ms(13 * HOUR_MS);
        let picked = bench.ledger.pickup(&m1()).unwrap();
        assert_eq!((picked.admitted, picked.expired.len()), (None, 1));
        assert_eq!((picked.expired[0].closing, picked.expired[0].started_ms), (Some(K::Expired), None));
        assert_eq!(code(bench.ledger.submit(&queued("old", 1, "d"))), "expired");
        assert!(bench.ledger.submit(&queued("old", 2, "d")).unwrap().created, "by hand, the next attempt");
    }

    fn a42_a_clock_set_back_makes_nothing_old(bench) {
        bench.ledger.submit(&queued("r", 1, "d")).unwrap();
        bench.clock.fetch_sub(100 * HOUR_MS, std::sync::atomic::Ordering::SeqCst);
        assert!(bench.ledger.pickup(&m1()).unwrap().admitted.is_some());
    }

    fn a42_admitted_and_never_started_expires_the_same_way(bench) {
        bench.place(S, m2(), "/srv/s");
        let admitted = bench.ledger.submit(&local("r", 1, "d")).unwrap();
        bench.pass_ms(13 * HOUR_MS);
        bench.ledger.pickup(&m2()).unwrap();
        assert_eq!(bench.owner(S), Some(admitted.admission()));
        // Somebody who holds a good credential is about to start.
        bench.ledger.attach(&admitted.admission(), &who("ann"), &m1()).unwrap();
        assert_eq!(bench.ledger.pickup(&m1()).unwrap().expired, []);
        bench.pass_ms(301_000);
        assert_eq!(bench.ledger.pickup(&m1()).unwrap().expired[0].admission, admitted.admission());
        assert_eq!(bench.owner(S), None);
    }

    fn a43_nothing_else_expires_it(bench) {
        let row = bench.ledger.submit(&queued("r", 1, "d")).unwrap();
        bench.pass_ms(13 * HOUR_MS);
        bench.ledger.pickup(&m2()).unwrap();
        bench.ledger.pickup_list(&m1()).unwrap();
        bench.ledger.fsck().unwrap();
        let reopened = bench.again();
        reopened.surfaces().unwrap();
        assert_eq!(reopened.show(&row.admission()).unwrap(), row.record);
    }

    fn a44_what_expired_stays_and_points_where_it_did(bench) {
        let expired = bench.ended(&queued("r", 1, "d"), K::Expired);
        bench.place(S, m2(), "/srv/s");
        let rows = bench.rows();
        assert_eq!(rows, [expired]);
        assert_eq!(rows[0].destination.machine, m1());
        assert_eq!(bench.ledger.refusals(Some(&key(S))).unwrap()[0].code, "expired");
    }

    fn a45_a_newer_row_may_take_the_place_of_one_that_waits(bench) {
        let old = bench.ledger.submit(&queued("r1", 1, "old")).unwrap();
        let refused = bench.ledger.submit(&queued("r2", 1, "new")).unwrap_err();
        assert_eq!((refused.code(), refused.record().unwrap().admission), ("waiting_exists", old.admission()));
        let new = bench.ledger.submit(&replacing("r2", "new")).unwrap();
        let replaced = bench.ledger.show(&old.admission()).unwrap();
        assert_eq!((replaced.closing, replaced.successor), (Some(K::Superseded), Some(new.admission())));
        assert_eq!(new.record.supersedes, Some(old.admission()));
        assert_eq!(new.destination(), old.destination());
        let again = bench.ledger.submit(&queued("r1", 1, "old")).unwrap();
        assert_eq!(again.record.successor, Some(new.admission()));
        assert_eq!(bench.ledger.pickup(&m1()).unwrap().admitted.unwrap().admission(), new.admission());
        bench.sound();
    }

    fn a46_one_that_executes_is_not_replaced(bench) {
        bench.ledger.submit(&queued("r1", 1, "old")).unwrap();
        let running = bench.ledger.pickup(&m1()).unwrap().admitted.unwrap();
        bench.start(&running);
        let waiting = bench.ledger.submit(&replacing("r2", "new")).unwrap();
        assert_eq!((waiting.phase(), waiting.record.supersedes), (Phase::Queued, None));
        assert_eq!(bench.owner(S), Some(running.admission()));
        let kept = &bench.ledger.pickup(&m1()).unwrap().waiting[0];
        assert_eq!(kept.kept_by.as_deref(), Some("busy"));
    }

    fn a47_nothing_is_replaced_across_destinations(bench) {
        bench.place(S, m2(), "/srv/s");
        let first = bench.ledger.submit(&Request { machine: Some(m1()), ..replacing("r1", "d") }).unwrap();
        let second = bench.ledger.submit(&Request { machine: Some(m2()), ..replacing("r2", "d") }).unwrap();
        assert_eq!(second.record.supersedes, None);
        assert_eq!(bench.ledger.show(&first.admission()).unwrap(), first.record);
        // The same machine at another placement is another destination too.
        bench.place(S, m1(), "/srv/new");
        let third = bench.ledger.submit(&Request { machine: Some(m1()), ..replacing("r3", "d") }).unwrap();
        assert_eq!((third.record.supersedes, bench.rows().len()), (None, 3));
        bench.sound();
    }

    fn a48_a_machine_that_comes_back_sees_what_it_has_open(bench) {
        let running = bench.running(&local("r", 1, "d"));
        bench.ledger.submit(&queued("q", 1, "d")).unwrap();
        bench.pass_ms(11 * HOUR_MS);
        let picked = bench.ledger.pickup(&m1()).unwrap();
        assert_eq!(picked.open.iter().map(|r| r.admission).collect::<Vec<_>>(), [running.admission()]);
        assert_eq!((picked.admitted, picked.stopping), (None, vec![]));
        assert!(bench.ledger.attach(&running.admission(), &who("ann"), &m1()).is_ok());
    }

    fn a49_a_placement_that_changed_meanwhile_is_a_refusal(bench) {
        let running = bench.running(&local("r", 1, "d"));
        bench.place(S, m1(), "/srv/new");
        let picked = bench.ledger.pickup(&m1()).unwrap();
        assert_eq!((picked.open.len(), picked.stopping.clone()), (1, vec![running.admission()]));
        assert_eq!(code(bench.ledger.attach(&running.admission(), &who("ann"), &m1())), "placement_changed");
        let still = bench.ledger.show(&running.admission()).unwrap();
        assert_eq!(still.destination, running.record.destination);
    }

    fn a57_the_reason_stays_with_the_issuer(bench) {
        bench.rules.deny("ann");
        let row = Request { subject: who("bob"), ..queued("q", 1, "d") };
        bench.ledger.submit(&row).unwrap();
        for _ in 0..3 {
            let _ = bench.ledger.submit(&local("r", 1, "d"));
            bench.pass_ms(1000);
        }
        bench.rules.deny("bob");
        let picked = bench.ledger.pickup(&m1()).unwrap();
        assert_eq!(picked.waiting[0].kept_by.as_deref(), Some("denied"));
        let refusals = bench.ledger.refusals(Some(&key(S))).unwrap();
        let of = |request: &str| refusals.iter().find(|r| r.request.as_str() == request).unwrap();
        assert_eq!((of("r").code.as_str(), of("r").times, of("r").reason.as_str()), ("denied", 3, "denied: ann may not"));
        assert_eq!(of("r").at_ms - of("r").first_ms, 2000);
        assert_eq!(of("q").code, "denied");
        assert_eq!(bench.ledger.refusals(Some(&key("other"))).unwrap(), []);
    }

    fn whoever_waits_for_work_is_told(bench) {
        let waiter = bench.again();
        waiter.pickup(&m1()).unwrap();
        assert!(!waiter.wait_for_work(&m1(), Duration::from_millis(1)).unwrap());
        std::thread::scope(|scope| {
            let told = scope.spawn(|| waiter.wait_for_work(&m1(), Duration::from_secs(60)).unwrap());
            bench.ledger.submit(&queued("r", 1, "d")).unwrap();
            assert!(told.join().unwrap());
        });
        // What came before the wait is not missed.
        bench.ledger.cancel(&"r/1".parse().unwrap(), &who("ann")).unwrap();
        assert!(waiter.wait_for_work(&m1(), Duration::ZERO).unwrap());
    }

    fn the_longest_waits_are_only_long(bench) {
        let patient = bench.again_with(|options| Options { wait_ms: u64::MAX, ..options });
        patient.pickup(&m1()).unwrap();
        bench.ledger.submit(&queued("r", 1, "d")).unwrap();
        assert!(patient.wait_for_work(&m1(), Duration::MAX).unwrap());
        assert!(patient.pickup(&m1()).unwrap().admitted.is_some());
    }
}
