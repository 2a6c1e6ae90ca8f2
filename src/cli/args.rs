//! The options that every verb takes, and how numbers on the command line are read.

use std::path::PathBuf;

use tenure::LEASE_MS_MAX;

use super::context::Context;
use super::exit::CliError;
use super::quick::Words;

/// Options that may stand before or after the verb.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options of every verb")]
pub struct GlobalArgs {
    /// Directory of the table [default: $TENURE_DIR, else $XDG_RUNTIME_DIR/tenure, else $XDG_STATE_HOME/tenure, else
    /// ~/.local/state/tenure, else /tmp/tenure-UID]
    #[arg(long, global = true, value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// Answer in JSON: one object, or one object a line for lists; refusals too, on standard error
    #[arg(long, global = true)]
    pub json: bool,
}

impl GlobalArgs {
    /// The context that these options ask for.
    pub fn context(self) -> Result<Context, CliError> {
        if self.dir.as_ref().is_some_and(|dir| dir.as_os_str().is_empty()) {
            return Err(CliError::usage(
                "bad_dir",
                "--dir is empty; name a directory, or leave it out for the default",
            ));
        }
        Ok(Context::new(self.dir, self.json))
    }
}

/// Who works: the name under which claims are held.
#[derive(Debug, clap::Args)]
pub struct HolderArg {
    /// Name of the worker; a worker holds one claim at a time, so give each its own
    #[arg(long, env = "TENURE_HOLDER", hide_env_values = true, value_name = "HOLDER")]
    pub holder: String,
}

impl HolderArg {
    /// See `quick`. A holder that is not named anywhere is for clap to ask for.
    pub fn from_words(words: &mut Words) -> Option<HolderArg> {
        Some(HolderArg { holder: words.holder()? })
    }
}

/// Reads a lease: seconds, fractions allowed, as whole milliseconds.
pub fn lease_ms(text: &str) -> Result<u64, String> {
    let limit_s = LEASE_MS_MAX as f64 / 1000.0;
    let seconds: f64 = text.parse().map_err(|_| "give seconds as a number, such as 90 or 0.5".to_owned())?;
    let ms = (seconds * 1000.0).round();
    if !(ms >= 1.0 && ms <= LEASE_MS_MAX as f64) {
        return Err(format!("a lease is 0.001 to {limit_s} seconds"));
    }
    // In range, checked above: the conversion loses nothing.
    Ok(ms as u64)
}

/// Reads how long a claim may have been quiet; 0 is every claim.
pub fn quiet_ms(text: &str) -> Result<u64, String> {
    if matches!(text.parse::<f64>(), Ok(seconds) if seconds == 0.0) { Ok(0) } else { lease_ms(text) }
}

/// Reads a delay: seconds, fractions allowed, 0 to an hour.
pub fn delay_ms(text: &str) -> Result<u32, String> {
    let seconds: f64 = text.parse().map_err(|_| "give seconds as a number, such as 30 or 0.5".to_owned())?;
    let ms = (seconds * 1000.0).round();
    if !(0.0..=3_600_000.0).contains(&ms) {
        return Err("a delay is 0 to 3600 seconds".to_owned());
    }
    // In range, checked above: the conversion loses nothing.
    Ok(ms as u32)
}

/// Reads how long to wait: seconds, fractions allowed.
pub fn wait_ms(text: &str) -> Result<u64, String> {
    let seconds: f64 = text.parse().map_err(|_| "give seconds as a number, such as 30 or 0.5".to_owned())?;
    // A year; nobody waits longer, and the clock has room for it.
    if !(0.0..=31_536_000.0).contains(&seconds) {
        return Err("a wait is 0 to 31536000 seconds".to_owned());
    }
    Ok((seconds * 1000.0).round() as u64)
}

/// Reads a cost in milliseconds; an empty one stands for that of a new node.
pub fn cost_ms(text: &str) -> Result<u32, String> {
    if text.is_empty() {
        return Ok(1);
    }
    text.parse().map_err(|_| format!("give whole milliseconds, 0 to {}", u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_are_seconds_with_fractions() {
        assert_eq!(lease_ms("90"), Ok(90_000));
        assert_eq!(lease_ms("0.5"), Ok(500));
        assert_eq!(lease_ms("0.001"), Ok(1));
        assert_eq!(lease_ms(&(LEASE_MS_MAX as f64 / 1000.0).to_string()), Ok(LEASE_MS_MAX));
    }

    #[test]
    fn what_is_no_lease_is_refused() {
        for text in ["", "0", "0.0001", "-1", "nan", "inf", "1e300", "5m", "268436"] {
            assert!(lease_ms(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn quiet_for_no_time_at_all_is_every_claim() {
        assert_eq!(quiet_ms("0"), Ok(0));
        assert_eq!(quiet_ms("1.5"), Ok(1_500));
        assert!(quiet_ms("-1").is_err());
    }

    #[test]
    fn an_empty_cost_is_the_default() {
        assert_eq!(cost_ms(""), Ok(1));
        assert_eq!(cost_ms("0"), Ok(0));
        for text in ["-1", "1.5", "4294967296", "x"] {
            assert!(cost_ms(text).is_err(), "{text:?}");
        }
    }
}
