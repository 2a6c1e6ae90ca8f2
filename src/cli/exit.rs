//! How a run of the program ends: exit codes, and the errors that lead to them.
//!
//! The numbers are a promise to scripts: 0 done, 1 refused by the state of the graph, 2 usage, 3 nothing ready,
//! 4 no such node, 5 table unusable, 6 full. One more is ours: 7, the answer could not be written, because calling
//! that "refused" would say that nothing was changed.

use std::io;

use serde_json::{Map, Value};
use tenure::{NameError, OpenError, Refusal};

use super::refusal;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// Refused by the state of the graph; for `run`, the graph is not all done.
    Refused,
    /// The command line, or a file it names, makes no sense.
    Usage,
    /// No node is ready for this worker.
    NothingReady,
    /// No node has that name or id.
    NoSuchNode,
    /// The table is absent, damaged, of another version or somebody else's.
    TableUnusable,
    /// The table has no room.
    Full,
    /// The answer could not be written to standard output.
    OutputLost,
    /// A number of its own: that of a refused admission, or the exit code of the command that ran under one.
    Number(u8),
    /// Ended by this signal, told to the caller the way shells do (128 + number).
    Signal(u8),
}

impl Exit {
    /// The number that the shell sees.
    pub const fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Refused => 1,
            Exit::Usage => 2,
            Exit::NothingReady => 3,
            Exit::NoSuchNode => 4,
            Exit::TableUnusable => 5,
            Exit::Full => 6,
            Exit::OutputLost => 7,
            Exit::Number(number) => number,
            Exit::Signal(number) => 128_u8.saturating_add(number),
        }
    }
}

/// Why a verb did not end well.
#[derive(Debug)]
pub enum CliError {
    /// The library refused; nothing was changed.
    Refused(Refusal),
    /// The table could not be opened or made.
    Open(OpenError),
    /// Anything that the program itself finds wrong.
    Problem(Problem),
    /// The reader of standard output has gone: not an error, the program just ends.
    ClosedPipe,
    /// Standard output could not be written.
    Output {
        /// What the system said.
        source: io::Error,
        /// Whether the table had been changed before.
        changed: bool,
    },
}

/// A complaint of the program's own, with everything that is printed about it.
#[derive(Clone, Debug)]
pub struct Problem {
    /// How the program ends.
    pub exit: Exit,
    /// Stable code for scripts.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do next, when the message does not say it.
    pub hint: Option<String>,
    /// Further keys of the JSON object.
    pub fields: Map<String, Value>,
}

impl CliError {
    /// A complaint with an exit of its own.
    pub fn problem(exit: Exit, code: &'static str, message: impl Into<String>) -> CliError {
        CliError::Problem(Problem { exit, code, message: message.into(), hint: None, fields: Map::new() })
    }

    /// A complaint about the command line or a file that it names.
    pub fn usage(code: &'static str, message: impl Into<String>) -> CliError {
        CliError::problem(Exit::Usage, code, message)
    }

    /// Adds what to do next. Only a [`Problem`] takes it; the others have hints of their own.
    pub fn with_hint(mut self, hint: impl Into<String>) -> CliError {
        if let CliError::Problem(problem) = &mut self {
            problem.hint = Some(hint.into());
        }
        self
    }

    /// Adds a key to the JSON object. Only a [`Problem`] takes it.
    pub fn with_field(mut self, key: &str, value: impl Into<Value>) -> CliError {
        if let CliError::Problem(problem) = &mut self {
            problem.fields.insert(key.to_owned(), value.into());
        }
        self
    }

    /// How the program ends with it.
    pub fn exit(&self) -> Exit {
        match self {
            CliError::Refused(refusal) => of_refusal(refusal),
            CliError::Open(_) => Exit::TableUnusable,
            CliError::Problem(problem) => problem.exit,
            CliError::ClosedPipe => Exit::Done,
            CliError::Output { .. } => Exit::OutputLost,
        }
    }

    /// Stable code, as printed in `{"error": ...}`.
    pub fn code(&self) -> &'static str {
        match self {
            CliError::Refused(refusal) => refusal.code(),
            CliError::Open(error) => error.code(),
            CliError::Problem(problem) => problem.code,
            CliError::ClosedPipe => "closed_pipe",
            CliError::Output { .. } => "output",
        }
    }

    /// What is wrong, for people; not escaped yet.
    pub fn message(&self) -> String {
        match self {
            CliError::Refused(refusal) => refusal.to_string(),
            CliError::Open(error) => error.to_string(),
            CliError::Problem(problem) => problem.message.clone(),
            CliError::ClosedPipe => "the reader of standard output has gone".to_owned(),
            CliError::Output { source, changed: true } => {
                format!("the change was made, but the answer could not be written to standard output: {source}")
            }
            CliError::Output { source, changed: false } => {
                format!("cannot write to standard output: {source}")
            }
        }
    }

    /// What to do next, when the message does not say it already.
    pub fn hint(&self) -> Option<String> {
        match self {
            CliError::Refused(refusal) => refusal::hint(refusal),
            CliError::Open(error) => refusal::open_hint(error),
            CliError::Problem(problem) => problem.hint.clone(),
            CliError::Output { changed: true, .. } => Some("`tenure get NODE` shows what became of it".to_owned()),
            _ => None,
        }
    }

    /// The keys of the JSON object besides `error` and `message`.
    pub fn fields(&self) -> Map<String, Value> {
        match self {
            CliError::Refused(refusal) => refusal::fields(refusal),
            CliError::Open(error) => refusal::open_fields(error),
            CliError::Problem(problem) => problem.fields.clone(),
            CliError::Output { changed, .. } => Map::from_iter([("changed".to_owned(), Value::from(*changed))]),
            _ => Map::new(),
        }
    }
}

impl From<Refusal> for CliError {
    fn from(refusal: Refusal) -> CliError {
        CliError::Refused(refusal)
    }
}

impl From<NameError> for CliError {
    fn from(error: NameError) -> CliError {
        CliError::Refused(Refusal::Name(error))
    }
}

impl From<OpenError> for CliError {
    fn from(error: OpenError) -> CliError {
        CliError::Open(error)
    }
}

/// The exit of each refusal. What a text cannot be is usage: no state of the graph would allow it.
fn of_refusal(refusal: &Refusal) -> Exit {
    match refusal {
        Refusal::NoSuchNode { .. } => Exit::NoSuchNode,
        Refusal::NothingReady => Exit::NothingReady,
        Refusal::Full { .. } | Refusal::NoRoom { .. } => Exit::Full,
        Refusal::Name(_) | Refusal::NameMismatch { .. } | Refusal::Duplicate { .. } => Exit::Usage,
        Refusal::Damaged(_) | Refusal::Forked => Exit::TableUnusable,
        _ => Exit::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure::{Damaged, NodeId, Seen};

    fn node() -> String {
        "n".to_owned()
    }

    #[test]
    fn the_numbers_are_those_promised() {
        let all = [
            (Exit::Done, 0),
            (Exit::Refused, 1),
            (Exit::Usage, 2),
            (Exit::NothingReady, 3),
            (Exit::NoSuchNode, 4),
            (Exit::TableUnusable, 5),
            (Exit::Full, 6),
            (Exit::OutputLost, 7),
            (Exit::Number(75), 75),
            (Exit::Signal(2), 130),
            (Exit::Signal(255), 255),
        ];
        for (exit, code) in all {
            assert_eq!(exit.code(), code, "{exit:?}");
        }
    }

    #[test]
    fn every_refusal_has_the_exit_of_its_kind() {
        let full = Refusal::Full { live: 4096, capacity: 4096 };
        let cases = [
            (Refusal::NoSuchNode { node: node() }, 4),
            (Refusal::Name(NameError::Empty { field: "name" }), 2),
            (Refusal::Name(NameError::TooLong { field: "summary", bytes: 2000, limit: 1024 }), 2),
            (Refusal::Name(NameError::Lease { lease_ms: 0, limit_ms: 1 }), 2),
            (Refusal::NameMismatch { id: NodeId(1), name: node() }, 2),
            (Refusal::Duplicate { node: node() }, 2),
            (Refusal::SelfLink { node: node() }, 1),
            (Refusal::Cycle { path: vec![node()] }, 1),
            (Refusal::Ended { node: node(), status: Seen::Done, generation: 1 }, 1),
            (Refusal::NotEnded { node: node(), status: Seen::Ready }, 1),
            (Refusal::NotReady { node: node(), status: Seen::Todo, waits_for: vec![] }, 1),
            (Refusal::Held { node: node(), holder: node(), generation: 1 }, 1),
            (Refusal::Busy { node: node(), holder: node(), generation: 1 }, 1),
            (Refusal::GenerationMismatch { node: node(), expected: 1, found: 2, held_by: None }, 1),
            (Refusal::FenceRequired { node: node() }, 1),
            (Refusal::NothingReady, 3),
            (full, 6),
            (Refusal::NoRoom { what: "edges", limit: 1 }, 6),
            (Refusal::Exhausted { node: node(), what: "generations" }, 1),
            (Refusal::Contended { tries: 9 }, 1),
            (Refusal::Damaged(Damaged { what: "a slot" }), 5),
        ];
        for (refusal, code) in cases {
            let name = refusal.code();
            assert_eq!(CliError::from(refusal).exit().code(), code, "{name}");
        }
    }

    #[test]
    fn a_table_that_cannot_be_used_is_five_and_a_closed_pipe_is_nothing() {
        let absent = OpenError::Absent { dir: "/x".into() };
        assert_eq!(CliError::from(absent).exit().code(), 5);
        let full = OpenError::NoSpace { dir: "/x".into(), bytes: 1 };
        assert_eq!(CliError::from(full).exit().code(), 5);
        assert_eq!(CliError::ClosedPipe.exit().code(), 0);
    }

    #[test]
    fn a_lost_answer_says_whether_the_change_was_made() {
        let error = |changed| CliError::Output { source: io::Error::other("disk"), changed };
        assert!(error(true).message().contains("the change was made"));
        assert!(!error(false).message().contains("change"));
        assert_ne!(error(true).exit(), Exit::Refused);
    }

    #[test]
    fn hints_and_fields_are_kept_on_problems_only() {
        let error = CliError::usage("bad", "no").with_hint("do").with_field("line", 3);
        assert_eq!(error.hint().as_deref(), Some("do"));
        assert_eq!(error.fields().get("line"), Some(&Value::from(3)));
        assert_eq!(error.exit(), Exit::Usage);
        assert!(CliError::from(Refusal::NothingReady).with_field("line", 3).fields().is_empty());
    }
}
