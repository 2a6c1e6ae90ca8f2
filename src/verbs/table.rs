//! Opening a table, and the names of its holders.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Damaged, NameError, OpenError, Refusal};
use crate::graph::Holder;
use crate::id::check_name;
use crate::location::Location;
use crate::record::name_hash;
use crate::region::{Opened, Region};
use crate::snapshot::SnapshotError;
use crate::sync::Ordering;
use crate::table::claim::{Holding, Who};
use crate::table::{Core, Stop, TRIES};
use crate::verbs::create::Found;
use crate::verbs::edit::{Edit, Planned};
use crate::verbs::restore::Restored;
use crate::word::{self, RootWord, Step, TextOf};

/// Lease of a claim when neither it nor the table names one: five minutes.
pub const LEASE_MS_DEFAULT: u64 = 300_000;

/// The longest lease, a little over three days.
pub const LEASE_MS_MAX: u64 = word::LEASE_MS_MAX;

/// How a table is made.
#[derive(Clone, Debug, Default)]
pub struct CreateOptions {
    /// Lease of claims that name none, in milliseconds; `None` is [`LEASE_MS_DEFAULT`].
    pub lease_ms: Option<u64>,
    /// Refuse completions that name no generation.
    pub require_fence: bool,
}

/// One shared table, mapped.
///
/// Clones share the mapping and cost next to nothing. Any number of threads and processes use a table at once; nothing
/// they do waits for another. A process that forks must open the table again in the child: verbs of the old handle that
/// write answer [`Refusal::Forked`] there.
#[derive(Clone)]
pub struct Table {
    inner: Arc<Inner>,
}

struct Inner {
    region: Region,
    location: Location,
    found: Found,
}

impl Table {
    /// Opens an existing table; never makes one.
    ///
    /// # Errors
    /// [`OpenError::Absent`] when there is none, [`OpenError::Stale`] when the only one is from before a reboot, another
    /// [`OpenError`] when what is there cannot be used; it is left alone then.
    pub fn open(at: impl Into<Location>) -> Result<Table, OpenError> {
        let at = at.into();
        match Region::open(&at)? {
            Opened::Found(region) => Ok(Table::over(region, at, Found::default())),
            Opened::OtherBoot => Err(OpenError::Stale { dir: at.dir().to_owned() }),
            Opened::Absent if Region::has_stale(&at) => Err(OpenError::Stale { dir: at.dir().to_owned() }),
            Opened::Absent => Err(OpenError::Absent { dir: at.dir().to_owned() }),
        }
    }

    pub(crate) fn over(region: Region, location: Location, found: Found) -> Table {
        Table { inner: Arc::new(Inner { region, location, found }) }
    }

    /// The directory it lives in.
    pub fn dir(&self) -> &Path {
        self.inner.location.dir()
    }

    /// Whether opening it removed a table from before the last reboot. What came back of it says
    /// [`restored`](Table::restored).
    pub fn replaced_stale(&self) -> bool {
        self.inner.found.stale
    }

    /// What came back from a snapshot when opening made this table.
    pub fn restored(&self) -> Option<&Restored> {
        self.inner.found.restored.as_ref()
    }

    /// Why nothing came back, when opening made this table beside a snapshot. The snapshot is left as it is, and the next
    /// one moves it to `snapshot.unreadable`.
    pub fn not_restored(&self) -> Option<&SnapshotError> {
        self.inner.found.not_restored.as_ref()
    }

    /// Lease of claims that name none, in milliseconds.
    pub fn default_lease_ms(&self) -> u64 {
        self.core().default_lease_ms()
    }

    /// Wakes everybody who waits for a node, to look again.
    pub fn wake_all(&self) {
        self.core().ring_all();
    }

    /// Whether completions must name a generation.
    pub fn requires_fence(&self) -> bool {
        self.core().fixed.header.options.load(Ordering::Relaxed) & 1 != 0
    }

    /// The words, for whoever only reads them.
    #[inline]
    pub(crate) fn core(&self) -> Core<'_> {
        Core { fixed: self.inner.region.fixed(), region: &self.inner.region }
    }

    /// The words, for whoever writes them.
    #[inline]
    pub(crate) fn core_mut(&self) -> Result<Core<'_>, Refusal> {
        if self.inner.region.is_forked() { Err(Refusal::Forked) } else { Ok(self.core()) }
    }

    /// What the version in force knows of a holder name.
    pub(crate) fn find_holder(&self, holder: &str) -> Result<Option<Who>, Refusal> {
        let core = self.core();
        let hash = name_hash(holder);
        for _ in 0..TRIES {
            let seen = core.in_force().map_err(|stop| self.refusal(stop))?;
            let alike: Vec<Who> = seen.holders_with_hash(hash).collect();
            if !seen.is_whole() {
                continue;
            }
            match known_holder(&core, alike.into_iter(), holder)? {
                Some(found) => return Ok(found),
                None => self.look_again(seen.root)?,
            }
        }
        Err(Refusal::Contended { tries: TRIES })
    }

    /// The holder slot of a name, registering it if it is new: in a slot that no name has, or in place of a name that
    /// holds nothing.
    pub(crate) fn register(&self, holder: &str) -> Result<Who, Refusal> {
        check_name("holder", holder)?;
        if let Some(who) = self.find_holder(holder)? {
            return Ok(who);
        }
        self.change(|edit| {
            let alike = edit.graph.holders_with_hash(name_hash(holder));
            let alike = alike.map(|(slot, known)| Who { slot, name: known.name });
            match known_holder(&edit.core, alike, holder)? {
                Some(Some(who)) => return Ok(Planned::Nothing(who)),
                Some(None) => {}
                None => {
                    self.look_again(edit.root)?;
                    return Ok(Planned::Again);
                }
            }
            let slot = match edit.graph.free_holder() {
                Some(slot) => slot,
                None => evictable(edit)?,
            };
            let name = edit.write_text(TextOf::Holder(slot), holder.as_bytes())?;
            edit.graph.set_holder(slot, Holder { name, hash: name_hash(holder) });
            Ok(Planned::Publish(Who { slot, name }))
        })
    }

    /// The name in a holder slot, for messages and lists.
    pub(crate) fn holder_name(&self, slot: u16) -> Result<String, Refusal> {
        let core = self.core();
        for _ in 0..TRIES {
            let seen = core.in_force().map_err(|stop| self.refusal(stop))?;
            let name = seen.holder_name(slot);
            if !seen.is_whole() {
                continue;
            }
            if name.is_none() {
                return Ok(format!("holder #{slot}"));
            }
            if let Some(bytes) = core.read_text(name)? {
                return Ok(String::from_utf8_lossy(&bytes).into_owned());
            }
            self.look_again(seen.root)?;
        }
        Err(Refusal::Contended { tries: TRIES })
    }

    /// A text that the version of `root` refers to could not be read: it was used again because another version is in
    /// force now, and the caller looks anew; or the table is damaged.
    pub(crate) fn look_again(&self, root: RootWord) -> Result<(), Refusal> {
        if self.core().fixed.header.root.load(Ordering::Acquire) == root {
            return Err(Damaged { what: "the version in force refers to a text that is not there" }.into());
        }
        Ok(())
    }

    /// Puts into words why a transition did not happen.
    #[cold]
    pub(crate) fn refusal(&self, stop: Stop) -> Refusal {
        match stop {
            Stop::Damaged(damaged) => Refusal::Damaged(damaged),
            Stop::Contended => Refusal::Contended { tries: TRIES },
            Stop::NoRoom { what, limit } => Refusal::NoRoom { what, limit },
            Stop::Exhausted { slot, what } => Refusal::Exhausted { node: self.label(slot), what },
        }
    }
}

/// # Errors
/// [`NameError::Lease`] when the table cannot keep a lease of this length.
#[inline]
pub(crate) fn check_lease(lease_ms: u64) -> Result<(), NameError> {
    if (1..=LEASE_MS_MAX).contains(&lease_ms) {
        Ok(())
    } else {
        Err(NameError::Lease { lease_ms, limit_ms: LEASE_MS_MAX })
    }
}

/// Which of the holders with the same hash has this name; the outer `None` when a text was used again since, so look
/// again.
#[expect(clippy::option_option, reason = "absent and unknown are different answers")]
fn known_holder(
    core: &Core<'_>,
    alike: impl Iterator<Item = Who>,
    holder: &str,
) -> Result<Option<Option<Who>>, Refusal> {
    for who in alike {
        match core.read_text(who.name)? {
            None => return Ok(None),
            Some(bytes) if bytes == holder.as_bytes() => return Ok(Some(Some(who))),
            Some(_) => {}
        }
    }
    Ok(Some(None))
}

/// A holder that holds nothing, with the step that makes sure of it. The search begins at another place each time, so
/// that not the same name is evicted again and again.
fn evictable(edit: &mut Edit<'_>) -> Result<u16, Refusal> {
    let count = edit.graph.holders.len().max(2) - 1;
    let from = edit.root.number() as usize;
    for i in 0..count {
        let slot = ((from + i) % count + 1) as u16;
        if !matches!(edit.core.holding(slot)?, Holding::Holds { .. }) {
            edit.steps.push(Step::Evict(slot));
            return Ok(slot);
        }
    }
    Err(Refusal::NoRoom { what: "holders with a live claim", limit: count as u64 })
}
