//! A ledger to try things on, with a clock, a policy and credentials that the test has in hand. Every bench has a ledger of
//! its own: a file in a directory of its own, or a schema of its own on the server.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tenure::Location;
use tenure::admission::*;

pub const S: &str = "S";
pub const HOUR_MS: u64 = 3_600_000;

/// Which database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Sqlite,
    Postgres,
}

/// A policy that says what the test tells it to, and what it was asked.
#[derive(Default)]
pub struct Rules {
    epoch: AtomicU64,
    denied: Mutex<BTreeSet<String>>,
    asked: Mutex<Vec<Facts>>,
}

impl Rules {
    pub fn deny(&self, subject: &str) {
        self.denied.lock().unwrap().insert(subject.to_owned());
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }

    pub fn allow(&self, subject: &str) {
        self.denied.lock().unwrap().remove(subject);
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }

    pub fn asked(&self) -> Vec<Facts> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl Policy for Rules {
    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    fn evaluate(&self, facts: &Facts) -> Decision {
        let epoch = self.epoch();
        self.asked.lock().unwrap().push(facts.clone());
        let denied = self.denied.lock().unwrap().contains(facts.subject.as_str());
        Decision { denied: denied.then(|| format!("{} may not", facts.subject)), epoch }
    }
}

/// A seal whose tokens are the grant as JSON with a checksum.
pub struct Wax;

fn checksum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

impl Seal for Wax {
    fn seal(&self, grant: &Grant) -> Result<Credential, Refusal> {
        let json = serde_json::to_string(grant).unwrap();
        let token = format!("{:016x}.{json}", checksum(&json));
        Ok(Credential { token, deadline_ms: grant.deadline_ms, attach_number: grant.attach_number })
    }

    fn open(&self, token: &str) -> Result<Grant, Refusal> {
        let bad = Refusal::Credential { why: "is not one of this ledger" };
        let Some((sum, json)) = token.split_once('.') else { return Err(bad) };
        if sum != format!("{:016x}", checksum(json)) {
            return Err(bad);
        }
        serde_json::from_str(json).map_err(|_| bad)
    }
}

pub struct Bench {
    pub ledger: Box<dyn Ledger>,
    pub rules: Arc<Rules>,
    pub clock: Arc<AtomicU64>,
    pub home: Base,
}

/// Where the ledger is; another process can open it from this.
pub enum Base {
    Directory(tempfile::TempDir),
    Schema(super::server::Schema),
}

impl Base {
    pub fn new(kind: Which) -> Base {
        match kind {
            Which::Sqlite => Base::Directory(tempfile::tempdir().unwrap()),
            Which::Postgres => Base::Schema(super::server::Schema::new()),
        }
    }

    /// As another process is told it.
    pub fn address(&self) -> String {
        match self {
            Base::Directory(dir) => dir.path().display().to_string(),
            Base::Schema(schema) => schema.url(),
        }
    }
}

/// Opens the ledger at an address.
pub fn open(address: &str, options: Options) -> Box<dyn Ledger> {
    if address.starts_with("postgres") {
        open_postgres(address, options).unwrap()
    } else {
        open_sqlite(&Location::named(Path::new(address)), options)
    }
}

impl Bench {
    pub fn new(kind: Which) -> Bench {
        Bench::with(kind, |options| options)
    }

    pub fn with(kind: Which, change: impl FnOnce(Options) -> Options) -> Bench {
        let home = Base::new(kind);
        let (rules, clock) = (Arc::new(Rules::default()), Arc::new(AtomicU64::new(1_800_000_000_000)));
        let ledger = open(&home.address(), change(options(&rules, &clock)));
        ledger.migrate().unwrap();
        Bench { ledger, rules, clock, home }
    }

    /// A bench with S placed on the first machine.
    pub fn placed(kind: Which) -> Bench {
        let bench = Bench::new(kind);
        bench.add(S);
        bench.place(S, m1(), "/srv/s");
        bench
    }

    /// The same ledger through another connection, as another process has it.
    pub fn again(&self) -> Box<dyn Ledger> {
        self.again_with(|options| options)
    }

    /// The same, opened in another way.
    pub fn again_with(&self, change: impl FnOnce(Options) -> Options) -> Box<dyn Ledger> {
        open(&self.home.address(), change(options(&self.rules, &self.clock)))
    }

    pub fn add(&self, surface: &str) {
        self.ledger.surface_add(&key(surface), &[]).unwrap();
    }

    pub fn place(&self, surface: &str, machine: MachineId, place: &str) -> Generation {
        self.ledger.place(&placing(surface, machine, place)).unwrap().generation()
    }

    pub fn pass_ms(&self, ms: u64) {
        self.clock.fetch_add(ms, Ordering::SeqCst);
    }

    pub fn start(&self, answer: &Answer) -> Record {
        let token = &answer.credential.as_ref().unwrap().token;
        let machine = answer.record.destination.machine;
        self.ledger.mark_started(&answer.admission(), token, &answer.record.subject, &machine).unwrap()
    }

    /// Says that the admission of this credential is about to run.
    pub fn started(&self, token: &str, caller: &MachineId) -> Result<Record, Refusal> {
        started(self.ledger.as_ref(), token, caller)
    }

    /// Admits and starts, on the first machine.
    pub fn running(&self, request: &Request) -> Answer {
        let answer = self.ledger.submit(request).unwrap();
        self.start(&answer);
        answer
    }

    pub fn close(&self, answer: &Answer, kind: tenure::admission::Kind) -> Result<Record, Refusal> {
        let token = answer.credential.as_ref().unwrap().token.clone();
        let by = By::Destination { token, caller: answer.record.destination.machine };
        self.ledger.close(&answer.admission(), &by, &closing(kind))
    }

    /// Brings `request` (on the first machine) to its end in this way.
    pub fn ended(&self, request: &Request, kind: tenure::admission::Kind) -> Record {
        use tenure::admission::Kind as K;
        match kind {
            K::Succeeded | K::Failed | K::Interrupted => self.close(&self.running(request), kind).unwrap(),
            K::FailedBeforeStart => self.close(&self.ledger.submit(request).unwrap(), kind).unwrap(),
            K::Released => {
                let answer = self.running(request);
                self.ledger.release(&answer.admission(), &who("boss"), "looked at it").unwrap()
            }
            K::Canceled => {
                let answer = self.ledger.submit(request).unwrap();
                self.ledger.cancel(&answer.record.key(), &answer.record.subject).unwrap()
            }
            K::Expired => {
                let answer = self.ledger.submit(request).unwrap();
                self.pass_ms(13 * HOUR_MS);
                let mut expired = self.ledger.pickup(&answer.record.destination.machine).unwrap().expired;
                expired.pop().unwrap()
            }
            K::Superseded => {
                let queued = Request { entrance: Entrance::Queue, ..request.clone() };
                let answer = self.ledger.submit(&queued).unwrap();
                let newer = Request {
                    request: format!("{}-newer", request.request).parse().unwrap(),
                    if_waiting: IfWaiting::Replace,
                    ..queued
                };
                let newer = self.ledger.submit(&newer).unwrap();
                self.ledger.cancel(&newer.record.key(), &newer.record.subject).unwrap();
                self.ledger.show(&answer.admission()).unwrap()
            }
        }
    }

    pub fn owner(&self, surface: &str) -> Option<AdmId> {
        self.ledger.surface(&key(surface)).unwrap().owner.map(|owner| owner.admission)
    }

    pub fn rows(&self) -> Vec<Record> {
        self.ledger.history(&History::default()).unwrap()
    }

    pub fn sound(&self) {
        assert_eq!(self.ledger.fsck().unwrap(), []);
    }
}

pub fn started(ledger: &dyn Ledger, token: &str, caller: &MachineId) -> Result<Record, Refusal> {
    ledger.mark_started(&Wax.open(token).unwrap().admission, token, &who("ann"), caller)
}

pub fn options(rules: &Arc<Rules>, clock: &Arc<AtomicU64>) -> Options {
    let clock = clock.clone();
    let mut options = Options::new(rules.clone(), Arc::new(Wax));
    options.clock = Some(Arc::new(move || clock.load(Ordering::SeqCst)));
    options
}

pub fn m1() -> MachineId {
    MachineId::of_public_key(b"the first machine")
}

pub fn m2() -> MachineId {
    MachineId::of_public_key(b"the second machine")
}

pub fn key(surface: &str) -> SurfaceKey {
    surface.parse().unwrap()
}

pub fn who(subject: &str) -> Subject {
    subject.parse().unwrap()
}

pub fn digest(of: &str) -> Digest {
    let mut bytes = [0; 32];
    for (to, from) in bytes.iter_mut().zip(of.bytes().cycle()) {
        *to = from;
    }
    Digest::from_bytes(bytes)
}

pub fn attempt(n: u32) -> Attempt {
    Attempt::try_from(n).unwrap()
}

pub fn placing(surface: &str, machine: MachineId, place: &str) -> Placing {
    Placing { surface: key(surface), machine, place: place.parse().unwrap(), storage: None, work: None }
}

/// A start on the first machine.
pub fn local(request: &str, n: u32, contents: &str) -> Request {
    Request {
        request: request.parse().unwrap(),
        attempt: attempt(n),
        digest: digest(contents),
        surface: key(S),
        machine: None,
        generation: None,
        entrance: Entrance::Local,
        if_waiting: IfWaiting::Fail,
        after: None,
        subject: who("ann"),
        caller: m1(),
        command: Vec::new(),
        input: None,
    }
}

/// A row for whoever is the destination, sent from the second machine.
pub fn queued(request: &str, n: u32, contents: &str) -> Request {
    Request {
        entrance: Entrance::Queue,
        caller: m2(),
        command: vec!["make".into()],
        input: Some(contents.into()),
        ..local(request, n, contents)
    }
}

pub fn on(surface: &str, request: Request) -> Request {
    Request { surface: key(surface), ..request }
}

pub fn closing(kind: tenure::admission::Kind) -> Closing {
    Closing { kind, exit_code: None, reason: None }
}

pub fn appending(to: AdmId, request: &str, contents: &str) -> Append {
    Append {
        admission: to,
        request: request.parse().unwrap(),
        attempt: attempt(1),
        digest: digest(contents),
        subject: who("ann"),
        input: contents.into(),
    }
}

/// The code of a refusal.
pub fn code<T: std::fmt::Debug>(refused: Result<T, Refusal>) -> &'static str {
    refused.unwrap_err().code()
}
