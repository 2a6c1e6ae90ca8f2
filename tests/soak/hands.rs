//! What each process does, for ever: it is killed in the end.

use std::time::Duration;

use tenure::{ClaimOptions, Completion, Filter, Need, NodeId, NodeSpec, OnFailure, Outcome, Refusal, Table};

use crate::crew::{Dice, Orders};
use crate::deeds::{GROUPS, Log, now};

/// Nodes of one import.
const BATCH: usize = 24;

pub fn run(role: &str, orders: &Orders) {
    let table = orders.table();
    let number = orders.word(0).to_owned();
    let mut hand = Hand {
        log: Log::open(&orders.dir, &number),
        dice: Dice::new(orders.number(0) as u64 ^ now() as u64),
        // Few names, so that one who was killed is followed by another of the same name.
        name: format!("{role}-{}", orders.number(0) % 7),
        table,
        number,
    };
    loop {
        match role {
            "importer" => hand.import(),
            "worker" => hand.work(None, false),
            "member" => hand.work(None, true),
            "waiter" => hand.work(Some(200), false),
            "storm" => hand.storm(),
            "snapshotter" => hand.snapshot(),
            "pruner" => hand.prune(),
            "reopener" => hand.reopen(),
            other => panic!("no role is called {other}"),
        }
    }
}

struct Hand {
    table: Table,
    log: Log,
    dice: Dice,
    name: String,
    number: String,
}

/// What the state of the table explains is no fault; that the table is damaged is.
fn allowed(refusal: &Refusal) {
    let bad = matches!(refusal, Refusal::Damaged(_) | Refusal::Contended { .. } | Refusal::Forked | Refusal::Name(_));
    assert!(!bad, "{refusal}");
}

impl Hand {
    /// A batch of nodes: a random graph with groups, attempts and modes, whole or not at all.
    fn import(&mut self) {
        let batch = format!("{}.{}", self.number, self.dice.below(1 << 40));
        let name = |i: usize| format!("{batch}.{i}");
        let specs: Vec<NodeSpec> = (0..BATCH)
            .map(|i| {
                let needs = (0..self.dice.below(3)).filter_map(|_| {
                    let node = NodeId::of_name(&name(i.checked_sub(1 + self.dice.below(6))?));
                    let mode = [OnFailure::Block, OnFailure::Skip, OnFailure::Continue][self.dice.below(3)];
                    Some(Need { node, on_failure: Some(mode) })
                });
                let needs: Vec<Need> = needs.collect();
                let group = (self.dice.below(3) == 0).then(|| GROUPS[self.dice.below(GROUPS.len())].0.to_owned());
                let summary = Some("text ".repeat(self.dice.below(100)));
                NodeSpec { name: Some(name(i)), needs, group, summary, max_attempts: Some(3), ..NodeSpec::default() }
            })
            .collect();
        match self.table.import(&specs) {
            Ok(_) => self.log.did("imported", BATCH as u64),
            Err(refusal) => allowed(&refusal),
        }
        // As fast as they are worked off, roughly.
        while self.table.stats().is_ok_and(|stats| stats.ready + stats.todo > 300) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Claims what is next, works for a moment, ends it. A group member leaves everything that is in no group alone.
    fn work(&mut self, wait_ms: Option<u64>, members: bool) {
        let worker = match self.table.worker(&self.name) {
            Ok(worker) => worker,
            Err(refusal) => return allowed(&refusal),
        };
        let options = ClaimOptions::default();
        let claim = match wait_ms {
            Some(_) => worker.wait_claim_next(&options, wait_ms),
            None => worker.claim_next(),
        };
        let claim = match claim {
            Ok(claim) => claim,
            Err(Refusal::Busy { node, generation, .. }) => {
                // One of the same name was killed; what it had is given back, or runs out.
                let _ = self.table.release(NodeId::of_name(&node), &self.name, Some(generation));
                return;
            }
            Err(refusal) => {
                allowed(&refusal);
                return std::thread::sleep(Duration::from_millis(1));
            }
        };
        let from = now();
        let Ok(task) = claim.task() else { return };
        let node = task.name.clone().unwrap_or_default();
        self.log.claimed(&node, claim.generation());
        let group = self.table.get(claim.id()).ok().and_then(|view| view.group);
        if members && group.is_none() && self.dice.below(2) == 0 {
            if let Err(refusal) = claim.release() {
                allowed(&refusal);
            }
            return;
        }
        std::thread::sleep(Duration::from_micros(self.dice.below(1_500) as u64));
        let to = now();
        let ended = match self.dice.below(12) {
            0 => claim.complete_with(Outcome::Failed, "it was not to be"),
            1 => return claim.release().map(drop).unwrap_or_else(|refusal| allowed(&refusal)),
            // As one that kept the generation and nothing else.
            2 => {
                let generation = Some(claim.generation());
                let completion =
                    Completion { outcome: Outcome::Done, generation, holder: None, summary: Some("done".into()) };
                let ended = self.table.complete(claim.id(), &completion);
                if ended.is_ok() {
                    self.log.done(&node, claim.generation(), group.as_deref(), from, to);
                }
                return ended.map(drop).unwrap_or_else(|refusal| allowed(&refusal));
            }
            _ => {
                let ended = claim.complete(Outcome::Done);
                if ended.is_ok() {
                    self.log.done(&node, claim.generation(), group.as_deref(), from, to);
                }
                ended
            }
        };
        if let Err(refusal) = ended {
            allowed(&refusal);
        }
    }

    /// Holds one node for a while and renews it as fast as it can; while a renewal stands nobody takes the node.
    fn storm(&mut self) {
        let worker = match self.table.worker(&self.name) {
            Ok(worker) => worker,
            Err(refusal) => return allowed(&refusal),
        };
        let claim = match worker.claim_next_with(&ClaimOptions { resume: true, ..ClaimOptions::default() }) {
            Ok(claim) => claim,
            Err(refusal) => {
                allowed(&refusal);
                return std::thread::sleep(Duration::from_millis(1));
            }
        };
        let mut renewed = 0;
        for _ in 0..500 {
            match claim.renew() {
                Ok(_) => renewed += 1,
                Err(refusal) => {
                    allowed(&refusal);
                    break;
                }
            }
        }
        self.log.did("renewed", renewed);
        let _ = claim.release().inspect_err(allowed);
    }

    fn snapshot(&mut self) {
        match self.table.snapshot(Duration::from_secs(60), || {}) {
            Ok(_) => self.log.did("snapshots", 1),
            Err(tenure::SnapshotError::Refused(refusal)) => allowed(&refusal),
            // The one that has the lock is stopped.
            Err(tenure::SnapshotError::Locked { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        let path = self.table.snapshot_path();
        let report = tenure::check::file(path).expect("there is one by now");
        assert!(report.sound, "{report:#?}");
    }

    /// Hides what has ended, which is then the first to go, and fills the table so that it does.
    fn prune(&mut self) {
        let ended = Filter { terminal: true, archived: false };
        let nodes = match self.table.list(ended) {
            Ok(nodes) => nodes,
            Err(refusal) => return allowed(&refusal),
        };
        let mut archived = 0;
        for node in nodes.iter().filter(|node| node.status.is_terminal()).take(200) {
            match self.table.archive(node.id) {
                Ok(_) => archived += 1,
                Err(refusal) => allowed(&refusal),
            }
        }
        self.log.did("archived", archived);
        std::thread::sleep(Duration::from_millis(20));
    }

    /// What failed is opened again, and sometimes what is done; what is linked behind stays a graph.
    fn reopen(&mut self) {
        let nodes = match self.table.list(Filter { terminal: true, archived: true }) {
            Ok(nodes) => nodes,
            Err(refusal) => return allowed(&refusal),
        };
        let mut reopened = 0;
        for node in &nodes {
            let wanted = match node.status {
                tenure::Seen::Failed | tenure::Seen::Cancelled => true,
                tenure::Seen::Done => self.dice.below(400) == 0,
                _ => false,
            };
            if wanted && node.skipped_by.is_none() {
                match self.table.reopen(node.id) {
                    Ok(_) => reopened += 1,
                    Err(refusal) => allowed(&refusal),
                }
            }
        }
        if nodes.len() > 2 {
            let (a, b) = (&nodes[self.dice.below(nodes.len())], &nodes[self.dice.below(nodes.len())]);
            match self.table.link(a.id, b.id) {
                Ok(_) => self.log.did("linked", 1),
                Err(refusal) => allowed(&refusal),
            }
        }
        self.log.did("reopened", reopened);
        std::thread::sleep(Duration::from_millis(20));
    }
}
