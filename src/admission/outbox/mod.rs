//! The outbox: what a person wants to start stays here, on disk, until the ledger has taken it (A54), and stays when the
//! ledger refuses (A56).
//!
//! ```text
//! outbox/tmp/      being written
//! outbox/new/      to be sent, or sent with the answer unknown
//! outbox/refused/  not taken, with the reason
//! outbox/sent/     taken
//! ```
//!
//! A file is written in `tmp`, synced, renamed to `new`, the directory synced, and only then is it sent. It then goes on
//! by rename, so whatever a crash leaves behind is whole and in one place. Nothing in here is ever sent by itself: an input
//! of two days ago is fired by a person.
//!
//! A file is called `REQUEST.ATTEMPT`. Where another content of that name is there already, the first digits of its digest
//! follow: nothing is written over what somebody typed.

mod error;
mod file;

use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use serde::Serialize;

use super::names::{Digest, RequestId};
use super::private::{self, io_error};
use super::record::AttemptKey;

pub use error::OutboxError;
pub use file::{HEADER_BYTES_MAX, Header, INPUT_BYTES_MAX, LastAnswer};

/// Where an entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Its writer died before it was in `new`; it has not been sent.
    Tmp,
    /// To be sent, or sent with the answer unknown.
    New,
    /// Not taken.
    Refused,
    /// Taken.
    Sent,
}

impl State {
    /// All of them.
    pub const ALL: [State; 4] = [State::Tmp, State::New, State::Refused, State::Sent];

    /// The name of its directory.
    pub const fn name(self) -> &'static str {
        match self {
            State::Tmp => "tmp",
            State::New => "new",
            State::Refused => "refused",
            State::Sent => "sent",
        }
    }
}

/// One file of the outbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Where it stands.
    pub state: State,
    /// The name of its file.
    pub name: String,
    /// What is said about the input.
    #[serde(flatten)]
    pub header: Header,
}

impl Entry {
    /// Request and attempt.
    pub fn key(&self) -> AttemptKey {
        AttemptKey { request: self.header.request.clone(), attempt: self.header.attempt }
    }
}

/// What stands in the outbox.
#[derive(Debug)]
pub struct Listing {
    /// The entries, the oldest first.
    pub entries: Vec<Entry>,
    /// Files that are none, with what is wrong; they are left alone.
    pub strange: Vec<(PathBuf, OutboxError)>,
}

/// The outbox in one directory.
#[derive(Clone, Debug)]
pub struct Outbox {
    dir: PathBuf,
}

impl Outbox {
    /// The outbox in `dir`; the directory is made when something is put in.
    pub fn new(dir: impl Into<PathBuf>) -> Outbox {
        Outbox { dir: dir.into() }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn path(&self, state: State, name: &str) -> PathBuf {
        self.dir.join(state.name()).join(name)
    }

    /// The path of an entry's file.
    pub fn path_of(&self, entry: &Entry) -> PathBuf {
        self.path(entry.state, &entry.name)
    }

    /// Keeps an input. When the same content is there under the same request and attempt, that entry is the answer: it is
    /// the same send once more. What the digest does not cover is kept as it was said last.
    ///
    /// # Errors
    /// [`OutboxError`] when it cannot be kept; then nothing was.
    pub fn put(&self, header: Header, input: &[u8]) -> Result<Entry, OutboxError> {
        let _alone = self.alone()?;
        if let Some(there) = self.find(&header.key(), Some(&header.digest))?.into_iter().next() {
            let there = if there.state == State::Tmp { self.move_to_new(there)? } else { there };
            return self.said_again(there, header, input);
        }
        for state in State::ALL {
            private::make_dir(&self.dir.join(state.name()))?;
        }
        let header = Header { input_bytes: input.len() as u64, ..header };
        let temporary = self.write(&header, input)?;
        let name = self.settle(&temporary.path, State::New, &header)?;
        Ok(Entry { state: State::New, name, header })
    }

    fn said_again(&self, there: Entry, header: Header, input: &[u8]) -> Result<Entry, OutboxError> {
        let (created_ms, input_bytes, last) = (there.header.created_ms, input.len() as u64, there.header.last.clone());
        let header = Header { created_ms, input_bytes, last, ..header };
        if header == there.header {
            return Ok(there);
        }
        let temporary = self.write(&header, input)?;
        let path = self.path_of(&there);
        rustix::fs::rename(&temporary.path, &path).map_err(|errno| io_error("write", &path)(errno.into()))?;
        private::sync_dir(&self.dir.join(there.state.name()))?;
        Ok(Entry { header, ..there })
    }

    /// Every entry with this request and attempt, and this digest if one is given. What is settled comes first.
    ///
    /// Only files with such names are opened, however many others there are.
    ///
    /// # Errors
    /// [`OutboxError`] when the directory cannot be read.
    pub fn find(&self, key: &AttemptKey, digest: Option<&Digest>) -> Result<Vec<Entry>, OutboxError> {
        let plain = format!("{}.{}", key.request, key.attempt);
        let may_be =
            |name: &str| name.strip_prefix(&plain).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let mut found = Vec::new();
        for state in State::ALL {
            let listing = self.list_where(&[state], |name| state == State::Tmp || may_be(name))?;
            found.extend(listing.entries);
        }
        found.retain(|entry| entry.key() == *key && digest.is_none_or(|digest| *digest == entry.header.digest));
        found.sort_by_key(|entry| std::cmp::Reverse(entry.state));
        Ok(found)
    }

    /// Everything in these states.
    ///
    /// # Errors
    /// [`OutboxError`] when a directory cannot be read; a single file that cannot is listed as strange.
    pub fn list(&self, states: &[State]) -> Result<Listing, OutboxError> {
        self.list_where(states, |_| true)
    }

    fn list_where(&self, states: &[State], wanted: impl Fn(&str) -> bool) -> Result<Listing, OutboxError> {
        let mut listing = Listing { entries: Vec::new(), strange: Vec::new() };
        for &state in states {
            let dir = self.dir.join(state.name());
            let names = match std::fs::read_dir(&dir) {
                Ok(names) => names,
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                Err(e) => return Err(io_error("list", &dir)(e).into()),
            };
            for name in names {
                let path = name.map_err(io_error("list", &dir))?.path();
                let named = path.file_name().is_some_and(|name| name.to_str().is_none_or(&wanted));
                // One that is being written is nobody's business yet.
                if !named || (state == State::Tmp && !is_left_over(&path)) {
                    continue;
                }
                match read_entry(state, &path) {
                    Ok(Some(entry)) => listing.entries.push(entry),
                    Ok(None) => {}
                    Err(error) => listing.strange.push((path, error)),
                }
            }
        }
        listing.entries.sort_by(|a, b| (a.header.created_ms, &a.name).cmp(&(b.header.created_ms, &b.name)));
        listing.strange.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(listing)
    }

    /// The input of an entry.
    ///
    /// # Errors
    /// [`OutboxError`] when it cannot be read or is not what its header says.
    pub fn input(&self, entry: &Entry) -> Result<Vec<u8>, OutboxError> {
        let path = self.path_of(entry);
        let (_, input) = file::read(&path)?.ok_or(OutboxError::Gone { path })?;
        Ok(input)
    }

    /// Notes an answer on an entry and puts it where it belongs: first the note where it is, then the move, so that there
    /// is one file at every moment.
    ///
    /// Somebody else may have sent the same meanwhile. What was taken stays with what was taken, whatever was answered
    /// besides; an answer that leaves an entry where it was does not move it back.
    ///
    /// # Errors
    /// [`OutboxError`] when that cannot be written; the input is still there.
    pub fn answered(&self, entry: Entry, state: State, last: LastAnswer) -> Result<Entry, OutboxError> {
        let _alone = self.alone()?;
        let now = self.find(&entry.key(), Some(&entry.header.digest))?.into_iter().next();
        let now = now.ok_or_else(|| OutboxError::Gone { path: self.path_of(&entry) })?;
        let has_moved = now.state != entry.state;
        if has_moved && (now.state == State::Sent || state == entry.state) {
            return Ok(now);
        }
        self.note(now, state, last)
    }

    fn note(&self, entry: Entry, state: State, last: LastAnswer) -> Result<Entry, OutboxError> {
        let input = self.input(&entry)?;
        let header = Header { last: Some(last), ..entry.header.clone() };
        let from = self.path_of(&entry);
        let temporary = self.write(&header, &input)?;
        rustix::fs::rename(&temporary.path, &from).map_err(|errno| io_error("write", &from)(errno.into()))?;
        private::sync_dir(&self.dir.join(entry.state.name()))?;
        if entry.state == state {
            return Ok(Entry { header, ..entry });
        }
        let name = self.settle(&from, state, &header)?;
        private::sync_dir(&self.dir.join(entry.state.name()))?;
        Ok(Entry { state, name, header })
    }

    /// Makes an entry one that is to be sent: what was refused may be sent once more, what a dead writer left too.
    ///
    /// # Errors
    /// [`OutboxError`] when it cannot be moved.
    pub fn adopt(&self, entry: Entry) -> Result<Entry, OutboxError> {
        let _alone = self.alone()?;
        self.move_to_new(entry)
    }

    fn move_to_new(&self, entry: Entry) -> Result<Entry, OutboxError> {
        if entry.state == State::New {
            return Ok(entry);
        }
        private::make_dir(&self.dir.join(State::New.name()))?;
        let name = self.settle(&self.path_of(&entry), State::New, &entry.header)?;
        private::sync_dir(&self.dir.join(entry.state.name()))?;
        Ok(Entry { state: State::New, name, ..entry })
    }

    /// Keeps another content, which is another request. The entry that it came from stays.
    ///
    /// # Errors
    /// [`OutboxError::SameRequest`] when it has the id of the one it came from.
    pub fn edited(
        &self,
        entry: &Entry,
        request: RequestId,
        digest: Digest,
        now_ms: u64,
        input: &[u8],
    ) -> Result<Entry, OutboxError> {
        if request == entry.header.request {
            return Err(OutboxError::SameRequest { request });
        }
        let attempt = super::names::Attempt::FIRST;
        let header = Header { request, attempt, digest, created_ms: now_ms, last: None, ..entry.header.clone() };
        self.put(header, input)
    }

    /// Throws an entry away.
    ///
    /// # Errors
    /// [`OutboxError`] when it cannot be removed.
    pub fn drop_entry(&self, entry: &Entry) -> Result<(), OutboxError> {
        let path = self.path_of(entry);
        std::fs::remove_file(&path).map_err(io_error("remove", &path))?;
        Ok(private::sync_dir(&self.dir.join(entry.state.name()))?)
    }

    /// Keeps all others from moving anything until the value is dropped. Reading goes on: at every moment an entry is whole
    /// and in one place.
    fn alone(&self) -> Result<std::fs::File, OutboxError> {
        private::make_dir(&self.dir)?;
        let dir = std::fs::File::open(&self.dir).map_err(io_error("open", &self.dir))?;
        loop {
            match rustix::fs::flock(&dir, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(dir),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(io_error("lock", &self.dir)(errno.into()).into()),
            }
        }
    }

    /// Writes a whole file into `tmp` and syncs it. It is locked until the value is dropped, so that nobody takes it for
    /// one whose writer is gone.
    fn write(&self, header: &Header, input: &[u8]) -> Result<Temporary, OutboxError> {
        let bytes = file::to_bytes(header, input)?;
        private::make_dir(&self.dir.join(State::Tmp.name()))?;
        let path = self.path(State::Tmp, &uuid::Uuid::now_v7().simple().to_string());
        let lock = private::write_new_locked(&path, &bytes)?;
        Ok(Temporary { path, _lock: lock })
    }

    /// Renames a file to its name in a state, beside what is there under the same name with another content, and makes it
    /// last. The same content once more takes the place of the first.
    fn settle(&self, from: &Path, state: State, header: &Header) -> Result<String, OutboxError> {
        let (plain, long) = names(header);
        let to = self.path(state, &plain);
        let failed = |errno: Errno| match errno {
            // Somebody else was faster with the same entry.
            Errno::NOENT => OutboxError::Gone { path: from.to_owned() },
            errno => io_error("move", from)(errno.into()).into(),
        };
        let name = match rustix::fs::renameat_with(CWD, from, CWD, &to, RenameFlags::NOREPLACE) {
            Ok(()) => plain,
            Err(Errno::EXIST) => {
                let same = read_entry(state, &to).ok().flatten().is_some_and(|e| e.header.digest == header.digest);
                let name = if same { plain } else { long };
                rustix::fs::rename(from, self.path(state, &name)).map_err(failed)?;
                name
            }
            Err(errno) => return Err(failed(errno)),
        };
        private::sync_dir(&self.dir.join(state.name()))?;
        Ok(name)
    }
}

/// A file in `tmp`; removed when it has not been renamed by the time this is dropped.
struct Temporary {
    path: PathBuf,
    _lock: std::fs::File,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What the file of an entry may be called: usually, and beside another content of that name.
fn names(header: &Header) -> (String, String) {
    let plain = format!("{}.{}", header.request, header.attempt);
    let digits: String = header.digest.to_string().chars().take(12).collect();
    let long = format!("{plain}.{digits}");
    (plain, long)
}

/// Whether nobody has the file locked: its writer is gone.
fn is_left_over(path: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(fd) = rustix::fs::open(path, flags, Mode::empty()) else { return false };
    rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Reads the header of a file; `None` when it has gone meanwhile. A file under a name that its header does not give it is
/// strange: somebody put it there.
fn read_entry(state: State, path: &Path) -> Result<Option<Entry>, OutboxError> {
    let Some((header, _)) = file::read(path)? else { return Ok(None) };
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let (plain, long) = names(&header);
    if state != State::Tmp && name != plain && name != long {
        return Err(OutboxError::Misnamed { path: path.to_owned(), expected: plain });
    }
    Ok(Some(Entry { state, name, header }))
}

#[cfg(all(test, not(tenure_loom)))]
mod tests;
