//! A graph of commands: in the order that it asks for, with what a command is told, and the summary at the end.

use std::process::Stdio;
use std::time::Instant;

use crate::support::{Sandbox, finish};

#[test]
fn commands_run_in_the_order_of_the_graph() {
    let line = |name: &str, needs: &str| {
        format!(
            "{{\"name\":\"{name}\",\"needs\":[{needs}],\"run\":\"echo begin {name} >> $LOG; sleep 0.05; echo end {name} >> $LOG\"}}"
        )
    };
    let edges = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "e")];
    let lines = [line("e", "\"d\""), line("d", "\"b\",\"c\""), line("c", "\"a\""), line("b", "\"a\""), line("a", "")];
    for jobs in ["1", "2", "8"] {
        let sandbox = Sandbox::new(&lines.each_ref().map(String::as_str));
        let ran = sandbox.run(&["-j", jobs]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let log = sandbox.log();
        assert_eq!(log.len(), 10, "{log:?}");
        let at =
            |line: String| log.iter().position(|found| *found == line).unwrap_or_else(|| panic!("{line}: {log:?}"));
        for (parent, child) in edges {
            assert!(at(format!("end {parent}")) < at(format!("begin {child}")), "{parent} {child}: {log:?}");
        }
        for name in ["a", "b", "c", "d", "e"] {
            assert!(ran.out.contains(&format!("start {name} gen=")), "{ran:?}");
            assert!(ran.out.contains(&format!("\ndone {name} 0.")), "{ran:?}");
        }
        assert!(ran.out.contains("\ndone 5, failed 0, blocked 0, cancelled 0, unfinished 0\n"), "{ran:?}");
    }
}

#[test]
fn a_command_is_told_its_claim_and_has_no_input() {
    let sandbox = Sandbox::new(&[
        r#"{"name":"a node","run":"echo \"$TENURE_NODE|$TENURE_GEN|$TENURE_DIR|$(pwd -P)\" >> $LOG; cat >> $LOG; echo $TENURE_HOLDER >> $LOG"}"#,
    ]);
    let mut command = sandbox.command(&["--dir", "table", "run", "graph.jsonl", "-j", "1"]);
    let output = command.env_remove("TENURE_DIR").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let generation = sandbox.node("a node").generation;
    let here = sandbox.path("").canonicalize().unwrap();
    let log = sandbox.log();
    let told: Vec<&str> = log[0].split('|').collect();
    assert_eq!(told[..2], ["a node", &generation.to_string()]);
    assert_eq!(std::path::Path::new(told[2]).canonicalize().unwrap(), here.join("table"));
    assert!(told[2].starts_with('/'), "{log:?}");
    assert_eq!(told[3], here.to_str().unwrap());
    assert!(log[1].starts_with("run-"), "{log:?}");
}

#[test]
fn a_command_that_begins_with_a_dash_is_still_a_command() {
    let sandbox = Sandbox::new(&[r#"{"name":"a","run":"-x 2> /dev/null || echo fine >> $LOG"}"#]);
    assert_eq!(sandbox.run(&[]).code, Some(0));
    assert_eq!(sandbox.log(), ["fine"]);
}

#[test]
fn a_node_without_a_command_is_a_gate() {
    let sandbox = Sandbox::new(&[
        r#"{"name":"gate","needs":["a"],"cost":3600000}"#,
        r#"{"name":"a","run":"echo a >> $LOG"}"#,
        r#"{"name":"b","needs":["gate"],"run":"echo b >> $LOG"}"#,
    ]);
    assert_eq!(sandbox.run(&[]).code, Some(0));
    assert_eq!(sandbox.log(), ["a", "b"]);
}

#[test]
fn replay_sleeps_the_cost_and_keeps_the_lease() {
    let sandbox = Sandbox::new(&[r#"{"name":"a","cost":10000}"#, r#"{"name":"b","needs":["a"],"run":"true"}"#]);
    let (summary, code) = sandbox.run_json(&["--replay", "0.1", "--lease", "0.3", "-j", "2"]);
    assert_eq!(code, Some(0));
    let wall_ms = summary["wall_ms"].as_f64().unwrap();
    assert!((1_000.0..3_000.0).contains(&wall_ms), "{summary}");
    let critical_path_ms = summary["critical_path_ms"].as_f64().unwrap();
    assert!(critical_path_ms >= 1_000.0 && critical_path_ms <= wall_ms, "{summary}");
    // Claimed once: a lost lease would have moved it again.
    assert_eq!(sandbox.node("a").generation, sandbox.node("b").generation);
    assert_eq!(summary["lost"], 0);
}

#[test]
fn what_wants_another_role_is_left_and_said() {
    let sandbox = Sandbox::new(&[
        r#"{"name":"a","role":"gpu","run":"echo a >> $LOG"}"#,
        r#"{"name":"b","run":"echo b >> $LOG"}"#,
        r#"{"name":"c","needs":["a"],"run":"echo c >> $LOG"}"#,
    ]);
    let ran = sandbox.run(&["-j", "2"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("--role"), "{ran:?}");
    assert_eq!(sandbox.log(), ["b"]);
    assert_eq!(sandbox.run(&["--role", "net", "--role", "gpu"]).code, Some(0));
    assert_eq!(sandbox.log(), ["b", "a", "c"]);
}

#[test]
fn one_process_alone_does_not_wait_for_its_own_progress() {
    // A chain of gates and a wide end: 2,000 turns, each of which would cost 1 to 50 ms if progress were only polled.
    let mut lines = vec![r#"{"name":"0"}"#.to_owned()];
    lines.extend((1..2_000).map(|i| format!("{{\"name\":\"{i}\",\"needs\":[\"{}\"]}}", i - 1)));
    let sandbox = Sandbox::new(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    let began = Instant::now();
    let (summary, code) = sandbox.run_json(&["-j", "4"]);
    assert_eq!((code, summary["done"].as_u64()), (Some(0), Some(2_000)));
    let wall_ms = summary["wall_ms"].as_f64().unwrap();
    assert!(wall_ms < 2_000.0, "{wall_ms} ms, {:?} in all", began.elapsed());
}

#[test]
fn with_json_standard_output_is_the_summary_alone() {
    let sandbox = Sandbox::new(&[r#"{"name":"a","run":"echo noise; echo more >&2"}"#]);
    let ran = sandbox.run(&["--json"]);
    let summary: serde_json::Value = serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}: {ran:?}"));
    assert_eq!((summary["done"].as_u64(), summary["created"].as_u64()), (Some(1), Some(1)));
    assert!(ran.err.contains("noise\n") && ran.err.contains("more\n") && ran.err.contains("start a gen="), "{ran:?}");
}

#[test]
fn a_reader_that_goes_away_ends_the_output_and_not_the_run() {
    for (command, code) in [("true", 0), ("false", 1)] {
        let sandbox = Sandbox::new(&[&format!(r#"{{"name":"a","run":"{command}"}}"#), r#"{"name":"b"}"#]);
        let mut child = sandbox.command(&["run", "graph.jsonl", "-k"]);
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ran = finish(child);
        assert_eq!((ran.code, ran.err.contains("panicked")), (Some(code), false), "{ran:?}");
        assert!(sandbox.statuses().iter().all(|(_, status)| ["done", "failed"].contains(status)));
    }
}

#[test]
fn an_empty_graph_is_done() {
    let sandbox = Sandbox::new(&[]);
    let ran = sandbox.run(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}
