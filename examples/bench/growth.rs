//! How cost grows with the graph and with the processes, as a drawing: three panels, both axes logarithmic.

use std::fmt::Write;
use std::path::Path;

use tenure::{CreateOptions, NodeId, NodeSpec, Outcome, Table, Worker};

use super::crew::{self, On};
use super::report::median;
use super::shapes::Shape;
use super::{Failure, clock_ns};

/// A line of a panel: its name, and x and y of its points.
struct Line {
    name: &'static str,
    points: Vec<(f64, f64)>,
}

struct Panel {
    title: &'static str,
    x: &'static str,
    y: &'static str,
    lines: Vec<Line>,
}

/// Nanoseconds of claim_next with release, of a renewal, and of a completion of a node that nothing waits for.
fn verbs(dir: &Path, shape: &Shape) -> Result<[f64; 3], Failure> {
    std::fs::create_dir_all(dir)?;
    let (table, _) = Table::open_or_create(dir, &CreateOptions::default())?;
    table.import(&shape.specs(0))?;
    let worker = table.worker("w")?;
    let once = |what: &dyn Fn(&Worker) -> Result<(), Failure>| -> Result<f64, Failure> {
        let mut took = Vec::new();
        for _ in 0..60 {
            let began = clock_ns();
            for _ in 0..50 {
                what(&worker)?;
            }
            took.push((clock_ns() - began) as f64 / 50.0);
        }
        Ok(median(&mut took))
    };
    let next = once(&|worker| worker.claim_next()?.release().map(|_| ()).map_err(Into::into))?;
    let claim = worker.claim_next()?;
    let renew = once(&|_| claim.renew().map(|_| ()).map_err(Into::into))?;
    claim.release()?;
    let mut took = Vec::new();
    // Not reopened, since that is a change of the graph: as many nodes without edges as there is room for.
    let mut id = 1u128 << 64;
    for _ in 0..20 {
        let room = 4_096usize.saturating_sub(shape.needs.len()).clamp(1, 50);
        let Ok(added) = table.import(&(0..room).map(|i| alone(id + i as u128)).collect::<Vec<_>>()) else { break };
        id += room as u128;
        for (node, _) in added {
            let claim = worker.claim(node)?;
            let began = clock_ns();
            claim.complete(Outcome::Done)?;
            took.push((clock_ns() - began) as f64);
        }
        if shape.needs.len() + 50 > 4_096 && took.len() > 40 {
            break;
        }
    }
    drop(table);
    std::fs::remove_dir_all(dir)?;
    Ok([next, renew, median(&mut took)])
}

fn alone(id: u128) -> NodeSpec {
    NodeSpec { id: Some(NodeId(id)), ..NodeSpec::default() }
}

const NAMES: [&str; 3] = ["claim_next + release", "renew", "complete"];

fn lines(points: Vec<(f64, [f64; 3])>) -> Vec<Line> {
    NAMES
        .iter()
        .enumerate()
        .map(|(i, &name)| Line { name, points: points.iter().map(|(x, y)| (*x, y[i])).collect() })
        .collect()
}

/// Measures, prints the points, and writes the drawing.
pub fn draw(dir: &Path, file: &Path, rounds: usize) -> Result<(), Failure> {
    let mut by_nodes = Vec::new();
    for nodes in [10, 32, 100, 320, 1_000, 2_000, 4_046] {
        by_nodes.push((nodes as f64, verbs(&dir.join("nodes"), &Shape::random(nodes, 4))?));
    }
    let mut by_edges = Vec::new();
    for each in [0, 1, 4, 16, 64] {
        let shape = Shape::random(4_046, each);
        by_edges.push((shape.edges().max(1) as f64, verbs(&dir.join("edges"), &shape)?));
    }
    let mut ours = Vec::new();
    let mut floor = Vec::new();
    for members in [1, 2, 4, 8, 16, 32, 64] {
        let at = dir.join("processes");
        for (on, points) in [(On::Table, &mut ours), (On::Floor, &mut floor)] {
            let figures = crew::rounds(&at, members, on, "flat", rounds)?;
            points.push((members as f64, figures.pairs_per_cpu_s / 1e6));
            std::fs::remove_dir_all(&at)?;
        }
    }
    let panels = [
        Panel { title: "nodes, 4 edges each", x: "nodes", y: "ns", lines: lines(by_nodes) },
        Panel { title: "edges, 4,046 nodes", x: "edges", y: "ns", lines: lines(by_edges) },
        Panel {
            title: "processes, no edges",
            x: "processes",
            y: "million pairs/s",
            lines: vec![
                Line { name: "claim_next + complete", points: ours },
                Line { name: "the words alone", points: floor },
            ],
        },
    ];
    for panel in &panels {
        for line in &panel.lines {
            for (x, y) in &line.points {
                println!("{}\t{}\t{x}\t{y:.1} {}", panel.title, line.name, panel.y);
            }
        }
    }
    std::fs::write(file, svg(&panels)?)?;
    Ok(())
}

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 220.0;
const COLOURS: [&str; 3] = ["#1b6ca8", "#b8561b", "#3b8a3b"];

fn svg(panels: &[Panel]) -> Result<String, Failure> {
    let mut out = String::new();
    let whole = 80.0 + panels.len() as f64 * (WIDTH + 80.0);
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {whole} 360\" font-family=\"sans-serif\" font-size=\"12\">"
    )?;
    writeln!(out, "<rect width=\"{whole}\" height=\"360\" fill=\"white\"/>")?;
    for (i, panel) in panels.iter().enumerate() {
        let left = 70.0 + i as f64 * (WIDTH + 80.0);
        draw_panel(&mut out, panel, left)?;
    }
    writeln!(out, "</svg>")?;
    Ok(out)
}

fn draw_panel(out: &mut String, panel: &Panel, left: f64) -> Result<(), Failure> {
    let (top, bottom) = (40.0, 40.0 + HEIGHT);
    let all = || panel.lines.iter().flat_map(|line| &line.points);
    let decade = |value: f64, up: bool| if up { value.log10().ceil() } else { value.log10().floor() };
    let x_from = all().map(|p| p.0).fold(f64::MAX, f64::min).max(1.0).log10();
    let x_to = all().map(|p| p.0).fold(1.0, f64::max).log10();
    let y_from = decade(all().map(|p| p.1).fold(f64::MAX, f64::min).max(0.1), false);
    let y_to = decade(all().map(|p| p.1).fold(0.1, f64::max), true).max(y_from + 1.0);
    let x_at = |x: f64| left + (x.max(1.0).log10() - x_from) / (x_to - x_from) * WIDTH;
    let y_at = |y: f64| bottom - (y.max(0.1).log10() - y_from) / (y_to - y_from) * HEIGHT;
    writeln!(out, "<text x=\"{left}\" y=\"24\" font-weight=\"bold\">{}</text>", panel.title)?;
    writeln!(out, "<text x=\"{}\" y=\"{}\">{}</text>", left - 45.0, top - 8.0, panel.y)?;
    writeln!(
        out,
        "<rect x=\"{left}\" y=\"{top}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#888\"/>"
    )?;
    for power in y_from as i32..=y_to as i32 {
        let y = y_at(10f64.powi(power));
        writeln!(out, "<line x1=\"{left}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>", left + WIDTH)?;
        let label = 10f64.powi(power);
        writeln!(out, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>", left - 5.0, y + 4.0)?;
    }
    for (i, line) in panel.lines.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let path: Vec<String> = line.points.iter().map(|(x, y)| format!("{:.1},{:.1}", x_at(*x), y_at(*y))).collect();
        writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join(" ")
        )?;
        for (x, y) in &line.points {
            writeln!(out, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>", x_at(*x), y_at(*y))?;
            if i == 0 {
                let label = if *x <= 1.0 && panel.x == "edges" { 0.0 } else { *x };
                writeln!(
                    out,
                    "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\" font-size=\"10\">{label}</text>",
                    x_at(*x),
                    bottom + 15.0
                )?;
            }
        }
        let y = bottom + 50.0 + i as f64 * 18.0;
        writeln!(out, "<rect x=\"{left}\" y=\"{}\" width=\"12\" height=\"4\" fill=\"{colour}\"/>", y - 6.0)?;
        writeln!(out, "<text x=\"{}\" y=\"{y}\">{}</text>", left + 18.0, line.name)?;
    }
    let middle = left + WIDTH / 2.0;
    writeln!(out, "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>", bottom + 32.0, panel.x)?;
    Ok(())
}
