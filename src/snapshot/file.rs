//! Snapshots on the disk: read, write under a temporary name, put in the place of the last one.
//!
//! The order is: write, sync the file, take the lock, look at the snapshot that is there, rename, sync the directory,
//! let go. So whoever reads finds the old one or the new one, whole, also after a power failure; a writer that is killed
//! leaves its temporary file, which the next one removes; and a full disk is met before anything was replaced.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::bytes::{self, BYTES_MAX, FORMAT, Unreadable};
use super::lock::Lock;
use super::{Moment, Snapshot, SnapshotError};
use crate::clock;
use crate::process;
use crate::word::OwnerWord;

/// The snapshot's name in the table's directory.
pub(crate) const SNAPSHOT: &str = "snapshot";

/// Where the next snapshotter moves what stands in its place and is not a snapshot that it can read.
const UNREADABLE: &str = "snapshot.unreadable";

/// How the name of a snapshot in the making begins; pid and start time of its writer follow.
const TEMPORARY: &str = ".new-snapshot-";

pub(super) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SnapshotError {
    let path = path.to_owned();
    move |source| SnapshotError::Io { what, path, source }
}

/// The error of opening what is not a file.
pub(super) fn odd(errno: Errno, path: &Path) -> Option<SnapshotError> {
    let what = match errno {
        Errno::LOOP => "a symbolic link, which is not followed",
        Errno::ISDIR => "a directory",
        Errno::NXIO => "a socket or a pipe",
        _ => return None,
    };
    Some(SnapshotError::NotAFile { path: path.to_owned(), what })
}

/// Whose snapshot is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The one in the table's directory: only the caller's own, not through a link.
    Ours,
    /// One that the caller named.
    Anybodys,
}

/// Reads and checks a snapshot; writes nothing.
pub(crate) fn read(path: &Path, whose: Whose) -> Result<Snapshot, SnapshotError> {
    Snapshot::decode(&read_bytes(path, whose)?).map_err(|unreadable| told(unreadable, path))
}

/// When the snapshot in the table's directory was taken. One with the right length and checksum was written whole by this
/// program; the rest of it is not looked at.
fn moment(path: &Path) -> Result<Moment, SnapshotError> {
    bytes::moment(&read_bytes(path, Whose::Ours)?).map_err(|unreadable| told(unreadable, path))
}

fn told(unreadable: Unreadable, path: &Path) -> SnapshotError {
    let path = path.to_owned();
    match unreadable {
        Unreadable::NotASnapshot(why) => SnapshotError::NotASnapshot { path, why },
        Unreadable::OtherVersion(found) => SnapshotError::OtherVersion { path, found, known: FORMAT },
        Unreadable::Damaged(why) => SnapshotError::Damaged { path, why },
    }
}

/// The bytes of a file that may be a snapshot: no more of them than a snapshot can have.
pub(crate) fn read_bytes(path: &Path, whose: Whose) -> Result<Vec<u8>, SnapshotError> {
    let no_follow = if whose == Whose::Ours { OFlags::NOFOLLOW } else { OFlags::empty() };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | no_follow;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(Errno::NOENT) => return Err(SnapshotError::Absent { path: path.to_owned() }),
        Err(errno) => return Err(odd(errno, path).unwrap_or_else(|| io("open", path)(errno.into()))),
    };
    let meta = file.metadata().map_err(io("look at", path))?;
    if !meta.is_file() {
        return Err(SnapshotError::NotAFile { path: path.to_owned(), what: "not a regular file" });
    }
    let me = rustix::process::geteuid().as_raw();
    if whose == Whose::Ours && meta.uid() != me {
        return Err(SnapshotError::NotOurs { path: path.to_owned(), owner: meta.uid(), me });
    }
    let path = path.to_owned();
    if meta.len() > BYTES_MAX {
        let why = format!("it is {} bytes long, and the longest one is {BYTES_MAX}", meta.len());
        return Err(SnapshotError::NotASnapshot { path, why });
    }
    let mut bytes = Vec::with_capacity(meta.len() as usize);
    // One byte more than fits, so that a file that grows meanwhile is refused and not cut.
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(io("read", &path))?;
    Ok(bytes)
}

/// A snapshot written and synced under a temporary name; removed again when dropped.
pub(crate) struct Temporary {
    path: PathBuf,
    renamed: bool,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // What cannot be removed is found by the next snapshotter once this process is gone.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Writes bytes under a temporary name that no other process, thread or boot chooses, and syncs them.
pub(crate) fn write(dir: &Path, bytes: &[u8]) -> Result<Temporary, SnapshotError> {
    let start = process::this_process().map_or(0, OwnerWord::start);
    let unique = uuid::Uuid::now_v7().simple();
    let path = dir.join(format!("{TEMPORARY}{}-{start}-{unique}", std::process::id()));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let failed = |what| {
        let (dir, path, bytes) = (dir.to_owned(), path.clone(), bytes.len() as u64);
        move |source: io::Error| match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                SnapshotError::NoSpace { dir, bytes }
            }
            _ => SnapshotError::Io { what, path, source },
        }
    };
    let fd = rustix::fs::open(&path, flags, mode).map_err(|errno| failed("create")(errno.into()))?;
    let temporary = Temporary { path: path.clone(), renamed: false };
    let mut file = File::from(fd);
    // The mode given to open is cut by the umask; this one is not.
    rustix::fs::fchmod(&file, mode).map_err(|errno| failed("set the mode of")(errno.into()))?;
    file.write_all(bytes).map_err(failed("write"))?;
    file.sync_all().map_err(failed("sync"))?;
    Ok(temporary)
}

/// What came of a temporary file.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// It is the snapshot now.
    InPlace,
    /// The snapshot that is there was begun after this one was asked for, so it holds all that this one had to.
    Covered,
    /// The cut of the snapshot that is there was made at the same time as this one: neither is the older one.
    Overlaps,
}

impl Temporary {
    /// Puts it in the place of the last snapshot, unless that is as new; waits for others that do the same, up to
    /// `patience`, and calls `waiting` once after a second. `asked_ns` is when somebody asked for this snapshot.
    pub(crate) fn put_in_place(
        mut self,
        dir: &Path,
        taken: &Moment,
        asked_ns: u64,
        patience: Duration,
        waiting: &mut dyn FnMut(),
    ) -> Result<Placed, SnapshotError> {
        let path = dir.join(SNAPSHOT);
        let _lock = Lock::take(dir, patience, waiting)?;
        match moment(&path) {
            Ok(there) => match compare(taken, asked_ns, clock::lease_now_ns(), &there) {
                Placed::InPlace => {}
                other => return Ok(other),
            },
            Err(SnapshotError::Absent { .. }) => {}
            Err(error @ SnapshotError::Io { .. }) => return Err(error),
            // Not ours to judge: it may be a newer program's, or what is left of the only copy.
            Err(_) => set_aside(dir, &path)?,
        }
        rustix::fs::rename(&self.path, &path).map_err(|errno| io("rename to", &path)(errno.into()))?;
        self.renamed = true;
        sync_dir(dir)?;
        Ok(Placed::InPlace)
    }
}

/// Whether a cut may take the place of another one: only if it was begun after the other had ended. Every single word
/// in it is then as new or newer, so nothing that a reader of snapshots has seen is ever taken back.
///
/// Of three snapshotters the third at the latest is covered: the second one's cut begins after the first one's ended.
fn compare(mine: &Moment, asked_ns: u64, now_ns: u64, theirs: &Moment) -> Placed {
    if theirs.boot != mine.boot || theirs.ended_ns < mine.began_ns {
        return Placed::InPlace;
    }
    // Times of this boot that have not come yet are no times of this boot.
    if theirs.ended_ns > now_ns {
        return Placed::InPlace;
    }
    let same_table = theirs.table_created_at_ms == mine.table_created_at_ms;
    if same_table && theirs.began_ns >= asked_ns { Placed::Covered } else { Placed::Overlaps }
}

/// Moves aside what is no snapshot that this program can read, and never over something that is aside already.
fn set_aside(dir: &Path, path: &Path) -> Result<(), SnapshotError> {
    let aside = dir.join(UNREADABLE);
    let other = dir.join(format!("{UNREADABLE}-{}", uuid::Uuid::now_v7().simple()));
    for to in [aside, other] {
        match rustix::fs::renameat_with(CWD, path, CWD, &to, RenameFlags::NOREPLACE) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(io("move aside", path)(errno.into())),
        }
    }
    Err(io("move aside", path)(ErrorKind::AlreadyExists.into()))
}

fn sync_dir(dir: &Path) -> Result<(), SnapshotError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(dir, flags, Mode::empty()).map_err(|errno| io("open", dir)(errno.into()))?;
    match rustix::fs::fsync(&fd) {
        // Some file systems have nothing to sync a directory with.
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(errno) => Err(io("sync", dir)(errno.into())),
    }
}

/// Removes the temporary files of snapshotters that are gone.
pub(crate) fn clean_up(dir: &Path) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_left_over) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Whether it is a snapshot in the making whose writer is gone.
fn is_left_over(name: &str) -> bool {
    let mut parts = name.strip_prefix(TEMPORARY).unwrap_or("").split('-');
    match (parts.next().map(str::parse), parts.next().map(str::parse)) {
        (Some(Ok(pid)), Some(Ok(start))) => process::is_gone(OwnerWord::new(pid, start)),
        _ => false,
    }
}

#[cfg(all(test, not(tenure_loom)))]
mod tests {
    use super::*;

    fn moment(began_ns: u64, ended_ns: u64) -> Moment {
        Moment { boot: (1, 2), table_created_at_ms: 3, version: 4, began_ns, ended_ns, taken_at_ms: 5 }
    }

    #[test]
    fn a_cut_replaces_only_what_had_ended_before_it_began() {
        let mine = moment(100, 120);
        let against = |theirs: Moment| compare(&mine, 90, 1_000, &theirs);
        assert_eq!(against(moment(50, 99)), Placed::InPlace);
        assert_eq!(against(moment(50, 100)), Placed::Overlaps);
        assert_eq!(against(moment(89, 110)), Placed::Overlaps, "begun before this one was asked for");
        assert_eq!(against(moment(90, 110)), Placed::Covered);
        assert_eq!(against(moment(200, 210)), Placed::Covered);
    }

    #[test]
    fn another_boot_another_table_and_times_to_come_are_never_newer() {
        let mine = moment(100, 120);
        let of_another_boot = Moment { boot: (9, 9), ..moment(500, 510) };
        assert_eq!(compare(&mine, 90, 1_000, &of_another_boot), Placed::InPlace);
        assert_eq!(compare(&mine, 90, 1_000, &moment(5_000, 5_010)), Placed::InPlace);
        let of_another_table = Moment { table_created_at_ms: 7, ..moment(95, 110) };
        assert_eq!(compare(&mine, 90, 1_000, &of_another_table), Placed::Overlaps, "begins anew, and is newer then");
    }

    #[test]
    fn only_the_files_of_dead_writers_are_left_over() {
        let me = process::this_process().expect("a start time");
        assert!(!is_left_over(&format!("{TEMPORARY}{}-{}-x", me.pid(), me.start())));
        assert!(is_left_over(&format!("{TEMPORARY}{}-{}-x", me.pid(), me.start() + 1)));
        for name in ["snapshot", "snapshot.lock", "snapshot.unreadable", TEMPORARY, ".new-snapshot-x-y", "table"] {
            assert!(!is_left_over(name), "{name}");
        }
    }
}
