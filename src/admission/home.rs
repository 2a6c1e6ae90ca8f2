//! Where admissions are kept on this machine, in one directory that survives a reboot: ledger, keys, policy and outbox.
//!
//! `TENURE_DIR` is not asked: it names the table of a graph, of which there may be many, while a surface has one ledger
//! whoever starts something on it.

use std::path::{Path, PathBuf};

use crate::location::Location;

/// Environment: the directory.
pub const STATE_DIR_VAR: &str = "TENURE_STATE_DIR";

/// Environment: the ledger, where it is not the file in that directory.
pub const LEDGER_VAR: &str = "TENURE_LEDGER";

/// The directory that admissions are kept in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    location: Location,
}

impl Home {
    /// `dir` if given, else the first of these that is set: `TENURE_STATE_DIR`, `$XDG_STATE_HOME/tenure`,
    /// `$HOME/.local/state/tenure`; else `/var/tmp/tenure-UID`.
    pub fn from_env(dir: Option<PathBuf>) -> Home {
        let set = std::env::var_os(STATE_DIR_VAR).filter(|value| !value.is_empty()).map(PathBuf::from);
        Home { location: Location::state(dir.or(set)) }
    }

    /// This directory.
    pub fn new(dir: impl Into<PathBuf>) -> Home {
        Home { location: Location::named(dir) }
    }

    /// The directory, with what is checked about it.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        self.location.dir()
    }

    /// The policy file.
    pub fn policy(&self) -> PathBuf {
        self.dir().join("policy.toml")
    }

    /// The outbox.
    pub fn outbox(&self) -> PathBuf {
        self.dir().join("outbox")
    }

    /// Where the command of each admission finds its files.
    pub fn runs(&self) -> PathBuf {
        self.dir().join("runs")
    }

    /// Who asks, when a person uses this machine: the user that this process runs as.
    pub fn user() -> String {
        format!("uid:{}", rustix::process::geteuid().as_raw())
    }
}
