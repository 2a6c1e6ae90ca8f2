//! `get`: everything about one node.

use super::context::Context;
use super::exit::{CliError, Exit};
use super::quick::Words;
use super::render;

/// Shows everything about one node
#[derive(Debug, clap::Args)]
pub struct GetArgs {
    /// Name or id
    node: String,
}

impl GetArgs {
    /// See `quick`.
    pub fn from_words(words: &mut Words) -> Option<GetArgs> {
        Some(GetArgs { node: words.node()? })
    }
}

/// Runs the verb.
pub fn run(context: &Context, args: GetArgs) -> Result<Exit, CliError> {
    let node = context.node(&args.node)?;
    let view = context.open()?.get(node)?;
    if context.json {
        context.out.json(&view)?;
    } else {
        context.out.block(&render::node(&view))?;
    }
    Ok(Exit::Done)
}
