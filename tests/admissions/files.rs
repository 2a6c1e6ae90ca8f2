//! What can be wrong with the file of a ledger: each has its error, and nothing is lost.
