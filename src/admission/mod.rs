//! Admissions to start: one gate before anything runs in a place, and at most one unfinished admission per surface.

pub mod names;
