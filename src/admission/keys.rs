//! Keys on this machine, each a private file with one line of text (PASERK, the form that PASETO keys are exchanged in).
//!
//! | file | is |
//! |---|---|
//! | `machine.key`, `machines/LABEL.key` | who this machine is: a key pair; its fingerprint is the machine's id |
//! | `credential.key` | one host: makes and reads credentials |
//! | `issuer.key` | several hosts: makes credentials; only where credentials are issued |
//! | `issuer.pub` | several hosts: reads credentials; on every machine |

use std::path::{Path, PathBuf};

use pasetors::keys::{AsymmetricKeyPair, AsymmetricPublicKey, AsymmetricSecretKey, Generate, SymmetricKey};
use pasetors::paserk::FormatAsPaserk;
use pasetors::version4::V4;
use thiserror::Error;

use super::home::Home;
use super::names::{MachineId, MachineLabel};
use super::private::{self, PrivateError};

/// Longest key file; ours are 100 bytes.
const KEY_BYTES_MAX: u64 = 1024;

/// Why a key cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file.
    #[error(transparent)]
    File(#[from] PrivateError),
    /// What is in it is no such key.
    #[error("{path} holds no {kind} key; restore it from a copy, or remove it and a new one is made")]
    NotAKey {
        /// The file.
        path: PathBuf,
        /// Which kind of key.
        kind: &'static str,
    },
    /// There is no such key.
    #[error("there is no {kind} key in {path}")]
    Absent {
        /// Where it was looked for.
        path: PathBuf,
        /// Which kind of key.
        kind: &'static str,
    },
    /// The system gave no random numbers.
    #[error("no {kind} key could be made: the system gave no random numbers")]
    Random {
        /// Which kind of key.
        kind: &'static str,
    },
}

impl KeyError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            KeyError::File(file) => file.code(),
            KeyError::NotAKey { .. } => "not_a_key",
            KeyError::Absent { .. } => "no_key",
            KeyError::Random { .. } => "no_random_numbers",
        }
    }
}

/// Who this machine is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its id.
    pub machine: MachineId,
    /// The name of its key on this machine; none for the machine's own.
    pub label: Option<MachineLabel>,
}

impl Identity {
    /// This machine's own identity, made on first use.
    ///
    /// # Errors
    /// [`KeyError`] when its key cannot be read or made.
    pub fn own(home: &Home) -> Result<Identity, KeyError> {
        let secret = read_or_make_secret(&own_path(home), "machine")?;
        Ok(Identity { machine: machine_of(&secret), label: None })
    }

    /// A further identity on this machine, which [`Identity::add`] made; `None` when there is none of that name.
    ///
    /// # Errors
    /// [`KeyError`] when its key cannot be read.
    pub fn named(home: &Home, label: &MachineLabel) -> Result<Option<Identity>, KeyError> {
        let found = read_secret(&named_path(home, label), "machine")?;
        Ok(found.map(|secret| Identity { machine: machine_of(&secret), label: Some(label.clone()) }))
    }

    /// Every identity on this machine: its own, and the further ones by name.
    ///
    /// # Errors
    /// [`KeyError`] when a key cannot be read.
    pub fn all(home: &Home) -> Result<Vec<Identity>, KeyError> {
        let mut all = vec![Identity::own(home)?];
        let mut labels: Vec<MachineLabel> = Vec::new();
        for entry in std::fs::read_dir(home.dir().join("machines")).into_iter().flatten().flatten() {
            let name = entry.file_name();
            labels.extend(name.to_str().and_then(|name| name.strip_suffix(".key")).and_then(|name| name.parse().ok()));
        }
        labels.sort();
        for label in labels {
            all.extend(Identity::named(home, &label)?);
        }
        Ok(all)
    }

    /// Makes a further identity on this machine, or finds the one of that name.
    ///
    /// # Errors
    /// [`KeyError`] when its key cannot be made.
    pub fn add(home: &Home, label: &MachineLabel) -> Result<Identity, KeyError> {
        let secret = read_or_make_secret(&named_path(home, label), "machine")?;
        Ok(Identity { machine: machine_of(&secret), label: Some(label.clone()) })
    }
}

fn own_path(home: &Home) -> PathBuf {
    home.dir().join("machine.key")
}

fn named_path(home: &Home, label: &MachineLabel) -> PathBuf {
    home.dir().join("machines").join(format!("{label}.key"))
}

fn machine_of(secret: &AsymmetricSecretKey<V4>) -> MachineId {
    // The public half stands behind the seed.
    MachineId::of_public_key(secret.as_bytes().get(32..).unwrap_or_default())
}

/// The keys that credentials are made and read with.
pub enum SealKeys {
    /// One host: one key for both.
    Local(SymmetricKey<V4>),
    /// Several hosts, where credentials are issued.
    Issuer(AsymmetricSecretKey<V4>, AsymmetricPublicKey<V4>),
    /// Several hosts, everywhere else: they can be read only.
    Reader(AsymmetricPublicKey<V4>),
    /// For who has no business with credentials: none is made or read.
    Absent,
}

impl SealKeys {
    /// The key of one host, made on first use.
    ///
    /// # Errors
    /// [`KeyError`] when it cannot be read or made.
    pub fn local(home: &Home) -> Result<SealKeys, KeyError> {
        let (path, kind) = (home.dir().join("credential.key"), "credential");
        let make = || {
            let key = SymmetricKey::<V4>::generate().ok();
            Ok(key.and_then(|key| text_of(&key)).unwrap_or_default())
        };
        let bytes = private::read_or_make(&path, KEY_BYTES_MAX, make)?;
        parse(&bytes).map(SealKeys::Local).ok_or(KeyError::NotAKey { path, kind })
    }

    /// The keys of several hosts: the issuer's when its secret key is here, else its public key.
    ///
    /// # Errors
    /// [`KeyError::Absent`] when neither is here, others when they cannot be read.
    pub fn shared(home: &Home) -> Result<SealKeys, KeyError> {
        let kind = "issuer's";
        if let Some(secret) = read_secret(&home.dir().join("issuer.key"), kind)? {
            let public = AsymmetricPublicKey::try_from(&secret);
            let path = home.dir().join("issuer.key");
            return public.map(|public| SealKeys::Issuer(secret, public)).map_err(|_| KeyError::NotAKey { path, kind });
        }
        let path = home.dir().join("issuer.pub");
        match private::read(&path, KEY_BYTES_MAX)? {
            Some(bytes) => parse(&bytes).map(SealKeys::Reader).ok_or(KeyError::NotAKey { path, kind }),
            None => Err(KeyError::Absent { path, kind }),
        }
    }

    /// Makes the issuer's key pair, or finds it.
    ///
    /// # Errors
    /// [`KeyError`] when it cannot be read or made.
    pub fn make_shared(home: &Home) -> Result<SealKeys, KeyError> {
        match SealKeys::shared(home) {
            Err(KeyError::Absent { .. }) => {}
            other => return other,
        }
        let secret = read_or_make_secret(&home.dir().join("issuer.key"), "issuer's")?;
        let path = home.dir().join("issuer.pub");
        let public = AsymmetricPublicKey::<V4>::try_from(&secret).ok();
        let text = public.and_then(|key| text_of(&key)).unwrap_or_default();
        private::read_or_make(&path, KEY_BYTES_MAX, || Ok(text))?;
        SealKeys::shared(home)
    }
}

impl SealKeys {
    /// Whether credentials can be made with them.
    pub const fn can_issue(&self) -> bool {
        matches!(self, SealKeys::Local(_) | SealKeys::Issuer(..))
    }
}

impl std::fmt::Debug for SealKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            SealKeys::Local(_) => "SealKeys::Local",
            SealKeys::Issuer(..) => "SealKeys::Issuer",
            SealKeys::Reader(_) => "SealKeys::Reader",
            SealKeys::Absent => "SealKeys::Absent",
        })
    }
}

fn text_of(key: &impl FormatAsPaserk) -> Option<Vec<u8>> {
    let mut text = String::new();
    key.fmt(&mut text).ok()?;
    text.push('\n');
    Some(text.into_bytes())
}

fn parse<'a, K: TryFrom<&'a str>>(bytes: &'a [u8]) -> Option<K> {
    let text = std::str::from_utf8(bytes).ok()?;
    K::try_from(text.trim_end()).ok()
}

fn read_secret(path: &Path, kind: &'static str) -> Result<Option<AsymmetricSecretKey<V4>>, KeyError> {
    let Some(bytes) = private::read(path, KEY_BYTES_MAX)? else { return Ok(None) };
    parse(&bytes).map(Some).ok_or(KeyError::NotAKey { path: path.to_owned(), kind })
}

fn read_or_make_secret(path: &Path, kind: &'static str) -> Result<AsymmetricSecretKey<V4>, KeyError> {
    if let Some(secret) = read_secret(path, kind)? {
        return Ok(secret);
    }
    let pair = AsymmetricKeyPair::<V4>::generate().map_err(|_| KeyError::Random { kind })?;
    let text = text_of(&pair.secret).ok_or(KeyError::Random { kind })?;
    let bytes = private::read_or_make(path, KEY_BYTES_MAX, || Ok(text))?;
    parse(&bytes).ok_or(KeyError::NotAKey { path: path.to_owned(), kind })
}
