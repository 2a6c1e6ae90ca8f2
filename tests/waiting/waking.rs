//! What wakes a waiter. The watch is stopped in all of them, so a node that nobody rings for is found after ten seconds.

use std::time::{Duration, Instant};

use crate::sleeper::{SOON, Sleeper};
use crate::support::{Sandbox, finish};

/// A table as `before` makes it, one waiter asleep with these arguments; `verb` is to give it `node`.
#[track_caller]
fn wakes(before: &[&str], args: &[&str], verb: &str, node: &str) {
    let sandbox = Sandbox::new();
    before.iter().for_each(|verb| drop(sandbox.ok(verb.split(' '))));
    let _watcher = Sleeper::stopped_watcher(&sandbox);
    let sleeper = Sleeper::start(&sandbox, "w", args);
    sandbox.ok(verb.split(' '));
    let ran = sleeper.finish(verb);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.starts_with(&format!("{node} gen=")), "{verb}: {ran:?}");
}

const TWO: [&str; 3] = ["upsert a", "upsert b --needs a", "claim a --holder h"];

#[test]
fn a_completion() {
    wakes(&TWO, &[], "complete a --holder h", "b");
}

#[test]
fn a_release() {
    wakes(&TWO, &[], "release a --holder h", "a");
    wakes(&TWO, &[], "release a --force", "a");
}

#[test]
fn a_reclaim() {
    wakes(&TWO, &[], "reclaim --lease 0", "a");
}

#[test]
fn a_reopening() {
    wakes(&["upsert a", "complete a"], &[], "reopen a", "a");
    wakes(&["upsert a", "complete a --status failed", "upsert b", "claim b --holder h"], &[], "reopen a", "a");
}

#[test]
fn an_unlinking() {
    wakes(&TWO, &[], "unlink a b", "b");
}

#[test]
fn a_new_node() {
    wakes(&[], &[], "upsert a", "a");
}

#[test]
fn a_node_whose_role_is_taken_from_it() {
    wakes(&["upsert a --role r"], &[], "upsert a --role ", "a");
}

#[test]
fn a_failure_that_does_not_matter() {
    let before = ["upsert a", "upsert b", "link a b --on-failure continue", "claim a --holder h"];
    wakes(&before, &[], "complete a --holder h --status failed", "b");
    wakes(&before, &[], "complete a --holder h --status cancelled", "b");
}

#[test]
fn a_failure_that_skips_what_somebody_only_waits_the_end_of() {
    let before = [
        "upsert a",
        "upsert b",
        "upsert c",
        "link a b --on-failure skip",
        "link b c --on-failure continue",
        "claim a --holder h",
    ];
    wakes(&before, &[], "complete a --holder h --status failed", "c");
}

#[test]
fn a_link_made_weaker() {
    let before = ["upsert a", "upsert b", "link a b", "complete a --status failed"];
    wakes(&before, &[], "link a b --on-failure continue", "b");
}

#[test]
fn a_waiter_that_offers_the_role() {
    wakes(&[], &["--role", "r"], "upsert a --role r", "a");
    let before = ["upsert a", "upsert b --needs a --role r", "claim a --holder h"];
    wakes(&before, &["--role", "q", "--role", "r"], "complete a --holder h", "b");
}

#[test]
fn the_one_who_offers_the_role_among_those_who_do_not() {
    let sandbox = Sandbox::new();
    let _watcher = Sleeper::stopped_watcher(&sandbox);
    // More than there are bits for roles: some share one with the role that is asked for.
    let mut others: Vec<Sleeper> =
        (0..40).map(|i| Sleeper::awake(&sandbox, &format!("o{i}"), &["--role", &format!("other-{i}")])).collect();
    others.iter().for_each(Sleeper::await_sleep);
    let sleeper = Sleeper::start(&sandbox, "w", &["--role", "r"]);
    sandbox.ok(["upsert", "a", "--role", "r"]);
    let ran = sleeper.finish("a node of the role");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "a gen=1\n"), "{ran:?}");
    assert_eq!(others.iter_mut().filter_map(|other| other.has_ended().then_some(())).count(), 0);
}

#[test]
fn a_seat_in_a_group() {
    let before = ["group g --limit 1", "upsert a --group g", "upsert b --group g", "claim a --holder h"];
    wakes(&before, &[], "complete a --holder h", "b");
    wakes(&before, &[], "complete a --holder h --status failed", "b");
    wakes(&before, &[], "group g --limit 2", "b");
    wakes(&before, &[], "upsert a --group ", "b");
    wakes(&before, &[], "upsert b --group ", "b");
}

#[test]
fn a_seat_that_a_node_of_a_role_nobody_offers_might_have_too() {
    let before = [
        "group g --limit 1",
        "upsert a --group g",
        "upsert first --group g --role nobody --cost 100",
        "upsert b --group g",
        "claim a --holder h",
    ];
    wakes(&before, &[], "complete a --holder h", "b");
}

#[test]
fn a_lease_that_runs_out_while_everybody_sleeps() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "a"]);
    let began = Instant::now();
    sandbox.ok(["claim", "a", "--holder", "h", "--lease", "0.6"]);
    let first = Sleeper::start(&sandbox, "w", &[]);
    let ran = first.finish("a lease that runs out");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "a gen=3\n"), "{ran:?}");
    assert!(began.elapsed() >= Duration::from_millis(600), "{:?}", began.elapsed());
}

#[test]
fn the_watch_is_handed_on() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "a"]);
    sandbox.ok(["upsert", "b"]);
    sandbox.ok(["claim", "a", "--holder", "h", "--lease", "1"]);
    sandbox.ok(["claim", "b", "--holder", "i"]);
    let watcher = Sleeper::start(&sandbox, "watcher", &[]);
    let second = Sleeper::start(&sandbox, "second", &[]);
    sandbox.ok(["upsert", "c"]);
    sandbox.ok(["upsert", "d"]);
    let third = Sleeper::start(&sandbox, "third", &[]);
    for sleeper in [watcher, second] {
        assert_eq!(sleeper.finish("a new node").code, Some(0));
    }
    let ran = third.finish("a lease that runs out after the watcher has left");
    assert_eq!(ran.out, "a gen=3\n", "{ran:?}");
}

#[test]
fn nothing_but_the_end_of_its_time() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "a", "--role", "r"]);
    let began = Instant::now();
    let ran = sandbox.run(["claim-next", "--holder", "w", "--wait", "0.4"]);
    ran.refused(3, "nothing is ready");
    assert!(began.elapsed() >= Duration::from_millis(400) && began.elapsed() < SOON, "{:?}", began.elapsed());
    sandbox.run(["claim-next", "--holder", "w", "--wait", "0", "--json"]).refused_json(3, "nothing_ready");
    for wrong in ["-1", "x", "nan", "1e9"] {
        let ran = finish(sandbox.command().args(["claim-next", "--holder", "w", &format!("--wait={wrong}")]));
        ran.refused(2, "--wait");
    }
}

#[test]
fn a_busy_holder_does_not_wait() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "a"]);
    sandbox.claim("a", "w");
    sandbox.run(["claim-next", "--holder", "w", "--wait"]).refused(1, "already holds a");
    let again = sandbox.ok(["claim-next", "--holder", "w", "--wait", "--resume"]);
    assert_eq!(again, "a gen=1");
}
