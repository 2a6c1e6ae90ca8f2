//! When all is over: the rest is done by one, and what was written down is compared with the rules.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use tenure::{Filter, NodeSpec, Outcome, Refusal, Seen, Table, check};

use crate::deeds::{Deed, GROUPS, logs, read};

const EVERYTHING: Filter = Filter { terminal: true, archived: true };

/// Checks everything, and says what was counted.
pub fn judge(dir: &Path, table: &Table) -> String {
    let before = sound(dir);
    let rest = drain(table);
    let after = sound(dir);
    assert_eq!(after.counts.reserved, 0, "somebody who is gone has something in hand: {after:#?}");
    let mut told = deeds(dir);
    let left_over = before.counts.left_over;
    write!(told, "{rest} nodes done afterwards; {} nodes in the table, all done; {left_over} marks of killed processes, no place lost", after.counts.nodes)
        .expect("text");
    no_leak(dir, table);
    told
}

fn sound(dir: &Path) -> check::Report {
    let report = check::table(dir).expect("the table is there");
    assert!(report.sound && report.counts.unjudged == 0, "{report:#?}");
    report
}

/// Does everything that is left. The lease of the last dead one runs out while that goes on.
fn drain(table: &Table) -> u64 {
    let worker = table.worker("last").expect("a name");
    let mut done = 0;
    let until = Instant::now() + Duration::from_secs(300);
    loop {
        assert!(Instant::now() < until, "it does not end: {:?}", table.stats());
        match worker.claim_next() {
            Ok(claim) => {
                claim.complete(Outcome::Done).expect("nobody else is there");
                done += 1;
                continue;
            }
            Err(Refusal::NothingReady) => {}
            Err(refusal) => panic!("{refusal}"),
        }
        let left: Vec<_> =
            table.list(EVERYTHING).expect("a look").into_iter().filter(|n| n.status != Seen::Done).collect();
        if left.is_empty() {
            return done;
        }
        for node in left.iter().filter(|n| matches!(n.status, Seen::Failed | Seen::Cancelled) && n.skipped_by.is_none())
        {
            table.reopen(node.id).expect("it failed");
        }
        // Those that died holding something: their leases are short.
        table.reclaim(Some(0)).expect("nobody else is there");
    }
}

/// Every claim once, every node done once per generation, and no group with more at once than its limit.
fn deeds(dir: &Path) -> String {
    let mut claimed: HashSet<(String, u64)> = HashSet::new();
    let mut done: HashSet<(String, u64)> = HashSet::new();
    let mut did: BTreeMap<String, u64> = BTreeMap::new();
    let mut edges: BTreeMap<String, Vec<(u128, i64)>> = BTreeMap::new();
    for file in std::fs::read_dir(logs(dir)).expect("what was done").flatten() {
        let text = std::fs::read_to_string(file.path()).expect("what one did");
        for line in text.lines() {
            match read(line) {
                Deed::Claimed { node, generation } => {
                    assert!(claimed.insert((node.clone(), generation)), "{node} was claimed twice at {generation}");
                }
                Deed::Done { node, generation, group, from, to } => {
                    assert!(done.insert((node.clone(), generation)), "{node} was done twice at {generation}");
                    if group != "-" {
                        edges.entry(group).or_default().extend([(from, 1), (to, -1)]);
                    }
                }
                Deed::Did { what, times } => *did.entry(what).or_default() += times,
            }
        }
    }
    assert!(done.is_subset(&claimed), "done and never claimed");
    for (group, limit) in GROUPS {
        let mut moments = edges.remove(group).unwrap_or_default();
        assert!(!moments.is_empty(), "nothing of group {group} was done");
        moments.sort_unstable();
        let mut at_once = 0;
        for (_, change) in moments {
            at_once += change;
            assert!(at_once <= i64::from(limit), "{at_once} of group {group} at once");
        }
    }
    for what in ["imported", "renewed", "snapshots", "archived", "reopened"] {
        assert!(did.get(what).is_some_and(|&times| times > 0), "nobody has {what}: {did:?}");
    }
    assert!(done.len() > 50, "only {} done", done.len());
    let mut told = format!("{} claims, {} done once per generation, ", claimed.len(), done.len());
    did.iter().for_each(|(what, times)| write!(told, "{times} {what}, ").expect("text"));
    told
}

/// As much fits into the table as into a new one: nodes, holders, text, versions.
fn no_leak(dir: &Path, table: &Table) {
    let stats = table.stats().expect("a look");
    let text = "x".repeat(1_000);
    let specs: Vec<NodeSpec> = (0..stats.capacity)
        .map(|i| NodeSpec { name: Some(format!("new{i}")), summary: Some(text.clone()), ..NodeSpec::default() })
        .collect();
    table.import(&specs).expect("all that has ended makes room");
    for i in 0..stats.holders_max - 1 {
        table.worker(&format!("holder{i}")).expect("a name that holds nothing makes room");
        if i > 20 && i % 500 != 0 {
            continue;
        }
    }
    let after = table.stats().expect("a look");
    assert_eq!((after.nodes, after.text_blocks_reserved, after.versions_reserved), (stats.capacity, 0, 0));
    sound(dir);
}
