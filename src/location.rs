//! Where a table lives, and what is checked about the directory before anything in it is touched.

use std::env;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::error::OpenError;

/// The directory of a table.
///
/// A directory that the caller names is used as given. A default one is made with mode 0700 and refused when it is
/// reached through a symbolic link or belongs to somebody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    dir: PathBuf,
    named: bool,
}

impl Location {
    /// `dir` if given, else the first of these that is set: `TENURE_DIR`, `$XDG_RUNTIME_DIR/tenure`,
    /// `$XDG_STATE_HOME/tenure`, `$HOME/.local/state/tenure`; else `/tmp/tenure-UID`. Never the working directory.
    ///
    /// As the XDG base directory specification asks, a relative `XDG_*` path counts as not set.
    pub fn from_env(dir: Option<PathBuf>) -> Location {
        let set = |name: &str| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        if let Some(dir) = dir.or_else(|| set("TENURE_DIR")) {
            return Location::named(dir);
        }
        let absolute = |name: &str| set(name).filter(|path| path.is_absolute());
        let dir = absolute("XDG_RUNTIME_DIR")
            .or_else(|| absolute("XDG_STATE_HOME"))
            .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
            .map(|base| base.join("tenure"))
            .unwrap_or_else(|| PathBuf::from(format!("/tmp/tenure-{}", rustix::process::getuid().as_raw())));
        Location { dir, named: false }
    }

    /// Where what must survive a reboot is kept: `dir` if given, else `$XDG_STATE_HOME/tenure` or
    /// `$HOME/.local/state/tenure`, else `/var/tmp/tenure-UID`.
    pub fn state(dir: Option<PathBuf>) -> Location {
        if let Some(dir) = dir {
            return Location::named(dir);
        }
        let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let dir = absolute("XDG_STATE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
            .map(|base| base.join("tenure"))
            .unwrap_or_else(|| PathBuf::from(format!("/var/tmp/tenure-{}", rustix::process::getuid().as_raw())));
        Location { dir, named: false }
    }

    /// A directory that is used as given.
    pub fn named(dir: impl Into<PathBuf>) -> Location {
        Location { dir: dir.into(), named: true }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes the directory if there is none.
    pub(crate) fn make(&self) -> Result<(), OpenError> {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir);
        match made {
            Err(source) if source.kind() == std::io::ErrorKind::AlreadyExists => {
                Err(OpenError::NotAFile { path: self.dir.clone(), what: "not a directory" })
            }
            Err(source) => Err(OpenError::Io { what: "make the directory", path: self.dir.clone(), source }),
            Ok(()) => Ok(()),
        }
    }

    /// Checks owner, kind and file system of the directory. One that does not exist passes: there is no table in it.
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        let look = if self.named { std::fs::metadata(&self.dir) } else { std::fs::symlink_metadata(&self.dir) };
        let meta = match look {
            Ok(meta) => meta,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(OpenError::Io { what: "look at", path: self.dir.clone(), source }),
        };
        if meta.is_symlink() {
            return Err(OpenError::NotAFile { path: self.dir.clone(), what: "a symbolic link, which is not followed" });
        }
        if !meta.is_dir() {
            return Err(OpenError::NotAFile { path: self.dir.clone(), what: "not a directory" });
        }
        let me = rustix::process::geteuid().as_raw();
        if !self.named && meta.uid() != me {
            return Err(OpenError::NotOurs { path: self.dir.clone(), owner: meta.uid(), me });
        }
        match rustix::fs::statfs(&self.dir) {
            Ok(stat) => match network_name(stat.f_type as u64 & 0xffff_ffff) {
                Some(kind) => Err(OpenError::NetworkFileSystem { dir: self.dir.clone(), kind }),
                None => Ok(()),
            },
            Err(errno) => {
                Err(OpenError::Io { what: "look at the file system of", path: self.dir.clone(), source: errno.into() })
            }
        }
    }
}

impl<P: AsRef<Path>> From<P> for Location {
    fn from(dir: P) -> Location {
        Location::named(dir.as_ref())
    }
}

/// The file systems on which two hosts, or a host and a daemon, may each see their own version of a mapped page.
/// The numbers are the kernel's `f_type` (`statfs(2)`, `linux/magic.h`).
fn network_name(f_type: u64) -> Option<&'static str> {
    Some(match f_type {
        0x6969 => "NFS",
        0x517b => "SMB",
        0xff53_4d42 => "CIFS",
        0xfe53_4d42 => "SMB2",
        0x0102_1997 => "9P",
        0x6573_5546 => "FUSE",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x00c3_6400 => "Ceph",
        0x0bd0_0bd0 => "Lustre",
        0x0116_1970 => "GFS2",
        0x7461_636f => "OCFS2",
        0x7375_7245 => "Coda",
        0x564c => "NCP",
        0x786f_4256 => "VirtualBox shared folders",
        0xaad7_aaea => "PanFS",
        0x2003_0528 => "OrangeFS",
        0x4750_4653 => "GPFS",
        _ => return None,
    })
}

#[cfg(all(test, not(tenure_loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_survives_a_reboot_has_a_directory_of_its_own() {
        assert_eq!(Location::state(Some("/x".into())), Location::named("/x"));
        let home = Location::state(None);
        assert!(home.dir().is_absolute() && home.dir().to_string_lossy().contains("tenure"));
        assert!(!home.named, "the default one is checked for links and owners");
    }

    #[test]
    fn network_file_systems_are_named_and_local_ones_are_not() {
        assert_eq!(network_name(0x6969), Some("NFS"));
        assert_eq!(network_name(0x6573_5546), Some("FUSE"));
        for local in [0x0102_1994, 0xef53, 0x5846_5342, 0x9123_683e, 0x794c_7630] {
            assert_eq!(network_name(local), None);
        }
    }
}
