//! The admission verbs as a person and as a script meet them: real processes on ledgers of their own.
//!
//! The rules themselves are tested in `tests/admissions`; here it is what the program makes of them.

mod broken;
mod hostile;
mod hosts;
mod identity;
mod outbox;
mod policy;
mod queue;
mod running;
mod server;
mod support;
mod tour;
mod traced;
mod verbs;
