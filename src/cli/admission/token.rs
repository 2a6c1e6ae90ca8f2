//! How a credential comes in: from a file, from standard input, or, for a quick try, as it is.

use std::io::Read;

use crate::cli::exit::CliError;

/// Longest credential that is read.
const TOKEN_BYTES_MAX: u64 = 4096;

/// A credential on the command line.
#[derive(Debug, clap::Args)]
pub struct TokenArg {
    /// The credential: @FILE, - for standard input, or the text itself, which others can then see in the list of
    /// processes [default: the file that $TENURE_CREDENTIAL names]
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

impl TokenArg {
    /// The text of it.
    pub fn read(&self) -> Result<String, CliError> {
        let given = match &self.token {
            Some(given) => given.clone(),
            None => match std::env::var("TENURE_CREDENTIAL") {
                Ok(path) if !path.is_empty() => format!("@{path}"),
                _ => return Err(CliError::usage("no_credential", "no credential: give --token @FILE or --token -")),
            },
        };
        let read = |source: &mut dyn Read| {
            let mut text = String::new();
            source.take(TOKEN_BYTES_MAX).read_to_string(&mut text).map(|_| text)
        };
        let text = match given.strip_prefix('@') {
            Some(path) => std::fs::File::open(path).and_then(|mut file| read(&mut file)),
            None if given == "-" => read(&mut std::io::stdin().lock()),
            None => Ok(given.clone()),
        };
        let text = text.map_err(|error| CliError::usage("input", format!("cannot read the credential: {error}")))?;
        Ok(text.trim().to_owned())
    }
}
