//! `stats`: ages, leases, holders, and the text format of collectors.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::Sandbox;

/// The samples of an exposition, by name and labels; every other line must be one that the format knows.
fn samples(text: &str) -> HashMap<String, f64> {
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.last(), Some(&"# EOF"), "{text}");
    let mut samples = HashMap::new();
    for line in &lines[..lines.len() - 1] {
        if line.starts_with("# HELP tenure_") {
            continue;
        }
        if let Some(kind) = line.strip_prefix("# TYPE tenure_") {
            assert!(kind.ends_with(" gauge"), "{line}");
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        assert!(name.starts_with("tenure_"), "{line}");
        let value = value.parse().unwrap_or_else(|e| panic!("{e}: {line}"));
        assert_eq!(samples.insert(name.to_owned(), value), None, "{line} stands twice");
    }
    samples
}

#[test]
fn an_empty_table_has_no_ages() {
    let sandbox = Sandbox::new();
    let stats = sandbox.one(["stats"]);
    assert_eq!((&stats["oldest_ready_ms"], &stats["shortest_lease_ms"]), (&Value::Null, &Value::Null));
    for key in ["leases_ending_soon", "leases_run_out", "holders_busy"] {
        assert_eq!(stats[key], 0, "{key}");
    }
    let samples = samples(&sandbox.ok(["stats", "--format", "prometheus"]));
    assert!(!samples.contains_key("tenure_oldest_ready_seconds"));
    assert_eq!(samples["tenure_nodes{status=\"ready\"}"], 0.0);
}

#[test]
fn the_oldest_ready_node_counts_from_when_it_became_ready() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "first"]);
    sandbox.ok(["upsert", "second", "--needs", "first"]);
    std::thread::sleep(Duration::from_millis(300));
    let age = || sandbox.one(["stats"])["oldest_ready_ms"].as_u64().expect("an age");
    assert!(age() >= 300);
    let began = Instant::now();
    sandbox.ok(["complete", "first"]);
    let (young, elapsed) = (age(), began.elapsed());
    assert!(u128::from(young) <= elapsed.as_millis() + 20, "second waited for first before: {young}, {elapsed:?}");
    std::thread::sleep(Duration::from_millis(100));
    assert!(age() >= 100);
    sandbox.ok(["claim", "second", "--holder", "w"]);
    assert_eq!(sandbox.one(["stats"])["oldest_ready_ms"], Value::Null);
}

#[test]
fn leases_that_are_about_to_run_out_and_those_that_have() {
    let sandbox = Sandbox::new();
    for (name, lease) in [("fresh", "600"), ("short", "60"), ("over", "0.02")] {
        sandbox.ok(["upsert", name]);
        sandbox.ok(["claim", name, "--holder", name, "--lease", lease]);
    }
    std::thread::sleep(Duration::from_millis(60));
    let stats = sandbox.one(["stats"]);
    assert_eq!((&stats["claimed"], &stats["holders_busy"]), (&3.into(), &3.into()));
    assert_eq!((&stats["leases_run_out"], &stats["leases_ending_soon"]), (&1.into(), &0.into()));
    assert!(stats["shortest_lease_ms"].as_i64().is_some_and(|left| left < 0), "{stats}");
    let text = sandbox.ok(["stats"]);
    assert!(text.contains("\nfirst lease  ran out "), "{text}");
    assert!(text.contains("\nleases       0 with less than a third left, 1 run out\n"), "{text}");

    // Two thirds of a lease go by without a word.
    sandbox.ok(["renew", "over", "--holder", "over", "--lease", "0.9"]);
    std::thread::sleep(Duration::from_millis(650));
    let stats = sandbox.one(["stats"]);
    let counts = [&stats["leases_run_out"], &stats["leases_ending_soon"]].map(|n| n.as_u64().expect("a number"));
    // On a slow machine it may have run out by now.
    assert_eq!(counts.iter().sum::<u64>(), 1, "{stats}");
}

#[test]
fn the_collectors_text_says_the_same_as_json() {
    let sandbox = Sandbox::new();
    for (name, need) in [("a", None), ("b", Some("a")), ("c", Some("b")), ("d", None), ("e", None), ("f", None)] {
        sandbox.ok(["upsert", name].into_iter().chain(need.into_iter().flat_map(|need| ["--needs", need])));
    }
    sandbox.ok(["complete", "a", "--status", "failed"]);
    sandbox.ok(["complete", "d"]);
    sandbox.ok(["complete", "e", "--status", "cancelled"]);
    sandbox.ok(["archive", "e"]);
    sandbox.ok(["claim", "f", "--holder", "w\"x\\y\n"]);
    sandbox.ok(["upsert", "g"]);
    let stats = sandbox.one(["stats"]);
    let samples = samples(&sandbox.ok(["stats", "--format", "prometheus"]));
    let mut nodes = 0.0;
    for status in ["ready", "todo", "blocked", "claimed", "done", "failed", "cancelled"] {
        let sample = samples[&format!("tenure_nodes{{status=\"{status}\"}}")];
        assert_eq!(Some(sample), stats[status].as_f64(), "{status}");
        nodes += sample;
    }
    assert_eq!(Some(nodes), stats["nodes"].as_f64());
    let mut same = vec![("node_slots", "capacity"), ("nodes_archived", "archived")];
    same.extend(["leases_ending_soon", "leases_run_out", "edges", "edges_max", "version"].map(|key| (key, key)));
    same.extend(["holders", "holders_busy", "holders_max", "versions", "versions_reserved"].map(|key| (key, key)));
    same.extend(["text_blocks", "text_blocks_reserved", "text_blocks_max"].map(|key| (key, key)));
    for (sample, key) in same {
        assert_eq!(Some(samples[&format!("tenure_{sample}")]), stats[key].as_f64(), "{key}");
    }
    let lease = samples["tenure_shortest_lease_seconds"];
    assert!((290.0..=300.0).contains(&lease), "seconds, not milliseconds: {lease}");
    assert!((0.0..60.0).contains(&samples["tenure_oldest_ready_seconds"]));
}

#[test]
fn two_formats_at_once_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.run(["stats", "--json", "--format", "prometheus"]).refused_json(2, "usage");
    assert_eq!(sandbox.json(["stats", "--format", "json"]).len(), 1);
    sandbox.run(["stats", "--format", "xml"]).refused(2, "xml");
}
