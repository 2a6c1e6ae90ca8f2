//! `util`: what the program makes from its own command line, completions for shells and manual pages.

use std::path::{Path, PathBuf};

use clap_complete::Shell;
use serde::Serialize;

use super::context::Context;
use super::escape;
use super::exit::{CliError, Exit};

/// Completions for a shell, and manual pages
#[derive(Debug, clap::Args)]
pub struct UtilArgs {
    #[command(subcommand)]
    what: UtilVerb,
}

#[derive(Debug, clap::Subcommand)]
enum UtilVerb {
    /// Prints a script that completes verbs and options in a shell
    #[command(after_help = "Examples:
  source <(tenure util completions bash)
  tenure util completions zsh > ~/.zfunc/_tenure
  tenure util completions fish > ~/.config/fish/completions/tenure.fish")]
    Completions {
        /// For which shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Writes a manual page for every verb to DIR/man1
    ///
    /// Pages that are there already are written anew.
    #[command(after_help = "Example:
  tenure util install-man-pages ~/.local/share/man
  man tenure-claim-next")]
    InstallManPages {
        /// A directory of manual pages; it is made if it is not there
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
}

#[derive(Debug, Serialize)]
struct Installed {
    dir: String,
}

/// Runs the verb.
pub fn run(context: &Context, args: UtilArgs) -> Result<Exit, CliError> {
    match args.what {
        UtilVerb::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut super::command(), "tenure", &mut script);
            context.out.block(&String::from_utf8_lossy(&script))?;
        }
        UtilVerb::InstallManPages { dir } => {
            let dir = dir.join("man1");
            install(&dir).map_err(|source| cannot_write(&dir, &source))?;
            let dir = dir.display().to_string();
            if context.json {
                context.out.json(&Installed { dir })?;
            } else {
                context.out.line(&format!("wrote the manual pages to {}", escape::message(&dir)))?;
            }
        }
    }
    Ok(Exit::Done)
}

fn install(dir: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    clap_mangen::generate_to(super::command(), dir)
}

fn cannot_write(dir: &Path, source: &std::io::Error) -> CliError {
    CliError::usage("io", format!("cannot write manual pages to {}: {source}", dir.display()))
        .with_hint("name a directory that you may write to, such as ~/.local/share/man")
}
