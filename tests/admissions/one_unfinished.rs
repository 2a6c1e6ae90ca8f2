//! A1 to A9: at most one unfinished admission for a surface.

use std::sync::Barrier;

use tenure::admission::{Entrance, History, Kind as K, Phase, Refusal, Request};

use crate::bench::*;

on_both! {
    fn a01_one_of_sixteen_is_admitted_and_the_others_hear_of_it(bench) {
        let ledgers: Vec<_> = (0..16).map(|_| bench.again()).collect();
        let barrier = Barrier::new(16);
        let answers: Vec<_> = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (i, ledger) in ledgers.iter().enumerate() {
                let barrier = &barrier;
                threads.push(scope.spawn(move || {
                    barrier.wait();
                    ledger.submit(&local(&format!("r{i}"), 1, "d"))
                }));
            }
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let owner = bench.owner(S).expect("somebody was admitted");
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
        for refused in answers.into_iter().filter_map(Result::err) {
            let Refusal::Busy { owner: named, .. } = refused else { panic!("{refused}") };
            assert_eq!(named.admission, owner);
        }
        assert_eq!(bench.rows().len(), 1);
        bench.sound();
    }

    fn a02_the_second_is_busy_and_leaves_no_row(bench) {
        let first = bench.ledger.submit(&local("r1", 1, "d")).unwrap();
        let before = bench.rows();
        assert_eq!(code(bench.ledger.submit(&local("r2", 1, "d"))), "busy");
        assert_eq!(bench.rows(), before);
        assert_eq!(bench.owner(S), Some(first.admission()));
    }

    fn a03_a_finished_one_frees_the_surface_and_stays(bench) {
        let first = bench.ended(&local("r1", 1, "d"), K::Succeeded);
        let second = bench.ledger.submit(&local("r2", 1, "d")).unwrap();
        assert!(second.created);
        let which = History { surface: Some(key(S)), ..History::default() };
        let both = bench.ledger.history(&which).unwrap();
        assert_eq!(both.iter().map(|r| r.admission).collect::<Vec<_>>(), [first.admission, second.admission()]);
        assert_eq!(both[0].phase, Phase::Closed);
    }

    fn a04_no_entrance_admits_without_a_place(bench) {
        bench.add("bare");
        assert_eq!(code(bench.ledger.submit(&on("bare", local("r1", 1, "d")))), "no_destination");
        assert_eq!(code(bench.ledger.submit(&on("bare", queued("r2", 1, "d")))), "no_destination");
        assert_eq!(code(bench.ledger.submit(&on("unknown", local("r3", 1, "d")))), "no_destination");
        let append = Request { entrance: Entrance::Append, ..local("r4", 1, "d") };
        assert_eq!(code(bench.ledger.submit(&append)), "usage");
        assert_eq!(bench.rows(), []);
    }

    fn a05_three_entrances_at_once_give_one_execution(bench) {
        let waiting = bench.ledger.submit(&queued("r", 1, "d")).unwrap();
        let here = bench.ledger.submit(&local("r", 1, "d")).unwrap();
        assert_eq!(here.admission(), waiting.admission());
        bench.start(&here);
        assert_eq!(code(bench.ledger.submit(&local("r2", 1, "d"))), "busy");
        let accepted = bench.ledger.append(&appending(here.admission(), "r2", "more")).unwrap();
        assert_eq!(accepted.number, 1);
        // What was given to the open one cannot be started as well.
        bench.close(&here, K::Succeeded).unwrap();
        assert_eq!(code(bench.ledger.submit(&local("r2", 1, "more"))), "conflict");
        assert_eq!(bench.rows().len(), 1);
        bench.sound();
    }

    fn a06_the_unit_is_the_surface_not_the_person_or_the_machine(bench) {
        bench.add("T");
        bench.place("T", m1(), "/srv/t");
        bench.ledger.submit(&local("r1", 1, "d")).unwrap();
        assert!(bench.ledger.submit(&on("T", local("r2", 1, "d"))).unwrap().created);
        let other = Request { subject: who("bob"), ..local("r3", 1, "d") };
        assert_eq!(code(bench.ledger.submit(&other)), "busy");
    }

    fn a07_works_that_share_a_place_have_keys_of_their_own(bench) {
        for part in ["S#a", "S#b"] {
            bench.add(part);
            bench.place(part, m1(), "/srv/s");
            assert!(bench.ledger.submit(&on(part, local(&format!("r-{}", &part[2..]), 1, "d"))).unwrap().created);
        }
    }

    fn a08_keys_that_look_like_one_place_are_named(bench) {
        bench.add("other");
        let placed = bench.ledger.place(&placing("other", m1(), "/srv/s")).unwrap();
        assert_eq!(placed.warnings.iter().map(|w| w.surface.clone()).collect::<Vec<_>>(), [key(S)]);
        let added = bench.ledger.surface_add(&key("other"), &[]).unwrap();
        assert!(!added.created);
        assert_eq!(added.warnings[0].surface, key(S));
        let declared = bench.ledger.surface_add(&key("other"), &[key(S)]).unwrap();
        assert_eq!(declared.warnings, []);
        assert_eq!(declared.surface.shares, [key(S)]);
        assert_eq!(bench.ledger.surface(&key(S)).unwrap().shares, [key("other")]);
        let wider = bench.ledger.surface_add(&key("s/inner"), &[]).unwrap();
        assert_eq!(wider.warnings[0].surface, key(S));
        let parts = bench.ledger.surface_add(&key("S#part"), &[]).unwrap();
        assert_eq!(parts.warnings.iter().filter(|w| w.surface == key(S)).count(), 0);
    }

    fn a09_a_machines_label_is_not_on_the_admission(bench) {
        let admitted = bench.ledger.submit(&local("r1", 1, "d")).unwrap();
        bench.ledger.machine_label(&m1(), Some(&"build-1".parse().unwrap())).unwrap();
        bench.ledger.machine_label(&m1(), Some(&"build-2".parse().unwrap())).unwrap();
        assert_eq!(bench.ledger.show(&admitted.admission()).unwrap(), admitted.record);
        assert_eq!(code(bench.ledger.machine_label(&m2(), Some(&"build-2".parse().unwrap()))), "usage");
    }
}
