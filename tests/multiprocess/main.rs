//! One table, many processes, and signals that no process can catch.
//!
//! The test binary starts itself again as a worker: [`crew`] runs it with `--exact worker_entry` and the role in the
//! environment, so every role is a plain function in the file of the test that needs it.

mod contention;
mod creation;
mod crew;
mod crowd;
mod fences;
mod graph;
mod killed;
mod stopped;
mod writers;

/// Not a test of its own: what a started worker runs. Without a role in the environment there is nothing to do.
#[test]
fn worker_entry() {
    let Some(role) = crew::role() else { return };
    let role: fn(&crew::Orders) = match role.as_str() {
        "win_rounds" => contention::win_rounds,
        "win_chain" => contention::win_chain,
        "one_name" => contention::one_name,
        "create" => creation::create,
        "acknowledge_late" => fences::acknowledge_late,
        "claim_and_hang" => fences::claim_and_hang,
        "link_at_random" => graph::link_at_random,
        "link_children" => graph::link_children,
        "complete_parents" => graph::complete_parents,
        "reclaim_at_once" => killed::reclaim_at_once,
        "everything" => killed::everything,
        "work_through" => killed::work_through,
        "take_all" => crowd::take_all,
        "upsert_names" => writers::upsert_names,
        "set_field" => writers::set_field,
        other => panic!("no role is called {other}"),
    };
    role(&crew::orders());
}
