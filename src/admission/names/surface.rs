//! Surfaces and places: what may be started on once at a time, and where that is.
//!
//! A key is a name that people chose, or the absolute path of the place; `#part` at its end says that several works
//! share one place on purpose (A7). A name in other letter case, with `/` at its end or doubled is the same key. What only
//! a directory or a disk could explain (`./x`, `..`, a symbolic link, a path in other letter case) is refused or looked up
//! on the disk, never guessed.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{BadName, Fault, text, text_type};

/// Longest key of a surface, in bytes; what every database can index.
pub const SURFACE_BYTES_MAX: usize = 1024;

/// Longest path of a place, in bytes; longer ones cannot be opened.
pub const PLACE_BYTES_MAX: usize = 4095;

const SURFACE: &str = "surface key";
const PLACE: &str = "place";

/// The key of a workspace surface.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SurfaceKey(String);

text_type::of_string!(SurfaceKey, |text| {
    text::not_empty(SURFACE, text, SURFACE_BYTES_MAX)?;
    let (base, part) = split(text)?;
    let base = if base.starts_with('/') { clean_path(SURFACE, base)? } else { clean_name(base)? };
    Ok(match part {
        Some(part) => format!("{base}#{part}"),
        None => base,
    })
});

/// How two keys stand to each other (A7, A8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinship {
    /// One key.
    Same,
    /// Parts of one place by declaration: `S#a` and `S#b`, or `S` and `S#a`.
    DeclaredSplit,
    /// One lies inside the other: `/srv` and `/srv/repo`, `team` and `team/docs`. The wider may be too wide, or the
    /// narrower too narrow.
    Within,
    /// Paths that differ in letter case only: two places on most disks, one on some.
    LetterCase,
    /// Nothing in common.
    None,
}

impl SurfaceKey {
    /// The key without its `#part`.
    pub fn base(&self) -> &str {
        self.0.split_once('#').map_or(self.as_str(), |(base, _)| base)
    }

    /// The part after `#`.
    pub fn part(&self) -> Option<&str> {
        self.0.split_once('#').map(|(_, part)| part)
    }

    /// Whether the key is a path.
    pub fn is_path(&self) -> bool {
        self.0.starts_with('/')
    }

    /// How the two stand to each other.
    pub fn kinship(&self, other: &SurfaceKey) -> Kinship {
        let (mine, theirs) = (self.base(), other.base());
        if self == other {
            Kinship::Same
        } else if mine == theirs {
            Kinship::DeclaredSplit
        } else if is_within(mine, theirs) || is_within(theirs, mine) {
            Kinship::Within
        } else if mine.to_lowercase() == theirs.to_lowercase() {
            Kinship::LetterCase
        } else {
            Kinship::None
        }
    }

    /// As `parse`, but a path is looked up on this machine's disk first, so that a symbolic link to a place and the place
    /// itself are one key. A path that leads nowhere here stays as it is: it may exist on the machine it is meant for.
    ///
    /// # Errors
    /// [`BadName`] as from `parse`, and when the disk spells the path in other letter case.
    pub fn on_this_machine(text: &str) -> Result<SurfaceKey, BadName> {
        let key: SurfaceKey = text.parse()?;
        if !key.is_path() {
            return Ok(key);
        }
        let Some(found) = look_up(SURFACE, key.base())? else { return Ok(key) };
        match key.part() {
            Some(part) => format!("{found}#{part}").parse(),
            None => found.parse(),
        }
    }
}

/// An absolute path on one machine, spelled in one way.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place(String);

text_type::of_string!(Place, |text| {
    text::not_empty(PLACE, text, PLACE_BYTES_MAX)?;
    if !text.starts_with('/') {
        return Err(BadName::new(PLACE, Fault::Relative));
    }
    clean_path(PLACE, text)
});

impl Place {
    /// The place as a path.
    pub fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }

    /// Whether `other` is this place or lies in it.
    pub fn contains(&self, other: &Place) -> bool {
        self == other || is_within(&self.0, &other.0)
    }

    /// The place that a path leads to on this machine, symbolic links followed. A relative path begins where the process
    /// runs. A path that leads nowhere is read as it stands.
    ///
    /// # Errors
    /// [`BadName`] when the path cannot be a place, or the disk spells it in other letter case.
    pub fn on_this_machine(path: &Path) -> Result<Place, BadName> {
        let absolute = std::path::absolute(path).map_err(|e| lookup_fault(PLACE, path, e.kind()))?;
        let text = utf8(PLACE, &absolute)?;
        match look_up(PLACE, text)? {
            Some(found) => found.parse(),
            None => text.parse(),
        }
    }
}

/// Splits `KEY#PART`.
fn split(text: &str) -> Result<(&str, Option<String>), BadName> {
    let Some((base, part)) = text.split_once('#') else { return Ok((text, None)) };
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if base.is_empty() || part.is_empty() || !part.chars().all(fits) {
        return Err(BadName::new(SURFACE, Fault::Part));
    }
    Ok((base, Some(part.to_ascii_lowercase())))
}

/// A name: parts of lower case letters, digits and a few signs, with `/` between them.
fn clean_name(base: &str) -> Result<String, BadName> {
    let begins = |with: &str| base == with || base.strip_prefix(with).is_some_and(|rest| rest.starts_with('/'));
    if begins(".") || begins("..") || begins("~") {
        return Err(BadName::new(SURFACE, Fault::Relative));
    }
    let allowed = "letters a-z, digits and . _ : @ + - / may be in a name; or give the whole path of the place, from /";
    text::only(SURFACE, base, allowed, |c| {
        c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '@' | '+' | '-' | '/')
    })?;
    text::begins_well(SURFACE, base)?;
    Ok(joined(SURFACE, base)?.to_ascii_lowercase())
}

/// An absolute path without doubled and trailing `/`, and without `.`; `..` is refused, for only the disk knows where it
/// leads when a link stands before it.
fn clean_path(what: &'static str, path: &str) -> Result<String, BadName> {
    text::only(what, path, "no invisible or control character may be in a path", |c| !text::is_invisible(c))?;
    Ok(format!("/{}", joined(what, path)?))
}

/// The parts of a path or name with one `/` between each two.
fn joined(what: &'static str, path: &str) -> Result<String, BadName> {
    let mut kept: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err(BadName::new(what, Fault::Dots { part: ".." })),
            part => kept.push(part),
        }
    }
    Ok(kept.join("/"))
}

/// Whether `inner` lies below `outer`.
fn is_within(outer: &str, inner: &str) -> bool {
    let outer = outer.trim_end_matches('/');
    inner.len() > outer.len() + 1 && inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'))
}

/// Where the path leads on this machine; `None` if nowhere.
fn look_up(what: &'static str, path: &str) -> Result<Option<String>, BadName> {
    let found = match fs::canonicalize(path) {
        Ok(found) => found,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(e) => return Err(lookup_fault(what, Path::new(path), e.kind())),
    };
    let spelled = as_on_disk(&found);
    if spelled != found {
        return Err(BadName::new(what, Fault::Spelled { found: spelled.display().to_string() }));
    }
    Ok(Some(utf8(what, &found)?.to_owned()))
}

/// The path with every part as its directory lists it. On a disk that takes `Repo` for `repo` only one of the two is
/// listed. A directory that cannot be listed is believed.
fn as_on_disk(path: &Path) -> PathBuf {
    let mut spelled = PathBuf::new();
    for part in path.components() {
        let asked = spelled.join(part);
        let listed = match (fs::symlink_metadata(&asked), fs::read_dir(&spelled)) {
            (Ok(meta), Ok(entries)) => spelling(part.as_os_str(), meta.ino(), entries),
            _ => None,
        };
        spelled = listed.map_or(asked, |name| spelled.join(name));
    }
    spelled
}

/// The name under which a directory lists what was asked for by `name`, unless it lists that very name.
fn spelling(name: &std::ffi::OsStr, inode: u64, entries: fs::ReadDir) -> Option<std::ffi::OsString> {
    use std::os::unix::fs::DirEntryExt;
    let mut other = None;
    for entry in entries.flatten() {
        let listed = entry.file_name();
        if listed == name {
            return None;
        }
        let differs_in_case = listed.to_string_lossy().to_lowercase() == name.to_string_lossy().to_lowercase();
        if differs_in_case && entry.ino() == inode {
            other = Some(listed);
        }
    }
    other
}

fn utf8<'a>(what: &'static str, path: &'a Path) -> Result<&'a str, BadName> {
    let not_text = || BadName::new(what, Fault::Spelling { expected: "a path of UTF-8 text" });
    path.to_str().ok_or_else(not_text)
}

fn lookup_fault(what: &'static str, path: &Path, kind: ErrorKind) -> BadName {
    BadName::new(what, Fault::Lookup { path: path.display().to_string(), kind })
}
