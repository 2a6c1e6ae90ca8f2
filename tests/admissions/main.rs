//! The rules of admissions by their numbers, each on both databases.
//!
//! A test of one rule is written once and runs twice, as `sqlite::...` and `postgres::...`. For PostgreSQL there must be a
//! server: `TENURE_TEST_POSTGRES` is its address, and `scripts/postgres` starts one. Without it these tests fail.

/// Each function becomes a test on either database.
macro_rules! on_both {
    ($(fn $name:ident($bench:ident) $body:block)*) => {
        mod bodies {
            use super::*;
            $(pub fn $name($bench: crate::bench::Bench) $body)*
        }
        on_both!(@on sqlite, Sqlite, $($name)*);
        on_both!(@on postgres, Postgres, $($name)*);
    };
    (@on $module:ident, $kind:ident, $($name:ident)*) => {
        mod $module {
            $(#[test] fn $name() { super::bodies::$name(crate::bench::Bench::placed(crate::bench::Which::$kind)); })*
        }
    };
}

mod attempts;
mod bench;
mod crashes;
mod credentials;
mod destination;
mod files;
mod hosts;
mod identity;
mod legacy;
mod lost;
mod one_unfinished;
mod party;
mod queue;
mod races;
mod schema;
mod server;
