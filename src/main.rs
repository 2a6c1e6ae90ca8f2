//! The `tenure` program: a command line over the library. Everything it does is in `cli`.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
