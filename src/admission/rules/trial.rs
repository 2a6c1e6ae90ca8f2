//! Every verb of the rules against every state of a ledger that they can tell apart, for the tests beside this.

use super::*;
use crate::admission::facts::Entrance;
use crate::admission::names::{AdmId, Digest};
use crate::admission::record::Destination;
use crate::admission::request::{Append, Closing, IfWaiting, Placing, Request};

/// What the ledger has for the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Nothing,
    Queued,
    Admitted,
    Started,
    Closed(Kind),
}

pub(super) fn states() -> Vec<State> {
    let open = [State::Nothing, State::Queued, State::Admitted, State::Started];
    open.into_iter().chain(Kind::ALL.iter().copied().map(State::Closed)).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Where {
    Same,
    Moved,
    Gone,
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Good,
    Lapsed,
    Cut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Other {
    None,
    Admission,
    Legacy,
}

/// All facts that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub state: State,
    /// The caller is the destination.
    pub here: bool,
    pub placement: Where,
    pub allowed: bool,
    pub token: Token,
    /// It was asked to stop.
    pub stop: bool,
    /// Who else owns the surface.
    pub other: Other,
    /// Another row waits for the same destination.
    pub waiting: bool,
    /// More than half a day old.
    pub old: bool,
}

impl Case {
    pub(super) const fn usual(state: State) -> Case {
        let (placement, token, other) = (Where::Same, Token::Good, Other::None);
        Case { state, here: true, placement, allowed: true, token, stop: false, other, waiting: false, old: false }
    }

    /// An open admission beside another owner, and a stop of what is not open, are not states of a sound ledger.
    pub(super) fn can_be(&self) -> bool {
        let open = matches!(self.state, State::Admitted | State::Started);
        (self.other == Other::None || !open) && (!self.stop || open) && (!self.waiting || self.state != State::Queued)
    }
}

pub(super) fn every_case() -> Vec<Case> {
    let mut all: Vec<Case> = states().into_iter().map(Case::usual).collect();
    let mut vary = |change: &[fn(&mut Case)]| {
        let grown = all.iter().flat_map(|case| {
            change.iter().map(|change| {
                let mut case = *case;
                change(&mut case);
                case
            })
        });
        all = grown.collect();
    };
    vary(&[|_| {}, |c| c.here = false]);
    vary(&[|_| {}, |c| c.placement = Where::Moved, |c| c.placement = Where::Gone, |c| c.placement = Where::Never]);
    vary(&[|_| {}, |c| c.allowed = false]);
    vary(&[|_| {}, |c| c.token = Token::Lapsed, |c| c.token = Token::Cut]);
    vary(&[|_| {}, |c| c.stop = true]);
    vary(&[|_| {}, |c| c.other = Other::Admission, |c| c.other = Other::Legacy]);
    vary(&[|_| {}, |c| c.waiting = true]);
    vary(&[|_| {}, |c| c.old = true]);
    all.retain(Case::can_be);
    all
}

/// What is asked of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    SubmitLocal,
    SubmitQueue,
    SubmitReplacing,
    SubmitOtherContents,
    NextAttempt,
    NextAttemptQueue,
    Pickup,
    PickupLook,
    ExpireAdmitted,
    Attach,
    Check,
    Start,
    Append,
    Stop,
    StopByAnother,
    Revoke,
    Cancel,
    CancelByAnother,
    Release,
    Close(Kind),
    LegacyTake,
    Place,
}

pub(super) const VERBS: &[Verb] = &[
    Verb::SubmitLocal,
    Verb::SubmitQueue,
    Verb::SubmitReplacing,
    Verb::SubmitOtherContents,
    Verb::NextAttempt,
    Verb::NextAttemptQueue,
    Verb::Pickup,
    Verb::PickupLook,
    Verb::ExpireAdmitted,
    Verb::Attach,
    Verb::Check,
    Verb::Start,
    Verb::Append,
    Verb::Stop,
    Verb::StopByAnother,
    Verb::Revoke,
    Verb::Cancel,
    Verb::CancelByAnother,
    Verb::Release,
    Verb::Close(Kind::Succeeded),
    Verb::Close(Kind::Failed),
    Verb::Close(Kind::Interrupted),
    Verb::Close(Kind::FailedBeforeStart),
    Verb::LegacyTake,
    Verb::Place,
];

pub(super) const NOW_MS: u64 = 10 * EXPIRES_AFTER_MS;
const CREDENTIAL_MS: u64 = 300_000;
pub(super) const EPOCH: u64 = 7;

pub(super) fn here() -> MachineId {
    MachineId::of_public_key(b"here")
}

fn there() -> MachineId {
    MachineId::of_public_key(b"there")
}

fn id(n: u8) -> AdmId {
    AdmId::from_bytes([n; 16])
}

pub(super) fn fresh() -> AdmId {
    id(9)
}

pub(super) fn ann() -> Subject {
    "ann".parse().unwrap()
}

/// The record that a case has, if it has one.
pub(super) fn record_of(case: &Case) -> Option<Record> {
    let since = if case.old { NOW_MS - EXPIRES_AFTER_MS - 1 } else { NOW_MS - 1000 };
    let phase = match case.state {
        State::Nothing => return None,
        State::Queued => Phase::Queued,
        State::Admitted => Phase::Admitted,
        State::Started => Phase::Started,
        State::Closed(_) => Phase::Closed,
    };
    let closing = if let State::Closed(kind) = case.state { Some(kind) } else { None };
    let ran = matches!(closing, Some(Kind::Succeeded | Kind::Failed | Kind::Interrupted)) || phase == Phase::Started;
    let held = ran || phase == Phase::Admitted || matches!(closing, Some(Kind::FailedBeforeStart | Kind::Released));
    Some(Record {
        admission: id(1),
        request: "r".parse().unwrap(),
        attempt: crate::admission::names::Attempt::FIRST,
        digest: Digest::from_bytes([1; 32]),
        surface: "s".parse().unwrap(),
        destination: Destination { machine: here(), place: "/p".parse().unwrap(), generation: Generation::FIRST },
        work: None,
        phase,
        entrance: if phase == Phase::Queued { Entrance::Queue } else { Entrance::Local },
        subject: ann(),
        after: None,
        command: Vec::new(),
        created_ms: since,
        admitted_ms: held.then_some(since),
        started_ms: ran.then_some(since),
        closed_ms: closing.map(|_| NOW_MS - 500),
        attach_number: if case.token == Token::Cut { 4 } else { 3 },
        started_attach: ran.then_some(2),
        deadline_ms: match case.token {
            Token::Good => Some(NOW_MS + 1),
            Token::Lapsed => Some(NOW_MS - 1),
            Token::Cut => None,
        },
        policy_epoch: None,
        stop_ms: case.stop.then_some(NOW_MS - 1),
        stop_reason: case.stop.then(|| "ann: enough".to_owned()),
        closing,
        closed_by: closing.map(|_| "somebody".to_owned()),
        reason: None,
        exit_code: None,
        successor: (closing == Some(Kind::Superseded)).then(|| id(5)),
        supersedes: None,
    })
}

fn other_record(case: &Case, n: u8, phase: Phase) -> Record {
    let mut other = record_of(&Case { state: State::Admitted, old: false, stop: false, ..*case }).unwrap();
    other.admission = id(n);
    other.request = format!("other-{n}").parse().unwrap();
    other.phase = phase;
    if phase == Phase::Queued {
        other.admitted_ms = None;
    }
    other
}

/// The newest generation that the surface of a case has given.
pub(super) fn ground_of(case: &Case) -> Ground {
    let record = record_of(case);
    let (generation, live) = match case.placement {
        Where::Same => (1, true),
        Where::Moved => (2, true),
        Where::Gone => (1, false),
        Where::Never => (1, false),
    };
    let destination = Destination {
        machine: here(),
        place: "/p".parse().unwrap(),
        generation: Generation::try_from(generation).unwrap(),
    };
    let placement =
        Placement { surface: "s".parse().unwrap(), destination, storage: None, work: None, live, changed_ms: 1 };
    let legacy = (case.other == Other::Legacy).then(|| LegacyOwner { who: "old".parse().unwrap(), since_ms: 1 });
    let mine = record.clone().filter(Record::is_open);
    let other = (case.other == Other::Admission).then(|| other_record(case, 2, Phase::Admitted));
    let mut waiting: Vec<Record> = record.into_iter().filter(|r| r.phase == Phase::Queued).collect();
    if case.waiting {
        let mut other = other_record(case, 3, Phase::Queued);
        other.destination = placement.destination.clone();
        waiting.push(other);
    }
    Ground {
        surface: Some(SurfaceRow { key: "s".parse().unwrap(), created_ms: 1, generation, legacy }),
        owner: mine.or(other),
        waiting,
        placements: if case.placement == Where::Never { Vec::new() } else { vec![placement] },
    }
}

pub(super) fn grant_of(record: &Record, case: &Case) -> Grant {
    Grant {
        admission: record.admission,
        machine: record.destination.machine,
        generation: record.destination.generation,
        attach_number: 3,
        policy_epoch: EPOCH,
        issued_ms: NOW_MS - 1000,
        deadline_ms: if case.token == Token::Lapsed { NOW_MS - 1 } else { NOW_MS + 1 },
    }
}

/// What came of it: in a word, with everything that was written and every credential given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Came {
    pub word: String,
    pub refused: Option<Refusal>,
    pub writes: Vec<Write>,
    pub grant: Option<Grant>,
}

impl Came {
    fn to(word: impl Into<String>, writes: Vec<Write>, grant: Option<Grant>) -> Came {
        Came { word: word.into(), refused: None, writes, grant }
    }

    fn refused(refusal: Refusal, writes: Vec<Write>) -> Came {
        Came { word: format!("`{}`", refusal.code()), refused: Some(refusal), writes, grant: None }
    }
}

/// Asks the rule, and the policy when the rule wants that.
fn settle<T>(case: &Case, rule: impl Fn(&Scene<'_>) -> Ruling<T>, word: impl Fn(T) -> (String, Option<Grant>)) -> Came {
    let mut scene = Scene { now_ms: NOW_MS, epoch: EPOCH, permit: None, credential_ms: CREDENTIAL_MS };
    let mut ruling = rule(&scene);
    if let Err(Halt::Ask(facts)) = &ruling {
        let denied = (!case.allowed).then(|| "not you".to_owned());
        let permit = Permit { facts: (**facts).clone(), decision: Decision { denied, epoch: EPOCH } };
        scene.permit = Some(&permit);
        ruling = rule(&scene);
    }
    match ruling {
        Ok(ruled) => {
            let (word, grant) = word(ruled.answer);
            Came::to(word, ruled.writes, grant)
        }
        Err(Halt::Refused { refusal, writes }) => Came::refused(refusal, writes),
        Err(Halt::Ask(facts)) => panic!("{case:?}: asked twice, the second time {facts:?}"),
    }
}

fn request(case: &Case, entrance: Entrance) -> Request {
    Request {
        request: "r".parse().unwrap(),
        attempt: crate::admission::names::Attempt::FIRST,
        digest: Digest::from_bytes([1; 32]),
        surface: "s".parse().unwrap(),
        machine: None,
        generation: None,
        entrance,
        if_waiting: IfWaiting::Fail,
        after: None,
        subject: ann(),
        caller: if case.here { here() } else { there() },
        command: Vec::new(),
        input: None,
    }
}

fn run_submit(case: &Case, verb: Verb) -> Came {
    let entrance = match verb {
        Verb::SubmitQueue | Verb::SubmitReplacing | Verb::NextAttemptQueue => Entrance::Queue,
        _ => Entrance::Local,
    };
    let mut sent = request(case, entrance);
    let record = record_of(case);
    let mut standing = Standing { row: record.clone(), previous: None, appended: None, after_known: true };
    match verb {
        Verb::SubmitOtherContents => sent.digest = Digest::from_bytes([2; 32]),
        Verb::SubmitReplacing => sent.if_waiting = IfWaiting::Replace,
        Verb::NextAttempt | Verb::NextAttemptQueue => {
            sent.attempt = sent.attempt.next().unwrap();
            standing = Standing { row: None, previous: record, ..standing };
        }
        _ => {}
    }
    settle(
        case,
        |scene| submit(&sent, &standing, &ground_of(case), scene, fresh()),
        |granted| {
            let what = match (granted.record.phase, &granted.grant) {
                (Phase::Closed, _) => "the closed record",
                (Phase::Queued, _) => "queued",
                (_, Some(_)) => "admitted",
                (_, None) => "receipt",
            };
            let again = if granted.created { "" } else { ", the same" };
            let what = if granted.record.phase == Phase::Closed { what.to_owned() } else { format!("{what}{again}") };
            (what, granted.grant)
        },
    )
}

fn run_pickup(case: &Case, record: &Record, machine: &MachineId, take: bool) -> Came {
    settle(
        case,
        |scene| pickup(record, machine, &ground_of(case), take, scene),
        |picked| match picked {
            Picked::Admitted(_, grant) => ("admitted".to_owned(), Some(grant)),
            Picked::Expired(_) => ("expired".to_owned(), None),
            Picked::Changed(_) => ("closed: failed_before_start".to_owned(), None),
            Picked::Kept(refusal) => (format!("waits (`{}`)", refusal.code()), None),
            Picked::Left => ("waits".to_owned(), None),
            Picked::Passed => ("-".to_owned(), None),
        },
    )
}

/// `None`: the verb names an admission, and there is none.
pub(super) fn run(case: &Case, verb: Verb) -> Option<Came> {
    let ground = ground_of(case);
    let machine = if case.here { here() } else { there() };
    match verb {
        Verb::LegacyTake => {
            let took = |scene: &Scene<'_>| legacy_take(&"s".parse().unwrap(), &ann(), &ground, scene.now_ms);
            return Some(settle(case, took, |_| ("taken".to_owned(), None)));
        }
        Verb::Place => {
            let (surface, place) = ("s".parse().unwrap(), "/new".parse().unwrap());
            let placing = Placing { surface, machine: here(), place, storage: None, work: None };
            let placed = |scene: &Scene<'_>| super::place(&placing, &ground, scene.now_ms);
            return Some(settle(case, placed, |placed| {
                (if placed.stopping.is_empty() { "placed" } else { "placed, it is stopping" }.to_owned(), None)
            }));
        }
        _ => {}
    }
    let submits = [
        Verb::SubmitLocal,
        Verb::SubmitQueue,
        Verb::SubmitReplacing,
        Verb::SubmitOtherContents,
        Verb::NextAttempt,
        Verb::NextAttemptQueue,
    ];
    if submits.contains(&verb) {
        return Some(run_submit(case, verb));
    }
    let record = record_of(case)?;
    Some(run_on(case, verb, &record, &ground, &machine))
}

fn run_on(case: &Case, verb: Verb, record: &Record, ground: &Ground, machine: &MachineId) -> Came {
    let grant = grant_of(record, case);
    let eve: Subject = "eve".parse().unwrap();
    let closing = |kind| Closing { kind, exit_code: None, reason: Some("it is so".to_owned()) };
    let ended = |by: Closer<'_>, kind: Kind| {
        let rule = |scene: &Scene<'_>| close(record, &by, &closing(kind), ground, scene);
        settle(case, rule, |record: Record| (format!("closed: {}", record.closing.unwrap()), None))
    };
    match verb {
        Verb::Pickup => run_pickup(case, record, machine, true),
        Verb::PickupLook => run_pickup(case, record, machine, false),
        Verb::ExpireAdmitted => settle(
            case,
            |scene| Ok(expire_admitted(record, machine, scene)),
            |picked| (if matches!(picked, Picked::Expired(_)) { "expired" } else { "-" }.to_owned(), None),
        ),
        Verb::Attach => settle(
            case,
            |scene| attach(record, &ann(), machine, ground, scene),
            |(_, grant)| ("credential".to_owned(), Some(grant)),
        ),
        Verb::Check => match check(record, &grant, machine, ground, NOW_MS) {
            Ok(_) => Came::to("good", Vec::new(), None),
            Err(refusal) => Came::refused(refusal, Vec::new()),
        },
        Verb::Start => settle(
            case,
            |scene| start(record, &grant, &ann(), machine, ground, scene),
            |_| ("started".to_owned(), None),
        ),
        Verb::Append => {
            let sent = Append {
                admission: record.admission,
                request: "more".parse().unwrap(),
                attempt: record.attempt,
                digest: record.digest,
                subject: ann(),
                input: b"more".to_vec(),
            };
            settle(
                case,
                |scene| append(&sent, record, (None, None), 1, ground, scene),
                |_| ("accepted".to_owned(), None),
            )
        }
        Verb::Stop => settle(case, |scene| stop(record, &ann(), "", scene), |_| ("stopping".to_owned(), None)),
        Verb::StopByAnother => settle(case, |scene| stop(record, &eve, "", scene), |_| ("stopping".to_owned(), None)),
        Verb::Revoke => settle(case, |scene| revoke(record, &ann(), scene), |_| ("credential cut".to_owned(), None)),
        Verb::Cancel => ended(Closer::Submitter(&ann()), Kind::Canceled),
        Verb::CancelByAnother => ended(Closer::Submitter(&eve), Kind::Canceled),
        Verb::Release => ended(Closer::Operator(&eve), Kind::Released),
        Verb::Close(kind) => ended(Closer::Destination { grant, caller: machine }, kind),
        _ => panic!("{verb:?} is dealt with above"),
    }
}
