//! What a failure does to those that wait for the one that failed.

use serde_json::{Value, json};

use crate::support::Sandbox;

/// Nodes a, b, c, ... linked as told: `a skip b` lets b wait for a.
fn graph(nodes: &str, links: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    for node in nodes.split(' ') {
        sandbox.ok(["upsert", node]);
    }
    for link in links {
        let [parent, mode, child] = link.split(' ').collect::<Vec<_>>()[..] else { panic!("{link}") };
        sandbox.ok(["link", parent, child, "--on-failure", mode]);
    }
    sandbox
}

fn end(sandbox: &Sandbox, node: &str, status: &str) {
    sandbox.ok(["complete", node, "--status", status]);
}

#[track_caller]
fn statuses(sandbox: &Sandbox, expected: &str) {
    let expected: Vec<(&str, &str)> = expected.split(' ').map(|pair| pair.split_once('=').expect("a pair")).collect();
    let seen: Vec<(&str, String)> = expected.iter().map(|(node, _)| (*node, sandbox.status(node))).collect();
    let seen: Vec<(&str, &str)> = seen.iter().map(|(node, status)| (*node, status.as_str())).collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_skipped_node_is_seen_as_cancelled_and_so_are_those_behind_it() {
    let sandbox = graph("a b c d", &["a skip b", "b skip c", "c block d"]);
    for status in ["failed", "cancelled"] {
        end(&sandbox, "a", status);
        statuses(&sandbox, "b=cancelled c=cancelled d=blocked");
        assert_eq!(sandbox.one(["get", "b"])["skipped_by"], "a");
        assert_eq!(sandbox.one(["get", "c"])["skipped_by"], "b");
        assert!(sandbox.ok(["get", "b"]).contains("skipped by     a\n"));
        let refused = sandbox.run(["claim", "b", "--holder", "w", "--json"]).refused_json(1, "skipped");
        assert_eq!(refused["by"], "a");
        sandbox.run(["claim-next", "--holder", "w"]).refused(3, "nothing is ready");
        let stats = sandbox.one(["stats"]);
        let ended = if status == "failed" { (1, 2) } else { (0, 3) };
        assert_eq!(
            (&stats["failed"], &stats["cancelled"], &stats["blocked"]),
            (&ended.0.into(), &ended.1.into(), &1.into())
        );
        sandbox.ok(["reopen", "a"]);
        statuses(&sandbox, "a=ready b=todo c=todo d=todo");
        assert_eq!(sandbox.one(["get", "b"])["skipped_by"], Value::Null);
    }
    for node in ["a", "b", "c", "d"] {
        assert_eq!(sandbox.ok(["claim-next", "--holder", "w"]).split(' ').next(), Some(node));
        sandbox.ok(["complete", node, "--holder", "w"]);
    }
}

#[test]
fn a_failure_that_one_goes_on_after_counts_as_satisfied() {
    let sandbox = graph("a b c", &["a continue b", "b block c"]);
    statuses(&sandbox, "a=ready b=todo c=todo");
    end(&sandbox, "a", "failed");
    statuses(&sandbox, "b=ready c=todo");
    assert_eq!(sandbox.ok(["claim-next", "--holder", "w"]), "b gen=1");
    sandbox.ok(["complete", "b", "--holder", "w"]);
    statuses(&sandbox, "a=failed b=done c=ready");
    sandbox.ok(["reopen", "a"]);
    statuses(&sandbox, "a=ready b=done c=ready");
}

#[test]
fn going_on_needs_the_end_and_a_blocked_node_has_none() {
    let sandbox = graph("a b c", &["a block b", "b continue c"]);
    end(&sandbox, "a", "failed");
    statuses(&sandbox, "b=blocked c=blocked");
    end(&sandbox, "b", "cancelled");
    statuses(&sandbox, "c=ready");
}

#[test]
fn what_is_skipped_lets_those_go_on_that_only_wait_for_an_end() {
    let sandbox = graph("a b c", &["a skip b", "b continue c"]);
    end(&sandbox, "a", "failed");
    statuses(&sandbox, "b=cancelled c=ready");
    assert_eq!(sandbox.ok(["claim-next", "--holder", "w"]), "c gen=1");
}

#[test]
fn of_several_failures_skipping_goes_before_blocking() {
    let sandbox = graph("a b x", &["a block x", "b skip x"]);
    end(&sandbox, "a", "failed");
    statuses(&sandbox, "x=blocked");
    end(&sandbox, "b", "failed");
    statuses(&sandbox, "x=cancelled");
    sandbox.ok(["reopen", "b"]);
    statuses(&sandbox, "x=blocked");
    sandbox.ok(["reopen", "a"]);
    statuses(&sandbox, "x=todo");
}

#[test]
fn one_parent_is_gone_on_after_and_another_is_waited_for() {
    let sandbox = graph("a b x", &["a continue x", "b block x"]);
    end(&sandbox, "a", "failed");
    statuses(&sandbox, "x=todo");
    end(&sandbox, "b", "done");
    statuses(&sandbox, "x=ready");
}

#[test]
fn a_link_again_changes_its_mode_and_without_one_keeps_it() {
    let sandbox = graph("a b", &["a skip b"]);
    let modes = |sandbox: &Sandbox| sandbox.one(["get", "b"])["on_failure"].clone();
    assert_eq!(modes(&sandbox), json!(["skip"]));
    let again = sandbox.one(["link", "a", "b"]);
    assert_eq!((&again["changed"], modes(&sandbox)), (&json!(false), json!(["skip"])));
    sandbox.ok(["upsert", "b", "--needs", "a"]);
    assert_eq!(modes(&sandbox), json!(["skip"]));
    assert_eq!(sandbox.one(["link", "a", "b", "--on-failure", "block"])["changed"], true);
    assert_eq!(modes(&sandbox), json!(["block"]));
    assert_eq!(sandbox.run(["link", "a", "b", "--on-failure", "ignore"]).code, Some(2));
}

#[test]
fn modes_and_policies_go_out_and_in_again() {
    let sandbox = graph("a b c d", &["a skip b", "a continue c", "b block c", "c skip d"]);
    sandbox.ok(["group", "g", "--limit", "3"]);
    sandbox.ok(["upsert", "d", "--max-attempts", "4", "--retry-delay", "1.5", "--group", "g"]);
    let exported = sandbox.ok(["export"]);
    assert!(exported.contains(r#""needs":[{"node":"a","on_failure":"skip"}]"#), "{exported}");
    assert!(exported.contains(r#"{"node":"a","on_failure":"continue"},"b""#), "{exported}");
    let other = Sandbox::new();
    other.ok(["group", "g", "--limit", "3"]);
    let file = other.root().join("graph.jsonl");
    std::fs::write(&file, &exported).unwrap();
    other.ok([std::ffi::OsStr::new("import"), file.as_os_str()]);
    assert_eq!(other.ok(["export"]), exported);
    end(&other, "a", "failed");
    statuses(&other, "b=cancelled c=blocked d=blocked");
}

#[test]
fn a_mode_in_a_file_that_is_none_is_refused_and_nothing_is_made() {
    let sandbox = Sandbox::new();
    let file = sandbox.root().join("graph.jsonl");
    for need in
        [r#"{"node":"a","on_failure":"ignore"}"#, r#"{"on_failure":"skip"}"#, r#"{"node":"a","mode":"skip"}"#, "1"]
    {
        std::fs::write(&file, format!("{{\"name\":\"a\"}}\n{{\"name\":\"b\",\"needs\":[{need}]}}\n")).unwrap();
        let ran = sandbox.run([std::ffi::OsStr::new("import"), file.as_os_str()]);
        ran.refused(2, "line 2");
    }
    assert_eq!(sandbox.ok(["list", "--all", "--json"]), "");
}

/// The exit code and the summary of `run` on these lines.
fn run(lines: &[&str]) -> (Option<i32>, Value, Sandbox) {
    let sandbox = Sandbox::new();
    let file = sandbox.root().join("graph.jsonl");
    std::fs::write(&file, lines.join("\n")).unwrap();
    let ran =
        sandbox.run([std::ffi::OsStr::new("run"), file.as_os_str(), "-j2".as_ref(), "-k".as_ref(), "--json".as_ref()]);
    let summary = serde_json::from_str(ran.out.trim_end()).unwrap_or_else(|e| panic!("{e}: {ran:?}"));
    (ran.code, summary, sandbox)
}

#[test]
fn a_run_counts_what_was_skipped_as_cancelled() {
    let (code, summary, _) = run(&[
        r#"{"name":"a","run":"exit 3"}"#,
        r#"{"name":"b","run":"true","needs":[{"node":"a","on_failure":"skip"}]}"#,
        r#"{"name":"c","run":"true","needs":[{"node":"b","on_failure":"skip"}]}"#,
        r#"{"name":"d","run":"true","needs":["c"]}"#,
        r#"{"name":"e","run":"true"}"#,
    ]);
    let counts: Vec<&Value> =
        ["done", "failed", "cancelled", "blocked", "unfinished"].map(|key| &summary[key]).to_vec();
    assert_eq!((code, counts), (Some(1), vec![&json!(1), &json!(1), &json!(2), &json!(1), &json!(0)]), "{summary}");
}

#[test]
fn a_run_goes_on_after_a_failure_that_does_not_matter() {
    let (code, summary, sandbox) = run(&[
        r#"{"name":"a","run":"exit 3"}"#,
        r#"{"name":"b","run":"true","needs":[{"node":"a","on_failure":"continue"}]}"#,
        r#"{"name":"s","run":"true","needs":[{"node":"a","on_failure":"skip"}]}"#,
        r#"{"name":"c","run":"true","needs":["b",{"node":"s","on_failure":"continue"}]}"#,
    ]);
    let counts: Vec<&Value> = ["done", "failed", "cancelled", "unfinished"].map(|key| &summary[key]).to_vec();
    assert_eq!((code, counts), (Some(1), vec![&json!(2), &json!(1), &json!(1), &json!(0)]), "{summary}");
    statuses(&sandbox, "a=failed b=done s=cancelled c=done");
}

#[test]
fn a_run_tries_again_until_it_works() {
    let (code, summary, sandbox) = run(&[
        r#"{"name":"a","max_attempts":3,"retry_delay_ms":50,"run":"test $TENURE_GEN -ge 5"}"#,
        r#"{"name":"b","run":"true","needs":["a"]}"#,
    ]);
    assert_eq!((code, &summary["done"]), (Some(0), &json!(2)), "{summary}");
    assert_eq!((&summary["to_retry"], &summary["released"]), (&json!(2), &json!(0)), "{summary}");
    assert_eq!(sandbox.one(["get", "a"])["attempts"], 3);
}
