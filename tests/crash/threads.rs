//! Three processes, two of them stopped.

use tenure::probe;

use crate::full::FULL;
use crate::points::{prepare, report};
use crate::world::World;

/// A verb on a thread of its own that stops before its `k`-th access until it is told to go on.
struct Stopped {
    go_on: std::sync::mpsc::Sender<()>,
    thread: std::thread::JoinHandle<String>,
}

impl Stopped {
    /// `None`: it came to its end before that.
    fn start(world: &World, verb: &'static str, k: u64) -> Option<Stopped> {
        let (table, now) = (world.table.clone(), probe::now_ms());
        let (go_on, wait) = std::sync::mpsc::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            probe::set_now_ms(now);
            let world = World::of(table);
            probe::arm(k, false, move || {
                tell.send(()).unwrap();
                wait.recv().unwrap();
            });
            let answer = world.run(verb);
            probe::disarm();
            answer
        });
        told.recv().ok()?;
        Some(Stopped { go_on, thread })
    }

    fn finish(self) -> String {
        self.go_on.send(()).unwrap();
        self.thread.join().unwrap()
    }
}

#[test]
fn a_renewal_that_succeeded_is_not_followed_by_a_reclaim_whoever_wakes_up_late() {
    let mut found = Vec::new();
    for k in 30.. {
        let mut stopped_late = false;
        for j in 0.. {
            let (_, world) = prepare("upsert a;register w1;register w2", None);
            let Some(late) = Stopped::start(&world, "claim w1 a", k) else { break };
            stopped_late = true;
            for verb in ["tick 1500", "reclaim", "tick 1500", "reclaim"] {
                world.run(verb);
            }
            let claimed = world.run("claim w2 a");
            world.run("tick 2000");
            let reclaimer = Stopped::start(&world, "reclaim", j);
            late.finish();
            let Some(reclaimer) = reclaimer else { break };
            let renewed = world.run("renew w2 a lease=60000");
            let taken = reclaimer.finish();
            if renewed.starts_with("renewed") && taken.contains("of w2") {
                found.push(format!("claim w1 stopped at {k}, w2: {claimed}; reclaim stopped at {j}; renew w2: {renewed}; the reclaim took {taken}"));
            }
        }
        if !stopped_late {
            break;
        }
    }
    report(found);
}

#[test]
fn a_slot_without_a_node_is_never_given_out() {
    let mut found = Vec::new();
    for k in 100..400 {
        for j in 380..1500 {
            let setup = format!("{FULL};register w1;register w2;register w3;claim w1 n8");
            let (_, world) = prepare(&setup, None);
            let Some(release) = Stopped::start(&world, "release w1 n8", k) else { break };
            if world.run("get n8") != "Ready gen=2 None None" {
                release.finish();
                break;
            }
            for n in 5..9 {
                world.run(&format!("complete n{n} cancelled"));
            }
            let Some(import) = Stopped::start(&world, "import-and-touch n1 m1 m2 m3 m4", j) else {
                release.finish();
                break;
            };
            world.run("complete n1 cancelled");
            let imported = import.finish();
            release.finish();
            for _ in 0..10 {
                let got = world.run("next w2");
                if got.contains("no node") {
                    world.run("tick 100000");
                    found.push(format!("release stopped at {k}, import at {j}: {imported}; next: {got}; reclaim after the lease: {:?}; again: {}", world.run("reclaim"), world.run("next w2")));
                }
                let Some(node) = got.split(' ').next().filter(|_| got.contains("gen=")) else { break };
                world.run(&format!("complete {node} done by=w2"));
            }
            if found.len() > 3 {
                return report(found);
            }
        }
    }
    report(found);
}
