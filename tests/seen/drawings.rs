//! `export --format dot` and `mermaid`.

use crate::support::Sandbox;

/// A node of every status, and a longest chain of unfinished ones: tools, link, test.
fn every_status() -> Sandbox {
    let sandbox = Sandbox::new();
    let upserts: &[&[&str]] = &[
        &["fetch"],
        &["build", "--needs", "fetch"],
        &["pack", "--needs", "build"],
        &["tools"],
        &["link", "--needs", "tools", "--cost", "5", "--parent", "pack"],
        &["test", "--needs", "link", "--needs", "fetch"],
        &["lint", "--needs", "fetch"],
        &["docs", "--needs", "fetch"],
    ];
    for upsert in upserts {
        sandbox.ok([&["upsert"], *upsert].concat());
    }
    sandbox.ok(["complete", "fetch"]);
    sandbox.ok(["complete", "build", "--status", "failed", "--summary", "it does\nnot link"]);
    sandbox.ok(["complete", "docs", "--status", "cancelled"]);
    sandbox.ok(["claim", "tools", "--holder", "ann"]);
    sandbox
}

#[test]
fn dot_shows_status_by_shape_and_colour_and_marks_the_critical_path() {
    let dot = every_status().ok(["export", "--format", "dot"]);
    let lines: Vec<&str> = dot.lines().map(str::trim).collect();
    assert_eq!((lines[0], lines[lines.len() - 1]), ("digraph tenure {", "}"));
    let wanted = [
        "n0 [label=\"fetch\\ndone\", shape=box, style=\"filled,rounded\"",
        "n1 [label=\"build\\nfailed\", shape=octagon",
        "n2 [label=\"pack\\nblocked\", shape=trapezium",
        "n3 [label=\"tools\\nclaimed by ann\", shape=hexagon",
        "n4 [label=\"link\\ntodo\", shape=box, style=\"filled\"",
        "n6 [label=\"lint\\nready\", shape=ellipse",
        "n7 [label=\"docs\\ncancelled\", shape=parallelogram",
    ];
    for start in wanted {
        assert!(lines.iter().any(|line| line.starts_with(start)), "no {start} in\n{dot}");
    }
    let thick: Vec<&str> = lines.iter().filter(|line| line.contains("penwidth=3")).copied().collect();
    let thick: Vec<&str> = thick.iter().filter_map(|line| line.split_once(" [").map(|(what, _)| what)).collect();
    assert_eq!(thick, ["n3", "n4", "n5", "n3 -> n4", "n4 -> n5"], "tools, link, test\n{dot}");
    assert!(lines.contains(&"n1 -> n2;") && lines.contains(&"n0 -> n7;"), "{dot}");
    assert!(dot.contains("n2 -> n4 [style=dashed"), "pack is the parent of link\n{dot}");
    assert!(dot.contains("tooltip=\"it does\u{29f5}nnot link\""), "{dot}");
}

#[test]
fn mermaid_shows_the_same() {
    let mermaid = every_status().ok(["export", "--format", "mermaid"]);
    let lines: Vec<&str> = mermaid.lines().map(str::trim).collect();
    assert_eq!(lines[0], "flowchart LR");
    let wanted = [
        "n0(\"fetch<br/>done\")",
        "n1[[\"build<br/>failed\"]]",
        "n2[/\"pack<br/>blocked\"\\]",
        "n3{{\"tools<br/>claimed by ann\"}}",
        "n4[\"link<br/>todo\"]",
        "n6([\"lint<br/>ready\"])",
        "n7[/\"docs<br/>cancelled\"/]",
        "n1 --> n2",
        "n3 ==> n4",
        "n4 ==> n5",
        "n2 -.- n4",
        "class n4,n5 todo",
        "class n3,n4,n5 critical",
    ];
    for line in wanted {
        assert!(lines.contains(&line), "no {line} in\n{mermaid}");
    }
    // The thick ones by their place among the links.
    let links: Vec<&&str> = lines.iter().filter(|line| line.contains("-->") || line.contains("==>")).collect();
    let thick: Vec<String> =
        (0..links.len()).filter(|&at| links[at].contains("==>")).map(|at| at.to_string()).collect();
    assert!(mermaid.contains(&format!("linkStyle {} stroke:", thick.join(","))), "{mermaid}");
}

#[test]
fn the_critical_path_is_weighed_by_cost_and_leaves_out_what_has_ended() {
    let sandbox = Sandbox::new();
    for (name, cost) in [("a", "1"), ("b", "1"), ("c", "1"), ("long", "10")] {
        sandbox.ok(["upsert", name, "--cost", cost]);
    }
    for (parent, child) in [("a", "b"), ("b", "c")] {
        sandbox.ok(["link", parent, child]);
    }
    let thick = || {
        let dot = sandbox.ok(["export", "--format", "dot"]);
        dot.lines().filter(|line| line.contains("penwidth=3")).count()
    };
    assert_eq!(thick(), 1, "one node of cost 10 outweighs a chain of three");
    sandbox.ok(["upsert", "long", "--cost", "2"]);
    assert_eq!(thick(), 5, "three nodes and two edges");
    sandbox.ok(["complete", "a"]);
    sandbox.ok(["upsert", "long", "--cost", "1"]);
    assert_eq!(thick(), 3, "what has ended is not on it");
    for name in ["b", "c", "long"] {
        sandbox.ok(["complete", name]);
    }
    assert_eq!(thick(), 0);
}

#[test]
fn nodes_that_cost_nothing_are_on_the_path_too() {
    let sandbox = Sandbox::new();
    for (name, need) in [("a", None), ("b", Some("a")), ("c", Some("b"))] {
        let needs = need.into_iter().flat_map(|need| ["--needs", need]);
        sandbox.ok(["upsert", name, "--cost", "0"].into_iter().chain(needs));
    }
    let dot = sandbox.ok(["export", "--format", "dot"]);
    assert_eq!(dot.lines().filter(|line| line.contains("penwidth=3")).count(), 5, "{dot}");
}

#[test]
fn an_empty_table_is_an_empty_drawing() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.ok(["export", "--format", "mermaid"]), "flowchart LR");
    let dot = sandbox.ok(["export", "--format", "dot"]);
    assert!(dot.starts_with("digraph tenure {") && dot.ends_with('}'), "{dot}");
    assert!(!dot.contains("n0"), "{dot}");
    sandbox.run(["export", "--format", "png"]).refused(2, "png");
}

#[test]
fn a_full_table_is_drawn_and_mermaids_limits_are_told() {
    let sandbox = Sandbox::new();
    let table = tenure::Table::open(sandbox.dir()).expect("a table");
    let spec = |n: usize| tenure::NodeSpec {
        name: Some(format!("n{n}")),
        needs: n.checked_sub(1).map(|n| tenure::NodeId::of_name(&format!("n{n}")).into()).into_iter().collect(),
        ..tenure::NodeSpec::default()
    };
    table.import(&(0..4_096).map(spec).collect::<Vec<_>>()).expect("room");
    let ran = sandbox.run(["export", "--format", "dot"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert_eq!(ran.out.lines().filter(|line| line.contains("penwidth=3")).count(), 4_096 + 4_095);
    let ran = sandbox.run(["export", "--format", "mermaid"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.err.contains("maxEdges") && ran.err.contains("4095 edges"), "{}", ran.err);
    let few = every_status().run(["export", "--format", "mermaid"]);
    assert_eq!(few.err, "", "a small drawing needs no warning");
}
