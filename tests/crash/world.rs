//! A table, the processes at work on it, and what must hold when none is.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use tenure::node::Seen;
use tenure::{CreateOptions, Filter, Outcome, Refusal, Table, Worker, probe};

const LEASE: u64 = 1_000;

/// The table as one process has it.
pub(crate) struct World {
    pub(crate) dir: Rc<tempfile::TempDir>,
    pub(crate) table: Table,
    /// Handles that live as long as their process.
    workers: RefCell<BTreeMap<String, &'static Worker>>,
}

pub(crate) fn all() -> Filter {
    Filter { terminal: true, archived: true }
}

pub(crate) fn fresh_dir() -> Rc<tempfile::TempDir> {
    Rc::new(tempfile::tempdir_in("/dev/shm").unwrap())
}

impl World {
    pub(crate) fn new() -> World {
        probe::set_now_ms(1_000_000);
        probe::pose_as(None);
        let dir = fresh_dir();
        let options = CreateOptions { lease_ms: Some(LEASE), ..CreateOptions::default() };
        let (table, _) = Table::open_or_create(dir.path(), &options).unwrap();
        World { dir, table, workers: RefCell::default() }
    }

    /// The same table as another process (alive unless `owner` is gone) has it.
    pub(crate) fn opened_as(&self, owner: Option<(u32, u64)>) -> World {
        probe::pose_as(owner);
        let table = Table::open(self.dir.path()).unwrap();
        probe::pose_as(None);
        World { dir: Rc::clone(&self.dir), table, workers: RefCell::default() }
    }

    /// A table that real processes work on, with the kernel's clock.
    pub(crate) fn real() -> World {
        probe::unset_now();
        probe::pose_as(None);
        let dir = fresh_dir();
        let options = CreateOptions { lease_ms: Some(60_000), ..CreateOptions::default() };
        let (table, _) = Table::open_or_create(dir.path(), &options).unwrap();
        World { dir, table, workers: RefCell::default() }
    }

    /// The table that is in a directory by now.
    pub(crate) fn found_in(dir: Rc<tempfile::TempDir>) -> World {
        probe::unset_now();
        probe::pose_as(None);
        let table = Table::open(dir.path()).unwrap();
        World { dir, table, workers: RefCell::default() }
    }

    /// The same table in another thread.
    pub(crate) fn of(table: Table) -> World {
        World { dir: fresh_dir(), table, workers: RefCell::default() }
    }

    pub(crate) fn kept(&self, name: &str) -> Result<&'static Worker, Refusal> {
        if let Some(&worker) = self.workers.borrow().get(name) {
            return Ok(worker);
        }
        let worker: &'static Worker = Box::leak(Box::new(self.table.worker(name)?));
        self.workers.borrow_mut().insert(name.into(), worker);
        Ok(worker)
    }

    /// What the table holds, without times.
    pub(crate) fn dump(&self) -> Vec<String> {
        let nodes = match self.table.list(all()) {
            Ok(nodes) => nodes,
            Err(refusal) => return vec![format!("list: {refusal}")],
        };
        let mut lines: Vec<String> = nodes
            .into_iter()
            .map(|n| {
                format!(
                    "{} {:?} gen={} holder={:?} needs={:?} {:?} parent={:?} summary={:?} archived={} attempts={} of {} \
                     group={:?} skipped_by={:?}",
                    n.label(),
                    n.status,
                    n.generation,
                    n.holder,
                    n.depends_on,
                    n.on_failure,
                    n.parent,
                    n.summary,
                    n.archived,
                    n.attempts,
                    n.max_attempts,
                    n.group,
                    n.skipped_by,
                )
            })
            .collect();
        lines.sort();
        lines
    }

    /// What must hold when nobody is at work.
    pub(crate) fn check(&self) -> Result<(), String> {
        let stats = self.table.stats().map_err(|e| format!("stats: {e}"))?;
        if stats.versions_reserved != 0 || stats.text_blocks_reserved != 0 {
            return Err(format!("reserved: {stats:?}"));
        }
        let report = tenure::check::table(self.dir.path()).map_err(|e| format!("fsck: {e}"))?;
        if !report.sound || report.counts.unjudged > 0 {
            return Err(format!("fsck: {:?} {:?}", report.findings, report.notes));
        }
        if self.run("holders") != "each has one" {
            return Err(format!("a holder has two: {:?}", self.dump()));
        }
        Ok(())
    }

    /// Takes back every claim that stands.
    fn outwait(&self) {
        // Twice: a lease that was never started is started by the first.
        for verb in ["tick 100000000", "reclaim", "tick 100000000", "reclaim", "tick 100000000"] {
            self.run(verb);
        }
    }

    /// Somebody who comes later can finish everything.
    pub(crate) fn drain(&self) -> Result<(), String> {
        self.outwait();
        let left = self.table.list(all()).map_err(|e| e.to_string())?;
        if let Some(held) = left.iter().find(|n| n.holder.is_some()) {
            return Err(format!("held for ever: {held:?}"));
        }
        for n in left.iter().filter(|n| n.skipped_by.is_none()) {
            if matches!(n.status, Seen::Failed | Seen::Cancelled) {
                self.table.reopen(n.id).map_err(|e| format!("reopen: {e}"))?;
            }
        }
        let Ok(worker) = self.table.worker("drainer") else { return Err("no room for a drainer".into()) };
        let mut idle = 0;
        while idle < 2 {
            match worker.claim_next() {
                Ok(claim) => claim.complete(Outcome::Done).map(|_| ()).map_err(|e| format!("drain: {e}"))?,
                // A claim that a dead process had reserved may have been made for it meanwhile.
                Err(Refusal::NothingReady) => {
                    idle += 1;
                    self.outwait();
                }
                Err(e) => return Err(format!("drain: {e}")),
            }
        }
        let left = self.table.list(all()).map_err(|e| e.to_string())?;
        match left.iter().find(|n| n.status != Seen::Done) {
            Some(n) => Err(format!("never done: {n:?}")),
            None => Ok(()),
        }
    }

    /// Everything has been put to use again: nothing that the dead one had is missing.
    pub(crate) fn no_leak(&self) -> Result<(), String> {
        let stats = self.table.stats().map_err(|e| format!("stats: {e}"))?;
        // As many buffers as a new table has are enough for one writer at a time.
        if stats.versions > 4 {
            return Err(format!("{} buffers for versions", stats.versions));
        }
        // Every block that no text needs can be written to.
        let free = stats.text_blocks_max - stats.text_blocks;
        let blocks = free.min(20);
        let long = "x".repeat(104 * (blocks as usize - 2));
        let spec = tenure::NodeSpec {
            name: Some("za".into()),
            run: Some(long[..long.len().min(4_000)].into()),
            ..Default::default()
        };
        self.run("reopen za");
        self.table.upsert(&spec, true).map(drop).map_err(|e| format!("{free} free blocks, and {e}"))
    }

    /// Every kind of change once, on nodes of its own.
    pub(crate) fn every_verb(&self) -> Result<(), String> {
        let expect = |verb: &str, want: &str| {
            let got = self.run(verb);
            if got.starts_with(want) { Ok(()) } else { Err(format!("{verb}: {got}")) }
        };
        self.outwait();
        expect("upsert za summary=one", "Created")?;
        expect("upsert zb needs=za", "Created")?;
        expect("unlink za zb", "true")?;
        expect("link za zb", "true")?;
        expect("claim drainer za", "za gen=")?;
        expect("renew drainer za", "renewed")?;
        expect("release drainer za", "gen=")?;
        expect("claim drainer za", "za gen=")?;
        expect("complete za done by=drainer summary=two", "ended Now")?;
        expect("reopen za", "gen=")?;
        expect("get za", "Ready")?;
        expect("complete za cancelled", "ended Now")?;
        expect("archive za", "gen=")?;
        expect("unarchive za", "gen=")?;
        expect("complete zb cancelled", "ended Now")?;
        Ok(())
    }
}
