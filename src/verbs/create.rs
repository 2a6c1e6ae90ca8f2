//! Making a table: empty, or from the snapshot of one that its boot took with it.
//!
//! The snapshot is put in before the table gets its name. So whoever finds the table finds all of it, a creator that is
//! killed on the way leaves a temporary file and nothing else, and of two that create at once one wins as always.

use std::path::{Path, PathBuf};

use crate::clock;
use crate::error::OpenError;
use crate::location::Location;
use crate::process;
use crate::region::{Opened, Region, Settings};
use crate::snapshot::file::{self, SNAPSHOT, Whose};
use crate::snapshot::{Snapshot, SnapshotError};
use crate::verbs::restore::Restored;
use crate::verbs::table::{CreateOptions, LEASE_MS_DEFAULT, Table, check_lease};

/// How often a table is made and looked for again. It is gone a second time if somebody removed it in between; the bound
/// keeps a remover from keeping this going.
const TRIES: u32 = 16;

/// What the process that made a table found where it made it.
#[derive(Default)]
pub(crate) struct Found {
    /// A table of an earlier boot was removed.
    pub(crate) stale: bool,
    /// The snapshot that the new table began with.
    pub(crate) restored: Option<Restored>,
    /// Why it could not begin with the snapshot that is there.
    pub(crate) not_restored: Option<SnapshotError>,
}

impl Table {
    /// Opens the table, making it and its directory first if there is none. The flag says whether it was made now; the
    /// options apply only then. Of several processes that make it at once, all end with the same table.
    ///
    /// A table of an earlier boot is replaced: by its last snapshot, see [`restored`](Table::restored), or by an empty
    /// one when there is none, or none that can be read, see [`not_restored`](Table::not_restored).
    ///
    /// # Errors
    /// [`OpenError`]. A lease out of range is [`OpenError::Io`] with kind `InvalidInput`.
    pub fn open_or_create(at: impl Into<Location>, options: &CreateOptions) -> Result<(Table, bool), OpenError> {
        let at = at.into();
        check_lease(options.lease_ms.unwrap_or(LEASE_MS_DEFAULT)).map_err(|bad| OpenError::Io {
            what: "make a table with that lease in",
            path: at.dir().to_owned(),
            source: std::io::Error::new(std::io::ErrorKind::InvalidInput, bad),
        })?;
        at.make()?;
        let (mut made, mut found) = (false, Found::default());
        for _ in 0..TRIES {
            match Region::open(&at)? {
                Opened::Found(region) => return Ok((Table::over(region, at, found), made)),
                Opened::OtherBoot => {
                    Region::retire(&at)?;
                    continue;
                }
                Opened::Absent => {}
            }
            let path = at.dir().join(SNAPSHOT);
            let (snapshot, unreadable) = match snapshot_of_the_dead(&at, &path) {
                Ok(snapshot) => (snapshot, None),
                Err(unreadable) => (None, Some(unreadable)),
            };
            (made, found) = create(&at, options, snapshot.map(|s| (s, path)))?;
            found.not_restored = found.not_restored.or(unreadable.filter(|_| made));
            found.stale = Region::clean_up(&at);
        }
        Err(OpenError::Absent { dir: at.dir().to_owned() })
    }

    /// Opens the table and restores it, making it first if there is none, or none of this boot: from `file`, or from the
    /// snapshot in its directory. See [`restore`](Table::restore).
    ///
    /// # Errors
    /// As [`restore`](Table::restore); no table has been made then.
    pub fn open_restored(
        at: impl Into<Location>,
        file: Option<&Path>,
        force: bool,
    ) -> Result<(Table, Restored), SnapshotError> {
        let at = at.into();
        let (path, whose) = match file {
            Some(path) => (path.to_owned(), Whose::Anybodys),
            None => (at.dir().join(SNAPSHOT), Whose::Ours),
        };
        for _ in 0..TRIES {
            match Region::open(&at)? {
                Opened::Found(region) => {
                    let table = Table::over(region, at, Found::default());
                    let restored = table.restore(file, force)?;
                    return Ok((table, restored));
                }
                Opened::OtherBoot => {
                    Region::retire(&at)?;
                    continue;
                }
                Opened::Absent => {}
            }
            let snapshot = file::read(&path, whose)?;
            at.make()?;
            let (made, found) = create(&at, &CreateOptions::default(), Some((snapshot, path.clone())))?;
            Region::clean_up(&at);
            if let Some(why) = found.not_restored {
                return Err(why);
            }
            if let (true, Some(restored), Opened::Found(region)) = (made, found.restored, Region::open(&at)?) {
                return Ok((Table::over(region, at, Found::default()), restored));
            }
        }
        Err(OpenError::Absent { dir: at.dir().to_owned() }.into())
    }
}

/// The snapshot that a new table is to begin with, if there is one: of a table that is gone with its boot. One of this
/// boot, without such a table beside it, is of a table that somebody removed, and whoever removes a table wants it gone.
fn snapshot_of_the_dead(at: &Location, path: &Path) -> Result<Option<Snapshot>, SnapshotError> {
    match file::read(path, Whose::Ours) {
        Ok(snapshot) => {
            let of_this_boot = process::boot_id() == Some(snapshot.taken.boot);
            Ok((!of_this_boot || Region::has_stale(at)).then_some(snapshot))
        }
        Err(SnapshotError::Absent { .. }) => Ok(None),
        Err(unreadable) => Err(unreadable),
    }
}

/// Makes a table, with what is in the snapshot; empty if that cannot be. False: somebody else was first, and nothing
/// that was found here counts.
fn create(
    at: &Location,
    options: &CreateOptions,
    snapshot: Option<(Snapshot, PathBuf)>,
) -> Result<(bool, Found), OpenError> {
    let of_snapshot = snapshot.as_ref().map(|(s, _)| (s.lease_ms, s.require_fence));
    let settings = Settings {
        lease_ms: options.lease_ms.or(of_snapshot.map(|s| s.0)).unwrap_or(LEASE_MS_DEFAULT),
        require_fence: options.require_fence || of_snapshot.is_some_and(|s| s.1),
        created_ms: clock::wall_now_ms(),
    };
    let mut found = Found::default();
    let made = Region::create(at, &settings, |region| {
        let Some((snapshot, path)) = snapshot else { return Ok(()) };
        match Table::over(region, at.clone(), Found::default()).fill_from(&snapshot, path, false) {
            Ok(restored) => found.restored = Some(restored),
            Err(why) => found.not_restored = Some(why),
        }
        Ok(())
    })?;
    Ok((made, if made { found } else { Found::default() }))
}
