//! What a person asks for on the command line: request, attempt, input, command.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use tenure::admission::digest::Content;
use tenure::admission::outbox::{Header, INPUT_BYTES_MAX};
use tenure::admission::{AdmId, Attempt, AttemptKey, Entrance, Ledger, MachineRef, RequestId, SurfaceKey};

use super::desk::wall_ms;
use super::refusal::refused;
use crate::cli::exit::CliError;

/// Which request, and what goes with it.
#[derive(Debug, clap::Args)]
pub struct AskArgs {
    /// The surface: a name, or the whole path of the place
    #[arg(value_name = "SURFACE", value_parser = surface)]
    pub surface: SurfaceKey,

    /// Your name for this request; the same one again is the same request [default: a new one]
    #[arg(long, value_name = "ID")]
    pub request: Option<RequestId>,

    /// Which attempt of it
    #[arg(long, value_name = "N", default_value = "1")]
    pub attempt: Attempt,

    /// A file with the input; - is standard input
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,

    /// The attempt that this one follows
    #[arg(long, value_name = "ID[/N]")]
    pub after: Option<AttemptKey>,
}

/// What is kept in the outbox, and the input.
pub type Asked = (Header, Vec<u8>);

/// An admission as a person names it: by its id, or by its request.
#[derive(Clone, Debug)]
pub enum Named {
    Id(AdmId),
    Request(AttemptKey),
}

impl std::str::FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Named, String> {
        let by_id = text.parse().map(Named::Id);
        by_id.or_else(|bad| text.parse().map(Named::Request).map_err(|_| bad.to_string()))
    }
}

impl Named {
    /// The id.
    pub fn id(&self, ledger: &dyn Ledger) -> Result<AdmId, CliError> {
        match self {
            Named::Id(id) => Ok(*id),
            Named::Request(key) => ledger.find(key).map(|record| record.admission).map_err(refused),
        }
    }
}

/// The way a key is read here: links on this machine's disk are followed.
pub fn surface(text: &str) -> Result<SurfaceKey, String> {
    SurfaceKey::on_this_machine(text).map_err(|bad| bad.to_string())
}

impl AskArgs {
    /// What is kept in the outbox, and the input.
    pub fn header(
        self,
        entrance: Entrance,
        command: Vec<String>,
        pinned: Option<MachineRef>,
        replace: bool,
    ) -> Result<Asked, CliError> {
        let input = match &self.input {
            Some(path) => read_input(path)?,
            None => Vec::new(),
        };
        let digest =
            Content { surface: &self.surface, work: None, command: &command, input: &input, pinned: pinned.as_ref() }
                .digest();
        let header = Header {
            request: self.request.map_or_else(fresh_request, Ok)?,
            attempt: self.attempt,
            surface: self.surface,
            digest,
            entrance,
            admission: None,
            command,
            work: None,
            machine: pinned,
            generation: None,
            replace,
            after: self.after,
            created_ms: wall_ms(),
            input_bytes: input.len() as u64,
            last: None,
        };
        Ok((header, input))
    }
}

/// A name that nobody has.
pub fn fresh_request() -> Result<RequestId, CliError> {
    let text = format!("r-{}", AdmId::fresh().to_string().trim_start_matches("adm-"));
    text.parse().map_err(|bad: tenure::admission::BadName| CliError::usage(bad.code(), bad.to_string()))
}

/// Reads the input; what is too long is refused after reading just enough to know.
pub fn read_input(path: &PathBuf) -> Result<Vec<u8>, CliError> {
    let shown = path.display();
    let unreadable = |error: std::io::Error| {
        CliError::usage("input", format!("cannot read the input {shown}: {error}"))
            .with_hint("--input - reads standard input")
    };
    let mut bytes = Vec::new();
    let source: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(unreadable)?)
    };
    source.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        let message = format!("the input {shown} is longer than {INPUT_BYTES_MAX} bytes, and nothing is cut");
        return Err(CliError::usage("too_long", message)
            .with_hint("leave it at the place and send its path")
            .with_field("limit", INPUT_BYTES_MAX));
    }
    Ok(bytes)
}
