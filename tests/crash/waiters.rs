//! Waiting for a node, and being rung.
