//! A27 to A32: the destination is written once, and what changes afterwards is a refusal and never a move.

use tenure::admission::{Kind as K, Phase, Placing, Refusal, Request, Stop};

use crate::bench::*;

on_both! {
    fn a27_a_start_at_a_place_that_has_changed_ends_the_admission(bench) {
        let admitted = bench.ledger.submit(&local("r", 1, "d")).unwrap();
        bench.place(S, m1(), "/srv/new");
        let token = admitted.credential.unwrap().token;
        let refused = bench.started(&token, &m1()).unwrap_err();
        let Refusal::PlacementChanged { record: Some(record), .. } = &refused else { panic!("{refused}") };
        assert_eq!((record.closing, record.reason.as_deref()), (Some(K::FailedBeforeStart), Some("placement_changed")));
        assert_eq!(bench.ledger.show(&record.admission).unwrap(), **record);
        assert_eq!(bench.ledger.refusals(Some(&key(S))).unwrap()[0].code, "placement_changed");
        assert!(bench.ledger.submit(&local("r", 2, "d")).unwrap().created, "the next attempt goes to the new place");
    }

    fn a27_a_credential_that_is_not_good_ends_nothing(bench) {
        let admitted = bench.ledger.submit(&local("r", 1, "d")).unwrap();
        let token = |answer: &tenure::admission::Answer| answer.credential.clone().unwrap().token;
        let newer = bench.ledger.attach(&admitted.admission(), &who("ann"), &m1()).unwrap();
        bench.place(S, m1(), "/srv/new");
        let is_open = || bench.ledger.show(&admitted.admission()).unwrap().phase == Phase::Admitted;
        assert_eq!(code(bench.started(&token(&admitted), &m1())), "credential_expired", "it was replaced");
        assert!(is_open());
        bench.pass_ms(301_000);
        assert_eq!(code(bench.started(&token(&newer), &m1())), "credential_expired", "it has run out");
        assert!(is_open());
        // Run out, it is still the one that says that nothing was started.
        let ended = bench.close(&newer, K::FailedBeforeStart).unwrap();
        assert_eq!(ended.closing, Some(K::FailedBeforeStart));
        let cut = bench.ledger.submit(&local("r", 2, "d")).unwrap();
        bench.ledger.revoke(&cut.admission(), &who("ann")).unwrap();
        bench.place(S, m1(), "/srv/newer");
        assert_eq!(code(bench.started(&token(&cut), &m1())), "credential_expired", "it was cut");
        assert!(bench.ledger.show(&cut.admission()).unwrap().is_open());
    }

    fn a_start_that_is_said_again_is_answered_again_while_it_may_still_run(bench) {
        let admitted = bench.ledger.submit(&local("r", 1, "d")).unwrap();
        let token = admitted.credential.clone().unwrap().token;
        let again = || bench.started(&token, &m1());
        let started = again().unwrap();
        bench.pass_ms(1_000);
        assert_eq!(again().unwrap(), started);
        bench.rules.deny("ann");
        assert_eq!(code(again()), "denied");
        bench.rules.allow("ann");
        assert_eq!(again().unwrap(), started);
        bench.pass_ms(300_000);
        assert_eq!(code(again()), "credential_expired");
        bench.clock.fetch_sub(300_000, std::sync::atomic::Ordering::SeqCst);
        bench.place(S, m1(), "/srv/new");
        assert_eq!(code(again()), "placement_changed");
        assert_eq!(bench.ledger.show(&started.admission).unwrap(), started, "by the record it runs, and nothing ends it");
        bench.ledger.revoke(&started.admission, &who("ann")).unwrap();
        assert_eq!(code(again()), "credential_expired");
        assert_eq!(bench.owner(S), Some(started.admission));
        let next = bench.ledger.submit(&local("r2", 1, "d")).unwrap_err();
        assert_eq!(next.code(), "busy");
        bench.ledger.release(&started.admission, &who("boss"), "looked").unwrap();
        let stopped = bench.ledger.submit(&local("r3", 1, "d")).unwrap();
        let token = stopped.credential.clone().unwrap().token;
        bench.started(&token, &m1()).unwrap();
        bench.ledger.stop(&stopped.admission(), &who("ann"), "").unwrap();
        assert_eq!(code(bench.started(&token, &m1())), "stopping");
        bench.close(&stopped, K::Interrupted).unwrap();
        assert_eq!(code(bench.started(&token, &m1())), "closed");
        bench.sound();
    }

    fn a28_an_open_destination_is_never_rewritten(bench) {
        let admitted = bench.running(&local("r", 1, "d"));
        for place in ["/srv/new", "/srv/newer"] {
            bench.place(S, m1(), place);
            bench.place(S, m2(), place);
        }
        bench.ledger.place_gone(&key(S), &m1()).unwrap();
        let now = bench.ledger.show(&admitted.admission()).unwrap();
        assert_eq!(now.destination, admitted.record.destination);
    }

    fn a29_a_way_there_and_back_is_another_placement(bench) {
        let admitted = bench.ledger.submit(&local("r", 1, "d")).unwrap();
        bench.place(S, m1(), "/srv/new");
        bench.place(S, m1(), "/srv/s");
        let token = admitted.credential.unwrap().token;
        assert_eq!(code(bench.started(&token, &m1())), "placement_changed");
        // Another storage, another work, gone and back: each is a new generation; the same words again are not.
        let mut generations = Vec::new();
        let base = placing(S, m1(), "/srv/s");
        let storage = Placing { storage: Some("nvme".into()), ..base.clone() };
        let work = Placing { work: Some("tidy".parse().unwrap()), ..storage.clone() };
        for placing in [&base, &storage, &work, &work] {
            generations.push(bench.ledger.place(placing).unwrap().generation().get());
        }
        bench.ledger.place_gone(&key(S), &m1()).unwrap();
        generations.push(bench.ledger.place(&work).unwrap().generation().get());
        assert_eq!(generations, [3, 4, 5, 5, 6]);
    }

    fn a30_a_placement_that_changes_while_it_runs_is_a_stop_and_no_more_input(bench) {
        let running = bench.running(&local("r", 1, "d"));
        assert_eq!(bench.ledger.stopping(&running.admission()).unwrap(), None);
        let placed = bench.ledger.place(&placing(S, m1(), "/srv/new")).unwrap();
        assert_eq!(placed.stopping.iter().map(|r| r.admission).collect::<Vec<_>>(), [running.admission()]);
        assert_eq!(bench.ledger.stopping(&running.admission()).unwrap(), Some(Stop::Placement));
        for refused in [
            bench.ledger.attach(&running.admission(), &who("ann"), &m1()).map(|_| ()),
            bench.ledger.append(&appending(running.admission(), "more", "m")).map(|_| ()),
        ] {
            let refused = refused.unwrap_err();
            assert!(matches!(refused, Refusal::PlacementChanged { stopping: true, .. }), "{refused}");
            assert!(refused.to_string().contains("stopping"), "{refused}");
        }
        assert_eq!(code(bench.ledger.submit(&local("r2", 1, "d"))), "busy");
        // It closes with the credential that it had, however late.
        bench.pass_ms(HOUR_MS);
        bench.close(&running, K::Interrupted).unwrap();
        let next = bench.ledger.submit(&local("r2", 1, "d")).unwrap();
        assert_eq!(next.destination().generation, placed.generation());
    }

    fn a30_who_started_it_closes_it_at_a_changed_place_also_after_a_resend(bench) {
        let running = bench.running(&local("r", 1, "d"));
        // The answer to the resend has a newer credential, and cuts the one of whoever runs the command.
        bench.ledger.submit(&local("r", 1, "d")).unwrap();
        assert_eq!(code(bench.close(&running, K::Succeeded)), "credential_expired");
        bench.ledger.place(&placing(S, m1(), "/srv/new")).unwrap();
        assert_eq!(code(bench.ledger.attach(&running.admission(), &who("ann"), &m1())), "placement_changed");
        assert_eq!(bench.close(&running, K::Interrupted).unwrap().closing, Some(K::Interrupted));
        assert_eq!(bench.owner(S), None);
        bench.sound();
        // One that was cut on purpose stays cut.
        let other = bench.running(&local("r2", 1, "d"));
        bench.ledger.revoke(&other.admission(), &who("ann")).unwrap();
        bench.ledger.place(&placing(S, m1(), "/srv/newer")).unwrap();
        assert_eq!(code(bench.close(&other, K::Interrupted)), "credential_expired");
    }

    fn a31_silence_changes_no_placement(bench) {
        let before = bench.ledger.surface(&key(S)).unwrap().placements;
        bench.ledger.submit(&queued("r", 1, "d")).unwrap();
        bench.pass_ms(13 * HOUR_MS);
        bench.ledger.pickup(&m2()).unwrap();
        bench.ledger.fsck().unwrap();
        bench.ledger.pickup_list(&m1()).unwrap();
        assert_eq!(bench.again().surface(&key(S)).unwrap().placements, before);
    }

    fn a32_another_machine_never_takes_it(bench) {
        bench.place(S, m2(), "/srv/s");
        bench.ledger.submit(&Request { machine: Some(m1()), ..queued("q", 1, "d") }).unwrap();
        let running = bench.ledger.submit(&local("r", 1, "d")).unwrap();
        let picked = bench.ledger.pickup(&m2()).unwrap();
        assert_eq!((picked.open.len(), picked.admitted, picked.waiting.len()), (0, None, 0));
        let token = running.credential.clone().unwrap().token;
        assert_eq!(code(bench.ledger.attach(&running.admission(), &who("ann"), &m2())), "not_destination");
        assert_eq!(code(bench.started(&token, &m2())), "not_destination");
        assert_eq!(code(bench.ledger.check(&token, &m2())), "not_destination");
        let by = tenure::admission::By::Destination { token, caller: m2() };
        assert_eq!(code(bench.ledger.close(&running.admission(), &by, &closing(K::FailedBeforeStart))), "not_destination");
        // A resend from there is a receipt without a credential.
        let receipt = bench.ledger.submit(&Request { caller: m2(), ..local("r", 1, "d") }).unwrap();
        assert_eq!((receipt.admission(), receipt.credential), (running.admission(), None));
        assert_eq!(bench.ledger.show(&running.admission()).unwrap().phase, Phase::Admitted);
    }

    fn a_resend_while_the_placement_has_changed_names_the_admission_and_gives_nothing(bench) {
        let admitted = bench.ledger.submit(&local("r", 1, "d")).unwrap();
        bench.place(S, m1(), "/srv/new");
        let refused = bench.ledger.submit(&local("r", 1, "d")).unwrap_err();
        assert_eq!(refused.code(), "placement_changed");
        assert_eq!(refused.record().unwrap().admission, admitted.admission());
        assert!(bench.ledger.show(&admitted.admission()).unwrap().is_open());
    }

    fn several_machines_ask_for_a_name_and_none_for_a_place(bench) {
        bench.place(S, m2(), "/srv/s");
        assert_eq!(code(bench.ledger.submit(&queued("r", 1, "d"))), "no_destination");
        let pinned = Request { machine: Some(m2()), ..queued("r", 1, "d") };
        assert_eq!(bench.ledger.submit(&pinned).unwrap().destination().machine, m2());
        bench.ledger.place_gone(&key(S), &m2()).unwrap();
        assert_eq!(bench.ledger.submit(&queued("r2", 1, "d")).unwrap().destination().machine, m1());
        assert_eq!(code(bench.ledger.place_gone(&key("nowhere"), &m1())), "not_found");
        assert_eq!(code(bench.ledger.place(&placing("nowhere", m1(), "/srv/s"))), "not_found");
    }
}
