//! Suspicions, each with the interleaving it needs.

use crate::full::FULL;
use crate::points::{pause, prepare, report};
use crate::world::World;

#[test]
fn a_kept_handle_whose_name_was_evicted_has_nothing_of_the_one_that_has_its_slot() {
    let (own, others) = prepare("upsert a;upsert b;!worker w1", None);
    for name in ["x1", "x2", "x3", "x4", "x5", "x6"] {
        // Names come and go; sooner or later one gets the slot of w1 and works.
        let won = others.run(&format!("claim {name} a"));
        for verb in ["knext w1 resume=1", "kclaim w1 b resume=1", "current w1"] {
            let answer = own.run(verb);
            assert!(!answer.starts_with("a gen"), "{name} won {won}; then {verb} by w1 gave {answer}");
            own.run("release w1 b");
        }
        assert_eq!(
            own.run("knext w1"),
            "b gen=1 resumed=false".replace("gen=1", &answer_gen(&others)),
            "while {name} holds a"
        );
        own.run("release w1 b");
        others.run(&format!("release {name} a"));
    }
}

fn answer_gen(world: &World) -> String {
    let text = world.run("get b");
    text.split(' ').find(|w| w.starts_with("gen=")).unwrap().to_owned()
}

scenario!(
    a_late_start_of_a_lease_does_not_touch_a_later_claim,
    pause,
    "upsert a;register w1;register w2",
    "claim w1 a",
    "tick 1500;reclaim;tick 1500;reclaim;claim w2 a lease=50000//tick 9000;reclaim;tick 9000;reclaim;get a"
);
scenario!(
    a_claim_has_the_lease_it_asked_for_also_when_a_reclaimer_was_first,
    pause,
    "upsert a;register w1;register w2",
    "claim w1 a lease=50000",
    "reclaim//tick 9000;reclaim;get a"
);
scenario!(
    a_renewal_of_an_old_claim_does_not_keep_the_next_from_its_lease,
    pause,
    "upsert a;register w1;register w2;claim w1 a",
    "claim w2 a lease=50000",
    "force a//tick 9000;reclaim;tick 9000;reclaim;get a"
);
scenario!(
    a_claim_is_won_once_also_by_two_processes_of_one_name,
    pause,
    "upsert a;upsert d;register w1",
    "claim w1 a",
    "link d a;claim w1 d;complete d done by=w1;claim w1 a"
);
scenario!(
    what_was_reopened_first_is_not_overtaken_by_an_end,
    pause,
    "upsert d;upsert n needs=d;complete d done;claim w1 n",
    "complete n done by=w1",
    "reopen d;get n"
);
scenario!(
    a_failed_attempt_is_counted_before_the_node_is_reopened,
    pause,
    "upsert a attempts=3;claim w1 a",
    "complete a failed by=w1 gen=1",
    "complete a done;reopen a"
);
scenario!(
    what_is_not_ready_is_told_of_the_claim_that_could_not_be_ended,
    pause,
    "upsert d;upsert n;claim w1 n;link d n",
    "complete n done by=w1 gen=1",
    "force n;get n"
);
scenario!(a_reopen_answers_with_the_generation_it_made, pause, "upsert a;complete a done", "reopen a", "archive a");
scenario!(
    a_release_by_name_is_of_that_name_1,
    pause,
    "upsert a;register w1;register w2;register w3;claim w1 a;tick 2000",
    "release w1 a",
    "reclaim;register x1;claim x1 a;get a"
);
scenario!(
    a_release_by_name_is_of_that_name_2,
    pause,
    "upsert a;register w1;register w2;register w3;claim w1 a;tick 2000",
    "release w1 a",
    "reclaim;register x1;register x2;claim x2 a;get a"
);
scenario!(
    a_completion_by_name_is_of_that_name,
    pause,
    "upsert a;register w1;register w2;register w3;claim w1 a;tick 2000",
    "complete a done by=w1",
    "reclaim;register x1;register x2;register x3;claim x3 a;get a"
);
scenario!(
    a_renewal_by_name_is_of_that_name,
    pause,
    "upsert a;register w1;register w2;register w3;claim w1 a;tick 2000",
    "renew w1 a",
    "reclaim;register x1;register x2;register x3;claim x3 a;get a"
);
scenario!(
    a_release_asks_for_no_delay_also_when_a_reclaim_lost_against_it,
    pause,
    "upsert a delay=60000;register w1;register w2;claim w1 a;tick 2000",
    "reclaim",
    "force a//claim w2 a"
);
scenario!(
    a_cut_is_of_one_moment,
    pause,
    "upsert a;upsert c",
    "list",
    "upsert d1;upsert d2;upsert d3;upsert d4;complete c done"
);
scenario!(a_holder_is_seen_with_one_claim, pause, "upsert a;upsert b;claim w1 b", "holders", "release w1 b;claim w1 a");
scenario!(
    an_end_keeps_its_time,
    pause,
    "upsert a;claim w1 a",
    "complete a done by=w1",
    "tick 2000;reclaim;complete a failed;tick 100;finished a//finished a"
);
scenario!(
    what_an_ended_node_is_asked_to_be_is_compared_with_what_it_is,
    pause,
    "upsert a summary=x;complete a done summary=y",
    "get a",
    "upsert a summary=x"
);

#[test]
fn an_upsert_of_an_ended_node_says_what_it_is() {
    let (_, world) = prepare("upsert a summary=x;complete a done summary=y", None);
    let answer = world.run("upsert a summary=x");
    assert_ne!(answer, "Unchanged", "its summary is {}", world.run("get a"));
}

#[test]
fn a_claim_of_ones_own_that_has_run_out_holds_nobody_up() {
    let (_, world) = prepare("upsert a;upsert b;claim w1 a;tick 5000", None);
    let answer = world.run("claim w1 b");
    assert!(answer.starts_with("b gen"), "{answer}");
}

#[test]
fn an_upsert_that_is_refused_has_pruned_nothing() {
    let (_, world) = prepare(&format!("{FULL};complete n1 done"), None);
    let before = world.dump();
    // n2 belongs under the new node and the new node waits for n2: refused as a loop or taken, but not half.
    let answer = world.run("upsert n9 needs=n2 parent=n9");
    assert_eq!(before, world.dump(), "{answer}");
}

/// Writes a word of the table's file.
fn overwrite(world: &World, offset: u64, word: u64) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new().write(true).open(table_file(world)).unwrap();
    file.write_all_at(&word.to_le_bytes(), offset).unwrap();
}

fn table_file(world: &World) -> std::path::PathBuf {
    let entries = std::fs::read_dir(world.dir.path()).unwrap().map(|e| e.unwrap().path());
    let mut tables: Vec<_> = entries.filter(|p| p.metadata().unwrap().len() > 8192).collect();
    assert_eq!(tables.len(), 1, "{tables:?}");
    tables.remove(0)
}

#[test]
fn a_reopen_whose_dependent_is_at_its_last_generation_is_refused_at_once() {
    let (_, world) = prepare("upsert a;upsert b needs=a;complete a done", None);
    // The second node: the last generation that can be claimed, and a guard that is used up.
    let last = ((1 << 36) - 1 - 16) << 28 | ((1 << 24) - 1) << 4;
    overwrite(&world, 4096 + 64, last);
    assert!(world.run("get b").contains(&format!("gen={}", (1u64 << 36) - 17)), "{}", world.run("get b"));
    let from = std::time::Instant::now();
    let answer = world.run("reopen a");
    assert!(from.elapsed().as_secs() < 2, "{answer} after {:?}", from.elapsed());
}

#[test]
fn a_creation_number_at_its_end_is_an_error() {
    let (_, world) = prepare("upsert a", None);
    // `next_born` stands at offset 48 of every version; versions fill the end of the file, four of them.
    let fixed = 4096 + 64 * (8 + 4 + 4) + 128 * 56;
    let size = (table_file(&world).metadata().unwrap().len() - fixed) / 4;
    for v in 0..4 {
        overwrite(&world, fixed + v * size + 48, u64::MAX);
    }
    let answer = world.run("upsert b");
    assert!(answer.contains("creation numbers"), "{answer}");
}
