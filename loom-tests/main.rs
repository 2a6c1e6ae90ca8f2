//! Models of the transitions, explored by loom over every interleaving within a bound on preemptions.
//!
//! The modules below are the library's own files, compiled with `--cfg tenure_loom`: loom's atomics in `sync`, tables of
//! four nodes in `layout`. Run them with `scripts/loom [PREEMPTIONS]`; without the cfg there are no tests here, and the
//! script fails on that. A package of its own, so that loom's cfg reaches nothing else.
#![cfg(tenure_loom)]
#![allow(dead_code, missing_docs, unused_imports, reason = "the models use a part of each module")]

#[path = "../src/clock.rs"]
mod clock;
#[path = "../src/derive.rs"]
mod derive;
#[path = "../src/error.rs"]
mod error;
#[path = "../src/graph.rs"]
mod graph;
#[path = "../src/id.rs"]
mod id;
#[path = "../src/layout/mod.rs"]
mod layout;
#[path = "../src/node.rs"]
mod node;
#[path = "../src/process.rs"]
mod process;
#[path = "../src/record.rs"]
mod record;
#[path = "../src/standing.rs"]
mod standing;
#[path = "../src/sync.rs"]
mod sync;
#[path = "../src/table/mod.rs"]
mod table;
#[path = "../src/word/mod.rs"]
mod word;

mod claims;
mod cuts;
mod graphs;
mod groups;
mod hints;
mod readers;
mod slots;
mod world;
