//! Graphs as files: what is read, what is refused and with which words, and the way back.

use proptest::prelude::*;
use tenure::formats::{Format, FormatError, Graph, LoadError, Loaded, NODES_MAX, jsonl};
use tenure::{CreateOptions, Filter, NodeId, NodeSpec, NodeView, Table};

fn table() -> (tempfile::TempDir, Table) {
    let dir = tempfile::tempdir().unwrap();
    let (table, _) = Table::open_or_create(dir.path(), &CreateOptions::default()).unwrap();
    (dir, table)
}

fn read(text: impl AsRef<[u8]>) -> Result<Graph, FormatError> {
    Graph::read(Format::Jsonl, &mut text.as_ref())
}

fn read_trace(text: impl AsRef<[u8]>) -> Result<Graph, FormatError> {
    Graph::read(Format::Wfformat, &mut text.as_ref())
}

/// The message and code of what must be refused.
#[track_caller]
fn refused(text: impl AsRef<[u8]>) -> (String, &'static str) {
    let error = read(text).expect_err("it is refused");
    (error.to_string(), error.code())
}

/// Checks that a line is refused, with these words and the line's number.
#[track_caller]
fn refused_line(line: &str, code: &str, words: &str) {
    let (message, found) = refused(format!("{{\"name\":\"first\"}}\n\n{line}\n{{\"name\":\"last\"}}\n"));
    assert_eq!(found, code, "{message}");
    assert!(message.starts_with("line 3"), "{message}");
    assert!(message.contains(words), "no {words:?} in {message:?}");
}

fn all(table: &Table) -> Vec<NodeView> {
    table.list(Filter { terminal: true, archived: true }).unwrap()
}

#[test]
fn every_field_arrives() {
    let (_dir, table) = table();
    let text = r#"{"name":"a","run":"true","cost":7,"role":"r","kind":"k","summary":"s","parent":"b","needs":["b"]}
                  {"name":"b"}"#;
    let loaded = read(text).unwrap().load(&table).unwrap();
    assert_eq!(loaded, Loaded { created: 2, updated: 0, unchanged: 0 });
    let a = table.get(NodeId::of_name("a")).unwrap();
    assert_eq!((a.run.as_deref(), a.cost, a.role.as_deref()), (Some("true"), 7, Some("r")));
    assert_eq!((a.kind.as_deref(), a.summary.as_deref(), a.parent.as_deref()), (Some("k"), Some("s"), Some("b")));
    assert_eq!(a.depends_on, ["b"]);
}

#[test]
fn what_is_left_out_stays_and_null_or_empty_clears() {
    let (_dir, table) = table();
    let full = r#"{"name":"p"}
                  {"name":"a","run":"true","cost":7,"role":"r","kind":"k","summary":"s","parent":"p"}"#;
    read(full).unwrap().load(&table).unwrap();
    let before = table.get(NodeId::of_name("a")).unwrap();
    let again = read("{\"name\":\"a\",\"needs\":null}").unwrap().load(&table).unwrap();
    assert_eq!(again, Loaded { created: 0, updated: 0, unchanged: 1 });
    assert_eq!(table.get(NodeId::of_name("a")).unwrap(), before);
    let cleared = r#"{"name":"a","run":"","cost":null,"role":null,"kind":"","summary":null,"parent":null}"#;
    assert_eq!(read(cleared).unwrap().load(&table).unwrap(), Loaded { created: 0, updated: 1, unchanged: 0 });
    let after = table.get(NodeId::of_name("a")).unwrap();
    assert_eq!((after.run, after.role, after.kind, after.summary, after.parent), (None, None, None, None, None));
    assert_eq!(after.cost, 1);
}

#[test]
fn marks_line_ends_and_blank_lines_mean_nothing() {
    let plain = read("{\"name\":\"a\"}\n{\"name\":\"b\"}\n").unwrap();
    let odd = read("\u{feff}{\"name\":\"a\"}\r\n{\"name\":\"b\"}").unwrap();
    assert_eq!(plain, odd);
    let spaced = read("\n \t\r\n{\"name\":\"a\"}\n\n").unwrap();
    assert_eq!(spaced.entries().len(), 1);
    assert_eq!(spaced.entries()[0].at.to_string(), "line 3");
    assert_eq!(read("").unwrap().entries().len(), 0);
}

#[test]
fn a_node_without_a_name_goes_by_its_id() {
    let (_dir, table) = table();
    let id = "0123456789abcdef0123456789abcdef";
    let text = format!("{{\"id\":\"{id}\"}}\n{{\"name\":\"a\",\"needs\":[\"{id}\"]}}");
    read(&text).unwrap().load(&table).unwrap();
    assert_eq!(table.get(NodeId::of_name("a")).unwrap().depends_on, [id]);
    assert_eq!(read(&text).unwrap().load(&table).unwrap().unchanged, 2);
    let own = NodeId::of_name("a");
    assert_eq!(read(format!("{{\"name\":\"a\",\"id\":\"{own}\"}}")).unwrap().entries().len(), 1);
}

#[test]
fn a_mistake_is_told_with_its_line() {
    refused_line(r#"{"name":"a","need":["first"]}"#, "bad_input", "unknown field `need`");
    refused_line(r#"{"name":"a","status":"done"}"#, "bad_input", "unknown field `status`");
    refused_line(r#"{"name":"a","name":"b"}"#, "bad_input", "duplicate field `name`");
    refused_line(r#"{"needs":[]}"#, "bad_input", "a node needs a `name`");
    refused_line(r#"{"name":null}"#, "bad_input", "`name` must be a string");
    refused_line(r#"{"name":""}"#, "bad_name", "the name is empty");
    refused_line(r#"{"name":"a\u0000b"}"#, "bad_name", "NUL");
    refused_line(r#"{"name":"0123456789abcdef0123456789abcdef"}"#, "bad_name", "hex digits");
    refused_line(&format!(r#"{{"name":"{}"}}"#, "ü".repeat(33)), "too_long", "66 bytes long; the limit is 64");
    refused_line(r#"{"id":"xyz"}"#, "bad_input", "`id` must be 32 lowercase hex digits");
    refused_line(r#"{"id":"0123456789ABCDEF0123456789ABCDEF"}"#, "bad_input", "`id` must be 32 lowercase");
    refused_line(r#"{"id":7}"#, "bad_input", "`id` must be a string");
    refused_line(r#"{"name":"a","id":"0123456789abcdef0123456789abcdef"}"#, "bad_input", "is not the id of this");
    refused_line(r#"{"name":"first"}"#, "duplicate", "\"first\" stands at line 1 already");
    refused_line(r#"{"name":"a","needs":"first"}"#, "bad_input", "`needs` must be an array of names or ids");
    refused_line(r#"{"name":"a","needs":[1]}"#, "bad_input", "`needs` must be an array of names or ids, not 1");
    refused_line(r#"{"name":"a","needs":[""]}"#, "bad_input", "`needs` names a node that cannot be");
    refused_line(r#"{"name":"a","needs":["a"]}"#, "self_link", "`needs` names the node itself");
    refused_line(r#"{"name":"a","parent":"a"}"#, "self_link", "`parent` names the node itself");
    refused_line(r#"{"name":"a","parent":{}}"#, "bad_input", "`parent` must be a string or null");
    for cost in ["1.5", "-1", "4294967296", "\"5\"", "true", "[]", "1e2"] {
        refused_line(&format!(r#"{{"name":"a","cost":{cost}}}"#), "bad_input", "`cost` must be a whole number");
    }
    refused_line(r#"{"name":"a","run":["true"]}"#, "bad_input", "`run` must be a string or null, not an array");
    refused_line(r#"{"name":"a","run":"a\u0000b"}"#, "bad_name", "the run contains a NUL");
    refused_line(&format!(r#"{{"name":"a","run":"{}"}}"#, "x".repeat(4_097)), "too_long", "4097 bytes");
    refused_line(&format!(r#"{{"name":"a","summary":"{}"}}"#, "x".repeat(1_025)), "too_long", "1025 bytes");
    refused_line(&format!(r#"{{"name":"a","kind":"{}"}}"#, "x".repeat(65)), "too_long", "the kind is 65 bytes");
    refused_line(&format!(r#"{{"name":"a","role":"{}"}}"#, "x".repeat(65)), "too_long", "the role is 65 bytes");
    refused_line(r#"["a"]"#, "bad_input", "one JSON object");
    refused_line("name: a", "bad_input", "one JSON object");
    refused_line(r#"{"name":"a""#, "bad_input", "EOF");
    refused_line(r#"{"name":"a"}{"name":"b"}"#, "bad_input", "trailing characters");
    refused_line(r#"{"name":"\ud800"}"#, "bad_input", "hex escape");
    refused_line("{\"name\":\"a\tb\"}", "bad_input", "control character");
    let deep = "[".repeat(100_000);
    refused_line(&format!("{{\"name\":\"a\",\"needs\":{deep}"), "bad_input", "recursion limit");
}

#[test]
fn what_is_not_text_is_told_with_its_byte() {
    let (message, code) = refused(b"{\"name\":\"a\"}\n{\"name\":\"\xff\"}\n");
    assert_eq!(code, "bad_input");
    assert!(message.starts_with("line 2 is not UTF-8 (byte 10"), "{message}");
    let (message, _) = refused(b"\xff\xfe{\0\"\0n\0");
    assert!(message.starts_with("line 1 is not UTF-8 (byte 1"), "{message}");
}

#[test]
fn a_document_on_many_lines_is_told_about_the_formats() {
    let (message, _) = refused("{\n  \"name\": \"a\"\n}\n");
    assert!(message.starts_with("line 1") && message.contains("--format wfformat"), "{message}");
    let error = read_trace("{\"name\":\"a\"}\n{\"name\":\"b\"}\n").unwrap_err();
    assert!(error.to_string().contains("--format jsonl"), "{error}");
}

#[test]
fn the_bounds_are_exact() {
    let pad = |bytes: usize| format!("{{\"name\":\"a\"{}}}", " ".repeat(bytes - 12));
    assert_eq!(read(pad(jsonl::LINE_BYTES_MAX)).unwrap().entries().len(), 1);
    assert_eq!(read(pad(jsonl::LINE_BYTES_MAX) + "\n").unwrap().entries().len(), 1);
    assert_eq!(refused(pad(jsonl::LINE_BYTES_MAX + 1)).1, "too_long");
    assert_eq!(refused(pad(jsonl::LINE_BYTES_MAX + 1) + "\n").1, "too_long");
    let nodes = |count: usize| (0..count).map(|i| format!("{{\"name\":\"n{i}\"}}\n")).collect::<String>();
    assert_eq!(read(nodes(NODES_MAX)).unwrap().entries().len(), NODES_MAX);
    let (message, code) = refused(nodes(NODES_MAX + 1));
    assert_eq!(code, "too_many_nodes");
    assert!(message.starts_with("line 4097: "), "{message}");
}

#[test]
fn an_input_without_end_is_refused_after_a_bounded_part_of_it() {
    struct Endless(usize);
    impl std::io::Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0 += buffer.len();
            buffer.fill(b'x');
            Ok(buffer.len())
        }
    }
    let mut input = std::io::BufReader::new(Endless(0));
    assert_eq!(Graph::read(Format::Jsonl, &mut input).unwrap_err().code(), "too_long");
    assert!(input.get_ref().0 < 2 * jsonl::LINE_BYTES_MAX);
}

#[test]
fn a_node_that_waits_for_all_others_fits_on_a_line() {
    let (_dir, table) = table();
    // Control characters take six bytes each in JSON: nothing takes more.
    let name = |i: usize| format!("{}{i:04}", "\u{1}".repeat(60));
    let mut specs: Vec<NodeSpec> =
        (0..NODES_MAX).map(|i| NodeSpec { name: Some(name(i)), ..NodeSpec::default() }).collect();
    let needs = (1..NODES_MAX).map(|i| NodeId::of_name(&name(i)).into()).collect();
    specs[0].needs = needs;
    table.import(&specs).unwrap();
    let mut lines = Vec::new();
    jsonl::write(&all(&table), &mut lines).unwrap();
    let longest = lines.split(|byte| *byte == b'\n').map(<[u8]>::len).max().unwrap();
    assert!(longest > 1_500_000, "{longest}");
    let (_dir, again) = self::table();
    assert_eq!(read(lines).unwrap().load(&again).unwrap().created, NODES_MAX);
    assert_eq!(again.stats().unwrap().edges as usize, NODES_MAX - 1);
}

#[test]
fn what_a_line_refers_to_is_in_the_file_or_in_the_table() {
    let (_dir, table) = table();
    table.upsert(&NodeSpec { name: Some("old".into()), ..NodeSpec::default() }, false).unwrap();
    read("{\"name\":\"a\",\"needs\":[\"b\",\"old\"]}\n{\"name\":\"b\"}\n").unwrap().load(&table).unwrap();
    for field in ["\"needs\":[\"nowhere\"]", "\"parent\":\"nowhere\""] {
        let before = all(&table);
        let error = read(format!("{{\"name\":\"c\"}}\n{{\"name\":\"d\",{field}}}")).unwrap().load(&table).unwrap_err();
        assert!(matches!(error, LoadError::Format(FormatError::UnknownNode { .. })), "{error:?}");
        let message = error.to_string();
        assert!(message.starts_with("line 2: ") && message.contains("\"nowhere\""), "{message}");
        assert_eq!(all(&table), before, "nothing was changed");
    }
}

#[test]
fn a_loop_changes_nothing_and_is_told_with_a_line() {
    let (_dir, table) = table();
    for text in [
        "{\"name\":\"x\"}\n{\"name\":\"a\",\"needs\":[\"b\"]}\n{\"name\":\"b\",\"needs\":[\"a\"]}",
        "{\"name\":\"x\"}\n{\"name\":\"a\",\"parent\":\"b\"}\n{\"name\":\"b\",\"parent\":\"a\"}",
    ] {
        let error = read(text).unwrap().load(&table).unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with("line 2: ") || message.starts_with("line 3: "), "{message}");
        assert!(message.contains("loop"), "{message}");
        assert!(all(&table).is_empty());
    }
}

#[test]
fn a_trace_becomes_nodes_with_costs_kinds_and_edges() {
    let (_dir, table) = table();
    let graph = read_trace(include_str!("data/small.wfformat.json")).unwrap();
    assert_eq!(graph.notes(), ["edges that only one of their two tasks lists, taken as edges all the same: 1"]);
    assert_eq!(graph.load(&table).unwrap().created, 4);
    let get = |name: &str| table.get(NodeId::of_name(name)).unwrap();
    let split = get("split_ID0000001");
    assert_eq!((split.cost, split.kind.as_deref(), split.run), (1_234, Some("split"), None));
    let short = graph.entries()[2].label.clone();
    assert!(short.len() == 64 && short.starts_with("a-task-whose-id-is-much-longer-than-the-sixty-f~"), "{short}");
    assert_eq!((get(&short).cost, get(&short).kind.as_deref()), (0, Some("map")));
    let join = get("join_ID0000004");
    assert_eq!(join.cost, 1_000);
    let mut needs = join.depends_on.clone();
    needs.sort();
    assert_eq!(needs, [short, "map_ID0000002".to_owned()]);
    assert_eq!(graph.load(&table).unwrap().unchanged, 4);
}

/// A trace of these tasks, with these measured times.
fn trace(tasks: &str, measured: &str) -> String {
    let execution = format!("\"makespanInSeconds\":1,\"executedAt\":\"x\",\"tasks\":[{measured}]");
    format!(
        "{{\"name\":\"t\",\"schemaVersion\":\"1.5\",\"workflow\":{{\"specification\":{{\"tasks\":[{tasks}]}},\"execution\":{{{execution}}}}}}}"
    )
}

fn task(id: &str, parents: &str, children: &str) -> String {
    format!("{{\"id\":\"{id}\",\"name\":\"{id}\",\"parents\":[{parents}],\"children\":[{children}]}}")
}

#[test]
fn an_edge_on_either_side_is_an_edge() {
    for (a, b) in [
        (task("a", "", "\"b\""), task("b", "", "")),
        (task("a", "", ""), task("b", "\"a\"", "")),
        (task("a", "", "\"b\""), task("b", "\"a\"", "")),
    ] {
        let graph = read_trace(trace(&format!("{a},{b}"), "")).unwrap();
        assert_eq!(graph.entries()[1].spec.needs, [NodeId::of_name("a").into()]);
        assert!(graph.entries()[0].spec.needs.is_empty());
    }
}

#[test]
fn long_ids_stay_apart_and_whole_characters() {
    let long = "ü".repeat(48);
    let other = format!("{}x", "ü".repeat(47));
    let hex = "0123456789abcdef0123456789abcdef";
    let tasks = [task(&long, "", ""), task(&other, "", ""), task(hex, "", "")].join(",");
    let graph = read_trace(trace(&tasks, "")).unwrap();
    let labels: Vec<&str> = graph.entries().iter().map(|entry| entry.label.as_str()).collect();
    assert!(labels[0].starts_with(&("ü".repeat(23) + "~")) && labels[0].len() == 63, "{labels:?}");
    assert_ne!(labels[0], labels[1]);
    assert_eq!(labels[2].len(), 49);
    assert!(labels[2].starts_with(&format!("{hex}~")));
    assert_eq!(graph.notes(), ["tasks without a measured run time, left at the default cost: 3"]);
}

#[test]
fn a_trace_that_is_wrong_is_refused_with_the_place() {
    let one = task("a", "", "");
    let measured = |s: &str| format!("{{\"id\":\"a\",\"runtimeInSeconds\":{s}}}");
    for (text, code, words) in [
        ("{".to_owned(), "bad_input", "line 1"),
        ("[]".to_owned(), "bad_input", "is this a WfFormat trace?"),
        ("{\"workflow\":{}}".to_owned(), "other_version", "without a schemaVersion"),
        (trace(&one, "").replace("1.5", "1.4"), "other_version", "WfFormat 1.4; only 1.5"),
        ("{\"schemaVersion\":\"1.5\"}".to_owned(), "bad_input", "workflow"),
        (trace("{\"id\":\"a\",\"name\":\"a\",\"parents\":[]}", ""), "bad_input", "missing field `children`"),
        (trace(&format!("{one},{one}"), ""), "duplicate", "task \"a\": \"a\" stands at task \"a\" already"),
        (trace(&task("a", "\"b\"", ""), ""), "no_such_node", "task \"a\": `parents` names \"b\""),
        (trace(&task("a", "", "\"b\""), ""), "no_such_node", "task \"a\": `children` names \"b\""),
        (trace(&task("a", "\"a\"", ""), ""), "self_link", "task \"a\": `parents` names the node itself"),
        (trace(&task("", "", ""), ""), "bad_name", "is empty"),
        (trace(&one, &measured("-1")), "bad_input", "`runtimeInSeconds` must be 0 to"),
        (trace(&one, &measured("4294968")), "bad_input", "`runtimeInSeconds` must be 0 to"),
        (trace(&one, &measured("1e999")), "bad_input", "number out of range"),
        (trace(&one, &measured("\"1\"")), "bad_input", "invalid type: string"),
        (trace(&one, &format!("{},{}", measured("1"), measured("1"))), "duplicate", "stands at"),
    ] {
        let error = read_trace(&text).expect_err(&text);
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(words), "no {words:?} in {error}");
    }
}

/// Text with everything in it that gets lost or mangled on such ways.
fn awkward(bytes_max: usize) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z]{1,8}",
        prop::sample::select(vec![
            "\n",
            "\t",
            "\r",
            "\u{1}",
            "\u{1b}[31m",
            "\u{7f}",
            "\u{9b}",
            "\"",
            "\\",
            "'",
            "`",
            "\u{202e}",
            "\u{200f}",
            "\u{2028}",
            "\u{feff}",
            "👩\u{200d}🚀",
            "ß",
            "é",
            "日本",
            "\u{e0041}",
            "\\u0000",
            "null",
            "{",
            "]",
            " ",
        ])
        .prop_map(str::to_owned),
        any::<char>().prop_filter("no text holds it", |c| *c != '\0').prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..12).prop_map(move |pieces| {
        let mut text = pieces.concat();
        while text.len() > bytes_max {
            text.pop();
        }
        text
    })
}

prop_compose! {
    fn node()(
        name in awkward(50), named in prop::bool::weighted(0.8),
        kind in awkward(64), role in awkward(64), summary in awkward(200), run in awkward(200),
        cost in any::<u32>(), needs in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        parent in prop::option::of(any::<prop::sample::Index>()),
    ) -> (NodeSpec, bool, Vec<prop::sample::Index>, Option<prop::sample::Index>) {
        let spec = NodeSpec {
            name: Some(name), kind: Some(kind), role: Some(role), summary: Some(summary), run: Some(run),
            cost: Some(cost), ..NodeSpec::default()
        };
        (spec, named, needs, parent)
    }
}

/// What of a node is part of the graph.
fn part(view: NodeView) -> impl PartialEq + std::fmt::Debug {
    let mut needs = view.depends_on;
    needs.sort();
    (view.id, view.name, view.kind, view.role, view.parent, needs, view.cost, view.summary, view.run)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn an_export_imports_into_an_equal_graph(nodes in prop::collection::vec(node(), 1..12)) {
        let (_dir, table) = table();
        let mut specs: Vec<NodeSpec> = Vec::new();
        for (i, (mut spec, named, needs, parent)) in nodes.into_iter().enumerate() {
            // A number makes the name unique; it also keeps it from being empty.
            spec.name = spec.name.map(|name| format!("{name}{i}")).filter(|_| named);
            spec.id = Some(spec.name.as_deref().map_or(NodeId(7_000 + i as u128), NodeId::of_name));
            let earlier: Vec<NodeId> = specs.iter().filter_map(|spec| spec.id).collect();
            if !earlier.is_empty() {
                spec.needs = needs.iter().map(|index| (*index.get(&earlier)).into()).collect();
                spec.needs.sort();
                spec.needs.dedup();
                spec.parent = parent.map(|index| Some(*index.get(&earlier)));
            }
            specs.push(spec);
        }
        table.import(&specs).unwrap();
        let mut lines = Vec::new();
        jsonl::write(&all(&table), &mut lines).unwrap();
        let (_dir, again) = self::table();
        read(&lines).unwrap().load(&again).unwrap();
        let before: Vec<_> = all(&table).into_iter().map(part).collect();
        let after: Vec<_> = all(&again).into_iter().map(part).collect();
        prop_assert_eq!(before, after);
        let mut lines_again = Vec::new();
        jsonl::write(&all(&again), &mut lines_again).unwrap();
        prop_assert_eq!(lines, lines_again);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), line in awkward(200)) {
        let _ = read(&bytes);
        let _ = read_trace(&bytes);
        let _ = read(format!("{{\"name\":{line}"));
        let _ = read_trace(format!("{{\"schemaVersion\":\"1.5\",\"workflow\":{line}"));
    }
}
