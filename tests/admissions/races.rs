//! The races by their numbers, each between processes of their own, on both databases.
//!
//! A round has a surface and requests of its own. `scripts/admission-races ROUNDS` runs many; a usual run a few.

use tenure::admission::{AdmId, Kind as K, Phase, Record};

use crate::bench::HOUR_MS;
use crate::party::{Came, Races, Sent, What};

/// Each function is one round and becomes a test on either database.
macro_rules! races {
    ($(fn $name:ident($races:ident, $surface:ident) $body:block)*) => {
        mod rounds {
            use super::*;
            $(pub fn $name($races: &mut Races, $surface: &str) $body)*
        }
        races!(@on sqlite, Sqlite, $($name)*);
        races!(@on postgres, Postgres, $($name)*);
    };
    (@on $module:ident, $kind:ident, $($name:ident)*) => {
        mod $module {
            $(#[test] fn $name() {
                let mut races = crate::party::Races::new(crate::bench::Which::$kind);
                for round in 0..crate::party::Races::rounds() {
                    let surface = races.surface(&format!("s{round}"));
                    super::rounds::$name(&mut races, &surface);
                    races.pass_ms(1);
                }
                races.sound();
            })*
        }
    };
}

fn submit(surface: &str, request: &str) -> What {
    What::Submit(Sent::local(surface, &of(surface, request)))
}

fn queue(surface: &str, request: &str) -> What {
    What::Submit(Sent::queued(surface, &of(surface, request)))
}

fn replacing(surface: &str, request: &str) -> What {
    What::Submit(Sent { replace: true, ..Sent::queued(surface, &of(surface, request)) })
}

/// A request id that only this round has.
fn of(surface: &str, request: &str) -> String {
    format!("{surface}-{request}")
}

fn close(came: &Came, kind: K) -> What {
    What::Close { admission: came.admission.unwrap(), token: came.token.clone().unwrap(), machine: 1, kind }
}

fn codes(came: &[Came]) -> Vec<&str> {
    came.iter().map(|came| came.code.as_str()).collect()
}

/// Exactly one got through; the others got this refusal and heard who did.
fn one_of(came: &[Came], refusal: &str) -> AdmId {
    let won: Vec<&Came> = came.iter().filter(|came| came.ok()).collect();
    assert_eq!(won.len(), 1, "{came:?}");
    for lost in came.iter().filter(|came| !came.ok()) {
        assert_eq!(lost.code, refusal, "{came:?}");
    }
    won[0].admission.unwrap()
}

fn open_rows(rows: &[Record]) -> Vec<AdmId> {
    rows.iter().filter(|row| row.is_open()).map(|row| row.admission).collect()
}

impl Races {
    fn running(&mut self, surface: &str, request: &str) -> Came {
        let came = self.here(What::SubmitAndStart(Sent::local(surface, &of(surface, request))));
        assert_eq!((came.code.as_str(), came.phase), ("ok", Some(Phase::Started)));
        came
    }

    fn admitted(&mut self, surface: &str, request: &str) -> Came {
        let came = self.here(submit(surface, request));
        assert!(came.ok() && came.token.is_some(), "{came:?}");
        came
    }

    /// The destination takes hold of what is open and ends it.
    fn finish(&mut self, surface: &str) {
        for admission in open_rows(&self.rows(surface)) {
            let came = self.here(What::Release { admission });
            assert!(came.ok(), "{came:?}");
        }
    }
}

races! {
    fn race_01_two_entrances_with_the_same_request(races, s) {
        let came = races.together(&[submit(s, "r"), queue(s, "r"), submit(s, "r"), queue(s, "r")]);
        assert_eq!(codes(&came), ["ok"; 4], "{came:?}");
        assert!(came.iter().all(|c| c.admission == came[0].admission));
        assert_eq!(came.iter().filter(|c| c.created).count(), 1);
        assert_eq!(races.rows(s).len(), 1);
    }

    fn race_02_two_requests_for_one_surface(races, s) {
        let came = races.together(&[submit(s, "r1"), submit(s, "r2"), submit(s, "r3"), submit(s, "r4")]);
        let owner = one_of(&came, "busy");
        assert!(came.iter().all(|c| c.admission == Some(owner)), "{came:?}");
        assert_eq!(races.rows(s).len(), 1);
    }

    fn race_03_the_answer_is_lost_and_it_is_sent_again(races, s) {
        races.sent(0, &submit(s, "r"));
        // Anywhere from before the first statement to after the answer.
        std::thread::sleep(std::time::Duration::from_micros(u64::from(s.len() as u32 * 700) + races.now() % 7 * 900));
        races.parties.remove(&0).unwrap().kill();
        let came = races.together(&[submit(s, "r"), submit(s, "r")]);
        assert_eq!(codes(&came), ["ok", "ok"]);
        assert_eq!(came[0].admission, came[1].admission);
        assert_eq!(races.rows(s).len(), 1);
    }

    fn race_04_other_contents_while_the_first_is_undecided(races, s) {
        let other = What::Submit(Sent { contents: "e".to_owned(), ..Sent::local(s, &of(s, "r")) });
        let came = races.together(&[submit(s, "r"), other]);
        let owner = one_of(&came, "conflict");
        assert_eq!(races.rows(s).iter().map(|r| r.admission).collect::<Vec<_>>(), [owner]);
    }

    fn race_05_cancel_and_a_resend(races, s) {
        let first = races.admitted(s, "r");
        let came = races.together(&[What::Cancel { request: of(s, "r") }, submit(s, "r")]);
        assert_eq!(came[0].code, "ok");
        assert!(["ok", "canceled"].contains(&came[1].code.as_str()), "{came:?}");
        assert_eq!(came[1].admission, first.admission);
        assert_eq!(races.here(submit(s, "r")).code, "canceled");
        assert_eq!(open_rows(&races.rows(s)), []);
    }

    fn race_06_success_and_a_resend(races, s) {
        let first = races.running(s, "r");
        let came = races.together(&[close(&first, K::Succeeded), submit(s, "r")]);
        assert_eq!((came[1].code.as_str(), came[1].admission), ("ok", first.admission));
        if came[0].ok() {
            assert_eq!(races.here(submit(s, "r")).phase, Some(Phase::Closed));
        } else {
            // The resend came first and its credential replaced the other.
            assert_eq!(came[0].code, "credential_expired");
            assert!(races.here(close(&came[1], K::Succeeded)).ok());
        }
        let late = races.here(submit(s, "r"));
        assert_eq!((late.closing, late.token), (Some(K::Succeeded), None));
    }

    fn race_07_the_next_attempt_while_the_first_ends(races, s) {
        let first = races.running(s, "r");
        let next = What::Submit(Sent { attempt: 2, ..Sent::local(s, &of(s, "r")) });
        let came = races.together(&[close(&first, K::Interrupted), next.clone(), next.clone()]);
        assert_eq!(came[0].code, "ok");
        for came in &came[1..] {
            assert!(["ok", "previous_open"].contains(&came.code.as_str()), "{came:?}");
        }
        assert!(races.here(next).ok());
        assert_eq!((races.rows(s).len(), open_rows(&races.rows(s)).len()), (2, 1));
    }

    fn race_08_the_next_attempt_after_each_closing(races, s) {
        for kind in [K::Succeeded, K::Failed, K::Interrupted, K::FailedBeforeStart, K::Released, K::Canceled] {
            let name = format!("r-{kind}");
            let first = match kind {
                K::FailedBeforeStart | K::Canceled => races.admitted(s, &name),
                _ => races.running(s, &name),
            };
            let ended = match kind {
                K::Released => What::Release { admission: first.admission.unwrap() },
                K::Canceled => What::Cancel { request: of(s, &name) },
                _ => close(&first, kind),
            };
            assert!(races.here(ended).ok());
            let next = What::Submit(Sent { attempt: 2, ..Sent::local(s, &of(s, &name)) });
            let came = races.together(&[next.clone(), next.clone(), next]);
            if kind.allows_next() {
                assert_eq!(codes(&came), ["ok"; 3], "{kind}");
                assert_eq!(came.iter().filter(|c| c.created).count(), 1, "{kind}");
                races.finish(s);
            } else {
                assert_eq!(codes(&came), ["previous_final"; 3], "{kind}");
            }
        }
    }

    fn race_09_one_attaches_again_while_another_tries(races, s) {
        let first = races.running(s, "r");
        races.pass_ms(301_000);
        let elsewhere = What::Submit(Sent { machine: 2, ..Sent::local(s, &of(s, "r2")) });
        let attach = What::Attach { admission: first.admission.unwrap(), machine: 1 };
        let came = races.together(&[attach, elsewhere]);
        assert_eq!(codes(&came), ["ok", "busy"]);
        assert_eq!(came[0].admission, first.admission);
    }

    fn race_10_the_placement_moves_before_the_start(races, s) {
        let first = races.admitted(s, "r");
        let started = What::Started { token: first.token.clone().unwrap(), machine: 1 };
        let moved = What::Place { surface: s.to_owned(), machine: 1, place: "/srv/new".to_owned() };
        let came = races.together(&[moved, started]);
        let row = races.show(first.admission);
        match came[1].code.as_str() {
            "ok" => assert_eq!(row.phase, Phase::Started),
            "placement_changed" => assert_eq!(row.closing, Some(K::FailedBeforeStart)),
            other => panic!("{other}"),
        }
        assert_eq!(row.destination.generation.get(), 1);
    }

    fn race_11_the_placement_moves_between_admission_and_start(races, s) {
        let moved = What::Place { surface: s.to_owned(), machine: 1, place: "/srv/new".to_owned() };
        let came = races.together(&[moved, What::SubmitAndStart(Sent::local(s, &of(s, "r")))]);
        let row = races.show(came[1].admission);
        match came[1].code.as_str() {
            "ok" => assert_eq!(row.phase, Phase::Started),
            "placement_changed" => assert_eq!((row.closing, row.started_ms), (Some(K::FailedBeforeStart), None)),
            other => panic!("{other}"),
        }
    }

    fn race_12_the_placement_moves_while_it_runs(races, s) {
        let first = races.running(s, "r");
        let admission = first.admission.unwrap();
        let moved = What::Place { surface: s.to_owned(), machine: 1, place: "/srv/new".to_owned() };
        let came = races.together(&[moved, What::Append { admission, request: of(s, "more") }]);
        assert!(["ok", "placement_changed"].contains(&came[1].code.as_str()), "{came:?}");
        assert_eq!(races.here(What::Append { admission, request: of(s, "later") }).code, "placement_changed");
        assert_eq!(races.here(submit(s, "r2")).code, "busy");
        assert!(races.here(close(&first, K::Interrupted)).ok());
        assert!(races.here(submit(s, "r2")).ok());
    }

    fn race_13_a_machine_is_deleted_and_a_late_copy_comes(races, s) {
        let first = races.running(s, "r");
        races.here(What::Pickup { machine: 1 });
        let came = races.together(&[What::Forget { machine: 1 }, submit(s, "r"), queue(s, "r")]);
        assert_eq!(codes(&came), ["ok"; 3]);
        assert!(came[1..].iter().all(|c| c.admission == first.admission && !c.created));
        races.finish(s);
    }

    fn race_14_a_row_without_a_destination(races, s) {
        let bare = format!("bare-{s}");
        assert!(races.here(What::AddSurface { surface: bare.clone() }).ok());
        let placed = What::Place { surface: bare.clone(), machine: 1, place: format!("/srv/{bare}") };
        let came = races.together(&[queue(&bare, "r"), placed, What::Pickup { machine: 1 }]);
        let rows = races.rows(&bare);
        match came[0].code.as_str() {
            "ok" => assert_eq!(rows.len(), 1),
            "no_destination" => assert_eq!((rows.len(), came[2].admission), (0, None)),
            other => panic!("{other}"),
        }
        races.finish(&bare);
        races.here(What::Pickup { machine: 1 });
        races.finish(&bare);
    }

    fn race_15_another_machine_picks_up(races, s) {
        let row = races.here(queue(s, "r"));
        let pickups = [What::Pickup { machine: 2 }, What::Pickup { machine: 1 }, What::Pickup { machine: 1 }];
        let came = races.together(&pickups);
        assert_eq!(came[0], Came { code: "ok".to_owned(), ..Came::default() });
        let taken: Vec<_> = came.iter().filter_map(|c| c.admission).collect();
        assert_eq!(taken, [row.admission.unwrap()], "once, by its own machine");
        races.finish(s);
    }

    fn race_16_a_row_of_thirteen_hours(races, s) {
        let row = races.here(queue(s, "r"));
        races.pass_ms(13 * HOUR_MS);
        let pickups = [What::Pickup { machine: 1 }, What::Pickup { machine: 2 }, What::Pickup { machine: 1 }];
        let came = races.together(&pickups);
        let expired: Vec<_> = came.iter().flat_map(|c| c.expired.clone()).collect();
        assert_eq!(expired, [row.admission.unwrap()], "once");
        assert!(came.iter().all(|c| c.admission.is_none()));
    }

    fn race_17_replace_and_pickup(races, s) {
        let old = races.here(queue(s, "r1"));
        let came = races.together(&[replacing(s, "r2"), What::Pickup { machine: 1 }]);
        assert_eq!(codes(&came), ["ok", "ok"]);
        let (old, new) = (races.show(old.admission), races.show(came[0].admission));
        if old.closing == Some(K::Superseded) {
            assert_eq!((old.successor, old.admitted_ms), (Some(new.admission), None));
        } else {
            assert_eq!((old.phase, new.phase), (Phase::Admitted, Phase::Queued));
            assert_eq!((new.supersedes, came[1].admission), (None, Some(old.admission)));
        }
        races.finish(s);
        races.here(What::Pickup { machine: 1 });
        races.finish(s);
    }

    fn race_18_replace_and_expire_and_cancel(races, s) {
        let old = races.here(queue(s, "r1"));
        races.pass_ms(13 * HOUR_MS);
        let cancel = What::Cancel { request: of(s, "r1") };
        let came = races.together(&[replacing(s, "r2"), What::Pickup { machine: 1 }, cancel]);
        assert!(came[0].ok() && came[1].ok(), "{came:?}");
        let old = races.show(old.admission);
        let new = races.show(came[0].admission);
        assert_eq!(came[2].ok(), old.closing == Some(K::Canceled), "{came:?}");
        assert_eq!(came[1].expired == [old.admission], old.closing == Some(K::Expired));
        assert_eq!(new.supersedes == Some(old.admission), old.closing == Some(K::Superseded));
        races.finish(s);
        races.here(What::Pickup { machine: 1 });
        races.finish(s);
    }

    fn race_19_two_that_replace(races, s) {
        let old = races.here(queue(s, "r1"));
        let came = races.together(&[replacing(s, "r2"), replacing(s, "r3"), replacing(s, "r4")]);
        assert_eq!(codes(&came), ["ok"; 3]);
        let rows = races.rows(s);
        let waiting: Vec<_> = rows.iter().filter(|r| r.phase == Phase::Queued).collect();
        assert_eq!(waiting.len(), 1);
        // One chain from the first to the one that waits.
        let (mut at, mut steps) = (races.show(old.admission), 0);
        while let Some(next) = at.successor {
            (at, steps) = (races.show(Some(next)), steps + 1);
        }
        assert_eq!((at.admission, steps), (waiting[0].admission, 3));
        assert!(races.here(What::Cancel { request: at.request.to_string() }).ok());
    }

    fn race_20_the_legacy_path_and_an_admission(races, s) {
        let take = What::LegacyTake { surface: s.to_owned() };
        let came = match races.now() % 3 {
            0 => { races.sent(0, &take); races.sent(1, &submit(s, "r")); vec![races.heard(0), races.heard(1)] }
            1 => { races.sent(1, &submit(s, "r")); races.sent(0, &take); vec![races.heard(0), races.heard(1)] }
            _ => races.together(&[take, submit(s, "r")]),
        };
        match (came[0].code.as_str(), came[1].code.as_str()) {
            ("ok", "busy_legacy") => assert!(races.here(What::LegacyDrop { surface: s.to_owned() }).ok()),
            ("busy", "ok") => races.finish(s),
            other => panic!("{other:?}"),
        }
    }

    fn race_21_a_right_is_withdrawn_while_it_is_asked_for(races, s) {
        races.sent(0, &submit(s, "r1"));
        races.policy.install("ann");
        races.sent(1, &submit(s, "r2"));
        let (first, second) = (races.heard(0), races.heard(1));
        races.policy.install("");
        assert!(["ok", "denied"].contains(&first.code.as_str()), "{first:?}");
        assert_eq!(second.code, "denied", "it was sent after the right had gone");
        assert_eq!(races.rows(s).len(), usize::from(first.ok()));
    }

    fn race_22_a_first_send_that_is_denied(races, s) {
        races.policy.install("ann");
        let came = races.together(&[submit(s, "r"), submit(s, "r"), queue(s, "r")]);
        races.policy.install("");
        assert_eq!(codes(&came), ["denied"; 3]);
        assert_eq!(races.rows(s), []);
    }

    fn race_23_a_resend_that_is_denied(races, s) {
        races.running(s, "r");
        let before = races.rows(s);
        races.policy.install("ann");
        let came = races.together(&[submit(s, "r"), submit(s, "r"), queue(s, "r")]);
        races.policy.install("");
        assert_eq!(codes(&came), ["denied"; 3]);
        assert_eq!(races.rows(s), before);
    }

    fn race_24_a_closing_and_a_resend(races, s) {
        let first = races.running(s, "r");
        let came = races.together(&[close(&first, K::Failed), queue(s, "r"), queue(s, "r")]);
        assert_eq!(codes(&came), ["ok"; 3]);
        assert!(came.iter().all(|c| c.admission == first.admission));
        assert_eq!((races.rows(s).len(), open_rows(&races.rows(s)).len()), (1, 0));
    }

    fn race_25_a_closing_and_a_late_copy_also_years_later(races, s) {
        let first = races.running(s, "r");
        let came = races.together(&[close(&first, K::Succeeded), queue(s, "r"), submit(s, "r2")]);
        assert!(came[0].ok() && came[1].ok(), "{came:?}");
        assert!(["ok", "busy"].contains(&came[2].code.as_str()), "{came:?}");
        races.finish(s);
        races.pass_ms(10 * 365 * 24 * HOUR_MS);
        let came = races.together(&[submit(s, "r"), queue(s, "r")]);
        for late in came {
            assert_eq!((late.admission, late.closing, late.token), (first.admission, Some(K::Succeeded), None));
        }
        assert_eq!(open_rows(&races.rows(s)), []);
    }

    fn race_27_two_closings_of_different_kinds(races, s) {
        let first = races.running(s, "r");
        let kinds = [K::Succeeded, K::Failed, K::Interrupted];
        let came = races.together(&kinds.map(|kind| close(&first, kind)));
        one_of(&came, "closed");
        let recorded = races.show(first.admission).closing;
        assert!(came.iter().all(|c| c.closing == recorded), "{came:?}");
    }

    fn race_28_a_stale_closing_and_a_new_owner(races, s) {
        let first = races.running(s, "r");
        let then = Sent::local(s, &of(s, "r2"));
        let moved_on = What::ReleaseAndSubmit { admission: first.admission.unwrap(), then };
        let came = races.together(&[moved_on, close(&first, K::Succeeded)]);
        match (came[0].code.as_str(), came[1].code.as_str()) {
            // It closed first, so there was nothing to release.
            ("closed", "ok") => assert_eq!(races.show(first.admission).closing, Some(K::Succeeded)),
            ("ok", "closed" | "not_owner") => {
                assert_eq!(races.here(close(&first, K::Succeeded)).code, "not_owner");
                assert_eq!(open_rows(&races.rows(s)), [came[0].admission.unwrap()]);
            }
            other => panic!("{other:?}"),
        }
        races.finish(s);
    }
}
