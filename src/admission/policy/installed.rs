//! The policy that is installed now: the file is read anew for every question, so that a right that is withdrawn is
//! withdrawn at once (A17), and a file that cannot be used lets nobody start anything.

use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::{FilePolicy, OwnerOnly, PolicyFileError, unavailable};
use crate::admission::facts::{Decision, Facts, Policy, Subject};

/// What stands at a path, or the rule for when nothing does.
#[derive(Clone, Debug)]
pub struct Installed {
    path: PathBuf,
    without: OwnerOnly,
}

impl Installed {
    /// The policy at `path`; without a file there, only `owner` may start anything.
    pub fn new(path: impl Into<PathBuf>, owner: Subject) -> Installed {
        Installed { path: path.into(), without: OwnerOnly::new(owner) }
    }

    /// Where the file is looked for.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file that stands there can be used.
    ///
    /// # Errors
    /// [`PolicyFileError`] when it cannot.
    pub fn check(&self) -> Result<(), PolicyFileError> {
        FilePolicy::read(&self.path).map(|_| ())
    }

    fn ask<T>(&self, some: impl FnOnce(&dyn Policy) -> T, broken: impl FnOnce(&PolicyFileError) -> T) -> T {
        match FilePolicy::read(&self.path) {
            Ok(Some(policy)) => some(&policy),
            Ok(None) => some(&self.without),
            Err(error) => broken(&error),
        }
    }
}

/// One number for everything that cannot be used: the answer is the same.
fn broken_epoch() -> u64 {
    xxh3_64(b"no policy that can be used")
}

impl Policy for Installed {
    fn epoch(&self) -> u64 {
        self.ask(|policy| policy.epoch(), |_| broken_epoch())
    }

    fn evaluate(&self, facts: &Facts) -> Decision {
        self.ask(|policy| policy.evaluate(facts), |error| unavailable(broken_epoch(), error.to_string()))
    }
}
