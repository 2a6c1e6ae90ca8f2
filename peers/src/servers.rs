//! Peers with a server, reached over unix sockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use postgres::{Client, NoTls, Statement};

use crate::{Failure, Peer, lease_ms};

/// Redis: a sorted set and a hash, each step one script, so that fence and lease change with the queue.
pub struct Redis {
    to: UnixStream,
    from: BufReader<UnixStream>,
    claim: String,
    end: String,
}

const CLAIM: &str = "local t = redis.call('ZPOPMIN', 'waiting'); if #t == 0 then return false end; \
    local f = redis.call('HINCRBY', 'fence', t[1], 1); redis.call('ZADD', 'claimed', ARGV[1], t[1]); return {t[1], f}";
const END: &str = "if redis.call('HGET', 'fence', ARGV[1]) ~= ARGV[2] then return 0 end; \
    return redis.call('ZREM', 'claimed', ARGV[1])";

impl Redis {
    pub fn open(dir: &Path) -> Result<Redis, Failure> {
        let to = UnixStream::connect(dir.join("redis.sock"))?;
        let from = BufReader::new(to.try_clone()?);
        let mut redis = Redis { to, from, claim: String::new(), end: String::new() };
        redis.claim = redis.call(&["SCRIPT", "LOAD", CLAIM])?.remove(0);
        redis.end = redis.call(&["SCRIPT", "LOAD", END])?.remove(0);
        Ok(redis)
    }

    /// Sends a command; the values of the answer, none for a nil.
    fn call(&mut self, words: &[&str]) -> Result<Vec<String>, Failure> {
        let mut text = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| text.push_str(&format!("${}\r\n{word}\r\n", word.len())));
        self.to.write_all(text.as_bytes())?;
        self.answer()
    }

    fn answer(&mut self) -> Result<Vec<String>, Failure> {
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        let (kind, rest) = line.trim_end().split_at(1);
        match kind {
            "+" | ":" => Ok(vec![rest.to_owned()]),
            "$" | "*" if rest == "-1" => Ok(Vec::new()),
            "$" => {
                let mut bytes = vec![0; rest.parse::<usize>()? + 2];
                self.from.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                Ok(vec![String::from_utf8(bytes)?])
            }
            "*" => {
                let mut all = Vec::new();
                for _ in 0..rest.parse::<usize>()? {
                    all.extend(self.answer()?);
                }
                Ok(all)
            }
            _ => Err(format!("redis: {}", line.trim_end()).into()),
        }
    }
}

impl Peer for Redis {
    fn fill(&mut self, tasks: u32) -> Result<(), Failure> {
        self.call(&["FLUSHALL"])?;
        for i in 0..tasks {
            self.call(&["ZADD", "waiting", &i.to_string(), &i.to_string()])?;
        }
        Ok(())
    }

    fn pair(&mut self) -> Result<bool, Failure> {
        let (claim, end) = (self.claim.clone(), self.end.clone());
        let claimed = self.call(&["EVALSHA", &claim, "0", &lease_ms().to_string()])?;
        let [id, fence] = claimed.as_slice() else { return Ok(false) };
        if self.call(&["EVALSHA", &end, "0", id, fence])? != ["1"] {
            return Err("the claim was lost".into());
        }
        Ok(true)
    }
}

/// beanstalkd: reserve is the claim and its time to run the lease; it has no fence.
pub struct Beanstalkd {
    to: UnixStream,
    from: BufReader<UnixStream>,
}

impl Beanstalkd {
    pub fn open(dir: &Path) -> Result<Beanstalkd, Failure> {
        let to = UnixStream::connect(dir.join("beanstalkd.sock"))?;
        let from = BufReader::new(to.try_clone()?);
        Ok(Beanstalkd { to, from })
    }

    fn call(&mut self, command: &str) -> Result<String, Failure> {
        self.to.write_all(command.as_bytes())?;
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }
}

impl Peer for Beanstalkd {
    fn fill(&mut self, tasks: u32) -> Result<(), Failure> {
        for i in 0..tasks {
            let body = i.to_string();
            self.call(&format!("put {i} 0 300 {}\r\n{body}\r\n", body.len()))?;
        }
        Ok(())
    }

    fn pair(&mut self) -> Result<bool, Failure> {
        let answer = self.call("reserve-with-timeout 0\r\n")?;
        let mut words = answer.split(' ');
        if words.next() != Some("RESERVED") {
            return Ok(false);
        }
        let (Some(id), Some(length)) = (words.next(), words.next()) else { return Err(answer.into()) };
        let id = id.to_owned();
        let mut body = vec![0; length.parse::<usize>()? + 2];
        self.from.read_exact(&mut body)?;
        let answer = self.call(&format!("delete {id}\r\n"))?;
        if answer == "DELETED" { Ok(true) } else { Err(answer.into()) }
    }
}

/// PostgreSQL: SKIP LOCKED on a partial index, commits not waited for.
pub struct Postgres {
    client: Client,
    claim: Statement,
    end: Statement,
}

impl Postgres {
    pub fn open(dir: &Path) -> Result<Postgres, Failure> {
        let mut client = Client::connect(&format!("host={} user=postgres dbname=postgres", dir.display()), NoTls)?;
        client.batch_execute(
            "SET synchronous_commit = off; SET client_min_messages = error;
             SELECT pg_advisory_lock(1);
             CREATE TABLE IF NOT EXISTS task(id bigint PRIMARY KEY, priority bigint NOT NULL, status int NOT NULL,
                 fence bigint NOT NULL, lease bigint);
             CREATE INDEX IF NOT EXISTS waiting ON task(priority) WHERE status = 0;
             SELECT pg_advisory_unlock(1);",
        )?;
        let claim = client.prepare(
            "UPDATE task SET status = 1, fence = fence + 1, lease = $1 WHERE id =
                 (SELECT id FROM task WHERE status = 0 ORDER BY priority LIMIT 1 FOR UPDATE SKIP LOCKED)
             RETURNING id, fence",
        )?;
        let end = client.prepare("UPDATE task SET status = 2 WHERE id = $1 AND fence = $2 AND status = 1")?;
        Ok(Postgres { client, claim, end })
    }
}

impl Peer for Postgres {
    fn fill(&mut self, tasks: u32) -> Result<(), Failure> {
        let fill = format!(
            "TRUNCATE task; INSERT INTO task SELECT i, i, 0, 0 FROM generate_series(1, {tasks}) i; ANALYZE task"
        );
        self.client.batch_execute(&fill)?;
        Ok(())
    }

    fn pair(&mut self) -> Result<bool, Failure> {
        let claimed = self.client.query_opt(&self.claim, &[&(lease_ms() as i64)])?;
        let Some(row) = claimed else { return Ok(false) };
        let (id, fence): (i64, i64) = (row.get(0), row.get(1));
        if self.client.execute(&self.end, &[&id, &fence])? != 1 {
            return Err("the claim was lost".into());
        }
        Ok(true)
    }
}
