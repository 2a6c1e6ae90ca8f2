//! The one advisory lock of the program, alone in its file: held while a snapshot takes the place of the last one.
//!
//! No verb but `snapshot` knows of it. The kernel drops it with the process that has it, so a dead holder holds nobody
//! up; a stopped one stalls other snapshotters, which say so. The file is never removed, since whoever waits on a
//! removed file waits for somebody that nobody else can see.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use fs2::FileExt;
use rustix::fs::{Mode, OFlags};

use super::SnapshotError;
use super::file::{io, odd};

/// The file's name in the table's directory.
pub(crate) const LOCK: &str = "snapshot.lock";

/// How long a snapshotter waits before it says that it does.
const SAY_AFTER: Duration = Duration::from_secs(1);

/// How often it looks meanwhile: the lock is held for a few milliseconds.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// The lock, held; it is free again when this is dropped.
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock, asking again until `patience` has run out. `waiting` is called once, after a second.
    ///
    /// # Errors
    /// [`SnapshotError::Locked`]; or what is wrong with the lock file.
    pub(crate) fn take(dir: &Path, patience: Duration, waiting: &mut dyn FnMut()) -> Result<Lock, SnapshotError> {
        let path = dir.join(LOCK);
        let file = open(&path)?;
        let began = Instant::now();
        let mut said = false;
        loop {
            match FileExt::try_lock_exclusive(&file) {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(e) if e.raw_os_error() == fs2::lock_contended_error().raw_os_error() => {}
                Err(source) => return Err(SnapshotError::Io { what: "lock", path, source }),
            }
            let waited = began.elapsed();
            if waited >= patience {
                return Err(SnapshotError::Locked { path, waited_ms: waited.as_millis() as u64 });
            }
            if waited >= SAY_AFTER && !said {
                said = true;
                waiting();
            }
            std::thread::sleep(LOOK_EVERY.min(patience - waited));
        }
    }
}

/// Opens the lock file, making it if there is none. One that is left over, empty or not, is as good as a new one.
fn open(path: &Path) -> Result<File, SnapshotError> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR) {
        Ok(fd) => File::from(fd),
        Err(errno) => return Err(odd(errno, path).unwrap_or_else(|| io("open", path)(errno.into()))),
    };
    let meta = file.metadata().map_err(io("look at", path))?;
    if !meta.is_file() {
        return Err(SnapshotError::NotAFile { path: path.to_owned(), what: "not a regular file" });
    }
    let me = rustix::process::geteuid().as_raw();
    if meta.uid() != me {
        return Err(SnapshotError::NotOurs { path: path.to_owned(), owner: meta.uid(), me });
    }
    if meta.mode() & 0o777 != 0o600 {
        rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR).map_err(|e| io("set the mode of", path)(e.into()))?;
    }
    Ok(file)
}
