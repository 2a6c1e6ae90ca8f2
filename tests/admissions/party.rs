//! Other processes that do what a test tells them: this program again, told by its environment which ledger to open.
//!
//! An order is a line of JSON on its standard input, the answer a line on its standard output, marked because the test
//! runner writes there too. Each party keeps its process and its connection, so a race of a thousand rounds needs two.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use tenure::admission::*;

use crate::bench::*;

const LEDGER: &str = "TENURE_PARTY_LEDGER";
const POLICY: &str = "TENURE_PARTY_POLICY";
/// Before (even) or after (odd) which statement the process kills itself, counted from its first order.
const DIES_AT: &str = "TENURE_PARTY_DIES_AT";
/// In which network namespace the process is.
const NAMESPACE: &str = "TENURE_PARTY_NAMESPACE";
/// How long the process waits for others.
const WAIT_MS: &str = "TENURE_PARTY_WAIT_MS";
const MARK: &str = "@party ";

/// One thing to do, as of a moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    pub now_ms: u64,
    pub what: What,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum What {
    Submit(Sent),
    /// Submits and, when that is admitted, starts.
    SubmitAndStart(Sent),
    Pickup {
        machine: u8,
    },
    Attach {
        admission: AdmId,
        machine: u8,
    },
    Started {
        token: String,
        machine: u8,
    },
    Append {
        admission: AdmId,
        request: String,
    },
    Close {
        admission: AdmId,
        token: String,
        machine: u8,
        kind: Kind,
    },
    Cancel {
        request: String,
    },
    Stop {
        admission: AdmId,
    },
    Revoke {
        admission: AdmId,
    },
    Release {
        admission: AdmId,
    },
    /// Releases and at once submits.
    ReleaseAndSubmit {
        admission: AdmId,
        then: Sent,
    },
    AddSurface {
        surface: String,
    },
    Place {
        surface: String,
        machine: u8,
        place: String,
    },
    PlaceGone {
        surface: String,
        machine: u8,
    },
    Forget {
        machine: u8,
    },
    LegacyTake {
        surface: String,
    },
    LegacyDrop {
        surface: String,
    },
}

/// A request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sent {
    pub surface: String,
    pub request: String,
    pub attempt: u32,
    pub contents: String,
    pub machine: u8,
    pub queue: bool,
    pub replace: bool,
}

impl Sent {
    pub fn local(surface: &str, request: &str) -> Sent {
        let (surface, request) = (surface.to_owned(), request.to_owned());
        Sent { surface, request, attempt: 1, contents: "d".to_owned(), machine: 1, queue: false, replace: false }
    }

    pub fn queued(surface: &str, request: &str) -> Sent {
        Sent { queue: true, ..Sent::local(surface, request) }
    }

    pub fn request(&self) -> Request {
        let request = if self.queue {
            queued(&self.request, self.attempt, &self.contents)
        } else {
            local(&self.request, self.attempt, &self.contents)
        };
        Request {
            surface: key(&self.surface),
            caller: machine(self.machine),
            machine: Some(machine(self.machine)),
            if_waiting: if self.replace { IfWaiting::Replace } else { IfWaiting::Fail },
            ..request
        }
    }
}

pub fn machine(n: u8) -> MachineId {
    if n == 1 { m1() } else { m2() }
}

/// What came of an order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Came {
    /// `ok` or the code of the refusal.
    pub code: String,
    /// The admission that the answer or the refusal names.
    pub admission: Option<AdmId>,
    pub created: bool,
    pub phase: Option<Phase>,
    pub closing: Option<Kind>,
    pub token: Option<String>,
    /// Of a pickup: what is open, what it expired, and what it closed because the placement had changed.
    pub open: Vec<AdmId>,
    pub expired: Vec<AdmId>,
    pub changed: Vec<AdmId>,
}

impl Came {
    pub fn ok(&self) -> bool {
        self.code == "ok"
    }

    fn of(record: &Record) -> Came {
        let (admission, phase) = (Some(record.admission), Some(record.phase));
        Came { code: "ok".to_owned(), admission, phase, closing: record.closing, ..Came::default() }
    }

    fn answered(answer: &Answer) -> Came {
        let token = answer.credential.as_ref().map(|credential| credential.token.clone());
        Came { created: answer.created, token, ..Came::of(&answer.record) }
    }
}

fn said(came: Result<Came, Refusal>) -> Came {
    came.unwrap_or_else(|refusal| {
        let named = refusal.record().map(Came::of).unwrap_or_default();
        Came { code: refusal.code().to_owned(), ..named }
    })
}

/// Does it.
pub fn perform(ledger: &dyn Ledger, what: &What) -> Came {
    let plain = |_| Came { code: "ok".to_owned(), ..Came::default() };
    said(match what {
        What::Submit(sent) => ledger.submit(&sent.request()).map(|answer| Came::answered(&answer)),
        What::SubmitAndStart(sent) => ledger.submit(&sent.request()).and_then(|answer| {
            let Some(credential) = &answer.credential else { return Ok(Came::answered(&answer)) };
            let started =
                ledger.mark_started(&answer.admission(), &credential.token, &who("ann"), &machine(sent.machine))?;
            Ok(Came { token: Some(credential.token.clone()), created: answer.created, ..Came::of(&started) })
        }),
        What::Pickup { machine: n } => ledger.pickup(&machine(*n)).map(|pickup| {
            let ids = |records: &[Record]| records.iter().map(|record| record.admission).collect();
            let came = pickup.admitted.as_ref().map(Came::answered).unwrap_or_default();
            let (open, expired, changed) = (ids(&pickup.open), ids(&pickup.expired), ids(&pickup.refused));
            Came { code: "ok".to_owned(), open, expired, changed, ..came }
        }),
        What::Attach { admission, machine: n } => {
            ledger.attach(admission, &who("ann"), &machine(*n)).map(|answer| Came::answered(&answer))
        }
        What::Started { token, machine: n } => started(ledger, token, &machine(*n)).map(|record| Came::of(&record)),
        What::Append { admission, request } => {
            ledger.append(&appending(*admission, request, "more")).map(|_| plain(()))
        }
        What::Close { admission, token, machine: n, kind } => {
            let by = By::Destination { token: token.clone(), caller: machine(*n) };
            ledger.close(admission, &by, &closing(*kind)).map(|record| Came::of(&record))
        }
        What::Cancel { request } => {
            ledger.cancel(&request.parse().unwrap(), &who("ann")).map(|record| Came::of(&record))
        }
        What::Stop { admission } => ledger.stop(admission, &who("ann"), "enough").map(|record| Came::of(&record)),
        What::Revoke { admission } => ledger.revoke(admission, &who("ann")).map(|record| Came::of(&record)),
        What::Release { admission } => ledger.release(admission, &who("boss"), "gone").map(|record| Came::of(&record)),
        What::ReleaseAndSubmit { admission, then } => ledger
            .release(admission, &who("boss"), "gone")
            .and_then(|_| ledger.submit(&then.request()))
            .map(|answer| Came::answered(&answer)),
        What::AddSurface { surface } => ledger.surface_add(&key(surface), &[]).map(|_| plain(())),
        What::Place { surface, machine: n, place } => {
            ledger.place(&placing(surface, machine(*n), place)).map(|_| plain(()))
        }
        What::PlaceGone { surface, machine: n } => ledger.place_gone(&key(surface), &machine(*n)).map(|_| plain(())),
        What::Forget { machine: n } => ledger.machine_forget(&machine(*n)).map(|_| plain(())),
        What::LegacyTake { surface } => ledger.legacy_take(&key(surface), &who("old")).map(|_| plain(())),
        What::LegacyDrop { surface } => ledger.legacy_drop(&key(surface), &who("old")).map(|_| plain(())),
    })
}

/// A policy in a file: who stands in it may not. Installed by rename; its epoch is what is in it.
pub struct FilePolicy(pub PathBuf);

impl FilePolicy {
    fn denied(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap_or_default()
    }

    fn of(denied: &str) -> u64 {
        denied.bytes().fold(17, |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(byte.into()))
    }

    pub fn install(&self, denied: &str) {
        let new = self.0.with_extension("new");
        std::fs::write(&new, denied).unwrap();
        std::fs::rename(&new, &self.0).unwrap();
    }
}

impl Policy for FilePolicy {
    fn epoch(&self) -> u64 {
        FilePolicy::of(&self.denied())
    }

    fn evaluate(&self, facts: &Facts) -> Decision {
        let denied = self.denied();
        let may_not = denied.lines().any(|line| line == facts.subject.as_str());
        Decision { denied: may_not.then(|| "the file says no".to_owned()), epoch: FilePolicy::of(&denied) }
    }
}

/// Options with the policy of a file and a clock that is set from outside.
pub fn options_of(policy: PathBuf, clock: &Arc<AtomicU64>) -> Options {
    let clock = clock.clone();
    let mut options = Options::new(Arc::new(FilePolicy(policy)), Arc::new(Wax));
    options.clock = Some(Arc::new(move || clock.load(Ordering::SeqCst)));
    // On a machine that does much else at the same time, a party may wait long for its turn.
    options.wait_ms = 60_000;
    options
}

/// A party as the test sees it.
pub struct Party {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Party {
    pub fn new(ledger: &str, policy: &std::path::Path, dies_at: Option<u64>) -> Party {
        let dies_at = dies_at.map(|at| (DIES_AT, at.to_string()));
        Party::with(ledger, policy, dies_at)
    }

    /// In a network namespace, if one is given, and impatient.
    pub fn on_a_host(ledger: &str, policy: &std::path::Path, namespace: Option<&str>, wait_ms: u64) -> Party {
        let namespace = namespace.map(|name| (NAMESPACE, name.to_owned()));
        Party::with(ledger, policy, namespace.into_iter().chain([(WAIT_MS, wait_ms.to_string())]))
    }

    fn with(ledger: &str, policy: &std::path::Path, more: impl IntoIterator<Item = (&'static str, String)>) -> Party {
        // By this name it is this very program, also when another has been built in its place meanwhile.
        let mut command = Command::new("/proc/self/exe");
        command.args(["party::orders_are_done", "--exact", "--nocapture", "--test-threads=1"]);
        command.env(LEDGER, ledger).env(POLICY, policy).env_remove(DIES_AT).envs(more);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (orders, answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Party { child, orders, answers }
    }

    pub fn tell(&mut self, order: &Order) {
        // A party that is dead by now does not listen; its silence is the answer.
        let _ = writeln!(self.orders, "{}", serde_json::to_string(order).unwrap());
    }

    /// `None`: it died.
    pub fn hear(&mut self) -> Option<Came> {
        loop {
            let mut line = String::new();
            if self.answers.read_line(&mut line).unwrap() == 0 {
                self.child.wait().unwrap();
                return None;
            }
            if let Some((_, json)) = line.split_once(MARK) {
                return Some(serde_json::from_str(json).unwrap());
            }
        }
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Party {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Puts the calling thread, and all that it starts from now on, into a network namespace.
pub fn enter(namespace: &str) -> std::io::Result<()> {
    use std::os::fd::AsFd;
    let space = std::fs::File::open(format!("/run/netns/{namespace}"))?;
    let network = rustix::thread::LinkNameSpaceType::Network;
    Ok(rustix::thread::move_into_link_name_space(space.as_fd(), Some(network))?)
}

/// The inside of a party. Without orders from a test it checks that an order survives its way through JSON and is done.
#[test]
fn orders_are_done() {
    let Ok(address) = std::env::var(LEDGER) else {
        let bench = Bench::placed(Which::Sqlite);
        let order = Order { now_ms: 1, what: What::Submit(Sent::local(S, "r")) };
        let read: Order = serde_json::from_str(&serde_json::to_string(&order).unwrap()).unwrap();
        let came = perform(bench.ledger.as_ref(), &read.what);
        assert!(came.ok() && came.created, "{came:?}");
        assert_eq!(bench.owner(S), came.admission);
        return;
    };
    if let Ok(namespace) = std::env::var(NAMESPACE) {
        enter(&namespace).unwrap();
    }
    let clock = Arc::new(AtomicU64::new(0));
    let mut options = options_of(std::env::var_os(POLICY).unwrap().into(), &clock);
    if let Ok(at) = std::env::var(DIES_AT) {
        let (at, count): (u64, _) = (at.parse().unwrap(), AtomicU64::new(0));
        options.probe = Some(Arc::new(move |_, _: &str| {
            if count.fetch_add(1, Ordering::SeqCst) == at {
                let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            }
        }));
    }
    if let Ok(wait_ms) = std::env::var(WAIT_MS) {
        options.wait_ms = wait_ms.parse().unwrap();
    }
    let ledger = open(&address, options);
    for line in std::io::stdin().lines() {
        let order: Order = serde_json::from_str(&line.unwrap()).unwrap();
        clock.store(order.now_ms, Ordering::SeqCst);
        let came = perform(ledger.as_ref(), &order.what);
        println!("{MARK}{}", serde_json::to_string(&came).unwrap());
    }
}

/// A ledger, a test's own connection to it, and parties.
pub struct Races {
    pub ledger: Box<dyn Ledger>,
    pub clock: Arc<AtomicU64>,
    pub policy: FilePolicy,
    pub parties: BTreeMap<usize, Party>,
    pub home: Base,
    _dir: tempfile::TempDir,
}

impl Races {
    pub fn new(kind: Which) -> Races {
        let (home, dir) = (Base::new(kind), tempfile::tempdir().unwrap());
        let clock = Arc::new(AtomicU64::new(1_800_000_000_000));
        let policy = dir.path().join("policy");
        let ledger = open(&home.address(), options_of(policy.clone(), &clock));
        ledger.migrate().unwrap();
        Races { ledger, clock, policy: FilePolicy(policy), parties: BTreeMap::new(), home, _dir: dir }
    }

    /// How often each race is run: `scripts/admission-races ROUNDS` says.
    pub fn rounds() -> u32 {
        std::env::var("TENURE_RACE_ROUNDS").map_or(4, |n| n.parse().expect("a number of rounds"))
    }

    /// A surface placed on both machines.
    pub fn surface(&self, name: &str) -> String {
        self.ledger.surface_add(&key(name), &[]).unwrap();
        for n in [1, 2] {
            self.ledger.place(&placing(name, machine(n), &format!("/srv/{name}"))).unwrap();
        }
        name.to_owned()
    }

    pub fn now(&self) -> u64 {
        self.clock.load(Ordering::SeqCst)
    }

    pub fn pass_ms(&self, ms: u64) {
        self.clock.fetch_add(ms, Ordering::SeqCst);
    }

    /// By the test's own connection.
    pub fn here(&self, what: What) -> Came {
        perform(self.ledger.as_ref(), &what)
    }

    pub fn sent(&mut self, party: usize, what: &What) {
        let (address, now_ms) = (self.home.address(), self.now());
        let policy = self.policy.0.clone();
        let party = self.parties.entry(party).or_insert_with(|| Party::new(&address, &policy, None));
        party.tell(&Order { now_ms, what: what.clone() });
    }

    pub fn heard(&mut self, party: usize) -> Came {
        self.parties.get_mut(&party).unwrap().hear().expect("the party lives")
    }

    /// All at once, each by a process of its own.
    pub fn together(&mut self, orders: &[What]) -> Vec<Came> {
        for (party, what) in orders.iter().enumerate() {
            self.sent(party, what);
        }
        (0..orders.len()).map(|party| self.heard(party)).collect()
    }

    pub fn rows(&self, surface: &str) -> Vec<Record> {
        let which = History { surface: Some(key(surface)), ..History::default() };
        self.ledger.history(&which).unwrap()
    }

    pub fn show(&self, admission: Option<AdmId>) -> Record {
        self.ledger.show(&admission.unwrap()).unwrap()
    }

    pub fn sound(&self) {
        assert_eq!(self.ledger.fsck().unwrap(), []);
    }
}
