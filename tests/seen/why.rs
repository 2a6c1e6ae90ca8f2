//! `why` in every state that a node can be in, but blocked.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::Sandbox;

/// The reasons of one kind.
fn reasons<'a>(why: &'a Value, kind: &str) -> Vec<&'a Value> {
    let all = why["reasons"].as_array().expect("reasons");
    all.iter().filter(|reason| reason["reason"] == kind).collect()
}

#[test]
fn ready_and_nothing_in_the_way() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "fetch"]);
    assert_eq!(
        sandbox.ok(["why", "fetch"]),
        "fetch is ready: nothing stands in its way.\n`tenure claim fetch --holder NAME` takes it."
    );
    let why = sandbox.one(["why", "fetch"]);
    assert_eq!((&why["status"], &why["reasons"], &why["holds_up"]), (&json!("ready"), &json!([]), &json!(0)));
}

#[test]
fn ready_behind_others_that_go_first() {
    let sandbox = Sandbox::new();
    for name in ["a", "b", "c"] {
        sandbox.ok(["upsert", name]);
    }
    sandbox.ok(["upsert", "d", "--needs", "c"]);
    let why = sandbox.one(["why", "b"]);
    // c has work behind it, and a is older.
    assert_eq!(why["reasons"], json!([{"reason": "goes_after", "ready": 2}]));
    assert!(sandbox.ok(["why", "b"]).contains("gives out 2 other ready nodes before it"));
    assert_eq!(sandbox.one(["why", "c"])["reasons"], json!([]));
    assert_eq!(sandbox.one(["why", "c"])["holds_up"], 1);
}

#[test]
fn a_role_is_wanted_until_somebody_has_the_node() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "fetch"]);
    sandbox.ok(["upsert", "docs", "--role", "writer", "--needs", "fetch"]);
    let text = sandbox.ok(["why", "docs"]);
    assert!(text.starts_with("docs is todo: it waits for\n  fetch  ready, not claimed yet\n"), "{text}");
    assert!(text.contains("only to a worker that offers the role writer"), "{text}");
    sandbox.ok(["complete", "fetch"]);
    let text = sandbox.ok(["why", "docs"]);
    assert!(text.starts_with("docs is ready.\n`tenure claim docs --holder NAME` takes it.\n"), "{text}");
    assert!(text.contains("`claim-next` gives it only to a worker that offers the role writer."), "{text}");
    let why = sandbox.one(["why", "docs"]);
    assert_eq!(why["reasons"], json!([{"reason": "wants_role", "role": "writer"}]));
    sandbox.ok(["claim-next", "--holder", "w", "--role", "writer"]);
    let why = sandbox.one(["why", "docs"]);
    assert_eq!(reasons(&why, "wants_role").len(), 0);
    assert_eq!(why["role"], "writer");
}

#[test]
fn todo_names_what_it_waits_for_and_who_is_at_work_on_it() {
    let sandbox = Sandbox::new();
    for (name, needs) in [("fetch", None), ("tools", None), ("build", Some("fetch")), ("ship", Some("build"))] {
        sandbox.ok(["upsert", name].into_iter().chain(needs.into_iter().flat_map(|need| ["--needs", need])));
    }
    sandbox.ok(["link", "tools", "ship"]);
    sandbox.ok(["claim", "fetch", "--holder", "ann", "--lease", "300"]);
    let text = sandbox.ok(["why", "build"]);
    let row = text.strip_prefix("build is todo: it waits for\n  fetch  claimed by ann, 4m").expect(&text);
    assert!(row.split_once("s left\n").is_some(), "{text}");

    let text = sandbox.ok(["why", "ship"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "ship is todo: it waits for");
    assert!(lines.contains(&"  tools  ready, not claimed yet"), "{text}");
    assert!(lines.contains(&"  build  todo, waits for 1 itself"), "{text}");
    assert!(text.contains("and through them for\n  fetch  claimed by ann"), "{text}");

    let why = sandbox.one(["why", "ship"]);
    let waits: Vec<&Value> = reasons(&why, "waits_for").into_iter().map(|reason| &reason["node"]["name"]).collect();
    assert_eq!(waits.len(), 2, "{why}");
    assert!(waits.contains(&&json!("tools")) && waits.contains(&&json!("build")), "{why}");
    let behind = reasons(&why, "behind");
    assert_eq!(behind.len(), 1, "{why}");
    let fetch = &behind[0]["node"];
    assert_eq!(
        (&fetch["name"], &fetch["status"], &fetch["holder"]),
        (&json!("fetch"), &json!("claimed"), &json!("ann"))
    );
    assert!(fetch["lease_left_ms"].as_i64().is_some_and(|left| (1..=300_000).contains(&left)), "{why}");
    assert_eq!(sandbox.one(["why", "fetch"])["holds_up"], 2);

    sandbox.ok(["complete", "fetch", "--holder", "ann"]);
    let why = sandbox.one(["why", "ship"]);
    assert_eq!(reasons(&why, "behind").len(), 0, "what is done is waited for no more, and build is named once: {why}");
    assert_eq!(reasons(&why, "waits_for").len(), 2);
}

#[test]
fn claimed_says_by_whom_and_for_how_long() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    sandbox.ok(["claim", "n", "--holder", "ann", "--lease", "600"]);
    let text = sandbox.ok(["why", "n"]);
    assert!(text.starts_with("n is claimed by ann at generation 1, 9m"), "{text}");
    assert!(!text.contains("reclaim"), "{text}");
    let why = sandbox.one(["why", "n"]);
    let held = &reasons(&why, "held")[0];
    assert_eq!((&held["holder"], &why["holder"], &why["generation"]), (&json!("ann"), &json!("ann"), &json!(1)));
    assert!(held["lease_left_ms"].as_i64().is_some_and(|left| left > 500_000), "{why}");
}

#[test]
fn claimed_with_the_lease_run_out_says_who_takes_it_back_and_takes_nothing_back_itself() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    sandbox.ok(["upsert", "m", "--needs", "n"]);
    sandbox.ok(["claim", "n", "--holder", "ann", "--lease", "0.02"]);
    std::thread::sleep(Duration::from_millis(80));
    let text = sandbox.ok(["why", "n"]);
    assert!(text.starts_with("n is claimed by ann at generation 1, lease ran out "), "{text}");
    assert!(text.contains("`tenure reclaim` does so now"), "{text}");
    assert!(sandbox.ok(["why", "m"]).contains("n  claimed by ann, lease ran out "));
    let why = sandbox.one(["why", "n"]);
    assert!(reasons(&why, "held")[0]["lease_left_ms"].as_i64().is_some_and(|left| left < 0), "{why}");
    assert_eq!(sandbox.status("n"), "claimed", "a reading verb changes nothing");
}

#[test]
fn claimed_for_a_process_that_is_gone() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    sandbox.ok(["upsert", "m", "--needs", "n"]);
    let mut process = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().expect("cat");
    sandbox.ok(["claim", "n", "--holder", "ann", "--lease", "600", "--pid", &process.id().to_string()]);
    let why = sandbox.one(["why", "n"]);
    assert_eq!(reasons(&why, "held")[0]["process_gone"], false);
    assert!(!sandbox.ok(["why", "n"]).contains("gone"));
    assert_eq!(sandbox.one(["stats"])["leases_run_out"], 0);
    process.kill().expect("killed");
    process.wait().expect("reaped");
    let text = sandbox.ok(["why", "n"]);
    assert!(text.starts_with("n is claimed by ann at generation 1, 9m"), "{text}");
    assert!(text.contains("s left, but its process is gone.\n"), "{text}");
    assert!(text.contains("`tenure reclaim` does so now"), "{text}");
    assert_eq!(reasons(&sandbox.one(["why", "n"]), "held")[0]["process_gone"], true);
    assert!(sandbox.ok(["why", "m"]).contains("left, but its process is gone"));
    assert_eq!(sandbox.one(["stats"])["leases_run_out"], 1);
}

#[test]
fn claimed_and_linked_behind_something_since() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    sandbox.ok(["claim", "n", "--holder", "ann"]);
    sandbox.ok(["upsert", "late"]);
    sandbox.ok(["link", "late", "n"]);
    let text = sandbox.ok(["why", "n"]);
    assert!(text.contains("It cannot be done before\n  late  ready, not claimed yet"), "{text}");
    sandbox.ok(["complete", "late", "--status", "failed", "--summary", "no"]);
    let text = sandbox.ok(["why", "n"]);
    assert!(text.contains("It cannot be done: it waits for late, which failed (\"no\").\n"), "{text}");
    assert!(text.contains("`tenure reopen late` tries again"), "{text}");
}

#[test]
fn ended_says_how_and_when_and_what_opens_it_again() {
    let sandbox = Sandbox::new();
    for (status, words) in
        [("done", "n is done at 20"), ("failed", "n failed at 20"), ("cancelled", "n was cancelled at 20")]
    {
        sandbox.ok(["upsert", "n", "--role", "r"]);
        sandbox.ok(["complete", "n", "--status", status, "--summary", "so it went"]);
        let text = sandbox.ok(["why", "n"]);
        assert!(text.starts_with(words), "{text}");
        assert!(text.contains("(\"so it went\").\n`tenure reopen n` "), "{text}");
        let why = sandbox.one(["why", "n"]);
        assert_eq!(why["reasons"], json!([{"reason": "ended", "status": status}]));
        assert!(why["finished_at_ms"].is_u64(), "{why}");
        sandbox.ok(["reopen", "n"]);
    }
}

#[test]
fn what_a_failed_node_holds_up_is_counted_and_a_done_one_holds_up_nothing() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "a"]);
    sandbox.ok(["upsert", "b", "--needs", "a"]);
    sandbox.ok(["upsert", "c", "--needs", "b"]);
    sandbox.ok(["complete", "a", "--status", "failed"]);
    assert!(sandbox.ok(["why", "a"]).ends_with("2 nodes wait for it in vain."));
    sandbox.ok(["reopen", "a"]);
    sandbox.ok(["complete", "a"]);
    assert_eq!(sandbox.one(["why", "a"])["holds_up"], 0);
    assert_eq!(sandbox.one(["why", "b"])["holds_up"], 1);
}

#[test]
fn archived_says_how_it_is_shown_again() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    sandbox.ok(["complete", "n"]);
    sandbox.ok(["archive", "n"]);
    assert!(sandbox.ok(["why", "n"]).ends_with("It is archived; `tenure unarchive n` shows it in lists again."));
    let why = sandbox.one(["why", "n"]);
    assert_eq!(why["reasons"], json!([{"reason": "ended", "status": "done"}, {"reason": "archived"}]));
}

#[test]
fn a_node_that_is_not_there_is_exit_four() {
    let sandbox = Sandbox::new();
    sandbox.run(["why", "nowhere"]).refused(4, "no node nowhere");
    let object = sandbox.run(["why", "nowhere", "--json"]).refused_json(4, "no_such_node");
    assert_eq!(object["node"], "nowhere");
    sandbox.run(["why", "0123456789abcdef0123456789abcdef"]).refused(4, "no node 0123456789abcdef");
    sandbox.run(["why"]).refused(2, "NODE");
    Sandbox::empty().run(["why", "n"]).refused(5, "tenure init");
}

#[test]
fn the_keys_of_get_are_all_there() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    let (why, got) = (sandbox.one(["why", "n"]), sandbox.one(["get", "n"]));
    for (key, value) in got.as_object().expect("an object") {
        assert_eq!(why.get(key), Some(value), "{key}");
    }
}

#[test]
fn many_dependencies_are_counted_in_text_and_all_named_in_json() {
    let sandbox = Sandbox::new();
    let table = tenure::Table::open(sandbox.dir()).expect("a table");
    let spec = |name: String| tenure::NodeSpec { name: Some(name), ..tenure::NodeSpec::default() };
    let mut specs: Vec<_> = (0..4_095).map(|n| spec(format!("n{n}"))).collect();
    let needs =
        specs.iter().map(|spec| tenure::NodeId::of_name(spec.name.as_deref().expect("a name")).into()).collect();
    specs.push(tenure::NodeSpec { needs, ..spec("all".to_owned()) });
    table.import(&specs).expect("room for a full table");
    let text = sandbox.ok(["why", "all"]);
    assert_eq!(text.lines().count(), 10, "{text}");
    assert!(text.ends_with("  and 4087 more; --json names them all"), "{text}");
    assert_eq!(reasons(&sandbox.one(["why", "all"]), "waits_for").len(), 4_095);
    assert_eq!(sandbox.one(["why", "n0"])["holds_up"], 1);
}

#[test]
fn a_suggested_command_can_be_pasted_into_a_shell() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "a b; rm -rf $HOME"]);
    let text = sandbox.ok(["why", "a b; rm -rf $HOME"]);
    let (_, command) = text.split_once("`tenure claim ").expect(&text);
    let (node, _) = command.split_once(' ').expect(&text);
    assert_eq!(node.len(), 32, "the id stands for a name that a shell would take apart: {text}");
    assert_eq!(sandbox.one(["get", node])["name"], "a b; rm -rf $HOME");
}
