//! `import` and `export`, and the file that `run` is given.

use serde_json::{Value, json};

use crate::support::{Ran, Sandbox};

#[track_caller]
fn refused(ran: &Ran, code: i32, words: &str) {
    assert_eq!(ran.code, Some(code), "{ran:?}");
    assert_eq!(ran.out, "", "{ran:?}");
    assert!(ran.err.starts_with("tenure: ") && ran.err.contains(words), "no {words:?} in {ran:?}");
}

#[test]
fn an_import_prints_its_counts() {
    let sandbox = Sandbox::new(&[r#"{"name":"a"}"#, r#"{"name":"b","needs":["a"]}"#]);
    assert_eq!(sandbox.tenure(&["import", "graph.jsonl"]).out, "created 2, updated 0, unchanged 0\n");
    sandbox.write("graph.jsonl", "{\"name\":\"a\"}\n{\"name\":\"b\",\"cost\":5}\n{\"name\":\"c\"}\n");
    let again = sandbox.tenure(&["import", "graph.jsonl", "--json"]);
    let counts: Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!(counts, json!({"created": 1, "updated": 1, "unchanged": 1}));
}

#[test]
fn a_dash_is_standard_input() {
    let sandbox = Sandbox::new(&[r#"{"name":"a"}"#]);
    let mut command = sandbox.command(&["import", "-"]);
    command.stdin(std::fs::File::open(sandbox.path("graph.jsonl")).unwrap());
    let ran = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "created 1, updated 0, unchanged 0\n");
}

#[test]
fn a_trace_is_imported_and_what_is_odd_about_it_is_said() {
    let sandbox = Sandbox::new(&[]);
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/small.wfformat.json");
    let ran = sandbox.tenure(&["import", trace, "--format", "wfformat"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "created 4, updated 0, unchanged 0\n"), "{ran:?}");
    assert!(ran.err.contains("only one of their two tasks lists"), "{ran:?}");
}

#[test]
fn a_file_that_is_wrong_makes_no_table() {
    for verb in ["import", "run"] {
        let sandbox = Sandbox::new(&[r#"{"name":"a"}"#, r#"{"nmae":"b"}"#]);
        refused(&sandbox.tenure(&[verb, "graph.jsonl"]), 2, "graph.jsonl: line 2, column 7: unknown field `nmae`");
        refused(&sandbox.tenure(&[verb, "absent.jsonl"]), 2, "absent.jsonl: cannot read the input: No such file");
        refused(&sandbox.tenure(&[verb, "."]), 2, "cannot read the input: Is a directory");
        assert!(!sandbox.path("table").exists());
        let ran = sandbox.tenure(&[verb, "graph.jsonl", "--json"]);
        let object: Value = serde_json::from_str(&ran.err).unwrap_or_else(|e| panic!("{e}: {ran:?}"));
        assert_eq!((object["error"].as_str(), object["line"].as_u64()), (Some("bad_input"), Some(2)));
    }
}

#[test]
fn a_refused_import_changes_nothing() {
    let sandbox = Sandbox::new(&[r#"{"name":"a"}"#]);
    assert_eq!(sandbox.tenure(&["import", "graph.jsonl"]).code, Some(0));
    let before = sandbox.statuses();
    sandbox.write("graph.jsonl", "{\"name\":\"b\"}\n{\"name\":\"c\",\"needs\":[\"bb\"]}\n");
    refused(&sandbox.tenure(&["import", "graph.jsonl"]), 4, "line 2: `needs` names \"bb\"");
    sandbox.write("graph.jsonl", "{\"name\":\"b\",\"needs\":[\"c\"]}\n{\"name\":\"c\",\"needs\":[\"b\"]}\n");
    refused(&sandbox.tenure(&["import", "graph.jsonl"]), 1, "loop");
    sandbox.write("graph.jsonl", "{\"name\":\"b\"}\n{\"name\":\"c\",\"group\":\"nobody\"}\n");
    refused(&sandbox.tenure(&["import", "graph.jsonl"]), 1, "line 2: ");
    assert_eq!(sandbox.statuses(), before);
}

#[test]
fn a_node_that_has_ended_can_stand_in_the_file_but_is_not_changed() {
    let sandbox = Sandbox::new(&[r#"{"name":"a","run":"true"}"#]);
    assert_eq!(sandbox.run(&[]).code, Some(0));
    assert_eq!(sandbox.run(&[]).code, Some(0));
    sandbox.write("graph.jsonl", "\n{\"name\":\"a\",\"run\":\"false\"}");
    refused(&sandbox.run(&[]), 1, "graph.jsonl: line 2: a is done");
    assert_eq!(sandbox.node("a").run.as_deref(), Some("true"));
}

#[test]
fn control_characters_of_a_file_never_reach_the_terminal() {
    let sandbox = Sandbox::new(&["{\"name\":\"a\",\"\\u001b[31m\\u202e\":1}"]);
    let ran = sandbox.tenure(&["import", "graph.jsonl"]);
    assert_eq!(ran.code, Some(2));
    assert!(!ran.err.contains('\u{1b}') && !ran.err.contains('\u{202e}'), "{ran:?}");
    let name = "x\\u001b[31m\\u202e\\u009b\\n";
    sandbox.write("graph.jsonl", format!("{{\"name\":\"{name}\",\"summary\":\"{name}\",\"run\":\"exit 3\"}}"));
    for args in [&["run", "graph.jsonl"][..], &["export"]] {
        let ran = sandbox.tenure(args);
        let all = ran.out + &ran.err;
        assert!(!all.replace('\n', "").contains(|c: char| c.is_control() || c == '\u{202e}'), "{all:?}");
        assert!(all.contains('x'), "{all:?}");
    }
}

#[test]
fn an_export_is_the_same_graph_again() {
    let sandbox = Sandbox::new(&[
        r#"{"name":"a","run":"echo \"hi\"","summary":"two\nlines"}"#,
        r#"{"name":"b","needs":["a"],"parent":"a","cost":9,"role":"r","kind":"k"}"#,
        r#"{"id":"0123456789abcdef0123456789abcdef","needs":["a","b"]}"#,
    ]);
    assert_eq!(sandbox.tenure(&["import", "graph.jsonl"]).code, Some(0));
    let exported = sandbox.tenure(&["export"]).out;
    assert_eq!(exported.lines().count(), 3);
    let other = Sandbox::new(&[&exported]);
    assert_eq!(other.tenure(&["import", "graph.jsonl"]).out, "created 3, updated 0, unchanged 0\n");
    assert_eq!(other.tenure(&["export"]).out, exported);
}

#[test]
fn numbers_that_make_no_sense_are_usage() {
    let sandbox = Sandbox::new(&[]);
    for args in
        [&["-j", "0"][..], &["-j", "1025"], &["-j", "x"], &["--replay", "-1"], &["--replay", "nan"], &["--lease", "0"]]
    {
        let ran = sandbox.run(args);
        assert_eq!(ran.code, Some(2), "{ran:?}");
    }
    assert!(!sandbox.path("table").exists());
}
