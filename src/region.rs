//! The mapping: making the file, checking it, and the one place where its bytes become `&Fixed` and `&Version`.
//!
//! A table is built whole under a temporary name and then linked to its final one, so whoever finds the final name finds
//! a finished table, and of two that create at once one wins and the other uses it. The boot id is part of the name:
//! a table from before a reboot is never replaced under anybody, only left behind and removed.

use std::fs::File;
use std::mem::offset_of;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{AtFlags, CWD, FallocateFlags, FlockOperation, Mode, OFlags};

use crate::error::{Damaged, OpenError};
use crate::fork::ForkMark;
use crate::layout::{
    BYTE_ORDER, FINGERPRINT, Fixed, Header, LAYOUT_VERSION, MAGIC, NODES, VERSIONS_INITIAL, VERSIONS_MAX, Version,
    file_bytes,
};
use crate::location::Location;
use crate::process;
use crate::sync::{Bits, LocalCounter, LocalWord, Ordering};
use crate::word::{OwnerWord, RootWord};

/// What a new table is told.
#[derive(Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) lease_ms: u64,
    pub(crate) require_fence: bool,
    pub(crate) created_ms: u64,
}

/// A mapped table file.
pub(crate) struct Region {
    file: File,
    /// The whole address range that the file may ever need; what lies past its end is never touched.
    map: MmapRaw,
    /// Version buffers known to lie within the file.
    backed: LocalCounter,
    /// This process's mark, once it was asked for.
    me: LocalWord,
    opened_by: ForkMark,
}

/// What a mapping is for.
#[derive(Clone, Copy)]
enum Access {
    Write,
    Look,
}

/// How opening went.
pub(crate) enum Opened {
    Found(Region),
    Absent,
    /// Its name is of this boot and its content of another: a file that was copied or kept over a reboot.
    OtherBoot,
}

/// The table's file name: one per boot.
fn file_name(boot: (u64, u64)) -> String {
    format!("table-{}", uuid::Uuid::from_u64_pair(boot.0, boot.1))
}

fn boot_id(dir: &Path) -> Result<(u64, u64), OpenError> {
    process::boot_id().ok_or_else(|| OpenError::Io {
        what: "read the boot id for a table in",
        path: dir.to_owned(),
        source: std::io::Error::other("/proc/sys/kernel/random/boot_id cannot be read"),
    })
}

fn io(what: &'static str, path: &Path) -> impl FnOnce(rustix::io::Errno) -> OpenError {
    let path = path.to_owned();
    move |errno| OpenError::Io { what, path, source: errno.into() }
}

impl Region {
    /// Opens the table of this boot.
    ///
    /// # Errors
    /// [`OpenError`] when there is something there that is not a sound table of ours.
    pub(crate) fn open(at: &Location) -> Result<Opened, OpenError> {
        at.check()?;
        let boot = boot_id(at.dir())?;
        let path = at.dir().join(file_name(boot));
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(rustix::io::Errno::NOENT) => return Ok(Opened::Absent),
            Err(rustix::io::Errno::LOOP) => {
                return Err(OpenError::NotAFile { path, what: "a symbolic link, which is not followed" });
            }
            Err(rustix::io::Errno::ISDIR) => return Err(OpenError::NotAFile { path, what: "a directory" }),
            Err(rustix::io::Errno::NXIO) => return Err(OpenError::NotAFile { path, what: "a socket or a pipe" }),
            Err(errno) => return Err(io("open", &path)(errno)),
        };
        let region = Region::check_and_map(file, &path)?;
        let header = region.fixed_header_only();
        if (header.boot_hi.load(Ordering::Acquire), header.boot_lo.load(Ordering::Acquire)) != boot {
            return Ok(Opened::OtherBoot);
        }
        region.check_settings(&path)?;
        Ok(Opened::Found(region))
    }

    /// Gives the table that has this boot's name and another boot's content that one's name, as if it had never had this.
    ///
    /// Whoever wants to rename takes an advisory lock on the very file first and then looks whether it still has the name, so
    /// that of several who do this at once none renames the table that another has made meanwhile. Somebody has it locked:
    /// nothing is done, and the caller looks again.
    pub(crate) fn retire(at: &Location) -> Result<(), OpenError> {
        let boot = boot_id(at.dir())?;
        let path = at.dir().join(file_name(boot));
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let Ok(file) = rustix::fs::open(&path, flags, Mode::empty()).map(File::from) else { return Ok(()) };
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            std::thread::sleep(std::time::Duration::from_millis(1));
            return Ok(());
        }
        let failed = |source| OpenError::Io { what: "look at", path: path.clone(), source };
        let (ours, named) = (file.metadata().map_err(failed)?, std::fs::symlink_metadata(&path).map_err(failed)?);
        let mut words = [0; 16];
        file.read_exact_at(&mut words, offset_of!(Header, boot_hi) as u64).map_err(failed)?;
        let (hi, lo) = words.split_at(8);
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        let content = (word(hi), word(lo));
        if (ours.dev(), ours.ino()) == (named.dev(), named.ino()) && content != boot {
            rustix::fs::rename(&path, at.dir().join(file_name(content))).map_err(io("rename", &path))?;
        }
        Ok(())
    }

    fn check_and_map(file: File, path: &Path) -> Result<Region, OpenError> {
        let meta =
            file.metadata().map_err(|source| OpenError::Io { what: "look at", path: path.to_owned(), source })?;
        if !meta.is_file() {
            return Err(OpenError::NotAFile { path: path.to_owned(), what: "not a regular file" });
        }
        let me = rustix::process::geteuid().as_raw();
        if meta.uid() != me {
            return Err(OpenError::NotOurs { path: path.to_owned(), owner: meta.uid(), me });
        }
        let least = file_bytes(VERSIONS_INITIAL);
        if meta.len() < size_of::<Header>() as u64 {
            let why = format!("it is {} bytes long, shorter than a header", meta.len());
            return Err(OpenError::NotATable { path: path.to_owned(), why });
        }
        let region = Region::map(file, path, Access::Write)?;
        region.check_header(path)?;
        let versions = region.fixed_header_only().versions.load(Ordering::Acquire);
        let expected = file_bytes(usize::try_from(versions).unwrap_or(usize::MAX).min(VERSIONS_MAX));
        if meta.len() < least || meta.len() < expected {
            let why = format!("it is {} bytes long and should be {expected}: it was cut", meta.len());
            return Err(OpenError::Damaged { path: path.to_owned(), why });
        }
        region.backed.store(VERSIONS_INITIAL, Ordering::Relaxed);
        Ok(region)
    }

    /// Opens any file that this build's tables have the form of, also one of another boot or another name, to look at it and
    /// nothing else: the mapping is read-only, so a write would be a fault of this program and not of the table.
    ///
    /// # Errors
    /// [`OpenError`] when it is no file of this form, so that there is nothing to look at.
    pub(crate) fn open_to_look(path: &Path) -> Result<Region, OpenError> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(io("open", path))?);
        let meta =
            file.metadata().map_err(|source| OpenError::Io { what: "look at", path: path.to_owned(), source })?;
        if !meta.is_file() {
            return Err(OpenError::NotAFile { path: path.to_owned(), what: "not a regular file" });
        }
        if meta.len() < size_of::<crate::layout::Header>() as u64 {
            let why = format!("it is {} bytes long, shorter than a header", meta.len());
            return Err(OpenError::NotATable { path: path.to_owned(), why });
        }
        let region = Region::map(file, path, Access::Look)?;
        region.check_build(path)?;
        let least = file_bytes(VERSIONS_INITIAL);
        if meta.len() < least {
            let why = format!("it is {} bytes long and should be {least} at least: it was cut", meta.len());
            return Err(OpenError::Damaged { path: path.to_owned(), why });
        }
        region.backed.store(VERSIONS_INITIAL, Ordering::Relaxed);
        Ok(region)
    }

    /// The path of this boot's table.
    ///
    /// # Errors
    /// [`OpenError`] when the directory is not one for tables.
    pub(crate) fn path_of(at: &Location) -> Result<std::path::PathBuf, OpenError> {
        at.check()?;
        Ok(at.dir().join(file_name(boot_id(at.dir())?)))
    }

    fn map(file: File, path: &Path, access: Access) -> Result<Region, OpenError> {
        let failed = |source| OpenError::Io { what: "map", path: path.to_owned(), source };
        let len = usize::try_from(file_bytes(VERSIONS_MAX)).unwrap_or(usize::MAX);
        let mut options = MmapOptions::new();
        let options = options.len(len);
        let map = match access {
            Access::Write => options.map_raw(&file),
            Access::Look => options.map_raw_read_only(&file),
        };
        let map = map.map_err(failed)?;
        let opened_by = ForkMark::of_this_process().map_err(failed)?;
        // Whom the probe makes this process out to be when the table is opened.
        #[cfg(tenure_crash)]
        let me = LocalWord::new(process::this_process().map_or(0, Bits::bits));
        #[cfg(not(tenure_crash))]
        let me = LocalWord::new(0);
        Ok(Region { file, map, backed: LocalCounter::new(0), me, opened_by })
    }

    /// Compares the header with this build: whether the rest of the file means what this build takes it for.
    fn check_build(&self, path: &Path) -> Result<(), OpenError> {
        let header = self.fixed_header_only();
        let word = |w: &crate::sync::Shared<u64>| w.load(Ordering::Acquire);
        let path = path.to_owned();
        if word(&header.magic) != MAGIC {
            return Err(OpenError::NotATable { path, why: "its first eight bytes are not a table's".into() });
        }
        if word(&header.byte_order) != BYTE_ORDER {
            return Err(OpenError::OtherVersion { path, why: "its byte order is another machine's".into() });
        }
        let version = word(&header.layout_version);
        if version != LAYOUT_VERSION {
            let why = format!("its layout version is {version}, this program's is {LAYOUT_VERSION}");
            return Err(OpenError::OtherVersion { path, why });
        }
        if word(&header.fingerprint) != FINGERPRINT || word(&header.capacity) != NODES as u64 {
            return Err(OpenError::OtherVersion { path, why: "its capacities or offsets differ".into() });
        }
        Ok(())
    }

    /// The same, and whether the table was finished.
    fn check_header(&self, path: &Path) -> Result<(), OpenError> {
        self.check_build(path)?;
        let header = self.fixed_header_only();
        let word = |w: &crate::sync::Shared<u64>| w.load(Ordering::Acquire);
        let path = path.to_owned();
        if word(&header.ready) != 1 {
            return Err(OpenError::Damaged { path, why: "it was never finished".into() });
        }
        Ok(())
    }

    /// Looks at what only means something within one boot.
    fn check_settings(&self, path: &Path) -> Result<(), OpenError> {
        let header = self.fixed_header_only();
        let word = |w: &crate::sync::Shared<u64>| w.load(Ordering::Acquire);
        let path = path.to_owned();
        if word(&header.namespaces) != process::namespaces() {
            return Err(OpenError::OtherVersion {
                path,
                why: "it was made in another pid or time namespace (a container?), where process ids and lease times are others".into(),
            });
        }
        let lease = word(&header.lease_ms);
        if lease == 0 || lease > crate::word::LEASE_MS_MAX {
            return Err(OpenError::Damaged { path, why: "its default lease is out of range".into() });
        }
        Ok(())
    }

    /// Builds a table under a temporary name, has `prepare` put into it what it is to begin with, and links it to its final
    /// name. False: somebody else was first.
    ///
    /// # Errors
    /// [`OpenError`]; nothing is left behind but the temporary file when the process is killed, and the next creator
    /// removes that.
    pub(crate) fn create(
        at: &Location,
        settings: &Settings,
        prepare: impl FnOnce(Region) -> Result<(), OpenError>,
    ) -> Result<bool, OpenError> {
        let boot = boot_id(at.dir())?;
        let dir = at.dir();
        let me = process::this_process().map_or(0, |p| p.start());
        let unique = uuid::Uuid::now_v7().simple();
        let temporary = dir.join(format!("{TEMPORARY}{}-{me}-{unique}", std::process::id()));
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let fd = rustix::fs::open(&temporary, flags, mode).map_err(io("create", &temporary))?;
        let made = Region::fill(File::from(fd), &temporary, boot, settings).and_then(prepare).and_then(|()| {
            let path = dir.join(file_name(boot));
            match rustix::fs::linkat(CWD, &temporary, CWD, &path, AtFlags::empty()) {
                Ok(()) => Ok(true),
                Err(rustix::io::Errno::EXIST) => Ok(false),
                Err(errno) => Err(io("link", &path)(errno)),
            }
        });
        let removed = rustix::fs::unlink(&temporary).map_err(io("remove", &temporary));
        made.and_then(|first| removed.map(|()| first))
    }

    fn fill(file: File, path: &Path, boot: (u64, u64), settings: &Settings) -> Result<Region, OpenError> {
        // The mode given to open is cut by the umask; this one is not.
        rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR).map_err(io("set the mode of", path))?;
        let bytes = file_bytes(VERSIONS_INITIAL);
        reserve(&file, 0, bytes).map_err(|errno| match errno {
            rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT | rustix::io::Errno::FBIG => {
                OpenError::NoSpace { dir: path.parent().unwrap_or(path).to_owned(), bytes }
            }
            other => io("reserve room for", path)(other),
        })?;
        let region = Region::map(file, path, Access::Write)?;
        let header = region.fixed_header_only();
        let put = |w: &crate::sync::Shared<u64>, value| w.store(value, Ordering::Relaxed);
        put(&header.magic, MAGIC);
        put(&header.layout_version, LAYOUT_VERSION);
        put(&header.fingerprint, FINGERPRINT);
        put(&header.byte_order, BYTE_ORDER);
        put(&header.capacity, NODES as u64);
        put(&header.boot_hi, boot.0);
        put(&header.boot_lo, boot.1);
        put(&header.namespaces, process::namespaces());
        put(&header.created_ms, settings.created_ms);
        put(&header.lease_ms, settings.lease_ms);
        put(&header.options, u64::from(settings.require_fence));
        put(&header.versions, VERSIONS_INITIAL as u64);
        // All other words begin as zero: no nodes, open slots at generation 0, free blocks, version 1 empty in buffer 0.
        region.backed.store(VERSIONS_INITIAL, Ordering::Relaxed);
        if let Ok(first) = region.version(0) {
            put(&first.stamp, 1);
            put(&first.next_born, 1);
        }
        header.root.store(RootWord::settled(1, 0), Ordering::Relaxed);
        header.ready.store(1, Ordering::Release); // pairs with the Acquire in check_header
        Ok(region)
    }

    /// Removes what dead creators left and the tables of earlier boots; says whether there was one of those.
    pub(crate) fn clean_up(at: &Location) -> bool {
        let Some(boot) = process::boot_id() else { return false };
        let current = file_name(boot);
        let mut had_stale = false;
        for entry in std::fs::read_dir(at.dir()).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let stale = is_table_name(name) && name != current;
            if stale || is_left_over(name) {
                had_stale |= std::fs::remove_file(entry.path()).is_ok() && stale;
            }
        }
        had_stale
    }

    /// Whether there is a table of an earlier boot.
    pub(crate) fn has_stale(at: &Location) -> bool {
        std::fs::read_dir(at.dir())
            .into_iter()
            .flatten()
            .flatten()
            .any(|entry| entry.file_name().to_str().is_some_and(is_table_name))
    }

    /// The header alone: the file is at least that long.
    fn fixed_header_only(&self) -> &Header {
        // SAFETY: the mapping is page-aligned and the file was checked to be at least a header long; the header is made
        // of 64-bit atomics and padding words, for which any bytes are values; no `&mut` to the mapping is ever made.
        unsafe { &*self.map.as_ptr().cast::<Header>() }
    }

    /// The fixed part of the table.
    pub(crate) fn fixed(&self) -> &Fixed {
        // SAFETY: page-aligned; `check_and_map`, `open_to_look` and `fill` saw that the file has at least
        // `file_bytes(VERSIONS_INITIAL)` bytes, and this program never shrinks it; all fields are 64-bit atomics or padding
        // words that nobody reads, so any bytes are values; no `&mut` is ever made. The borrow ends with the mapping. Whoever
        // only looks has the pages read-only and loads from them, which such atomics allow.
        unsafe { &*self.map.as_ptr().cast::<Fixed>() }
    }

    /// Version buffer `i`.
    ///
    /// # Errors
    /// [`Damaged`] when the file has no such buffer.
    #[inline]
    pub(crate) fn version(&self, i: u8) -> Result<&Version, Damaged> {
        let i = usize::from(i);
        if i >= self.backed.load(Ordering::Relaxed) {
            self.look_at_length(i)?;
        }
        // SAFETY: `i < backed`, so the file was seen to hold this buffer whole, and it never shrinks; `i < VERSIONS_MAX`,
        // so it lies within the mapping; alignment and contents as in `fixed`.
        unsafe { Ok(&*self.map.as_ptr().add(size_of::<Fixed>()).cast::<Version>().add(i)) }
    }

    /// The file may have grown since it was opened.
    #[cold]
    fn look_at_length(&self, i: usize) -> Result<(), Damaged> {
        let short = Damaged { what: "a version buffer lies past the end of the file" };
        let len = self.file.metadata().map_err(|_| short.clone())?.len();
        if i >= VERSIONS_MAX || len < file_bytes(i + 1) {
            return Err(short);
        }
        self.backed.store(i + 1, Ordering::Relaxed);
        Ok(())
    }

    /// Gives the file room for version buffer `i`. False: there is none on the file system.
    pub(crate) fn reserve_version(&self, i: usize) -> bool {
        i < VERSIONS_MAX && reserve(&self.file, file_bytes(i), size_of::<Version>() as u64).is_ok()
    }

    /// The mark that this process puts on what it writes into. Whoever writes has looked that it is not a forked child.
    pub(crate) fn me(&self) -> Option<OwnerWord> {
        let known = OwnerWord::from_bits(self.me.load(Ordering::Relaxed));
        if known != OwnerWord::NOBODY {
            return Some(known);
        }
        let me = process::this_process()?;
        self.me.store(me.bits(), Ordering::Relaxed);
        Some(me)
    }

    /// Whether this is a forked child of the process that opened the table.
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        self.opened_by.is_forked()
    }
}

/// Allocates blocks, so that no store into the mapping ever meets a full file system.
fn reserve(file: impl AsFd, offset: u64, len: u64) -> Result<(), rustix::io::Errno> {
    loop {
        match rustix::fs::fallocate(&file, FallocateFlags::empty(), offset, len) {
            Err(rustix::io::Errno::INTR) => {}
            done => return done,
        }
    }
}

/// How the name of a table in the making begins; pid and start time of its maker follow.
const TEMPORARY: &str = ".new-table-";

fn is_table_name(name: &str) -> bool {
    name.strip_prefix("table-").is_some_and(|id| uuid::Uuid::parse_str(id).is_ok())
}

/// Whether it is a table in the making whose maker is gone.
fn is_left_over(name: &str) -> bool {
    let Some(maker) = name.strip_prefix(TEMPORARY) else { return false };
    let mut parts = maker.split('-');
    let (Some(pid), Some(start)) = (parts.next(), parts.next()) else { return false };
    match (pid.parse(), start.parse()) {
        (Ok(pid), Ok(start)) => process::is_gone(crate::word::OwnerWord::new(pid, start)),
        _ => false,
    }
}
