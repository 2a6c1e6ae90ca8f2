//! Many processes at once, each of them the program.

use std::process::{Child, Stdio};

use crate::support::{Ran, Sandbox};

/// Starts all, and only then waits for each.
fn together(children: impl IntoIterator<Item = Child>) -> Vec<Ran> {
    let children: Vec<Child> = children.into_iter().collect();
    let end = |child: Child| {
        let output = child.wait_with_output().expect("it ends");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8 output");
        Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    };
    children.into_iter().map(end).collect()
}

fn start(sandbox: &Sandbox, args: &[&str]) -> Child {
    let mut command = sandbox.command();
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

#[test]
fn one_node_has_one_winner() {
    let sandbox = Sandbox::new();
    for round in 0..5 {
        let node = format!("n{round}");
        sandbox.ok(["upsert", &node]);
        let holders: Vec<String> = (0..24).map(|n| format!("w{n}")).collect();
        let all = together(holders.iter().map(|holder| start(&sandbox, &["claim", &node, "--holder", holder])));
        let won: Vec<usize> = (0..all.len()).filter(|n| all[*n].code == Some(0)).collect();
        assert_eq!(won.len(), 1, "{all:?}");
        for ran in all.iter().filter(|ran| ran.code != Some(0)) {
            ran.refused(1, "is held by");
        }
        let holder = &holders[won[0]];
        assert_eq!(sandbox.one(["get", &node])["holder"], holder.as_str());
        sandbox.ok(["release", &node, "--holder", holder]);
    }
}

#[test]
fn one_holder_has_one_claim() {
    let sandbox = Sandbox::new();
    let nodes: Vec<String> = (0..16).map(|n| format!("n{n}")).collect();
    for node in &nodes {
        sandbox.ok(["upsert", node]);
    }
    let all = together(nodes.iter().map(|node| start(&sandbox, &["claim", node, "--holder", "w"])));
    assert_eq!(all.iter().filter(|ran| ran.code == Some(0)).count(), 1, "{all:?}");
    for ran in all.iter().filter(|ran| ran.code != Some(0)) {
        ran.refused(1, "already holds");
    }
}

#[test]
fn claim_next_gives_everybody_another_node() {
    let sandbox = Sandbox::new();
    for n in 0..8 {
        sandbox.ok(["upsert", &format!("n{n}")]);
    }
    let holders: Vec<String> = (0..16).map(|n| format!("w{n}")).collect();
    let all = together(holders.iter().map(|holder| start(&sandbox, &["claim-next", "--holder", holder])));
    let mut given: Vec<&str> = all.iter().filter(|ran| ran.code == Some(0)).map(|ran| ran.out.trim()).collect();
    given.sort_unstable();
    given.dedup();
    assert_eq!(given.len(), 8, "{all:?}");
    assert_eq!(all.iter().filter(|ran| ran.code == Some(3)).count(), 8, "{all:?}");
}

#[test]
fn no_upsert_is_lost_and_the_table_is_made_once() {
    let sandbox = Sandbox::empty();
    let names: Vec<String> = (0..40).map(|n| format!("n{n}")).collect();
    for ran in together(names.iter().map(|name| start(&sandbox, &["upsert", name]))) {
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    assert_eq!(sandbox.json(["list"]).len(), names.len());
    sandbox.file();

    let fresh = Sandbox::empty();
    let all = together((0..16).map(|_| start(&fresh, &["init"])));
    assert!(all.iter().all(|ran| ran.code == Some(0)), "{all:?}");
    assert_eq!(all.iter().filter(|ran| ran.out.starts_with("made")).count(), 1, "{all:?}");
}

#[test]
fn two_fields_of_one_node_set_at_once_are_both_kept() {
    let sandbox = Sandbox::new();
    for round in 0..20 {
        let (kind, role) = (format!("k{round}"), format!("r{round}"));
        let all = together([
            start(&sandbox, &["upsert", "n", "--kind", &kind]),
            start(&sandbox, &["upsert", "n", "--role", &role]),
        ]);
        assert!(all.iter().all(|ran| ran.code == Some(0)), "{all:?}");
        let node = sandbox.one(["get", "n"]);
        assert_eq!((&node["kind"], &node["role"]), (&kind.as_str().into(), &role.as_str().into()));
    }
}
