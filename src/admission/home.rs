//! Where admissions are kept on this machine: ledger, keys, policy and outbox in one directory that survives a reboot.
//!
//! `TENURE_DIR` is not asked: it names the table of a graph, which may be gone after a reboot and of which there may be
//! many, while a surface has one ledger whoever starts something on it.

use std::env;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Environment: the directory.
pub const STATE_DIR_VAR: &str = "TENURE_STATE_DIR";

/// Environment: the ledger, where it is not the file in that directory; `postgres://...`, or the path of a file.
pub const LEDGER_VAR: &str = "TENURE_LEDGER";

/// There is no directory to keep anything in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "no directory to keep admissions in: neither XDG_STATE_HOME nor HOME is set; name one with --dir or {STATE_DIR_VAR}"
)]
pub struct NoHome;

/// The directory that admissions are kept in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    dir: PathBuf,
}

impl Home {
    /// `dir` if given, else the first of these that is set: `TENURE_STATE_DIR`, `$XDG_STATE_HOME/tenure`,
    /// `$HOME/.local/state/tenure`. Never a temporary directory: what is kept here must survive.
    ///
    /// # Errors
    /// [`NoHome`] when nothing is set.
    pub fn from_env(dir: Option<PathBuf>) -> Result<Home, NoHome> {
        let set = |name: &str| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let absolute = |name: &str| set(name).filter(|path| path.is_absolute());
        let default = || {
            absolute("XDG_STATE_HOME")
                .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
                .map(|base| base.join("tenure"))
        };
        dir.or_else(|| set(STATE_DIR_VAR)).or_else(default).map(Home::new).ok_or(NoHome)
    }

    /// This directory.
    pub fn new(dir: impl Into<PathBuf>) -> Home {
        Home { dir: dir.into() }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The ledger of one host.
    pub fn ledger(&self) -> PathBuf {
        self.dir.join("admissions.db")
    }

    /// The policy file.
    pub fn policy(&self) -> PathBuf {
        self.dir.join("policy.toml")
    }

    /// The outbox.
    pub fn outbox(&self) -> PathBuf {
        self.dir.join("outbox")
    }

    /// Where the commands of one admission find their files.
    pub fn runs(&self) -> PathBuf {
        self.dir.join("runs")
    }
}
