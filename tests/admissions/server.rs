//! The PostgreSQL server of this run, and a schema on it for each test.

use std::sync::atomic::{AtomicU64, Ordering};

use postgres::{Client, NoTls};

/// The address of the server.
pub fn url() -> String {
    std::env::var("TENURE_TEST_POSTGRES").expect(
        "TENURE_TEST_POSTGRES is not set: these tests need a PostgreSQL server. `scripts/test` starts one, or \
         `eval \"$(scripts/postgres start)\"`",
    )
}

/// The socket that it listens on.
pub fn socket() -> String {
    let url = url();
    let (_, dir) = url.split_once("host=").expect("the server is reached by a socket");
    format!("{}/.s.PGSQL.5432", dir.split('&').next().unwrap_or_default())
}

/// A schema that is gone at the end.
pub struct Schema {
    name: String,
}

impl Schema {
    pub fn new() -> Schema {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("t{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let mut client = Client::connect(&url(), NoTls).expect("the server answers");
        client.batch_execute(&format!("drop schema if exists {name} cascade; create schema {name}")).unwrap();
        Schema { name }
    }

    /// The server's address with this schema as the one where names are looked up.
    pub fn url(&self) -> String {
        let url = url();
        let joint = if url.contains('?') { '&' } else { '?' };
        format!("{url}{joint}options=-csearch_path%3D{}", self.name)
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.url(), NoTls).expect("the server answers")
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        if let Ok(mut client) = Client::connect(&url(), NoTls) {
            let _ = client.batch_execute(&format!("drop schema if exists {} cascade", self.name));
        }
    }
}
