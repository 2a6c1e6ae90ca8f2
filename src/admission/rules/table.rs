//! The decision table: gone through in whole, and printed into `docs/admissions.md`.

use std::path::Path;

use super::trial::*;
use super::*;

/// The records of a case after these writes.
fn after(case: &Case, writes: &[Write]) -> Everything {
    let ground = ground_of(case);
    let mut records: Vec<Record> = record_of(case).into_iter().chain(ground.waiting).chain(ground.owner).collect();
    records.sort_by_key(|r| r.admission);
    records.dedup_by_key(|r| r.admission);
    // The row that a superseded one names.
    if let Some(old) = records.iter().find(|r| r.successor.is_some()).cloned() {
        let mut next = old.clone();
        next.admission = old.successor.unwrap();
        next.request = "successor".parse().unwrap();
        (next.closing, next.successor, next.supersedes) = (Some(Kind::Canceled), None, Some(old.admission));
        records.push(next);
    }
    let mut all = Everything {
        records,
        surfaces: ground.surface.into_iter().collect(),
        placements: ground.placements,
        inputs: Vec::new(),
    };
    for write in writes {
        match write {
            Write::Insert(record) => all.records.push((**record).clone()),
            Write::Update(record) => {
                let old = all.records.iter_mut().find(|r| r.admission == record.admission);
                *old.expect("what is updated is there") = (**record).clone();
            }
            Write::Place(placement) => {
                all.surfaces[0].generation = all.surfaces[0].generation.max(placement.destination.generation.get());
                all.placements = vec![(**placement).clone()];
            }
            Write::Legacy(_, owner) => all.surfaces[0].legacy.clone_from(owner),
            Write::Note(_) | Write::Input(_) | Write::Wake(_) => {}
        }
    }
    all
}

fn changes_rows(came: &Came) -> bool {
    came.writes.iter().any(|write| !matches!(write, Write::Note(_)))
}

/// All that must hold for any verb in any case.
fn holds(case: &Case, verb: Verb, came: &Came) {
    let at = || format!("{case:?} {verb:?}: {came:?}");
    assert_eq!(fsck(&after(case, &[])), [], "the case itself is not sound: {}", at());
    assert_eq!(fsck(&after(case, &came.writes)), [], "{}", at());
    if let Some(refusal) = &came.refused {
        // A start at a place that has changed is the one refusal that ends something.
        let ends = verb == Verb::Start && refusal.code() == "placement_changed" && case.state == State::Admitted;
        assert!(!ends || case.token == Token::Good, "{}", at());
        assert_eq!(changes_rows(came), ends, "{}", at());
    }
    if let Some(grant) = &came.grant {
        assert!(case.allowed && case.here, "{}", at());
        assert_eq!((grant.machine, grant.deadline_ms > NOW_MS), (here(), true), "{}", at());
        let stands = matches!(case.placement, Where::Same) || !matches!(case.state, State::Queued | State::Admitted);
        assert!(stands || matches!(verb, Verb::NextAttempt), "{}", at());
    }
    for write in &came.writes {
        if let Write::Update(now) = write {
            let ground = ground_of(case);
            let known = record_of(case).into_iter().chain(ground.waiting);
            let before = known.into_iter().find(|r| r.admission == now.admission).expect("an update of what is there");
            assert_ne!(before.phase, Phase::Closed, "a closed row is history: {}", at());
            let fixed = |r: &Record| (r.key(), r.digest, r.surface.clone(), r.destination.clone(), r.subject.clone());
            assert_eq!(fixed(&before), fixed(now), "{}", at());
        }
        if let Write::Insert(now) = write {
            let verbs = [Verb::SubmitLocal, Verb::SubmitQueue, Verb::SubmitReplacing];
            let first = case.state == State::Nothing && (verbs.contains(&verb) || verb == Verb::SubmitOtherContents);
            let next = matches!(case.state, State::Closed(kind) if kind.allows_next())
                && matches!(verb, Verb::NextAttempt | Verb::NextAttemptQueue);
            assert!(first || next, "{}", at());
            assert!(case.allowed, "{}", at());
            assert!(!now.is_open() || case.other == Other::None, "{}", at());
        }
    }
}

/// The facts that some verbs must not look at.
fn does_not_matter(case: &Case, verb: Verb, came: &Came) {
    let same = |changed: Case| {
        let other = run(&changed, verb);
        assert_eq!(other.map(|o| o.word), Some(came.word.clone()), "{case:?} {verb:?}");
    };
    if !matches!(verb, Verb::Pickup | Verb::PickupLook | Verb::ExpireAdmitted) {
        same(Case { old: !case.old, ..*case });
    }
    if matches!(verb, Verb::Close(_)) && case.token != Token::Cut {
        // What has ended may be recorded late, and from a place that has changed.
        let token = if case.token == Token::Good { Token::Lapsed } else { Token::Good };
        same(Case { token, ..*case });
        same(Case { placement: Where::Moved, allowed: !case.allowed, ..*case });
    }
    if matches!(verb, Verb::Cancel | Verb::Stop | Verb::Revoke | Verb::Place) {
        same(Case { allowed: !case.allowed, here: !case.here, ..*case });
    }
}

#[test]
fn every_verb_in_every_state_with_every_fact_keeps_the_rules() {
    let mut decisions = 0;
    for case in every_case() {
        for verb in VERBS {
            let Some(came) = run(&case, *verb) else { continue };
            decisions += 1;
            holds(&case, *verb, &came);
            does_not_matter(&case, *verb, &came);
        }
    }
    assert!(decisions > 50_000, "only {decisions} decisions");
}

/// Conflict, closed or canceled, previous attempt, destination, denied, busy: what comes first is said, whatever else is
/// wrong as well.
#[test]
fn refusals_come_in_their_order() {
    let all_wrong = |state| Case { allowed: false, other: Other::Admission, ..Case::usual(state) };
    let word = |case: &Case, verb| run(case, verb).unwrap().word;
    let moved = |case: Case| Case { placement: Where::Moved, ..case };
    let queued = moved(all_wrong(State::Queued));
    assert_eq!(word(&queued, Verb::SubmitOtherContents), "`conflict`");
    assert_eq!(word(&moved(all_wrong(State::Closed(Kind::Canceled))), Verb::SubmitLocal), "`canceled`");
    assert_eq!(word(&Case { placement: Where::Never, ..queued }, Verb::NextAttempt), "`previous_open`");
    assert_eq!(word(&queued, Verb::SubmitLocal), "`placement_changed`");
    assert_eq!(
        word(&Case { placement: Where::Never, ..all_wrong(State::Nothing) }, Verb::SubmitLocal),
        "`no_destination`"
    );
    assert_eq!(word(&Case { here: false, ..all_wrong(State::Nothing) }, Verb::SubmitLocal), "`not_destination`");
    assert_eq!(word(&all_wrong(State::Nothing), Verb::SubmitLocal), "`denied`");
    assert_eq!(word(&Case { allowed: true, ..all_wrong(State::Nothing) }, Verb::SubmitLocal), "`busy`");
}

fn label(state: State) -> String {
    match state {
        State::Nothing => "no row".to_owned(),
        State::Closed(kind) => format!("closed: {kind}"),
        open => format!("{open:?}").to_lowercase(),
    }
}

fn verb_name(verb: Verb) -> String {
    let name = match verb {
        Verb::SubmitLocal => "start / admit",
        Verb::SubmitQueue => "submit",
        Verb::SubmitReplacing => "submit, replacing",
        Verb::SubmitOtherContents => "the same id, other contents",
        Verb::NextAttempt => "the next attempt, start",
        Verb::NextAttemptQueue => "the next attempt, submit",
        Verb::Pickup => "pickup",
        Verb::PickupLook => "pickup, another taken",
        Verb::ExpireAdmitted => "pickup, while open",
        Verb::Attach => "attach",
        Verb::Check => "check",
        Verb::Start => "started",
        Verb::Append => "append",
        Verb::Stop => "stop",
        Verb::StopByAnother => "stop, by another",
        Verb::Revoke => "revoke",
        Verb::Cancel => "cancel",
        Verb::CancelByAnother => "cancel, by another",
        Verb::Release => "release",
        Verb::Close(kind) => return format!("close {kind}"),
        Verb::LegacyTake => "legacy take",
        Verb::Place => "place, elsewhere",
    };
    name.to_owned()
}

fn cell(case: &Case, verb: Verb) -> String {
    run(case, verb).map_or_else(|| "`not_found`".to_owned(), |came| came.word)
}

fn columns(title: &str, states: &[State]) -> String {
    let head: Vec<String> = states.iter().map(|state| label(*state)).collect();
    let mut text = format!("| {title} | {} |\n|---|{}\n", head.join(" | "), "---|".repeat(states.len()));
    for verb in VERBS {
        let cells: Vec<String> = states.iter().map(|state| cell(&Case::usual(*state), *verb)).collect();
        text.push_str(&format!("| {} | {} |\n", verb_name(*verb), cells.join(" | ")));
    }
    text
}

/// Changes one fact.
type Twist = fn(&mut Case);

/// One line for each verb and state whose answer another fact changes.
fn differences() -> String {
    let facts: [(&str, Twist); 11] = [
        ("another machine asks", |c| c.here = false),
        ("the placement has changed", |c| c.placement = Where::Moved),
        ("the placement is marked gone", |c| c.placement = Where::Gone),
        ("it was never placed", |c| c.placement = Where::Never),
        ("the policy says no", |c| c.allowed = false),
        ("the credential has run out", |c| c.token = Token::Lapsed),
        ("the credential was cut", |c| c.token = Token::Cut),
        ("it was asked to stop", |c| c.stop = true),
        ("another admission owns the surface", |c| c.other = Other::Admission),
        ("the legacy path owns the surface", |c| c.other = Other::Legacy),
        ("another row waits for the destination", |c| c.waiting = true),
    ];
    let mut text = "| when | verb | no row | queued | admitted | started |\n|---|---|---|---|---|---|\n".to_owned();
    let states = [State::Nothing, State::Queued, State::Admitted, State::Started];
    let old: (&str, fn(&mut Case)) = ("it is more than half a day old", |c| (c.old, c.token) = (true, Token::Lapsed));
    for (when, change) in facts.into_iter().chain([old]) {
        for verb in VERBS {
            let cells = states.map(|state| {
                let (usual, mut case) = (Case::usual(state), Case::usual(state));
                change(&mut case);
                let changed = cell(&case, *verb);
                if !case.can_be() || changed == cell(&usual, *verb) { String::new() } else { changed }
            });
            if cells.iter().any(|cell| !cell.is_empty()) {
                text.push_str(&format!("| {when} | {} | {} |\n", verb_name(*verb), cells.join(" | ")));
            }
        }
    }
    text
}

#[test]
fn the_table_in_the_docs_is_that_of_this_build() {
    let states = states();
    let (open, closed) = states.split_at(4);
    let wanted = format!(
        "What each verb answers, when the destination asks, the placement is the one that was written down, the policy \
         allows it, the credential is good and nobody else is there:\n\n{}\n{}\nWhat another fact changes (an empty cell: \
         nothing):\n\n{}",
        columns("open", open),
        columns("closed", closed),
        differences()
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/admissions.md");
    let doc = std::fs::read_to_string(&path).expect("docs/admissions.md is part of the repository");
    let (begin, end) = ("<!-- the tables: written by the test -->\n\n", "\n<!-- end of the tables -->\n");
    let from = doc.find(begin).expect("the mark before the tables") + begin.len();
    let to = doc.find(end).expect("the mark behind the tables");
    if std::env::var_os("TENURE_UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{}{wanted}{}", &doc[..from], &doc[to..]))
            .expect("docs/admissions.md can be written");
        return;
    }
    assert!(
        doc[from..to] == wanted,
        "docs/admissions.md is out of date; TENURE_UPDATE_DOCS=1 cargo test --lib writes it"
    );
}
