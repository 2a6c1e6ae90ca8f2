//! `append`: more input for work that is open.

use std::path::PathBuf;

use serde::Serialize;
use tenure::admission::digest::Content;
use tenure::admission::outbox::Header;
use tenure::admission::{AdmId, Attempt, Entrance, Input, Refusal, RequestId, SurfaceKey};

use super::desk::{Desk, wall_ms};
use super::refusal::{outbox_error, refused};
use super::request::{Asked, fresh_request, read_input};
use super::send::send_append;
use crate::cli::exit::{CliError, Exit};

/// Gives more input to an open admission; its command finds it as a file in $TENURE_INPUTS
#[derive(Debug, clap::Args)]
pub struct AppendArgs {
    /// The admission
    #[arg(value_name = "ADMISSION")]
    admission: AdmId,

    /// A file with the input; - is standard input
    #[arg(long, value_name = "FILE")]
    input: PathBuf,

    /// Your name for this input; the same one again is the same input [default: a new one]
    #[arg(long, value_name = "ID")]
    request: Option<RequestId>,
}

/// What was taken; the bytes are the sender's already.
#[derive(Serialize)]
pub struct Appended<'a> {
    admission: AdmId,
    number: u64,
    request: &'a RequestId,
    at_ms: u64,
}

impl<'a> Appended<'a> {
    pub fn of(input: &'a Input) -> Appended<'a> {
        Appended { admission: input.admission, number: input.number, request: &input.request, at_ms: input.at_ms }
    }
}

impl AppendArgs {
    /// What is to be sent.
    pub fn asked(self) -> Result<Asked, CliError> {
        let input = read_input(&self.input)?;
        let request = self.request.map_or_else(fresh_request, Ok)?;
        let header = header(request, self.admission, &input)?;
        Ok((header, input))
    }
}

/// Runs the verb.
pub fn run(desk: &Desk<'_>, args: AppendArgs) -> Result<Exit, CliError> {
    let admission = args.admission;
    let (header, input) = args.asked()?;
    let entry = desk.outbox.put(header, &input).map_err(outbox_error)?;
    let taken = send_append(desk, entry, admission)?;
    desk.changed(&Appended::of(&taken), || format!("{} input {}\n", taken.admission, taken.number))
}

/// The admission stands where the surface does: the input is kept also while nobody can be asked which surface that is.
pub fn header(request: RequestId, admission: AdmId, input: &[u8]) -> Result<Header, CliError> {
    let surface: SurfaceKey = admission.to_string().parse().map_err(|bad| refused(Refusal::Name(bad)))?;
    let digest = Content { surface: &surface, work: None, command: &[], input, pinned: None }.digest();
    Ok(Header {
        request,
        attempt: Attempt::FIRST,
        surface,
        digest,
        entrance: Entrance::Append,
        admission: Some(admission),
        command: Vec::new(),
        work: None,
        machine: None,
        generation: None,
        replace: false,
        after: None,
        created_ms: wall_ms(),
        input_bytes: input.len() as u64,
        last: None,
    })
}
