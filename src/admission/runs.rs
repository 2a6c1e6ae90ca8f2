//! The files that the command of an admission finds, in a directory of its own that nobody else may read.
//!
//! | file | is |
//! |---|---|
//! | `input` | what came with the request |
//! | `inputs/000001`, ... | what was appended since, each whole when it appears |
//! | `credential` | the token that is good now; replaced before it runs out |
//! | `stop` | there once it should end; the reason is in it |
//! | `ended` | how the command ended, until the ledger has that too |
//!
//! They are made after the admission, and removed when it is closed.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::home::Home;
use super::names::AdmId;
use super::private::{self, PrivateError, io_error};
use super::record::Kind;

/// Longest file that is read back.
const BYTES_MAX: u64 = 64 << 10;

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// The closing that it comes to.
    pub kind: Kind,
    /// Its exit code, as a shell would say it.
    pub exit_code: Option<i32>,
    /// In words.
    pub reason: Option<String>,
}

/// The files of one run.
#[derive(Clone, Debug)]
pub struct RunFiles {
    dir: PathBuf,
}

impl RunFiles {
    /// Those of this admission; nothing is made yet.
    pub fn new(home: &Home, admission: &AdmId) -> RunFiles {
        RunFiles { dir: home.runs().join(admission.to_string()) }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes the directories.
    ///
    /// # Errors
    /// [`PrivateError`], as from every method here.
    pub fn make(&self) -> Result<(), PrivateError> {
        private::make_dir(&self.inputs())
    }

    /// The file with the input.
    pub fn input(&self) -> PathBuf {
        self.dir.join("input")
    }

    /// The directory of what is appended.
    pub fn inputs(&self) -> PathBuf {
        self.dir.join("inputs")
    }

    /// The file with the credential.
    pub fn credential(&self) -> PathBuf {
        self.dir.join("credential")
    }

    /// The file that says to stop.
    pub fn stop(&self) -> PathBuf {
        self.dir.join("stop")
    }

    fn ended_path(&self) -> PathBuf {
        self.dir.join("ended")
    }

    /// Puts the input there.
    ///
    /// # Errors
    /// [`PrivateError`].
    pub fn put_input(&self, bytes: &[u8]) -> Result<(), PrivateError> {
        self.put(&self.input(), bytes)
    }

    /// Puts there what was appended, under its number.
    ///
    /// # Errors
    /// [`PrivateError`].
    pub fn put_more(&self, number: u64, bytes: &[u8]) -> Result<(), PrivateError> {
        self.put(&self.inputs().join(format!("{number:06}")), bytes)
    }

    /// Puts a new credential in the place of the last one.
    ///
    /// # Errors
    /// [`PrivateError`].
    pub fn put_credential(&self, token: &str) -> Result<(), PrivateError> {
        self.put(&self.credential(), format!("{token}\n").as_bytes())
    }

    /// Says that it should end, and why.
    ///
    /// # Errors
    /// [`PrivateError`].
    pub fn put_stop(&self, reason: &str) -> Result<(), PrivateError> {
        self.put(&self.stop(), format!("{reason}\n").as_bytes())
    }

    /// Notes how it ended, and the credential that it ended with stays beside that.
    ///
    /// # Errors
    /// [`PrivateError`].
    pub fn put_ended(&self, ended: &Ended) -> Result<(), PrivateError> {
        self.put(&self.ended_path(), &serde_json::to_vec(ended).unwrap_or_default())
    }

    /// How it ended, with the credential it had then, if that was noted and not recorded since.
    ///
    /// # Errors
    /// [`PrivateError`].
    pub fn ended(&self) -> Result<Option<(Ended, String)>, PrivateError> {
        let Some(bytes) = private::read(&self.ended_path(), BYTES_MAX)? else { return Ok(None) };
        let token = private::read(&self.credential(), BYTES_MAX)?.unwrap_or_default();
        let token = String::from_utf8_lossy(&token).trim().to_owned();
        Ok(serde_json::from_slice(&bytes).ok().map(|ended| (ended, token)))
    }

    /// Removes everything.
    ///
    /// # Errors
    /// [`PrivateError`].
    pub fn remove(&self) -> Result<(), PrivateError> {
        match std::fs::remove_dir_all(&self.dir) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(io_error("remove", &self.dir)(e)),
            _ => Ok(()),
        }
    }

    /// A file that appears whole, also in the place of an earlier one.
    fn put(&self, path: &Path, bytes: &[u8]) -> Result<(), PrivateError> {
        let temporary = self.dir.join(format!(".making-{}", uuid::Uuid::now_v7().simple()));
        private::write_new(&temporary, bytes)?;
        std::fs::rename(&temporary, path).map_err(io_error("make", path))
    }
}

#[cfg(all(test, not(tenure_loom)))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_files_of_a_run_are_whole_private_and_removed_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let files = RunFiles::new(&Home::new(dir.path().join("state")), &AdmId::from_bytes([1; 16]));
        files.make().unwrap();
        files.put_input(b"in").unwrap();
        files.put_more(1, b"more").unwrap();
        files.put_credential("one").unwrap();
        files.put_credential("two").unwrap();
        files.put_stop("asked").unwrap();
        assert_eq!(std::fs::read(files.input()).unwrap(), b"in");
        assert_eq!(std::fs::read(files.inputs().join("000001")).unwrap(), b"more");
        assert_eq!(std::fs::read(files.stop()).unwrap(), b"asked\n");
        for path in [files.input(), files.credential(), files.inputs().join("000001")] {
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o600);
        }
        assert_eq!(files.dir().metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(files.ended().unwrap(), None);
        let ended = Ended { kind: Kind::Failed, exit_code: Some(3), reason: None };
        files.put_ended(&ended).unwrap();
        assert_eq!(files.ended().unwrap(), Some((ended, "two".to_owned())));
        files.remove().unwrap();
        files.remove().unwrap();
        assert!(!files.dir().exists());
    }
}
