//! Opening a ledger the way the program does: by its address, with the policy and the keys of this machine.

use std::sync::Arc;

use thiserror::Error;

use super::facts::Subject;
use super::home::Home;
use super::keys::{KeyError, SealKeys};
use super::ledger::Ledger;
use super::policy::Installed;
use super::refusal::LedgerError;
use super::store::Options;

/// Why a ledger could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenLedgerError {
    /// The ledger itself, or its address.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The keys that credentials are made with.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Several hosts, and no key of the issuer here.
    #[error(
        "{dir} has no key of the issuer: `tenure admission migrate` makes the pair where credentials are issued; every \
         other machine gets a copy of its issuer.pub"
    )]
    NoIssuer {
        /// Where the keys are looked for.
        dir: std::path::PathBuf,
    },
}

/// Times other than the usual ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// How long to wait for others that have the ledger.
    pub wait_ms: Option<u64>,
    /// How long a credential is good.
    pub credential_ms: Option<u64>,
}

/// Where a ledger is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A file of this host, in this directory.
    Directory(std::path::PathBuf),
    /// A PostgreSQL server.
    Postgres(String),
}

impl Address {
    /// The address as a person gives it: `postgres://...`, a directory, or nothing for the one of this machine.
    pub fn read(text: Option<&str>, home: &Home) -> Address {
        match text {
            None | Some("") => Address::Directory(home.dir().to_owned()),
            Some(text) if text.starts_with("postgres://") || text.starts_with("postgresql://") => {
                Address::Postgres(text.to_owned())
            }
            Some(text) => Address::Directory(text.into()),
        }
    }
}

/// The keys for credentials of a ledger there. `make`: several hosts' keys are made when there are none.
///
/// # Errors
/// [`OpenLedgerError`] when there are none, or they cannot be read.
pub fn seal_keys(home: &Home, address: &Address, make: bool) -> Result<SealKeys, OpenLedgerError> {
    let keys = match address {
        Address::Directory(_) => SealKeys::local(home),
        Address::Postgres(_) if make => SealKeys::make_shared(home),
        Address::Postgres(_) => SealKeys::shared(home),
    };
    keys.map_err(|error| match error {
        KeyError::Absent { .. } => OpenLedgerError::NoIssuer { dir: home.dir().to_owned() },
        other => other.into(),
    })
}

/// Opens the ledger with the policy that is installed in `home`. `owner` is who may start anything without a policy file.
///
/// # Errors
/// [`OpenLedgerError`] when the address makes no sense. What is wrong with the ledger shows when it is used.
pub fn open(
    home: &Home,
    address: &Address,
    keys: SealKeys,
    owner: Subject,
    times: &Times,
) -> Result<Box<dyn Ledger>, OpenLedgerError> {
    let policy = Installed::new(home.policy(), owner);
    let mut options = Options::new(Arc::new(policy), Arc::new(keys));
    options.wait_ms = times.wait_ms.unwrap_or(options.wait_ms);
    options.credential_ms = times.credential_ms.unwrap_or(options.credential_ms);
    match address {
        #[cfg(feature = "sqlite")]
        Address::Directory(dir) if dir == home.dir() => Ok(super::sqlite::open_sqlite(home.location(), options)),
        #[cfg(feature = "sqlite")]
        Address::Directory(dir) => {
            Ok(super::sqlite::open_sqlite(&crate::location::Location::named(dir.clone()), options))
        }
        #[cfg(feature = "postgres")]
        Address::Postgres(address) => Ok(super::postgres::open_postgres(address, options)?),
        #[cfg(not(all(feature = "sqlite", feature = "postgres")))]
        _ => Err(LedgerError::Address {
            at: "this ledger".to_owned(),
            why: "this build was made without that kind of ledger".to_owned(),
        }
        .into()),
    }
}
