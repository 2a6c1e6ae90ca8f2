//! A tour of the library: a small graph, two workers on it, a lease that runs out, and a fence that holds.
//!
//! `cargo run --example two_workers`

use std::time::Duration;

use tenure::{Claim, CreateOptions, NodeId, NodeSpec, Outcome, Refusal, Table, Worker};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::temp_dir().join(format!("tenure-tour-{}", std::process::id()));
    let (table, _) = Table::open_or_create(&dir, &CreateOptions::default())?;
    let tour = tour(&table);
    // The table is a file in a directory of its own; without it nothing is left behind.
    std::fs::remove_dir_all(&dir)?;
    tour
}

fn tour(table: &Table) -> Result<(), Box<dyn std::error::Error>> {
    // A graph goes in whole or not at all. `bake` waits for both others.
    let node = |name: &str, cost, needs: &[&str]| NodeSpec {
        name: Some(name.to_owned()),
        cost: Some(cost),
        needs: needs.iter().map(|need| NodeId::of_name(need).into()).collect(),
        ..NodeSpec::default()
    };
    table.import(&[node("bake", 30, &["knead", "heat"]), node("knead", 10, &[]), node("heat", 5, &[])])?;

    // Each worker holds one node at a time, under a lease of 50 ms.
    let anna = table.worker("anna")?.with_lease_ms(50)?;
    let ben = table.worker("ben")?.with_lease_ms(50)?;
    let kneading = take(&anna)?;
    let heating = take(&ben)?;

    // Nothing else is ready, and that is an answer, not a failure.
    assert!(matches!(table.worker("carl")?.claim_next(), Err(Refusal::NothingReady)));

    // Ben keeps his claim by renewing it. Anna goes quiet for longer than her lease ...
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(20));
        heating.renew()?;
    }
    heating.complete(Outcome::Done)?;
    println!("ben has heated the oven");

    // ... so Ben, who looks for work, is given what she held.
    let kneading_again = take(&ben)?;
    assert_eq!(kneading_again.id(), kneading.id());

    // Anna comes back and does not know. Her generation is old, so her result is refused: nothing is counted twice.
    match kneading.complete(Outcome::Done) {
        Err(refusal) => println!("anna is refused: {refusal}"),
        Ok(_) => return Err("a lost claim was completed".into()),
    }
    kneading_again.complete(Outcome::Done)?;

    take(&anna)?.complete_with(Outcome::Done, "golden brown")?;
    for view in table.list(tenure::Filter { terminal: true, archived: false })? {
        println!("{:<6} {} {}", view.label(), view.status.name(), view.summary.unwrap_or_default());
    }
    Ok(())
}

/// Takes the next node and says which.
fn take(worker: &Worker) -> Result<Claim<'_>, Refusal> {
    let claim = worker.claim_next()?;
    let granted = claim.granted()?;
    println!("{} takes {} gen={}", worker.holder(), granted.name.unwrap_or_default(), granted.generation);
    Ok(claim)
}
