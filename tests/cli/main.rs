//! The program, from outside.
