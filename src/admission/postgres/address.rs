//! Where a server is, and whether it may be spoken to in the clear.

use std::time::Duration;

use postgres::config::{Host, SslMode};
use postgres::{Client, Config, NoTls};

use super::full;
use crate::admission::refusal::LedgerError;

/// What the library has when the address says nothing about probes of a silent connection.
const LIBRARY_IDLE: Duration = Duration::from_secs(7200);

/// Between two probes; the system counts in seconds.
const PROBE: Duration = Duration::from_secs(1);

/// The address of a server, checked.
pub(super) struct Address {
    config: Config,
    shown: String,
}

impl Address {
    pub(super) fn new(url: &str, wait: Duration) -> Result<Address, LedgerError> {
        let bad = |at: &str, why: String| LedgerError::Address { at: at.to_owned(), why };
        let mut config: Config = url.parse().map_err(|error| bad(&without_password(url), full(&error)))?;
        let shown = shown(&config);
        if config.get_ssl_mode() == SslMode::Require {
            return Err(bad(&shown, "sslmode=require, and this build has no TLS; use a tunnel or a socket".to_owned()));
        }
        if config.get_ssl_mode() != SslMode::Disable && !is_local(&config) {
            let why = "it is on another host, and this build has no TLS: say sslmode=disable if the network between them \
                is trusted, or use a tunnel";
            return Err(bad(&shown, why.to_owned()));
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(wait);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(wait * 2);
        }
        if config.get_keepalives_idle() == LIBRARY_IDLE {
            // Whoever waits for an answer has nothing on its way, so only a probe tells that the wire is cut.
            config.keepalives_idle(wait.max(PROBE)).keepalives_interval(PROBE);
        }
        if config.get_application_name().is_none() {
            config.application_name("tenure");
        }
        Ok(Address { config, shown })
    }

    /// For people: no password in it.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    pub(super) fn connect(&self) -> Result<Client, LedgerError> {
        let connected = self.config.connect(NoTls);
        connected.map_err(|error| LedgerError::Unreachable { at: self.shown.clone(), why: full(&error) })
    }
}

fn is_local(config: &Config) -> bool {
    let names = config.get_hosts().iter().all(|host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback()),
    });
    names && config.get_hostaddrs().iter().all(std::net::IpAddr::is_loopback)
}

fn shown(config: &Config) -> String {
    let host = config.get_hosts().iter().map(|host| match host {
        Host::Unix(path) => path.display().to_string(),
        Host::Tcp(name) => name.clone(),
    });
    let host = host.collect::<Vec<_>>().join(",");
    let port = config.get_ports().first().map(|port| format!(":{port}")).unwrap_or_default();
    format!("postgres {host}{port}, database {}", config.get_dbname().or(config.get_user()).unwrap_or("(default)"))
}

/// An address that could not be read, without what stands between `:` and `@` in it.
fn without_password(url: &str) -> String {
    let Some((before, host)) = url.rsplit_once('@') else { return url.to_owned() };
    let scheme_end = before.find("://").map_or(0, |at| at + 3);
    let (scheme, user) = before.split_at(scheme_end);
    let user = user.split(':').next().unwrap_or_default();
    format!("{scheme}{user}@{host}")
}

#[cfg(all(test, not(tenure_loom)))]
mod tests {
    use super::*;

    fn fault(url: &str) -> String {
        Address::new(url, Duration::from_secs(1)).err().map(|e| e.to_string()).unwrap_or_default()
    }

    #[test]
    fn other_hosts_need_a_word_about_tls() {
        assert!(fault("postgres://u@db.example/x").contains("sslmode=disable"));
        assert!(fault("postgres://u@db.example/x?sslmode=require").contains("no TLS"));
        for local in [
            "postgres://u@127.0.0.1/x",
            "postgres://u@localhost:5433/x",
            "postgres:///x?host=/run/pg&user=u",
            "postgres://u@db.example/x?sslmode=disable",
        ] {
            assert_eq!(fault(local), "");
        }
    }

    #[test]
    fn no_password_is_shown() {
        assert!(!fault("postgres://u:secret@h:port/x").contains("secret"));
        let address = Address::new("postgres://u:secret@localhost:5433/x", Duration::from_secs(1)).unwrap();
        assert_eq!(address.shown(), "postgres localhost:5433, database x");
    }
}
