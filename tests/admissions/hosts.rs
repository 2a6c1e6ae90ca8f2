//! Two hosts that reach the database over a wire each, and a wire that is cut: one long story with the clock in hand.
//!
//! The hosts are network namespaces, with a virtual wire each to a third one in which the database answers. Where the
//! kernel or the rights do not allow that, the same story is told by two machines on the loopback interface, and the test
//! says so.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use tenure::admission::{AdmId, History, Kind as K, Phase};

use crate::bench::*;
use crate::party::{Came, Order, Party, Races, Sent, What, enter};
use crate::server::Schema;

/// Who waits for an answer that the wire has lost gives up after about this long.
const WAIT_MS: u64 = 2_000;

fn ip(words: &str) -> Result<(), String> {
    let ran = Command::new("ip").args(words.split(' ')).output().map_err(|error| format!("ip: {error}"))?;
    if ran.status.success() { Ok(()) } else { Err(format!("ip {words}: {}", String::from_utf8_lossy(&ran.stderr))) }
}

/// Three namespaces; gone at the end.
struct Spaces {
    prefix: String,
}

impl Spaces {
    fn new() -> Result<Spaces, String> {
        let spaces = Spaces { prefix: format!("tenure-{}", std::process::id()) };
        for host in ["a", "b", "db"] {
            ip(&format!("netns add {}", spaces.name(host)))?;
        }
        for (net, host) in [(1, "a"), (2, "b")] {
            let (here, there) = (spaces.name(host), spaces.name("db"));
            ip(&format!("-n {here} link add wire type veth peer name to-{host} netns {there}"))?;
            ip(&format!("-n {here} addr add 10.213.{net}.2/24 dev wire"))?;
            ip(&format!("-n {there} addr add 10.213.{net}.1/24 dev to-{host}"))?;
            ip(&format!("-n {there} link set to-{host} up"))?;
            ip(&format!("-n {here} link set wire up"))?;
        }
        // Whether it may be entered is tried by a thread that does nothing else.
        let name = spaces.name("a");
        let entered = std::thread::spawn(move || enter(&name)).join().unwrap();
        entered.map_err(|error| format!("a namespace cannot be entered: {error}"))?;
        Ok(spaces)
    }

    fn name(&self, host: &str) -> String {
        format!("{}-{host}", self.prefix)
    }
}

impl Drop for Spaces {
    fn drop(&mut self) {
        for host in ["a", "b", "db"] {
            let _ = ip(&format!("netns del {}", self.name(host)));
        }
    }
}

/// The wire of the second host.
struct Wire {
    /// The namespace of the host; `None`: the hosts are on the loopback interface.
    second: Option<String>,
    is_down: AtomicBool,
    /// It is cut when the next commit of the second host is done and before that host hears of it.
    at_commit: AtomicBool,
}

impl Wire {
    fn cut(&self) {
        self.is_down.store(true, Ordering::SeqCst);
        if let Some(second) = &self.second {
            ip(&format!("-n {second} link set wire down")).unwrap();
        }
    }

    fn mend(&self) {
        if let Some(second) = &self.second {
            ip(&format!("-n {second} link set wire up")).unwrap();
        }
        self.is_down.store(false, Ordering::SeqCst);
    }

    /// Carries one connection of a host to the server. Where there is no wire that could be down, nothing gets through.
    fn carry(&self, mut client: TcpStream, mut server: UnixStream, is_second: bool) {
        let (mut to_client, mut from_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let lost = || is_second && self.second.is_none() && self.is_down.load(Ordering::SeqCst);
        let mute = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut buffer = [0; 16384];
                while let Ok(n @ 1..) = from_server.read(&mut buffer) {
                    if mute.load(Ordering::SeqCst) && buffer[..n].windows(7).any(|seven| seven == b"COMMIT\0") {
                        self.cut();
                        break;
                    }
                    if lost() || to_client.write_all(&buffer[..n]).is_err() {
                        break;
                    }
                }
                let _ = to_client.shutdown(std::net::Shutdown::Both);
            });
            let mut buffer = [0; 16384];
            while let Ok(n @ 1..) = client.read(&mut buffer) {
                let is_commit = buffer[..n].windows(7).any(|seven| seven == b"commit\0");
                if is_second && is_commit && self.at_commit.swap(false, Ordering::SeqCst) {
                    mute.store(true, Ordering::SeqCst);
                }
                if lost() || server.write_all(&buffer[..n]).is_err() {
                    break;
                }
            }
            let _ = server.shutdown(std::net::Shutdown::Both);
        });
    }
}

/// Two hosts, and a test that has the clock and a connection of its own.
struct Hosts {
    races: Races,
    wire: Arc<Wire>,
    a: Party,
    b: Party,
    _spaces: Option<Spaces>,
}

fn url(schema: &Schema, address: &str) -> String {
    let options = schema.url().split_once("options=").unwrap().1.to_owned();
    format!("postgres://postgres@{address}/postgres?sslmode=disable&options={options}")
}

impl Hosts {
    fn new() -> Hosts {
        let races = Races::new(Which::Postgres);
        let spaces = Spaces::new().map_err(|why| {
            println!("network namespaces are left out, the hosts are two machines on the loopback interface: {why}");
        });
        let spaces = spaces.ok();
        let second = spaces.as_ref().map(|spaces| spaces.name("b"));
        let wire = Arc::new(Wire { second, is_down: AtomicBool::new(false), at_commit: AtomicBool::new(false) });
        let Base::Schema(schema) = &races.home else { panic!("hosts share a server") };
        let socket = crate::server::socket();
        let [a, b] = [(1, "a"), (2, "b")].map(|(net, host)| {
            let (tell, listens) = channel();
            let database = spaces.as_ref().map(|spaces| spaces.name("db"));
            let (wire, socket) = (wire.clone(), socket.clone());
            std::thread::spawn(move || {
                let at = match &database {
                    Some(database) => {
                        enter(database).unwrap();
                        format!("10.213.{net}.1:0")
                    }
                    None => "127.0.0.1:0".to_owned(),
                };
                let listener = TcpListener::bind(at).unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                for client in listener.incoming().map_while(Result::ok) {
                    client.set_nodelay(true).unwrap();
                    let (wire, server) = (wire.clone(), UnixStream::connect(&socket).unwrap());
                    std::thread::spawn(move || wire.carry(client, server, host == "b"));
                }
            });
            let url = url(schema, &listens.recv().unwrap().to_string());
            let namespace = spaces.as_ref().map(|spaces| spaces.name(host));
            Party::on_a_host(&url, &races.policy.0, namespace.as_deref(), WAIT_MS)
        });
        Hosts { races, wire, a, b, _spaces: spaces }
    }

    fn ask(&mut self, is_second: bool, what: What) -> Came {
        let order = Order { now_ms: self.races.now(), what };
        let party = if is_second { &mut self.b } else { &mut self.a };
        party.tell(&order);
        let came = party.hear().expect("the party lives");
        self.holds();
        came
    }

    fn a(&mut self, what: What) -> Came {
        self.ask(false, what)
    }

    fn b(&mut self, what: What) -> Came {
        self.ask(true, what)
    }

    /// At every step: at most one owner of a surface, one row of a key, no owner that is not an open admission.
    fn holds(&self) {
        self.races.sound();
        let rows = self.races.ledger.history(&History::default()).unwrap();
        let mut keys: Vec<_> = rows.iter().map(|row| row.key()).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), rows.len(), "one row of a key");
        for view in self.races.ledger.surfaces().unwrap() {
            let open: Vec<_> = rows.iter().filter(|row| row.is_open() && row.surface == view.surface).collect();
            assert!(open.len() <= 1, "{open:?}");
            assert_eq!(view.owner.as_ref(), open.first().copied());
        }
    }

    fn uncertain(&self) -> Vec<AdmId> {
        let which = History { uncertain: true, ..History::default() };
        let rows = self.races.ledger.history(&which).unwrap();
        rows.into_iter().map(|row| row.admission).collect()
    }
}

#[test]
fn a_host_is_silent_its_wire_is_cut_and_its_row_is_deleted() {
    let mut hosts = Hosts::new();
    let s = hosts.races.surface("s");
    let for_b = |request: &str| Sent { machine: 2, ..Sent::local(&s, request) };

    // A leaves something for B, which picks it up and starts.
    assert!(hosts.a(What::Submit(Sent { queue: true, ..for_b("r") })).created);
    assert_eq!(hosts.a(What::Pickup { machine: 1 }).admission, None, "it is not A's");
    let picked = hosts.b(What::Pickup { machine: 2 });
    let (r, token) = (picked.admission.unwrap(), picked.token.unwrap());
    assert_eq!(hosts.b(What::Started { token, machine: 2 }).phase, Some(Phase::Started));
    let running = hosts.races.show(Some(r));

    // B is silent for 13 hours. Nothing moves, whatever A does.
    hosts.wire.cut();
    hosts.races.pass_ms(13 * HOUR_MS);
    assert_eq!(hosts.uncertain(), [r]);
    for _ in 0..2 {
        let other = hosts.a(What::Submit(Sent::local(&s, "other")));
        assert_eq!((other.code.as_str(), other.admission), ("busy", Some(r)));
        assert_eq!(hosts.a(What::LegacyTake { surface: s.clone() }).code, "busy");
        assert_eq!(hosts.a(What::Attach { admission: r, machine: 1 }).code, "not_destination");
        let picked = hosts.a(What::Pickup { machine: 1 });
        assert_eq!((picked.admission, picked.expired.len(), picked.open.len()), (None, 0, 0));
    }
    assert_eq!(hosts.races.show(Some(r)), running, "it is as B left it");
    let refusals = hosts.races.ledger.refusals(Some(&key(&s))).unwrap();
    assert!(refusals.iter().any(|refused| refused.request.as_str() == "other" && refused.code == "busy"));

    // B is back, sees it first, goes on with it and ends it.
    hosts.wire.mend();
    let back = hosts.b(What::Pickup { machine: 2 });
    assert_eq!((back.open.as_slice(), back.expired.len()), (&[r][..], 0));
    let token = hosts.b(What::Attach { admission: r, machine: 2 }).token.unwrap();
    assert_eq!(hosts.uncertain(), []);
    assert!(hosts.b(What::Close { admission: r, token, machine: 2, kind: K::Succeeded }).ok());

    // The wire is cut between the commit of B's start and its answer.
    hosts.wire.at_commit.store(true, Ordering::SeqCst);
    let begun = std::time::Instant::now();
    let lost = hosts.b(What::Submit(for_b("q")));
    assert_eq!(lost.code, "unknown");
    assert!(begun.elapsed().as_secs() < 60, "nothing tells B that the wire is cut: {:?}", begun.elapsed());
    let q =
        hosts.races.rows(&s).into_iter().find(|row| row.request.as_str() == "q").expect("it was committed").admission;
    assert_eq!(hosts.a(What::Submit(Sent::local(&s, "other-2"))).admission, Some(q));
    assert!(["unknown", "ledger_unreachable"].contains(&hosts.b(What::Submit(for_b("q"))).code.as_str()));
    hosts.wire.mend();
    let again = hosts.b(What::Submit(for_b("q")));
    assert_eq!((again.admission, again.created, again.token.is_some()), (Some(q), false, true));

    // And again while it says that it starts: said again, it is the same start.
    let token = again.token.unwrap();
    hosts.wire.at_commit.store(true, Ordering::SeqCst);
    assert_eq!(hosts.b(What::Started { token: token.clone(), machine: 2 }).code, "unknown");
    hosts.wire.mend();
    let started = hosts.b(What::Started { token: token.clone(), machine: 2 });
    assert_eq!((started.code.as_str(), started.admission, started.phase), ("ok", Some(q), Some(Phase::Started)));

    // The row of B is deleted while B is away; what B has open stays, and B comes back to it.
    hosts.wire.cut();
    assert!(hosts.a(What::Forget { machine: 2 }).ok());
    hosts.races.pass_ms(HOUR_MS);
    assert_eq!(hosts.a(What::Submit(Sent::local(&s, "other-3"))).admission, Some(q));
    hosts.wire.mend();
    let late = hosts.b(What::Submit(for_b("q")));
    assert_eq!((late.admission, late.created), (Some(q), false));
    assert_eq!(hosts.b(What::Pickup { machine: 2 }).open, [q]);
    let close = |token| What::Close { admission: q, token, machine: 2, kind: K::Failed };
    assert_eq!(hosts.b(close(token)).code, "credential_expired");
    assert!(hosts.b(close(late.token.unwrap())).ok());

    // The surface is free for A.
    let last = hosts.a(What::SubmitAndStart(Sent::local(&s, "other-4")));
    assert_eq!(last.phase, Some(Phase::Started));
    assert_eq!(hosts.races.rows(&s).len(), 3);
}
