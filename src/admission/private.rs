//! Files that nobody else may read: made whole, with mode 0600, and refused when somebody else could have written or read
//! them.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use thiserror::Error;

/// Why a private file or directory cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PrivateError {
    /// It belongs to somebody else.
    #[error("{path} belongs to user {owner}, not to you (user {me})")]
    NotOurs {
        /// The path.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// Who asks.
        me: u32,
    },
    /// Others may read or write it.
    #[error("{path} may be used by others (mode {mode:o}); `chmod go= {path}` if nobody has, else remove it")]
    Shared {
        /// The path.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A link, a directory or a device stands there.
    #[error("{path} is {what}")]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// It holds too much.
    #[error("{path} is longer than {limit} bytes")]
    TooLong {
        /// The path.
        path: PathBuf,
        /// The most that it may hold.
        limit: u64,
    },
    /// The system refused.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// To which path.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl PrivateError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            PrivateError::NotOurs { .. } => "not_ours",
            PrivateError::Shared { .. } => "not_private",
            PrivateError::NotAFile { .. } => "not_a_file",
            PrivateError::TooLong { .. } => "too_long",
            PrivateError::Io { source, .. } if is_full(source) => "no_space",
            PrivateError::Io { .. } => "io",
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

pub(crate) fn io_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PrivateError + use<> {
    let path = path.to_owned();
    move |source| PrivateError::Io { what, path, source }
}

/// Makes the directory, and those above it, with mode 0700.
pub(crate) fn make_dir(dir: &Path) -> Result<(), PrivateError> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(io_error("make the directory", dir))
}

/// Reads a private file of at most `limit` bytes; `None` when there is none.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, PrivateError> {
    // Not blocking: what stands there could be a pipe that nobody writes into.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => {
            return Err(PrivateError::NotAFile {
                path: path.to_owned(),
                what: "a symbolic link, which is not followed",
            });
        }
        Err(errno) => return Err(io_error("open", path)(errno.into())),
    };
    let meta = file.metadata().map_err(io_error("look at", path))?;
    let (path_buf, me) = (path.to_owned(), rustix::process::geteuid().as_raw());
    if !meta.is_file() {
        return Err(PrivateError::NotAFile { path: path_buf, what: "not a file" });
    }
    if meta.uid() != me {
        return Err(PrivateError::NotOurs { path: path_buf, owner: meta.uid(), me });
    }
    if meta.mode() & 0o077 != 0 {
        return Err(PrivateError::Shared { path: path_buf, mode: meta.mode() & 0o7777 });
    }
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(io_error("read", path))?;
    if bytes.len() as u64 > limit {
        return Err(PrivateError::TooLong { path: path_buf, limit });
    }
    Ok(Some(bytes))
}

/// Writes a new file with mode 0600 and syncs it; one that is there is an error.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), PrivateError> {
    write_new_locked(path, bytes).map(|_| ())
}

/// As [`write_new`]; the file is locked until the value is dropped.
pub(crate) fn write_new_locked(path: &Path, bytes: &[u8]) -> Result<File, PrivateError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let fd = rustix::fs::open(path, flags, mode).map_err(|errno| io_error("make", path)(errno.into()))?;
    let mut file = File::from(fd);
    // The mode given to open is cut by the umask; this one is not.
    let made = rustix::fs::fchmod(&file, mode).and_then(|()| rustix::fs::flock(&file, FlockOperation::LockExclusive));
    let written = made.map_err(io::Error::from).and_then(|()| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    match written {
        Ok(()) => Ok(file),
        Err(error) => {
            // Half a file is of no use to anybody.
            let _ = std::fs::remove_file(path);
            Err(io_error("write", path)(error))
        }
    }
}

/// Makes the names in a directory last.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), PrivateError> {
    let opened = File::open(dir).map_err(io_error("open", dir))?;
    match rustix::fs::fsync(&opened) {
        // Some file systems have nothing to sync a directory with.
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(errno) => Err(io_error("sync", dir)(errno.into())),
    }
}

/// Reads the file, or makes it whole with these bytes. When several make it at once, all of them get the same one.
pub(crate) fn read_or_make(
    path: &Path,
    limit: u64,
    bytes: impl FnOnce() -> Result<Vec<u8>, PrivateError>,
) -> Result<Vec<u8>, PrivateError> {
    if let Some(there) = read(path, limit)? {
        return Ok(there);
    }
    let dir = path.parent().unwrap_or(Path::new("/"));
    make_dir(dir)?;
    let bytes = bytes()?;
    let temporary = dir.join(format!(".making-{}", uuid::Uuid::now_v7().simple()));
    write_new(&temporary, &bytes)?;
    // A link, not a rename: whoever comes second must not put another file in place of the first.
    let linked = std::fs::hard_link(&temporary, path);
    let _ = std::fs::remove_file(&temporary);
    match linked {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(io_error("make", path)(e)),
    }
    sync_dir(dir)?;
    let there = read(path, limit)?;
    there.ok_or_else(|| io_error("read", path)(io::ErrorKind::NotFound.into()))
}

#[cfg(all(test, not(tenure_loom)))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_made_once_and_only_for_us() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/er/key");
        let made = read_or_make(&path, 100, || Ok(b"one".to_vec())).unwrap();
        assert_eq!(made, b"one");
        assert_eq!(read_or_make(&path, 100, || Ok(b"two".to_vec())).unwrap(), b"one");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o600);
        assert_eq!(path.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left over");
    }

    #[test]
    fn many_makers_get_one_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let got: Vec<Vec<u8>> = std::thread::scope(|scope| {
            let makers: Vec<_> = (0..8_u8)
                .map(|i| {
                    let path = &path;
                    scope.spawn(move || read_or_make(path, 100, || Ok(vec![i; 50])).unwrap())
                })
                .collect();
            makers.into_iter().map(|maker| maker.join().unwrap()).collect()
        });
        assert!(got.iter().all(|bytes| *bytes == got[0]));
    }

    #[test]
    fn what_others_may_read_or_somebody_planted_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        assert!(read(&path, 10).unwrap().is_none());
        write_new(&path, b"0123456789a").unwrap();
        assert!(matches!(read(&path, 10), Err(PrivateError::TooLong { .. })));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(matches!(read(&path, 100), Err(PrivateError::Shared { mode: 0o640, .. })));
        std::os::unix::fs::symlink(&path, dir.path().join("link")).unwrap();
        assert!(matches!(read(&dir.path().join("link"), 100), Err(PrivateError::NotAFile { .. })));
        assert!(matches!(read(dir.path(), 100), Err(PrivateError::NotAFile { .. })));
        assert!(write_new(&path, b"x").is_err(), "nothing is overwritten");
    }
}
