//! Machines: a key is an identity, a label is a word, and nobody acts as a machine whose key is elsewhere.

use serde_json::json;

use crate::support::World;

fn id(world: &World) -> String {
    world.ok(["machine", "show"])
}

/// A9: a new label changes nothing about what is open.
#[test]
fn a_label_is_only_a_word() {
    let world = World::new();
    world.ok(["machine", "label", "Build-1"]);
    let before = world.one(["admit", "docs", "--request", "r1"]);
    world.ok(["machine", "label", "build-2"]);
    let after = world.shown("r1");
    assert_eq!(before["machine"], after["machine"]);
    assert_eq!(before["admission"], after["admission"]);
    assert_eq!(world.ok(["machine", "show", "--machine", "build-2"]), id(&world));
    let labels = world.all(["machine", "list"]);
    assert_eq!(labels[0]["label"], "build-2");
}

/// A32: M2 gets nothing of what is M1's, also with M1's token.
#[test]
fn another_machine_is_not_the_destination() {
    let world = World::new();
    world.ok(["machine", "add", "m2"]);
    let admitted = world.one(["admit", "docs", "--request", "r1"]);
    let adm = admitted["admission"].as_str().unwrap();
    let token = format!("@{}", world.file("token", admitted["token"].as_str().unwrap()));
    world.run(["attach", adm, "--machine", "m2"]).refused(19, "not the destination");
    world.run(["started", adm, "--machine", "m2", "--token", &token]).refused(19, "not the destination");
    world
        .run(["close", adm, "--machine", "m2", "--token", &token, "--kind", "failed-before-start"])
        .refused(19, "not the destination");
    assert_eq!(world.run(["pickup", "--machine", "m2"]).code, Some(3));
    let start = world.run(["start", "docs", "--machine", "m2", "--request", "r2", "--json", "--", "true"]);
    let refused = start.refused_json(19, "not_destination");
    assert_eq!(refused["destination"], json!(id(&world)), "{refused}");
    assert_eq!(world.one(["attach", adm])["attach_number"], json!(2), "and M1 goes on");
}

#[test]
fn nobody_acts_as_a_machine_that_is_elsewhere() {
    let world = World::new();
    world.run(["pickup", "--machine", "far-away"]).refused(2, "no key of far-away");
    let strange = "m-00000000000000000000000000000000";
    world.run(["pickup", "--machine", strange]).refused(2, "no key");
    world
        .run(["submit", "docs", "--machine", "far-away", "--request", "r", "--", "true"])
        .refused(4, "no machine called");
    // As a destination it may be elsewhere, where it is placed.
    world.ok(["place", "docs", "--machine", strange, "--path", "/srv/docs"]);
    assert_eq!(world.one(["submit", "docs", "--machine", strange, "--request", "r", "--", "true"])["machine"], strange);
    assert_eq!(world.run(["pickup"]).code, Some(3), "A39: not this machine's");
}

/// A58: the row of a machine goes, and what it had open stays; a late copy is the same admission.
#[test]
fn forgetting_a_machine_forgets_no_admission() {
    let world = World::new();
    world.ok(["machine", "label", "m1"]);
    let admitted = world.one(["admit", "docs", "--request", "r1"]);
    world.ok(["machine", "forget", "m1"]);
    let again = world.one(["admit", "docs", "--request", "r1"]);
    assert_eq!((&again["admission"], &again["created"]), (&admitted["admission"], &json!(false)));
    assert_eq!(world.all(["history"]).len(), 1);
}
