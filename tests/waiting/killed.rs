//! A waiter that is killed just when it is woken takes nothing with it.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenure::{NodeId, NodeSpec, Outcome, Table};

use crate::sleeper::Sleeper;
use crate::support::Sandbox;

fn node(role: &str, name: String) -> NodeSpec {
    NodeSpec { name: Some(name), role: Some(role.to_owned()), ..NodeSpec::default() }
}

/// Rounds of: one waiter that has slept longest and is killed around the ring, one that is left. Both offer the role that
/// the node asks for and the watcher does not, so it can give the node to nobody but by waking them.
#[test]
fn a_waiter_killed_when_it_is_woken_holds_nobody_up() {
    let sandbox = Sandbox::new();
    let table = Table::open(sandbox.dir()).unwrap();
    let _watcher = Sleeper::start(&sandbox, "watcher", &[]);
    let (mut rounds, mut taken_over) = (0_u64, 0);
    let mut longest = Duration::ZERO;
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(3) || rounds < 4 {
        rounds += 1;
        let mut victim = Sleeper::start(&sandbox, &format!("victim{rounds}"), &["--role", "r"]);
        let mut heir = Sleeper::start(&sandbox, &format!("heir{rounds}"), &["--role", "r"]);
        let name = format!("n{rounds}");
        let killer = std::thread::spawn({
            // Some microseconds before or after the ring; the same ones in every run of the test.
            let (wait_us, before_the_ring) = (rounds * 7_919 % 600, rounds.is_multiple_of(4));
            let at = Instant::now() + Duration::from_micros(3_000);
            move || {
                let at = if before_the_ring {
                    at - Duration::from_micros(wait_us / 4)
                } else {
                    at + Duration::from_micros(wait_us)
                };
                while Instant::now() < at {
                    std::hint::spin_loop();
                }
                victim.signal(Signal::KILL);
                victim.kill();
            }
        });
        std::thread::sleep(Duration::from_micros(2_000));
        table.upsert(&node("r", name.clone()), false).unwrap();
        let rung = Instant::now();
        let id = NodeId::of_name(&name);
        let holder = loop {
            if let Some(holder) = table.get(id).unwrap().holder {
                break holder;
            }
            // Half a second until the watcher's next look, and what a busy machine adds.
            assert!(rung.elapsed() < Duration::from_secs(4), "round {rounds}: nobody has it");
            std::thread::sleep(Duration::from_micros(300));
        };
        longest = longest.max(rung.elapsed());
        killer.join().unwrap();
        taken_over += u64::from(holder.starts_with("heir"));
        heir.kill();
        let generation = table.get(id).unwrap().generation;
        let done =
            tenure::Completion { outcome: Outcome::Done, generation: Some(generation), holder: None, summary: None };
        table.complete(id, &done).unwrap();
    }
    assert!(taken_over > 0, "of {rounds} victims none was killed in time");
    let stats = table.stats().unwrap();
    assert_eq!((stats.text_blocks_reserved, stats.versions_reserved), (0, 0), "{stats:?}");
    eprintln!("{rounds} rounds, {taken_over} nodes went to the heir, the longest after {longest:?}");
}
