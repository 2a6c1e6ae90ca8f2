//! A verb of the program, from spawn to exit, beside the smallest program there is. The two take turns.

use std::path::Path;
use std::process::{Command, Stdio};

use tenure::{CreateOptions, NodeId, Outcome, Table};

use super::report::median;
use super::shapes::Shape;
use super::{Failure, clock_ns};

/// Name of a verb, its median and the median of `hello` between its runs, in milliseconds.
pub type Verb = (&'static str, f64, f64);

fn run(program: &Path, arguments: &[&str]) -> Result<f64, Failure> {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let began = clock_ns();
    let status = command.status()?;
    let took = (clock_ns() - began) as f64 / 1e6;
    if !status.success() {
        return Err(format!("{} {} ended with {status}", program.display(), arguments.join(" ")).into());
    }
    Ok(took)
}

/// Runs `times` of each verb on a table of 4,096 nodes, four dependencies each, beside as many hellos.
pub fn verbs(dir: &Path, tenure: &Path, hello: &Path, times: usize) -> Result<Vec<Verb>, Failure> {
    std::fs::create_dir_all(dir)?;
    let (table, _) = Table::open_or_create(dir, &CreateOptions::default())?;
    table.import(&Shape::random(4_096, 4).specs(0))?;
    let worker = table.worker("w1")?;
    let at = dir.to_string_lossy();
    let names = ["claim-next", "renew", "complete", "claim", "release", "get"];
    let mut ours: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
    let mut hellos = ours.clone();
    for round in 0..times + 3 {
        let mut node = String::new();
        let mut generation = String::new();
        for (i, name) in names.iter().enumerate() {
            let hello_ms = run(hello, &[])?;
            let on_node = ["--dir", &at, name, &node, "--holder", "w1", "--gen", &generation];
            let ms = match *name {
                "claim-next" => run(tenure, &["--dir", &at, name, "--holder", "w1"])?,
                "claim" => {
                    // A node for the verbs that follow.
                    let next = worker.claim_next()?;
                    node = next.id().to_string();
                    next.release()?;
                    run(tenure, &["--dir", &at, name, &node, "--holder", "w1"])?
                }
                "get" => run(tenure, &["--dir", &at, name, &node])?,
                _ => run(tenure, &on_node)?,
            };
            if matches!(*name, "claim-next" | "claim") {
                let held = worker.current()?.ok_or("the verb claimed nothing")?;
                node = held.id().to_string();
                generation = held.generation().to_string();
            }
            if round >= 3 {
                ours[i].push(ms);
                hellos[i].push(hello_ms);
            }
        }
    }
    let _ = (NodeId(0), Outcome::Done);
    Ok(names.iter().zip(ours.iter_mut().zip(&mut hellos)).map(|(n, (o, h))| (*n, median(o), median(h))).collect())
}
