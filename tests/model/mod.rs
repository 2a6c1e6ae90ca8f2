//! The rules as plain as they can be written: one process, ordered maps, a clock that is handed in.
//!
//! Tests run the same verbs here and on a real table and compare what comes back, so nothing in here is clever and
//! nothing is taken from the library except its plain data types. Where the rules leave something open, the decision
//! stands as a comment beside the line that takes it.
//!
//! `state` holds the nodes and the graph verbs, `claims` the verbs about leases, `derived` what readers see,
//! `answers` the comparable forms of a real table's answers.

#![allow(dead_code)]

pub mod answers;
pub mod claims;
pub mod derived;
pub mod state;

pub use answers::{Counts, Got, No, Row};
pub use state::{Model, Rules};
