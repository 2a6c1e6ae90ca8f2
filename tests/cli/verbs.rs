//! Each verb's plain output, and what it does.

use crate::support::{Sandbox, generation};

#[test]
fn init_says_where_and_whether_it_was_made_now() {
    let sandbox = Sandbox::empty();
    let first = sandbox.ok(["init"]);
    assert!(first.starts_with("made a table in "), "{first}");
    assert!(first.contains(sandbox.dir().to_str().expect("UTF-8")), "{first}");
    let second = sandbox.ok(["init"]);
    assert!(second.starts_with("there is a table already"), "{second}");
}

#[test]
fn init_on_a_table_that_stands_promises_nothing_that_is_not_so() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(["init", "--lease", "7"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("--lease has no effect"), "{ran:?}");
    sandbox.run(["init", "--require-fence"]).refused(1, "without --require-fence");
    sandbox.run(["init", "--require-fence", "--json"]).refused_json(1, "exists");
    let fenced = Sandbox::empty();
    for _ in 0..2 {
        fenced.ok(["init", "--require-fence"]);
    }
}

#[test]
fn upsert_makes_the_table_and_prints_the_name_or_a_fresh_id() {
    let sandbox = Sandbox::empty();
    assert_eq!(sandbox.ok(["upsert", "build"]), "build");
    let id = sandbox.ok(["upsert"]);
    assert_eq!(id.len(), 32, "{id}");
    assert_ne!(sandbox.ok(["upsert"]), id);
    assert_eq!(sandbox.ok(["upsert", &id, "--summary", "x"]), id);
}

#[test]
fn upsert_keeps_what_is_not_named_and_clears_what_is_empty() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "top"]);
    sandbox.ok(["upsert", "n", "--kind", "k", "--role", "r", "--parent", "top", "--cost", "7", "--summary", "s"]);
    sandbox.ok(["upsert", "n", "--run", "true"]);
    let node = sandbox.one(["get", "n"]);
    assert_eq!(
        (&node["kind"], &node["role"], &node["parent"], &node["cost"], &node["summary"], &node["run"]),
        (&"k".into(), &"r".into(), &"top".into(), &7.into(), &"s".into(), &"true".into())
    );
    sandbox.ok(["upsert", "n", "--kind", "", "--role", "", "--parent", "", "--cost", "", "--summary", "", "--run", ""]);
    let node = sandbox.one(["get", "n"]);
    for key in ["kind", "role", "parent", "summary", "run"] {
        assert!(node[key].is_null(), "{key} in {node}");
    }
    assert_eq!(node["cost"], 1);
}

#[test]
fn upsert_with_needs_adds_dependencies() {
    let sandbox = Sandbox::new();
    for name in ["a", "b"] {
        sandbox.ok(["upsert", name]);
    }
    sandbox.ok(["upsert", "c", "--needs", "a"]);
    sandbox.ok(["upsert", "c", "--needs", "b"]);
    let needs = sandbox.one(["get", "c"])["depends_on"].clone();
    let mut needs: Vec<String> = serde_json::from_value(needs).expect("a list");
    needs.sort();
    assert_eq!(needs, ["a", "b"]);
    assert_eq!(sandbox.status("c"), "todo");
}

#[test]
fn a_summary_can_come_from_standard_input() {
    use std::io::Write;
    use std::process::Stdio;
    let sandbox = Sandbox::new();
    let mut child = sandbox
        .command()
        .args(["upsert", "n", "--summary", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    child.stdin.take().expect("a pipe").write_all(b"two\nlines\n").expect("it reads");
    assert!(child.wait().expect("it ends").success());
    assert_eq!(sandbox.one(["get", "n"])["summary"], "two\nlines");
}

#[test]
fn a_name_and_its_id_are_the_same_node() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    let id = sandbox.one(["get", "n"])["id"].as_str().expect("an id").to_owned();
    assert_eq!(sandbox.one(["get", &id])["name"], "n");
    assert_eq!(sandbox.ok(["upsert", &id, "--cost", "5"]), "n");
    assert_eq!(sandbox.one(["get", "n"])["cost"], 5);
    assert_eq!(sandbox.json(["list"]).len(), 1);
}

#[test]
fn link_and_unlink_say_what_is_so_now() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "a"]);
    sandbox.ok(["upsert", "b"]);
    assert_eq!(sandbox.ok(["link", "a", "b"]), "b now waits for a");
    assert_eq!(sandbox.ok(["link", "a", "b"]), "b already waits for a");
    assert_eq!(sandbox.status("b"), "todo");
    assert_eq!(sandbox.ok(["unlink", "a", "b"]), "b no longer waits for a");
    assert_eq!(sandbox.ok(["unlink", "a", "b"]), "b did not wait for a");
    assert_eq!(sandbox.status("b"), "ready");
}

#[test]
fn a_node_goes_through_its_life() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    let line = sandbox.ok(["claim", "n", "--holder", "w"]);
    assert!(line.starts_with("gen="), "{line}");
    let claimed = generation(&line).to_string();
    assert_eq!(sandbox.ok(["renew", "n", "--holder", "w", "--gen", &claimed]), line, "the generation stays");
    assert_eq!(sandbox.ok(["complete", "n", "--holder", "w", "--gen", &claimed, "--summary", "ok"]), "n is done");
    let again = sandbox.ok(["complete", "n"]);
    assert!(again.starts_with("n is done already"), "{again}");
    assert_eq!(sandbox.one(["get", "n"])["summary"], "ok");

    let mut last = generation(&line);
    for verb in ["archive", "unarchive", "reopen"] {
        let moved = generation(&sandbox.ok([verb, "n"]));
        assert!(moved > last, "{verb}: {moved} after {last}");
        last = moved;
    }
    assert_eq!(sandbox.status("n"), "ready");
    let claimed = sandbox.claim("n", "w");
    assert!(claimed > last);
    let released = generation(&sandbox.ok(["release", "n", "--holder", "w", "--gen", &claimed.to_string()]));
    assert!(released > claimed);
    assert_eq!(sandbox.status("n"), "ready");
}

#[test]
fn every_end_can_be_named() {
    let sandbox = Sandbox::new();
    for end in ["done", "failed", "cancelled"] {
        sandbox.ok(["upsert", end]);
        assert_eq!(sandbox.ok(["complete", end, "--status", end]), format!("{end} is {end}"));
        assert_eq!(sandbox.status(end), end);
    }
}

#[test]
fn the_holder_may_come_from_the_environment() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    let run = |args: &[&str]| crate::support::finish(sandbox.command().env("TENURE_HOLDER", "from-env").args(args));
    assert_eq!(run(&["claim", "n"]).code, Some(0));
    assert_eq!(sandbox.one(["get", "n"])["holder"], "from-env");
    assert_eq!(run(&["renew", "n"]).code, Some(0));
    assert_eq!(run(&["release", "n"]).code, Some(0));
    assert_eq!(run(&["claim-next", "--holder", "named"]).code, Some(0));
    assert_eq!(sandbox.one(["get", "n"])["holder"], "named", "the option goes first");
}

#[test]
fn claim_next_prints_node_and_generation_deepest_first() {
    let sandbox = Sandbox::new();
    for name in ["shallow", "deep"] {
        sandbox.ok(["upsert", name]);
    }
    sandbox.ok(["upsert", "below", "--needs", "deep"]);
    let first = sandbox.ok(["claim-next", "--holder", "w1"]);
    assert!(first.starts_with("deep gen="), "{first}");
    generation(&first);
    let second = sandbox.ok(["claim-next", "--holder", "w2"]);
    assert!(second.starts_with("shallow gen="), "{second}");
    let unnamed = sandbox.ok(["upsert"]);
    let third = sandbox.ok(["claim-next", "--holder", "w3"]);
    assert!(third.starts_with(&format!("{unnamed} gen=")), "{third}");
}

#[test]
fn a_role_goes_to_who_offers_it() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n", "--role", "verify"]);
    sandbox.run(["claim-next", "--holder", "w1"]).refused(3, "nothing is ready");
    sandbox.run(["claim-next", "--holder", "w1", "--role", "build"]).refused(3, "nothing is ready");
    let line = sandbox.ok(["claim-next", "--holder", "w1", "--role", "build", "--role", "verify"]);
    assert!(line.starts_with("n gen="), "{line}");
}

#[test]
fn resume_answers_with_the_claim_that_stands() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "a"]);
    sandbox.ok(["upsert", "b"]);
    let line = sandbox.ok(["claim", "a", "--holder", "w"]);
    assert_eq!(sandbox.ok(["claim", "a", "--holder", "w", "--resume"]), line);
    assert_eq!(sandbox.ok(["claim-next", "--holder", "w", "--resume"]), format!("a {line}"));
    // Another node than the one asked for is named, so that its generation is not taken for that of b.
    assert_eq!(sandbox.ok(["claim", "b", "--holder", "w", "--resume"]), format!("a {line}"));
    assert_eq!(sandbox.status("b"), "ready");
}

#[test]
fn a_forced_release_says_whom_it_was_taken_from() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    let claimed = sandbox.claim("n", "somebody");
    let ran = sandbox.run(["release", "n", "--force"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(generation(ran.out.trim_end()) > claimed, "{ran:?}");
    assert!(ran.err.contains("taken from somebody"), "{ran:?}");
}

#[test]
fn reclaim_prints_a_line_for_each_claim_that_ran_out() {
    let sandbox = Sandbox::new();
    for name in ["a", "b"] {
        sandbox.ok(["upsert", name]);
    }
    assert_eq!(sandbox.ok(["reclaim"]), "");
    sandbox.ok(["claim", "a", "--holder", "w1", "--lease", "0.05"]);
    sandbox.ok(["claim", "b", "--holder", "w2", "--lease", "600"]);
    std::thread::sleep(std::time::Duration::from_millis(120));
    let out = sandbox.ok(["reclaim"]);
    assert_eq!(out.lines().count(), 1, "{out}");
    assert!(out.starts_with("a gen=") && out.contains("holder=w1"), "{out}");
    assert_eq!(sandbox.status("b"), "claimed");
    let out = sandbox.ok(["reclaim", "--lease", "0.05"]);
    assert!(out.starts_with("b gen="), "{out}");
}

#[test]
fn list_shows_live_nodes_and_more_when_asked() {
    let sandbox = Sandbox::new();
    for name in ["live", "ended", "hidden"] {
        sandbox.ok(["upsert", name]);
    }
    sandbox.ok(["complete", "ended"]);
    sandbox.ok(["complete", "hidden"]);
    sandbox.ok(["archive", "hidden"]);
    let shown = |args: &[&str]| -> Vec<String> {
        let out = sandbox.ok(args);
        out.lines().skip(1).filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
    };
    assert!(sandbox.ok(["list", "--all"]).contains("ARCHIVED"));
    assert_eq!(shown(&["list"]), ["live"]);
    assert_eq!(shown(&["list", "--terminal"]), ["live", "ended"]);
    assert_eq!(shown(&["list", "--archived"]), ["live", "hidden"]);
    assert_eq!(shown(&["list", "--all"]), ["live", "ended", "hidden"]);
}

#[test]
fn empty_lists_end_well_and_print_nothing() {
    let sandbox = Sandbox::new();
    for verb in ["list", "ready"] {
        assert_eq!(sandbox.ok([verb]), "");
    }
}

#[test]
fn ready_is_ordered_by_depth_and_can_be_cut() {
    let sandbox = Sandbox::new();
    for name in ["a", "b"] {
        sandbox.ok(["upsert", name]);
    }
    sandbox.ok(["upsert", "c", "--needs", "b", "--cost", "40"]);
    let rows = sandbox.json(["ready"]);
    let order: Vec<(&str, u64)> = rows
        .iter()
        .map(|row| (row["name"].as_str().expect("a name"), row["waiting_below"].as_u64().expect("a depth")))
        .collect();
    assert_eq!(order, [("b", 40), ("a", 0)]);
    assert_eq!(sandbox.json(["ready", "-n", "1"]).len(), 1);
    assert_eq!(sandbox.json(["ready", "-n", "0"]).len(), 0);
}

#[test]
fn get_shows_every_field_that_is_there() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "a"]);
    sandbox.ok([
        "upsert",
        "n",
        "--kind",
        "KIND",
        "--role",
        "ROLE",
        "--summary",
        "SUMMARY",
        "--run",
        "RUN",
        "--needs",
        "a",
    ]);
    let out = sandbox.ok(["get", "n"]);
    for word in ["KIND", "ROLE", "SUMMARY", "RUN", "depends on", "todo", "created"] {
        assert!(out.contains(word), "no {word} in {out}");
    }
    assert!(!out.contains("holder"), "{out}");
}

#[test]
fn stats_count() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "a"]);
    sandbox.ok(["upsert", "b", "--needs", "a"]);
    let out = sandbox.ok(["stats"]);
    let value = |key: &str| {
        let line = out.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("no {key} in {out}"));
        line[key.len()..].trim().to_owned()
    };
    assert_eq!(value("nodes"), "2 of 4096");
    assert_eq!((value("ready"), value("todo")), ("1".into(), "1".into()));
}
