//! What else keeps a node from starting: it is skipped, its group is full, it is left alone before the next attempt.

use serde_json::json;

use crate::support::Sandbox;

fn two(on_failure: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "build"]);
    sandbox.ok(["upsert", "docs"]);
    sandbox.ok(["link", "build", "docs", "--on-failure", on_failure]);
    sandbox
}

#[test]
fn skipped_because_of_a_failure() {
    let sandbox = two("skip");
    let text = sandbox.ok(["why", "docs"]);
    assert_eq!(text, "docs is todo: it waits for\n  build  ready, not claimed yet; skipped if that fails");
    assert_eq!(sandbox.one(["why", "docs"])["reasons"][0]["on_failure"], "skip");
    sandbox.ok(["complete", "build", "--status", "failed", "--summary", "no"]);
    assert_eq!(
        sandbox.ok(["why", "docs"]),
        "docs is skipped: it waits for build, which failed (\"no\").\n`tenure reopen build` tries again."
    );
    let why = sandbox.one(["why", "docs"]);
    assert_eq!((&why["status"], &why["skipped_by"]), (&json!("cancelled"), &json!("build")));
    let reasons = why["reasons"].as_array().expect("reasons");
    assert_eq!((reasons.len(), &reasons[0]["reason"]), (1, &json!("skipped")), "{why}");
    assert_eq!((&reasons[0]["node"]["name"], &reasons[0]["chain"]), (&json!("build"), &json!(["docs", "build"])));
    assert_eq!(sandbox.one(["why", "build"])["holds_up"], 0, "who is skipped does not wait");
    sandbox.ok(["reopen", "build"]);
    assert_eq!(sandbox.status("docs"), "todo");
}

#[test]
fn verbs_on_a_skipped_node_say_at_once_what_to_reopen_instead() {
    let sandbox = two("skip");
    sandbox.ok(["complete", "build", "--status", "failed"]);
    let calls: &[&[&str]] = &[&["reopen", "docs"], &["claim", "docs", "--holder", "w"], &["complete", "docs"]];
    for call in calls {
        let began = std::time::Instant::now();
        sandbox.run(*call).refused(1, "docs is skipped because build failed or was cancelled; `reopen` that one");
        assert!(began.elapsed().as_secs() < 10, "{call:?} took {:?}", began.elapsed());
    }
    let ran = sandbox.run(["archive", "docs"]);
    ran.refused(1, "docs has not ended");
    assert!(ran.err.contains("`tenure why docs`"), "{ran:?}");
    // It can be changed, and let go.
    sandbox.ok(["unlink", "build", "docs"]);
    assert_eq!(sandbox.status("docs"), "ready");
}

#[test]
fn blocked_and_skipped_behind_a_skipped_one() {
    let sandbox = two("skip");
    sandbox.ok(["upsert", "ship", "--needs", "docs"]);
    sandbox.ok(["upsert", "mail"]);
    sandbox.ok(["link", "docs", "mail", "--on-failure", "skip"]);
    sandbox.ok(["complete", "build", "--status", "failed"]);
    assert_eq!(
        sandbox.ok(["why", "ship"]),
        "ship is blocked: build failed; ship waits for docs, docs waits for build.\n`tenure reopen build` tries again."
    );
    assert!(sandbox.ok(["why", "mail"]).starts_with("mail is skipped: build failed; mail waits for docs, docs waits"));
    assert_eq!(sandbox.one(["why", "build"])["holds_up"], 1, "ship, through a skipped one");
}

#[test]
fn a_failure_that_does_not_matter_is_no_reason() {
    let sandbox = two("continue");
    let text = sandbox.ok(["why", "docs"]);
    assert!(text.ends_with("build  ready, not claimed yet; goes on if that fails"), "{text}");
    assert_eq!(sandbox.one(["why", "build"])["holds_up"], 1);
    sandbox.ok(["complete", "build", "--status", "failed"]);
    let why = sandbox.one(["why", "docs"]);
    assert_eq!((&why["status"], &why["reasons"]), (&json!("ready"), &json!([])));
    assert_eq!(sandbox.one(["why", "build"])["holds_up"], 0);
}

#[test]
fn drawings_tell_the_modes_and_the_skipped() {
    let sandbox = two("skip");
    sandbox.ok(["upsert", "report"]);
    sandbox.ok(["link", "build", "report", "--on-failure", "continue"]);
    sandbox.ok(["upsert", "ship", "--needs", "build"]);
    let dot = sandbox.ok(["export", "--format", "dot"]);
    let critical = "color=\"#d00000\", penwidth=3";
    assert!(dot.contains(&format!("n0 -> n1 [{critical}, label=\"skip\", fontsize=9];")), "{dot}");
    assert!(dot.contains("n0 -> n2 [label=\"continue\", fontsize=9];"), "{dot}");
    assert!(dot.contains("n0 -> n3;"), "{dot}");
    let mermaid = sandbox.ok(["export", "--format", "mermaid"]);
    assert!(mermaid.contains("n0 ==>|skip| n1\n") && mermaid.contains("n0 -->|continue| n2\n"), "{mermaid}");
    sandbox.ok(["complete", "build", "--status", "failed"]);
    assert!(sandbox.ok(["export", "--format", "dot"]).contains("label=\"docs\\nskipped\", shape=parallelogram"));
}

#[test]
fn a_full_group_names_who_has_the_seats() {
    let sandbox = Sandbox::new();
    sandbox.ok(["group", "gpu", "--limit", "1"]);
    for name in ["train", "infer"] {
        sandbox.ok(["upsert", name, "--group", "gpu"]);
    }
    assert_eq!(sandbox.one(["why", "train"])["reasons"], json!([]), "there is a seat");
    sandbox.ok(["claim", "infer", "--holder", "ann", "--lease", "300"]);
    let text = sandbox.ok(["why", "train"]);
    let row = text
        .strip_prefix("train is ready, but its group gpu is full, 1 of 1 claimed:\n  infer  claimed by ann, 4m")
        .unwrap_or_else(|| panic!("{text}"));
    assert!(row.ends_with("s left"), "{text}");
    let why = sandbox.one(["why", "train"]);
    let full = &why["reasons"][0];
    assert_eq!((&full["reason"], &full["group"], &full["limit"]), (&json!("group_full"), &json!("gpu"), &json!(1)));
    assert_eq!(full["claimed"][0]["holder"], "ann");
    sandbox.run(["claim", "train", "--holder", "bob"]).refused(1, "gpu");
    sandbox.ok(["complete", "infer", "--holder", "ann"]);
    assert_eq!(sandbox.one(["why", "train"])["reasons"], json!([]));
}

#[test]
fn attempts_are_counted_and_a_delay_is_a_reason() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n", "--max-attempts", "3", "--retry-delay", "300"]);
    sandbox.ok(["upsert", "m", "--needs", "n"]);
    sandbox.ok(["upsert", "last", "--needs", "m"]);
    sandbox.ok(["claim", "n", "--holder", "ann"]);
    assert!(sandbox.ok(["why", "n"]).starts_with("n is claimed by ann at generation 1, attempt 1 of 3, 4m"));
    sandbox.ok(["complete", "n", "--holder", "ann", "--status", "failed"]);
    let text = sandbox.ok(["why", "n"]);
    assert!(
        text.starts_with("n is todo: an attempt was lost or failed, and it is left alone for another 4m"),
        "{text}"
    );
    assert!(text.contains("It has had 1 of 3 attempts."), "{text}");
    let why = sandbox.one(["why", "n"]);
    let alone = &why["reasons"][0];
    assert_eq!((&alone["reason"], &why["attempts"]), (&json!("left_alone"), &json!(1)));
    assert!(alone["retry_in_ms"].as_u64().is_some_and(|ms| (200_000..=300_000).contains(&ms)), "{why}");
    let text = sandbox.ok(["why", "m"]);
    assert!(text.contains("  n  todo, left alone for another 4m"), "{text}");
    let text = sandbox.ok(["why", "last"]);
    assert!(text.contains("and through them for\n  n  todo, left alone for another 4m"), "{text}");
}

#[test]
fn the_last_attempt_is_told_with_the_failure() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n", "--max-attempts", "2"]);
    for attempt in 1..=2 {
        let text = sandbox.ok(["why", "n"]);
        let had = text.contains("It has had 1 of 2 attempts.");
        assert_eq!(had, attempt == 2, "{text}");
        sandbox.ok(["claim", "n", "--holder", "ann"]);
        sandbox.ok(["complete", "n", "--holder", "ann", "--status", "failed"]);
    }
    let text = sandbox.ok(["why", "n"]);
    assert!(text.starts_with("n failed at 20") && text.contains(" after 2 of 2 attempts.\n"), "{text}");
}

#[test]
fn a_claimed_node_that_would_be_skipped_now_cannot_be_done() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    sandbox.ok(["upsert", "behind", "--needs", "n"]);
    sandbox.ok(["claim", "n", "--holder", "ann"]);
    sandbox.ok(["upsert", "late"]);
    sandbox.ok(["link", "late", "n", "--on-failure", "skip"]);
    sandbox.ok(["complete", "late", "--status", "failed"]);
    let text = sandbox.ok(["why", "n"]);
    assert!(text.contains("It cannot be done: it waits for late, which failed.\n"), "{text}");
    sandbox.run(["complete", "n", "--holder", "ann"]).refused(1, "late");
    let why = sandbox.one(["why", "behind"]);
    assert_eq!(why["status"], "todo");
    let kinds: Vec<_> = why["reasons"].as_array().expect("reasons").iter().map(|r| &r["reason"]).collect();
    assert_eq!(kinds, [&json!("waits_for")], "the claim may still be handed back: {why}");
}
