//! Groups, attempts, modes of edges, and restoring.
