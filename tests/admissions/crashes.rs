//! A process is killed before and after every statement of every verb, `begin` and `commit` among them, on both databases;
//! then the same is asked again.
//!
//! What must be true afterwards: the ledger holds together, and asking again gives the same admission, or (where the
//! process died before its commit) a clean first one. A26: machine, place, generation and digest are there together or not
//! at all.

use tenure::admission::{Kind as K, Phase};

use crate::bench::*;
use crate::party::{Came, Order, Party, Races, Sent, What};

/// Kills a process at each point of what `prepare` says, on a surface of its own each time, and hands each outcome to
/// `check`: what was prepared, whether the process died, and what came of asking again. Answers with how often each code
/// came back.
fn at_every_statement(
    kind: Which,
    prepare: impl Fn(&Races, &str) -> What,
    check: impl Fn(&Races, &str, &What, &Came),
) -> u64 {
    let races = Races::new(kind);
    for point in 0.. {
        let surface = races.surface(&format!("s{point}"));
        let what = prepare(&races, &surface);
        let mut party = Party::new(&races.home.address(), &races.policy.0, Some(point));
        party.tell(&Order { now_ms: races.now(), what: what.clone() });
        let came = party.hear();
        races.sound();
        let again = races.here(what.clone());
        check(&races, &surface, &what, &again);
        races.sound();
        if came.is_some() {
            // The process lived: that was the last point.
            return point;
        }
        assert!(point < 500, "it never gets through");
    }
    unreachable!("the loop has no end")
}

/// Each of these is done to an admission that `prepare` made.
macro_rules! crashes {
    ($($name:ident: $least:literal, $prepare:expr, $check:expr;)*) => {
        mod sqlite {
            use super::*;
            $(#[test] fn $name() {
                let points = at_every_statement(Which::Sqlite, $prepare, $check);
                assert!(points >= $least, "only {points} points");
            })*
        }
        mod postgres {
            use super::*;
            $(#[test] fn $name() {
                let points = at_every_statement(Which::Postgres, $prepare, $check);
                assert!(points >= $least, "only {points} points");
            })*
        }
    };
}

fn request(surface: &str) -> String {
    format!("{surface}-r")
}

fn admitted(races: &Races, surface: &str) -> Came {
    let came = races.here(What::Submit(Sent::local(surface, &request(surface))));
    assert!(came.ok(), "{came:?}");
    came
}

fn running(races: &Races, surface: &str) -> Came {
    let came = races.here(What::SubmitAndStart(Sent::local(surface, &request(surface))));
    assert!(came.ok(), "{came:?}");
    came
}

fn waiting(races: &Races, surface: &str) -> Came {
    let came = races.here(What::Submit(Sent::queued(surface, &request(surface))));
    assert!(came.ok(), "{came:?}");
    came
}

/// One row, whole, in this phase.
fn one_row(races: &Races, surface: &str, phase: Phase) {
    let rows = races.rows(surface);
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((rows[0].phase, rows[0].digest), (phase, digest("d")));
    assert_eq!(rows[0].destination.place.as_str(), format!("/srv/{surface}"));
}

fn ok(races: &Races, surface: &str, phase: Phase, again: &Came) {
    assert!(again.ok(), "{again:?}");
    one_row(races, surface, phase);
}

crashes! {
    submit: 20,
        |_, s| What::Submit(Sent::local(s, &request(s))),
        |races, s, _, again| ok(races, s, Phase::Admitted, again);
    submit_to_the_queue: 20,
        |_, s| What::Submit(Sent::queued(s, &request(s))),
        |races, s, _, again| {
            ok(races, s, Phase::Queued, again);
            let inputs = races.ledger.inputs(&again.admission.unwrap(), None).unwrap();
            assert_eq!(inputs.len(), 1, "the row and its input come together");
        };
    replace: 20,
        |races, s| {
            waiting(races, s);
            What::Submit(Sent { replace: true, ..Sent::queued(s, &format!("{s}-new")) })
        },
        |races, s, _, again| {
            assert!(again.ok(), "{again:?}");
            let rows = races.rows(s);
            assert_eq!(rows.iter().map(|r| r.phase).collect::<Vec<_>>(), [Phase::Closed, Phase::Queued]);
        };
    resend: 20,
        |races, s| {
            admitted(races, s);
            What::Submit(Sent::local(s, &request(s)))
        },
        |races, s, _, again| {
            assert!(!again.created && again.token.is_some());
            ok(races, s, Phase::Admitted, again);
        };
    next_attempt: 20,
        |races, s| {
            let admission = running(races, s).admission.unwrap();
            assert!(races.here(What::Release { admission }).ok());
            What::Submit(Sent { attempt: 2, ..Sent::local(s, &request(s)) })
        },
        |races, s, _, again| {
            assert!(again.ok(), "{again:?}");
            assert_eq!(races.rows(s).len(), 2);
        };
    start: 20,
        |races, s| {
            let token = admitted(races, s).token.unwrap();
            What::Started { token, machine: 1 }
        },
        |races, s, _, again| ok(races, s, Phase::Started, again);
    start_at_a_place_that_has_changed: 8,
        |races, s| {
            let token = admitted(races, s).token.unwrap();
            let (surface, place) = (s.to_owned(), "/srv/new".to_owned());
            assert!(races.here(What::Place { surface, machine: 1, place }).ok());
            What::Started { token, machine: 1 }
        },
        |races, s, _, again| {
            assert!(["placement_changed", "closed"].contains(&again.code.as_str()), "{again:?}");
            assert_eq!(races.rows(s)[0].closing, Some(K::FailedBeforeStart));
        };
    attach: 20,
        |races, s| What::Attach { admission: admitted(races, s).admission.unwrap(), machine: 1 },
        |races, s, _, again| {
            assert!(again.token.is_some());
            ok(races, s, Phase::Admitted, again);
        };
    append: 20,
        |races, s| What::Append { admission: running(races, s).admission.unwrap(), request: format!("{s}-more") },
        |races, s, what, again| {
            let What::Append { admission, .. } = what else { panic!("{what:?}") };
            assert_eq!(races.ledger.inputs(admission, None).unwrap().len(), 1);
            ok(races, s, Phase::Started, &Came { phase: Some(Phase::Started), ..again.clone() });
        };
    close: 10,
        |races, s| {
            let came = running(races, s);
            let (admission, token) = (came.admission.unwrap(), came.token.unwrap());
            What::Close { admission, token, machine: 1, kind: K::Succeeded }
        },
        |races, s, _, again| ok(races, s, Phase::Closed, again);
    cancel: 10,
        |races, s| {
            admitted(races, s);
            What::Cancel { request: request(s) }
        },
        |races, s, _, again| ok(races, s, Phase::Closed, again);
    stop: 10,
        |races, s| What::Stop { admission: running(races, s).admission.unwrap() },
        |races, s, _, again| {
            ok(races, s, Phase::Started, again);
            assert!(races.rows(s)[0].stop_ms.is_some());
        };
    revoke: 10,
        |races, s| What::Revoke { admission: running(races, s).admission.unwrap() },
        |races, s, _, again| {
            ok(races, s, Phase::Started, again);
            assert_eq!(races.rows(s)[0].deadline_ms, None);
        };
    release: 20,
        |races, s| What::Release { admission: running(races, s).admission.unwrap() },
        |races, s, _, again| ok(races, s, Phase::Closed, again);
    pickup: 20,
        |races, s| {
            waiting(races, s);
            What::Pickup { machine: 1 }
        },
        |races, s, _, again| {
            assert!(again.ok());
            one_row(races, s, Phase::Admitted);
            // Nothing may wait for the next point.
            assert!(races.here(What::Cancel { request: request(s) }).ok());
        };
    pickup_of_what_is_old: 14,
        |races, s| {
            waiting(races, s);
            races.pass_ms(13 * HOUR_MS);
            What::Pickup { machine: 1 }
        },
        |races, s, _, again| {
            assert!(again.ok() && again.admission.is_none());
            one_row(races, s, Phase::Closed);
            assert_eq!(races.rows(s)[0].closing, Some(K::Expired));
        };
    add_a_surface: 8,
        |_, s| What::AddSurface { surface: format!("{s}/inner") },
        |races, s, _, again| {
            assert!(again.ok());
            races.ledger.surface(&key(&format!("{s}/inner"))).unwrap();
        };
    place: 10,
        |races, s| {
            running(races, s);
            What::Place { surface: s.to_owned(), machine: 1, place: "/srv/new".to_owned() }
        },
        |races, s, _, again| {
            assert!(again.ok());
            let view = races.ledger.surface(&key(s)).unwrap();
            let newest = view.placements.iter().map(|p| p.destination.generation.get()).max();
            assert_eq!(newest, Some(3), "said again with the same words it is the same generation");
        };
    place_that_is_gone: 10,
        |races, s| {
            running(races, s);
            What::PlaceGone { surface: s.to_owned(), machine: 1 }
        },
        |races, s, _, again| {
            assert!(again.ok());
            ok(races, s, Phase::Started, again);
        };
    forget_a_machine: 4,
        |races, s| {
            running(races, s);
            races.here(What::Pickup { machine: 1 });
            What::Forget { machine: 1 }
        },
        |races, s, _, again| ok(races, s, Phase::Started, again);
    legacy_take: 8,
        |_, s| What::LegacyTake { surface: s.to_owned() },
        |races, s, _, again| {
            assert!(again.ok());
            assert_eq!(races.here(What::Submit(Sent::local(s, &request(s)))).code, "busy_legacy");
        };
    legacy_drop: 8,
        |races, s| {
            assert!(races.here(What::LegacyTake { surface: s.to_owned() }).ok());
            What::LegacyDrop { surface: s.to_owned() }
        },
        |races, s, _, again| {
            // Dropped before the death, it is not there to be dropped again.
            assert!(["ok", "not_owner"].contains(&again.code.as_str()), "{again:?}");
            assert!(races.here(What::Submit(Sent::local(s, &request(s)))).ok());
        };
}

/// The first verb of all makes the ledger; whenever it dies, there is a whole one or none.
#[test]
fn the_making_of_a_ledger() {
    let policy = tempfile::tempdir().unwrap();
    for point in 0.. {
        let dir = tempfile::tempdir().unwrap();
        let address = dir.path().display().to_string();
        let mut party = Party::new(&address, &policy.path().join("none"), Some(point));
        party.tell(&Order { now_ms: 1, what: What::AddSurface { surface: S.to_owned() } });
        let came = party.hear();
        let file = dir.path().join(tenure::admission::LEDGER_FILE);
        assert!(file.exists() || point < 4, "it is there once it was put in place");
        let ledger = open(&address, crate::party::options_of(policy.path().join("none"), &Default::default()));
        assert_eq!(ledger.fsck().unwrap(), []);
        ledger.surface_add(&key(S), &[]).unwrap();
        assert_eq!(ledger.surfaces().unwrap().len(), 1);
        if came.is_some() {
            assert!(point >= 10, "only {point} points");
            return;
        }
    }
}
