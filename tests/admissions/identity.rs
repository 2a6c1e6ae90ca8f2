//! A10 to A21: the same request is the same admission, and permission is asked for each time.

use std::sync::Barrier;

use tenure::admission::{AttemptKey, Kind as K, Occasion, Phase, Refusal, Request};

use crate::bench::*;

on_both! {
    fn a10_the_same_again_is_the_same_admission(bench) {
        let first = bench.ledger.submit(&local("r", 1, "d")).unwrap();
        let again = bench.ledger.submit(&local("r", 1, "d")).unwrap();
        assert_eq!(again.admission(), first.admission());
        assert!(first.created && !again.created);
        assert_eq!(bench.rows().len(), 1);
    }

    fn a11_other_contents_are_a_conflict_open_or_closed_here_or_elsewhere(bench) {
        bench.add("T");
        bench.place("T", m1(), "/srv/t");
        let first = bench.running(&local("r", 1, "d"));
        assert_eq!(code(bench.ledger.submit(&local("r", 1, "e"))), "conflict");
        assert_eq!(code(bench.ledger.submit(&on("T", local("r", 1, "e")))), "conflict");
        assert_eq!(code(bench.ledger.submit(&on("T", local("r", 1, "d")))), "conflict");
        bench.close(&first, K::Succeeded).unwrap();
        assert_eq!(code(bench.ledger.submit(&local("r", 1, "e"))), "conflict");
        assert_eq!(bench.rows().len(), 1);
        // Another attempt is another key; on another surface it is another intention under a name that is taken.
        bench.ended(&local("q", 1, "d"), K::Interrupted);
        assert_eq!(code(bench.ledger.submit(&on("T", local("q", 2, "d")))), "conflict");
    }

    fn a12_an_answer_that_was_lost_adds_no_owner(bench) {
        let lost = bench.ledger.submit(&local("r", 1, "d")).unwrap().admission();
        let resent = bench.again().submit(&local("r", 1, "d")).unwrap();
        assert_eq!(resent.admission(), lost);
        assert!(!resent.created && resent.credential.is_some());
        assert_eq!(bench.owner(S), Some(lost));
        bench.sound();
    }

    fn a13_two_entrances_at_once_give_one_row(bench) {
        for round in 0..8 {
            let name = format!("r{round}");
            let (here, there) = (bench.again(), bench.again());
            let barrier = Barrier::new(2);
            let (a, b) = std::thread::scope(|scope| {
                let a = scope.spawn(|| { barrier.wait(); here.submit(&local(&name, 1, "d")) });
                let b = scope.spawn(|| { barrier.wait(); there.submit(&queued(&name, 1, "d")) });
                (a.join().unwrap().unwrap(), b.join().unwrap().unwrap())
            });
            assert_eq!(a.admission(), b.admission());
            assert_eq!(usize::from(a.created) + usize::from(b.created), 1);
            bench.close(&a, K::FailedBeforeStart).unwrap();
        }
        assert_eq!(bench.rows().len(), 8);
        bench.sound();
    }

    fn a13_one_name_is_a_start_or_an_input_and_never_both(bench) {
        bench.add("T");
        bench.place("T", m1(), "/srv/t");
        let open = bench.running(&local("open", 1, "d")).admission();
        let (starter, sender) = (bench.again(), bench.again());
        for round in 0..40 {
            let name = format!("r{round}");
            let barrier = Barrier::new(2);
            let (started, sent) = std::thread::scope(|scope| {
                let started = scope.spawn(|| { barrier.wait(); starter.submit(&on("T", local(&name, 1, "d"))) });
                let sent = scope.spawn(|| { barrier.wait(); sender.append(&appending(open, &name, "d")) });
                (started.join().unwrap(), sent.join().unwrap())
            });
            assert!(started.is_ok() != sent.is_ok(), "{started:?} {sent:?}");
            match started {
                Ok(started) => drop(bench.close(&started, K::FailedBeforeStart).unwrap()),
                Err(refusal) => assert_eq!(refusal.code(), "conflict"),
            }
        }
        bench.sound();
    }

    fn a14_a_new_row_needs_no_row_the_placement_and_no_owner(bench) {
        let generation = bench.ledger.surface(&key(S)).unwrap().placements[0].destination.generation;
        bench.place(S, m1(), "/srv/elsewhere");
        let pinned = Request { generation: Some(generation), ..local("r1", 1, "d") };
        assert_eq!(code(bench.ledger.submit(&pinned)), "placement_changed");
        let elsewhere = Request { caller: m2(), ..local("r2", 1, "d") };
        assert_eq!(code(bench.ledger.submit(&elsewhere)), "not_destination");
        bench.ledger.submit(&local("r3", 1, "d")).unwrap();
        assert_eq!(code(bench.ledger.submit(&local("r4", 1, "d"))), "busy");
        assert_eq!(code(bench.ledger.submit(&local("r3", 1, "e"))), "conflict");
        assert_eq!(bench.rows().len(), 1);
    }

    fn a15_a_resend_after_cancel_is_refused(bench) {
        for request in [local("r", 1, "d"), queued("q", 1, "d")] {
            let sent = bench.ledger.submit(&request).unwrap();
            let canceled = bench.ledger.cancel(&sent.record.key(), &who("ann")).unwrap();
            assert_eq!(canceled.closing, Some(K::Canceled));
            assert_eq!(code(bench.ledger.submit(&request)), "canceled");
            // The cancel itself may be sent again.
            assert_eq!(bench.ledger.cancel(&sent.record.key(), &who("ann")).unwrap(), canceled);
        }
        assert_eq!(bench.owner(S), None);
    }

    fn a16_a_resend_of_a_success_starts_nothing(bench) {
        let closed = bench.ended(&local("r", 1, "d"), K::Succeeded);
        let again = bench.ledger.submit(&local("r", 1, "d")).unwrap();
        assert_eq!((again.phase(), again.created, again.next_attempt), (Phase::Closed, false, false));
        assert_eq!(again.credential, None);
        assert_eq!(again.record, closed);
        assert_eq!(bench.owner(S), None);
    }

    fn a17_a_resend_asks_the_policy_again(bench) {
        bench.ledger.submit(&local("r", 1, "d")).unwrap();
        bench.rules.asked();
        bench.ledger.submit(&local("r", 1, "d")).unwrap();
        assert_eq!(bench.rules.asked().last().unwrap().occasion, Occasion::Resend);
        bench.rules.deny("ann");
        assert_eq!(code(bench.ledger.submit(&local("r", 1, "d"))), "denied");
    }

    fn a18_a_row_is_no_proof_of_permission(bench) {
        let admitted = bench.ledger.submit(&local("r", 1, "d")).unwrap();
        bench.rules.deny("ann");
        let shown = bench.ledger.show(&admitted.admission()).unwrap();
        assert!(shown.is_open());
        assert_eq!(code(bench.ledger.attach(&admitted.admission(), &who("ann"), &m1())), "denied");
        let token = &admitted.credential.as_ref().unwrap().token;
        assert_eq!(code(bench.started(token, &m1())), "denied");
        assert_eq!(bench.ledger.show(&admitted.admission()).unwrap(), shown);
    }

    fn a19_each_resend_gives_a_credential_of_its_own(bench) {
        let sent: Vec<_> = (0..3).map(|_| bench.ledger.submit(&local("r", 1, "d")).unwrap()).collect();
        let numbers: Vec<u64> = sent.iter().map(|s| s.credential.as_ref().unwrap().attach_number).collect();
        assert_eq!(numbers, [1, 2, 3]);
        let use_it = |i: usize| {
            let token = &sent[i].credential.as_ref().unwrap().token;
            bench.started(token, &m1())
        };
        assert_eq!(code(use_it(0)), "credential_expired");
        assert_eq!(code(use_it(1)), "credential_expired");
        assert_eq!(use_it(2).unwrap().phase, Phase::Started);
        assert_eq!(code(use_it(0)), "already_started");
        // Said again by the one that did, it is the same answer.
        assert_eq!(use_it(2).unwrap().phase, Phase::Started);
    }

    fn a20_a_first_send_that_is_denied_leaves_nothing(bench) {
        bench.rules.deny("ann");
        assert_eq!(code(bench.ledger.submit(&local("r", 1, "d"))), "denied");
        assert_eq!(code(bench.ledger.submit(&queued("q", 1, "d"))), "denied");
        assert_eq!((bench.rows(), bench.owner(S)), (vec![], None));
        bench.rules.allow("ann");
        assert!(bench.ledger.submit(&local("r", 1, "d")).unwrap().created);
        bench.sound();
    }

    fn a20_who_is_denied_does_not_hear_who_owns_it(bench) {
        bench.ledger.submit(&local("r", 1, "d")).unwrap();
        bench.rules.deny("eve");
        let eve = Request { subject: who("eve"), ..local("r2", 1, "d") };
        assert_eq!(code(bench.ledger.submit(&eve)), "denied");
    }

    fn a21_a_denied_resend_leaves_the_owner_as_it_was(bench) {
        bench.running(&local("r", 1, "d"));
        let before = bench.rows();
        bench.rules.deny("ann");
        assert_eq!(code(bench.ledger.submit(&local("r", 1, "d"))), "denied");
        assert_eq!(bench.rows(), before);
        assert_eq!(bench.owner(S), Some(before[0].admission));
    }

    fn race_21_a_right_withdrawn_between_check_and_commit_does_not_pass(bench) {
        use std::sync::atomic::{AtomicBool, Ordering};
        use std::sync::Arc;
        // Withdrawn when the row has been written and before the commit is sent.
        let (rules, once) = (bench.rules.clone(), Arc::new(AtomicBool::new(false)));
        let (withdraw, done) = (rules.clone(), once.clone());
        let mut options = options(&rules, &bench.clock);
        options.probe = Some(Arc::new(move |moment, sql: &str| {
            let written = moment == tenure::admission::Moment::After && sql.starts_with("insert into tenure_admission");
            if written && !done.swap(true, Ordering::SeqCst) {
                withdraw.deny("ann");
            }
        }));
        let ledger = open(&bench.home.address(), options);
        assert_eq!(code(ledger.submit(&local("r", 1, "d"))), "denied");
        assert!(once.load(Ordering::SeqCst), "the right was never withdrawn");
        assert_eq!(bench.rows(), []);
    }

    fn a58_a_deleted_machine_deletes_no_admission(bench) {
        let admitted = bench.running(&local("r", 1, "d"));
        bench.ledger.pickup(&m1()).unwrap();
        assert!(bench.ledger.machine_forget(&m1()).unwrap());
        assert!(!bench.ledger.machine_forget(&m1()).unwrap());
        let late = bench.ledger.submit(&local("r", 1, "d")).unwrap();
        assert_eq!(late.admission(), admitted.admission());
        assert!(!late.created);
        assert_eq!(bench.rows().len(), 1);
        // The same machine, known by its key, still closes it.
        assert_eq!(bench.close(&late, K::Succeeded).unwrap().closing, Some(K::Succeeded));
    }

    fn a59_a_work_that_is_gone_deletes_no_admission(bench) {
        let with_work = tenure::admission::Placing {
            work: Some("tidy".parse().unwrap()),
            ..placing(S, m1(), "/srv/s")
        };
        bench.ledger.place(&with_work).unwrap();
        let admitted = bench.ledger.submit(&local("r", 1, "d")).unwrap();
        assert_eq!(admitted.record.work, Some("tidy".parse().unwrap()));
        // It belongs to no work any more: that is another placement, and the admission is still there.
        bench.place(S, m1(), "/srv/s");
        let refused = bench.ledger.submit(&local("r", 1, "d")).unwrap_err();
        let Refusal::PlacementChanged { record: Some(record), .. } = refused else { panic!("{refused}") };
        assert_eq!(record.admission, admitted.admission());
        assert_eq!(bench.rows().len(), 1);
    }

    fn a60_there_is_no_closing_called_unknown(bench) {
        assert!("unknown".parse::<K>().is_err());
        let admitted = bench.running(&local("r", 1, "d"));
        for kind in [K::Canceled, K::Released, K::Expired, K::Superseded] {
            assert_eq!(code(bench.close(&admitted, kind)), "usage");
        }
        assert_eq!(code(bench.close(&admitted, K::FailedBeforeStart)), "wrong_closing");
        assert_eq!(code(bench.ledger.release(&admitted.admission(), &who("boss"), "  ")), "usage");
        assert_eq!(bench.owner(S), Some(admitted.admission()));
    }

    fn a61_a_late_copy_is_never_admitted_again(bench) {
        let closed = bench.ended(&local("r", 1, "d"), K::Interrupted);
        for n in 0..300 {
            bench.ended(&local(&format!("later-{n}"), 1, "d"), K::Succeeded);
            bench.pass_ms(240 * HOUR_MS);
        }
        let late = bench.ledger.submit(&local("r", 1, "d")).unwrap();
        assert_eq!((late.admission(), late.created, late.credential), (closed.admission, false, None));
        assert!(late.next_attempt);
        assert_eq!(bench.rows().len(), 301);
    }

    fn a62_cutting_the_credential_and_freeing_the_surface_are_two_things(bench) {
        let admitted = bench.running(&local("r", 1, "d"));
        let token = admitted.credential.clone().unwrap().token;
        let revoked = bench.ledger.revoke(&admitted.admission(), &who("ann")).unwrap();
        assert!(revoked.attach_number > admitted.record.attach_number);
        assert_eq!(bench.owner(S), Some(admitted.admission()));
        assert_eq!(code(bench.ledger.check(&token, &m1())), "credential_expired");
        assert_eq!(code(bench.close(&admitted, K::Succeeded)), "credential_expired");
        let back = bench.ledger.attach(&admitted.admission(), &who("ann"), &m1()).unwrap();
        let token = back.credential.unwrap().token;
        bench.ledger.check(&token, &m1()).unwrap();
        bench.rules.deny("eve");
        assert_eq!(code(bench.ledger.release(&admitted.admission(), &who("eve"), "mine now")), "denied");
        let released = bench.ledger.release(&admitted.admission(), &who("boss"), "the disk is gone").unwrap();
        assert_eq!((released.closing, released.closed_by.as_deref()), (Some(K::Released), Some("boss")));
        assert_eq!(bench.owner(S), None);
        assert_eq!(code(bench.ledger.check(&token, &m1())), "closed");
    }

    fn cancel_is_for_the_submitter_and_not_after_the_start(bench) {
        let answer = bench.ledger.submit(&local("r", 1, "d")).unwrap();
        assert_eq!(code(bench.ledger.cancel(&answer.record.key(), &who("bob"))), "denied");
        bench.start(&answer);
        assert_eq!(code(bench.ledger.cancel(&answer.record.key(), &who("ann"))), "already_started");
        let nobody: AttemptKey = "nothing/1".parse().unwrap();
        assert_eq!(code(bench.ledger.cancel(&nobody, &who("ann"))), "not_found");
    }
}
