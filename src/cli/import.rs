//! `import`: adds a whole graph from a file, all or nothing. `run` reads its file in the same way.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use tenure::Table;
use tenure::formats::{Format, FormatError, Graph, LoadError, Loaded};

use super::context::Context;
use super::escape;
use super::exit::{CliError, Exit};
use super::out;
use super::refusal;

/// Adds or updates every node of a file, or none of them, and prints how many were created, updated and unchanged
#[derive(Debug, clap::Args)]
#[command(after_help = "A line of JSON Lines is one node; all but the name (or id) may be left out:
  {\"name\":\"build\",\"needs\":[\"fetch\"],\"run\":\"make\",\"cost\":90000,\"role\":\"compile\",\"kind\":\"c\",
   \"parent\":\"release\",\"summary\":\"\"}     (on one line)
What is left out stays as it is; null or \"\" clears a field; `needs` only adds. A field that is not one of these is
an error, and so is a node that stands twice. `needs` and `parent` name nodes anywhere in the file or in the table.

Of a WfFormat 1.5 trace the tasks become nodes, their parents what they need, their measured run times their costs.
Its commands are not imported; `tenure run --replay` sleeps the measured times.")]
pub struct ImportArgs {
    #[command(flatten)]
    file: FileArgs,
}

/// A file that holds a graph.
#[derive(Debug, clap::Args)]
pub struct FileArgs {
    /// The file; `-` is standard input
    file: PathBuf,

    /// How the graph is written down
    #[arg(long, value_enum, default_value_t = FormatArg::Jsonl)]
    format: FormatArg,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum FormatArg {
    /// JSON Lines: one node a line
    Jsonl,
    /// A workflow trace in WfCommons WfFormat 1.5
    Wfformat,
}

/// Runs the verb.
pub fn run(context: &Context, args: ImportArgs) -> Result<Exit, CliError> {
    let (_table, loaded) = args.file.load(context)?;
    if context.json {
        context.out.json(&loaded)?;
    } else {
        context.out.line(&in_words(&loaded))?;
    }
    Ok(Exit::Done)
}

/// The counts in words.
pub fn in_words(loaded: &Loaded) -> String {
    format!("created {}, updated {}, unchanged {}", loaded.created, loaded.updated, loaded.unchanged)
}

impl FileArgs {
    /// Reads the file and loads it. A file that is wrong touches no table, and makes none.
    pub fn load(&self, context: &Context) -> Result<(Table, Loaded), CliError> {
        let shown = if self.file == Path::new("-") { "standard input".into() } else { self.file.to_string_lossy() };
        let format = match self.format {
            FormatArg::Jsonl => Format::Jsonl,
            FormatArg::Wfformat => Format::Wfformat,
        };
        let graph = self.open().map_err(FormatError::from).and_then(|mut input| Graph::read(format, &mut input));
        let graph = graph.map_err(|error| in_file(&shown, &error))?;
        for note in graph.notes() {
            out::note(&format!("tenure: {}: {}", escape::message(&shown), escape::message(note)));
        }
        let table = context.open_or_create()?;
        let loaded = graph.load(&table).map_err(|error| match error {
            LoadError::Format(error) => in_file(&shown, &error),
            LoadError::Refused { at: Some(at), source } => refused(&format!("{shown}: {at}: {source}"), source),
            LoadError::Refused { at: None, source } => CliError::Refused(source),
            other => CliError::usage("bad_input", format!("{shown}: {other}")),
        })?;
        if loaded.created + loaded.updated > 0 {
            context.out.mark_changed();
        }
        Ok((table, loaded))
    }

    fn open(&self) -> io::Result<Box<dyn BufRead>> {
        if self.file == Path::new("-") {
            return Ok(Box::new(io::stdin().lock()));
        }
        Ok(Box::new(BufReader::new(File::open(&self.file)?)))
    }
}

/// A complaint about the file. What it refers to and nobody has is a missing node, everything else is usage.
fn in_file(file: &str, error: &FormatError) -> CliError {
    let exit = if matches!(error, FormatError::UnknownNode { .. }) { Exit::NoSuchNode } else { Exit::Usage };
    let complaint = CliError::problem(exit, error.code(), format!("{file}: {error}"));
    match error.line() {
        Some(line) => complaint.with_field("line", line),
        None => complaint,
    }
}

/// A refusal with the place in the file that it is about, otherwise as every verb tells it.
fn refused(message: &str, source: tenure::Refusal) -> CliError {
    let hint = refusal::hint(&source);
    let fields = refusal::fields(&source);
    let plain = CliError::Refused(source);
    let mut told = CliError::problem(plain.exit(), plain.code(), message);
    if let Some(hint) = hint {
        told = told.with_hint(hint);
    }
    fields.into_iter().fold(told, |told, (key, value)| told.with_field(&key, value))
}
