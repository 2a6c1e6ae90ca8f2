//! Every way to be refused: exit code, error code, the fields that go with it, and words that help.

use serde_json::json;

use crate::support::Sandbox;

#[test]
fn one_busy_held_and_stale_fences() {
    let sandbox = Sandbox::new();
    for name in ["a", "b"] {
        sandbox.ok(["upsert", name]);
    }
    let generation = sandbox.claim("a", "w");
    let busy = sandbox.run(["claim", "b", "--holder", "w", "--json"]).refused_json(1, "busy");
    assert_eq!((&busy["node"], &busy["holder"], &busy["generation"]), (&json!("a"), &json!("w"), &json!(generation)));
    let held = sandbox.run(["claim", "a", "--holder", "v", "--json"]).refused_json(1, "held");
    assert_eq!((&held["holder"], &held["generation"]), (&json!("w"), &json!(generation)));

    let stale = (generation - 1).to_string();
    for verb in ["renew", "release", "complete"] {
        let ran = sandbox.run([verb, "a", "--holder", "w", "--gen", &stale, "--json"]);
        let mismatch = ran.refused_json(1, "generation_mismatch");
        assert_eq!((&mismatch["found"], &mismatch["generation"]), (&json!(generation), &json!(generation)), "{verb}");
        assert_eq!(mismatch["held_by"], "w", "{verb}");
        let stranger = sandbox.run([verb, "a", "--holder", "v", "--json"]).refused_json(1, "not_holder");
        assert_eq!((&stranger["holder"], &stranger["held_by"]), (&json!("v"), &json!("w")), "{verb}");
    }
    sandbox.run(["complete", "a"]).refused(1, "w");
    assert_eq!(sandbox.status("a"), "claimed");
}

#[test]
fn one_a_lost_claim_says_who_has_it_now() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    let old = sandbox.claim("n", "a").to_string();
    sandbox.ok(["release", "n", "--force"]);
    sandbox.claim("n", "b");
    sandbox.run(["renew", "n", "--holder", "a", "--gen", &old]).refused(1, "b");
    sandbox.run(["complete", "n", "--holder", "a"]).refused(1, "b");
    sandbox.run(["complete", "n"]).refused(1, "b");
    assert_eq!(sandbox.one(["get", "n"])["holder"], "b");
}

#[test]
fn one_what_nobody_holds_is_not_renewed_or_handed_back() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    sandbox.run(["renew", "n", "--holder", "w", "--json"]).refused_json(1, "not_holder");
    sandbox.run(["release", "n", "--holder", "w", "--json"]).refused_json(1, "not_holder");
    let ran = sandbox.run(["complete", "n", "--holder", "w"]);
    ran.refused(1, "w does not hold n");
    assert!(ran.err.contains("without --holder"), "{ran:?}");
    sandbox.run(["release", "n", "--force"]).refused(1, "nobody holds n: it is ready");
    let object = sandbox.run(["release", "n", "--force", "--json"]).refused_json(1, "not_held");
    assert_eq!((&object["node"], &object["status"]), (&json!("n"), &json!("ready")));
    sandbox.ok(["complete", "n"]);
}

#[test]
fn one_not_ready_names_what_it_waits_for() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "a"]);
    sandbox.ok(["upsert", "b", "--needs", "a"]);
    let refused = sandbox.run(["claim", "b", "--holder", "w", "--json"]).refused_json(1, "not_ready");
    assert_eq!((&refused["status"], &refused["waits_for"]), (&json!("todo"), &json!(["a"])));
    sandbox.run(["complete", "b"]).refused(1, "a");
    sandbox.ok(["complete", "a", "--status", "failed"]);
    let blocked = sandbox.run(["claim", "b", "--holder", "w"]);
    blocked.refused(1, "blocked");
    assert!(blocked.err.contains("hint:"), "{blocked:?}");
}

#[test]
fn one_loops_and_ends() {
    let sandbox = Sandbox::new();
    for name in ["a", "b", "c"] {
        sandbox.ok(["upsert", name]);
    }
    sandbox.ok(["link", "a", "b"]);
    sandbox.ok(["link", "b", "c"]);
    let cycle = sandbox.run(["link", "c", "a", "--json"]).refused_json(1, "cycle");
    let path = cycle["path"].as_array().expect("a path");
    assert_eq!(path.first(), path.last(), "{cycle}");
    assert_eq!(path.len(), 4, "{cycle}");
    sandbox.run(["link", "a", "a", "--json"]).refused_json(1, "self_link");
    sandbox.run(["upsert", "a", "--parent", "a", "--json"]).refused_json(1, "self_link");
    sandbox.ok(["upsert", "b", "--parent", "a"]);
    sandbox.run(["upsert", "a", "--parent", "b", "--json"]).refused_json(1, "cycle");

    sandbox.run(["reopen", "a", "--json"]).refused_json(1, "not_ended");
    sandbox.run(["archive", "a", "--json"]).refused_json(1, "not_ended");
    sandbox.ok(["complete", "a"]);
    let ended = sandbox.run(["complete", "a", "--status", "failed", "--json"]).refused_json(1, "ended");
    assert_eq!(ended["status"], "done");
    sandbox.run(["upsert", "a", "--summary", "x", "--json"]).refused_json(1, "ended");
    sandbox.run(["claim", "a", "--holder", "w", "--json"]).refused_json(1, "ended");
}

#[test]
fn one_a_table_can_want_fences() {
    let sandbox = Sandbox::empty();
    sandbox.ok(["init", "--require-fence"]);
    sandbox.ok(["upsert", "n"]);
    sandbox.run(["complete", "n"]).refused(1, "--gen");
    let generation = sandbox.claim("n", "w").to_string();
    sandbox.run(["complete", "n", "--holder", "w", "--json"]).refused_json(1, "fence_required");
    sandbox.ok(["complete", "n", "--holder", "w", "--gen", &generation]);
}

#[test]
fn three_nothing_ready() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(["claim-next", "--holder", "w"]);
    ran.refused(3, "nothing is ready");
    sandbox.run(["claim-next", "--holder", "w", "--json"]).refused_json(3, "nothing_ready");
}

#[test]
fn four_no_such_node_names_it_as_typed() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "here"]);
    let calls: &[&[&str]] = &[
        &["get", "nowhere"],
        &["link", "here", "nowhere"],
        &["link", "nowhere", "here"],
        &["unlink", "nowhere", "here"],
        &["claim", "nowhere", "--holder", "w"],
        &["renew", "nowhere", "--holder", "w"],
        &["release", "nowhere", "--holder", "w"],
        &["release", "nowhere", "--force"],
        &["complete", "nowhere"],
        &["reopen", "nowhere"],
        &["archive", "nowhere"],
        &["unarchive", "nowhere"],
        &["upsert", "nowhere", "--existing"],
        &["upsert", "here", "--needs", "nowhere"],
        &["upsert", "here", "--parent", "nowhere"],
    ];
    for call in calls {
        let ran = sandbox.run(*call);
        assert_eq!(ran.code, Some(4), "{call:?}: {ran:?}");
        ran.refused(4, "no node nowhere");
        let object = sandbox.run(call.iter().chain(&["--json"])).refused_json(4, "no_such_node");
        assert_eq!(object["node"], "nowhere", "{call:?}");
    }
    sandbox.run(["get", "0123456789abcdef0123456789abcdef"]).refused(4, "0123456789abcdef0123456789abcdef");
}

#[test]
fn a_node_typed_as_id_is_named_by_its_id() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    let id = sandbox.one(["get", "n"])["id"].as_str().expect("an id").to_owned();
    sandbox.claim("n", "w");
    sandbox.run(["claim", &id, "--holder", "v"]).refused(1, &format!("{id} is held by w"));
    sandbox.run(["claim", "n", "--holder", "v"]).refused(1, "n is held by w");
}

#[test]
fn four_a_refused_upsert_leaves_no_node_behind() {
    let sandbox = Sandbox::new();
    sandbox.run(["upsert", "new", "--needs", "nowhere"]).refused(4, "nowhere");
    assert!(sandbox.json(["list", "--all"]).is_empty());
}

#[test]
fn five_every_verb_but_the_makers_wants_a_table() {
    let sandbox = Sandbox::empty();
    let calls: &[&[&str]] = &[
        &["get", "n"],
        &["list"],
        &["ready"],
        &["stats"],
        &["link", "a", "b"],
        &["unlink", "a", "b"],
        &["claim", "n", "--holder", "w"],
        &["claim-next", "--holder", "w"],
        &["renew", "n", "--holder", "w"],
        &["release", "n", "--holder", "w"],
        &["release", "n", "--force"],
        &["complete", "n"],
        &["reclaim"],
        &["reopen", "n"],
        &["archive", "n"],
        &["unarchive", "n"],
        &["upsert", "n", "--existing"],
    ];
    for call in calls {
        sandbox.run(*call).refused(5, "tenure init");
        let object = sandbox.run(call.iter().chain(&["--json"])).refused_json(5, "absent");
        assert_eq!(object["dir"], sandbox.dir().to_str().expect("UTF-8"));
        assert!(!sandbox.dir().exists(), "{call:?} made something");
    }
}
