//! A33 to A36: a credential runs out soon, an admission does not.

use tenure::admission::{AdmId, By, Kind as K, Phase, Request};

use crate::bench::*;

on_both! {
    fn a33_a_credential_is_good_for_five_minutes(bench) {
        let admitted = bench.ledger.submit(&local("r", 1, "d")).unwrap();
        let token = admitted.credential.unwrap().token;
        bench.pass_ms(300_000);
        bench.ledger.check(&token, &m1()).unwrap();
        bench.pass_ms(1_000);
        assert_eq!(code(bench.ledger.check(&token, &m1())), "credential_expired");
        assert_eq!(code(bench.started(&token, &m1())), "credential_expired");
    }

    fn a34_its_end_leaves_the_row_open(bench) {
        bench.place(S, m2(), "/srv/s");
        bench.ledger.submit(&local("r", 1, "d")).unwrap();
        bench.pass_ms(301_000);
        let other = Request { caller: m2(), ..local("r2", 1, "d") };
        assert_eq!(code(bench.ledger.submit(&other)), "busy");
    }

    fn a35_the_same_machine_attaches_again(bench) {
        let admitted = bench.ledger.submit(&local("r", 1, "d")).unwrap();
        bench.pass_ms(301_000);
        let back = bench.ledger.attach(&admitted.admission(), &who("ann"), &m1()).unwrap();
        assert_eq!(back.admission(), admitted.admission());
        let (old, new) = (admitted.credential.unwrap(), back.credential.unwrap());
        assert!(new.attach_number > old.attach_number && new.token != old.token);
        bench.ledger.check(&new.token, &m1()).unwrap();
    }

    fn a36_only_a_recorded_end_frees_the_owner(bench) {
        let running = bench.running(&local("r", 1, "d"));
        bench.pass_ms(30 * 24 * HOUR_MS);
        bench.ledger.pickup(&m1()).unwrap();
        bench.ledger.pickup(&m2()).unwrap();
        assert_eq!(code(bench.ledger.submit(&local("r2", 1, "d"))), "busy");
        let record = bench.ledger.show(&running.admission()).unwrap();
        assert!(record.is_uncertain(bench.ledger.now_ms().unwrap()));
        let which = tenure::admission::History { uncertain: true, ..Default::default() };
        assert_eq!(bench.ledger.history(&which).unwrap(), [record]);
        bench.close(&running, K::Interrupted).unwrap();
        assert_eq!(bench.ledger.history(&which).unwrap(), []);
        assert!(bench.ledger.submit(&local("r2", 1, "d")).unwrap().created);
    }

    fn a_token_that_is_not_ours_or_for_another_is_refused(bench) {
        bench.add("T");
        bench.place("T", m1(), "/srv/t");
        let one = bench.ledger.submit(&local("r", 1, "d")).unwrap();
        let other = bench.ledger.submit(&on("T", local("r2", 1, "d"))).unwrap();
        let mut token = one.credential.clone().unwrap().token;
        let by = By::Destination { token: token.clone(), caller: m1() };
        assert_eq!(code(bench.ledger.close(&other.admission(), &by, &closing(K::FailedBeforeStart))), "credential_expired");
        // The same said to `started`: whichever of the two is meant, neither starts, however that one stands.
        let start = |adm| bench.ledger.mark_started(&adm, &token, &who("ann"), &m1());
        assert_eq!(code(start(other.admission())), "credential_expired");
        bench.close(&other, K::FailedBeforeStart).unwrap();
        assert_eq!(code(start(other.admission())), "credential_expired");
        assert_eq!(code(start(AdmId::fresh())), "not_found");
        assert_eq!(bench.ledger.show(&one.admission()).unwrap().phase, Phase::Admitted);
        token.push(' ');
        assert_eq!(code(bench.ledger.check(&token, &m1())), "credential_expired");
        assert_eq!(code(bench.ledger.check("", &m1())), "credential_expired");
    }

    fn race_27_the_first_closing_stands(bench) {
        let running = bench.running(&local("r", 1, "d"));
        let closed = bench.close(&running, K::Succeeded).unwrap();
        assert_eq!(bench.close(&running, K::Succeeded).unwrap(), closed);
        let refused = bench.close(&running, K::Failed).unwrap_err();
        assert_eq!(refused.code(), "closed");
        assert_eq!(refused.record(), Some(&closed));
    }

    fn race_28_a_stale_closing_does_not_touch_the_new_owner(bench) {
        let old = bench.running(&local("r", 1, "d"));
        bench.ledger.release(&old.admission(), &who("boss"), "gone").unwrap();
        let new = bench.running(&local("r2", 1, "d"));
        let refused = bench.close(&old, K::Succeeded).unwrap_err();
        assert_eq!(refused.code(), "not_owner");
        assert_eq!(refused.record().and_then(|record| record.closing), Some(K::Released), "and how it ended");
        assert_eq!(bench.owner(S), Some(new.admission()));
        // Also one that says what is recorded; nothing is changed by either.
        bench.close(&new, K::Succeeded).unwrap();
        assert_eq!(bench.close(&new, K::Succeeded).unwrap().closing, Some(K::Succeeded));
        let newest = bench.running(&local("r3", 1, "d"));
        assert_eq!(code(bench.close(&new, K::Succeeded)), "not_owner");
        assert_eq!(bench.owner(S), Some(newest.admission()));
        bench.close(&newest, K::Succeeded).unwrap();
        bench.ledger.legacy_take(&key(S), &who("old")).unwrap();
        assert_eq!(code(bench.close(&newest, K::Failed)), "not_owner");
        bench.sound();
    }

    fn who_takes_back_or_releases_what_has_ended_hears_how_it_ended(bench) {
        let (boss, ended) = (who("boss"), bench.ended(&local("r", 1, "d"), K::Succeeded));
        let canceled = bench.ended(&local("c", 1, "d"), K::Canceled);
        bench.running(&local("r2", 1, "d"));
        // Neither of them owned the surface, so nobody owns it in their stead.
        let refused = bench.ledger.cancel(&ended.key(), &ended.subject).unwrap_err();
        assert_eq!((refused.code(), refused.record()), ("closed", Some(&ended)));
        assert_eq!(code(bench.ledger.release(&ended.admission, &boss, "gone")), "closed");
        assert_eq!(bench.ledger.cancel(&canceled.key(), &canceled.subject).unwrap(), canceled);
        bench.sound();
    }

    fn stop_is_a_request_and_the_destination_closes(bench) {
        let running = bench.running(&local("r", 1, "d"));
        bench.rules.deny("eve");
        assert_eq!(code(bench.ledger.stop(&running.admission(), &who("eve"), "")), "denied");
        let stopped = bench.ledger.stop(&running.admission(), &who("ann"), "wrong branch").unwrap();
        assert_eq!(stopped.stop_reason.as_deref(), Some("ann: wrong branch"));
        assert_eq!(bench.ledger.stop(&running.admission(), &who("bob"), "me too").unwrap(), stopped);
        assert_eq!(code(bench.ledger.append(&appending(running.admission(), "more", "m"))), "stopping");
        assert_eq!(bench.owner(S), Some(running.admission()));
        assert_eq!(bench.close(&running, K::Interrupted).unwrap().stop_ms, stopped.stop_ms);
        let next = bench.ledger.submit(&local("r2", 1, "d")).unwrap();
        bench.ledger.stop(&next.admission(), &who("ann"), "").unwrap();
        let token = next.credential.unwrap().token;
        assert_eq!(code(bench.started(&token, &m1())), "stopping");
    }

    fn appended_input_is_numbered_kept_and_not_taken_twice(bench) {
        let running = bench.running(&local("r", 1, "d"));
        let sent = appending(running.admission(), "more", "one");
        let first = bench.ledger.append(&sent).unwrap();
        assert_eq!(bench.ledger.append(&sent).unwrap(), first);
        let second = bench.ledger.append(&appending(running.admission(), "even-more", "two")).unwrap();
        assert_eq!((first.number, second.number), (1, 2));
        assert_eq!(code(bench.ledger.append(&appending(running.admission(), "more", "other"))), "conflict");
        assert_eq!(code(bench.ledger.append(&appending(running.admission(), "r", "d"))), "conflict");
        assert_eq!(bench.ledger.inputs(&running.admission(), None).unwrap(), [first.clone(), second.clone()]);
        assert_eq!(bench.ledger.inputs(&running.admission(), Some(1)).unwrap(), [second]);
        bench.close(&running, K::Succeeded).unwrap();
        assert_eq!(bench.ledger.append(&sent).unwrap(), first);
        assert_eq!(code(bench.ledger.append(&appending(running.admission(), "late", "x"))), "closed");
    }
}
