//! Peers without a server: files that several processes open.

use std::path::{Path, PathBuf};
use std::time::Duration;

use heed::byteorder::BigEndian;
use heed::types::{Bytes, U32};
use heed::{Database, Env, EnvFlags, EnvOpenOptions};
use rusqlite::{Connection, OptionalExtension, params};
use tenure::{CreateOptions, NodeId, NodeSpec, Outcome, Refusal, Table, Worker};

use crate::{Failure, Peer, lease_ms};

/// tenure itself: a graph without edges, so the oldest goes first.
pub struct Tenure {
    worker: Worker,
    round: u128,
}

impl Tenure {
    pub fn open(dir: &Path, member: usize) -> Result<Tenure, Failure> {
        let dir = dir.join("tenure");
        std::fs::create_dir_all(&dir)?;
        let (table, _) = Table::open_or_create(&dir, &CreateOptions::default())?;
        let seed = SystemSeed::new();
        Ok(Tenure { worker: table.worker(&format!("w{member}"))?, round: seed.0 })
    }
}

/// A number that no other run has, so that the nodes of two runs do not meet.
struct SystemSeed(u128);

impl SystemSeed {
    fn new() -> SystemSeed {
        SystemSeed((u128::from(lease_ms()) << 32) | (u128::from(std::process::id()) << 16))
    }
}

impl Peer for Tenure {
    fn fill(&mut self, tasks: u32) -> Result<(), Failure> {
        self.round += 1;
        let id = |i: u32| Some(NodeId(self.round << 16 | u128::from(i)));
        let specs: Vec<NodeSpec> = (0..tasks).map(|i| NodeSpec { id: id(i), ..NodeSpec::default() }).collect();
        self.worker.table().import(&specs)?;
        Ok(())
    }

    fn pair(&mut self) -> Result<bool, Failure> {
        match self.worker.claim_next() {
            Ok(claim) => claim.complete(Outcome::Done)?,
            Err(Refusal::NothingReady) => return Ok(false),
            Err(refusal) => return Err(refusal.into()),
        };
        Ok(true)
    }
}

/// SQLite as its manual has it for many processes: a write-ahead log, synced at checkpoints only, statements kept.
pub struct Sqlite {
    db: Connection,
}

impl Sqlite {
    pub fn open(dir: &Path) -> Result<Sqlite, Failure> {
        let db = Connection::open(dir.join("queue.sqlite"))?;
        db.busy_timeout(Duration::from_secs(30))?;
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "synchronous", "NORMAL")?;
        db.execute_batch(
            "CREATE TABLE IF NOT EXISTS task(id INTEGER PRIMARY KEY, priority INTEGER NOT NULL, status INTEGER NOT NULL,
                 fence INTEGER NOT NULL, lease INTEGER);
             CREATE INDEX IF NOT EXISTS waiting ON task(priority) WHERE status = 0;",
        )?;
        Ok(Sqlite { db })
    }
}

impl Peer for Sqlite {
    fn fill(&mut self, tasks: u32) -> Result<(), Failure> {
        let change = self.db.transaction()?;
        change.execute("DELETE FROM task", [])?;
        for i in 0..tasks {
            change.execute("INSERT INTO task VALUES(?1, ?1, 0, 0, NULL)", [i])?;
        }
        change.commit()?;
        Ok(())
    }

    fn pair(&mut self) -> Result<bool, Failure> {
        let mut claim = self.db.prepare_cached(
            "UPDATE task SET status = 1, fence = fence + 1, lease = ?1
             WHERE id = (SELECT id FROM task WHERE status = 0 ORDER BY priority LIMIT 1) RETURNING id, fence",
        )?;
        let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        let claimed = claim.query_row([lease_ms() as i64], row).optional()?;
        let Some((id, fence)) = claimed else { return Ok(false) };
        let mut end =
            self.db.prepare_cached("UPDATE task SET status = 2 WHERE id = ?1 AND fence = ?2 AND status = 1")?;
        if end.execute(params![id, fence])? != 1 {
            return Err("the claim was lost".into());
        }
        Ok(true)
    }
}

/// LMDB without syncs: one database of what waits, one of what is claimed.
pub struct Lmdb {
    env: Env,
    waiting: Database<U32<BigEndian>, Bytes>,
    claimed: Database<U32<BigEndian>, Bytes>,
}

impl Lmdb {
    pub fn open(dir: &Path) -> Result<Lmdb, Failure> {
        let dir: PathBuf = dir.join("lmdb");
        std::fs::create_dir_all(&dir)?;
        let mut options = EnvOpenOptions::new();
        options.map_size(64 << 20).max_dbs(2);
        // SAFETY: the directory is this benchmark's own, and nobody opens it with other flags.
        let env = unsafe { options.flags(EnvFlags::NO_SYNC | EnvFlags::WRITE_MAP).open(dir)? };
        let mut change = env.write_txn()?;
        let waiting = env.create_database(&mut change, Some("waiting"))?;
        let claimed = env.create_database(&mut change, Some("claimed"))?;
        change.commit()?;
        Ok(Lmdb { env, waiting, claimed })
    }
}

impl Peer for Lmdb {
    fn fill(&mut self, tasks: u32) -> Result<(), Failure> {
        let mut change = self.env.write_txn()?;
        self.waiting.clear(&mut change)?;
        self.claimed.clear(&mut change)?;
        for i in 0..tasks {
            self.waiting.put(&mut change, &i, &0u64.to_le_bytes())?;
        }
        change.commit()?;
        Ok(())
    }

    fn pair(&mut self) -> Result<bool, Failure> {
        let mut change = self.env.write_txn()?;
        let Some((id, fence)) = self.waiting.first(&change)? else { return Ok(false) };
        let fence = u64::from_le_bytes(fence.try_into()?) + 1;
        self.waiting.delete(&mut change, &id)?;
        let held = [fence.to_le_bytes(), lease_ms().to_le_bytes()].concat();
        self.claimed.put(&mut change, &id, &held)?;
        change.commit()?;
        let mut change = self.env.write_txn()?;
        let found = self.claimed.get(&change, &id)?.and_then(|held| held.get(..8)).map(<[u8]>::to_vec);
        if found != Some(fence.to_le_bytes().to_vec()) {
            return Err("the claim was lost".into());
        }
        self.claimed.delete(&mut change, &id)?;
        change.commit()?;
        Ok(true)
    }
}

/// claimdag 0.8: the lock is held from load to save, and the snapshot is rewritten with each change.
pub struct Claimdag {
    dir: PathBuf,
    actor: claimdag::WorkId,
}

impl Claimdag {
    pub fn open(dir: &Path, member: usize) -> Result<Claimdag, Failure> {
        let dir = dir.join("claimdag");
        std::fs::create_dir_all(&dir)?;
        Ok(Claimdag { dir, actor: claimdag::WorkId::from_u128(1 << 100 | member as u128) })
    }

    fn change<T>(
        &self,
        what: impl FnOnce(&mut claimdag::WorkGraph) -> Result<T, String>,
    ) -> Result<Result<T, String>, Failure> {
        let _lock = claimdag::lock_dir(&self.dir)?;
        let mut graph = claimdag::WorkGraph::load_for_write(&self.dir).unwrap_or_default();
        let done = what(&mut graph);
        if done.is_ok() {
            graph.save_dir(&self.dir)?;
        }
        Ok(done)
    }
}

impl Peer for Claimdag {
    /// A graph at its cap, of which so many tasks are left to do.
    fn fill(&mut self, tasks: u32) -> Result<(), Failure> {
        let mut graph = claimdag::WorkGraph::default();
        for i in 0..4_000u32 {
            let id = claimdag::WorkId::from_u128(u128::from(i) + 1);
            let fields = claimdag::WorkFields {
                kind: claimdag::WorkKind::Task,
                status: claimdag::WorkStatus::Ready,
                role: claimdag::WorkRole::Unset,
                parent: claimdag::WorkId::ZERO,
                actor: self.actor,
                summary: "task",
            };
            graph.upsert(id, fields)?;
            if i >= tasks {
                graph.claim(id, self.actor, None)?;
                graph.complete(id, claimdag::WorkStatus::Done, "", self.actor, None)?;
            }
        }
        let _lock = claimdag::lock_dir(&self.dir)?;
        graph.save_dir(&self.dir)?;
        Ok(())
    }

    fn pair(&mut self) -> Result<bool, Failure> {
        let claimed = self.change(|graph| {
            let id = graph.ready_view().first().map(|node| node.id).ok_or_else(String::new)?;
            graph.claim(id, self.actor, None).map(|_| id)
        })?;
        let Ok(id) = claimed else { return Ok(false) };
        self.change(|graph| graph.complete(id, claimdag::WorkStatus::Done, "", self.actor, None))??;
        Ok(true)
    }
}
