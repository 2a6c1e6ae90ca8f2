//! The part of the program that `run` and `work` start for every command; no verb of the command line.

use tenure::run::Launcher;

use crate::cli::exit::Exit;

/// The first argument that makes the program a launcher.
const ARGUMENT: &str = "launch-a-command";

/// This program as the launcher of its commands.
pub(super) fn launcher() -> Launcher {
    Launcher::this_program([ARGUMENT])
}

/// Does the work of a launcher if the program was started as one.
pub fn launched() -> Option<Exit> {
    let mut args = std::env::args_os().skip(1);
    (args.next()? == ARGUMENT).then(|| Exit::Number(tenure::run::launch(&launcher(), args)))
}
