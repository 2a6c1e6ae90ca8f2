//! The PostgreSQL server of this run, and a schema on it for each test.

use std::sync::atomic::{AtomicU64, Ordering};

use postgres::{Client, NoTls};

/// A schema that is gone at the end.
pub struct Schema {
    name: String,
}

fn server() -> String {
    std::env::var("TENURE_TEST_POSTGRES").expect(
        "TENURE_TEST_POSTGRES is not set: these tests need a PostgreSQL server; `eval \"$(scripts/postgres start)\"`",
    )
}

impl Schema {
    pub fn new() -> Schema {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("c{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let mut client = Client::connect(&server(), NoTls).expect("the server answers");
        client.batch_execute(&format!("drop schema if exists {name} cascade; create schema {name}")).unwrap();
        Schema { name }
    }

    /// The server's address with this schema as the one where names are looked up.
    pub fn url(&self) -> String {
        let url = server();
        let joint = if url.contains('?') { '&' } else { '?' };
        format!("{url}{joint}options=-csearch_path%3D{}", self.name)
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        if let Ok(mut client) = Client::connect(&server(), NoTls) {
            let _ = client.batch_execute(&format!("drop schema if exists {} cascade", self.name));
        }
    }
}
