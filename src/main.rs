//! The `tenure` program: a command line over the library. Everything it does is in `cli`.

#![cfg_attr(all(not(test), target_env = "gnu"), no_main)]

mod cli;

/// Where the C library enters the program; see `cli::entry`. The words of the command line are kept by the standard library
/// before this, which of the systems that it knows only GNU's lets it do.
// SAFETY: no other symbol of this program has the name, and the type is the one that the C library calls it with.
#[cfg(all(not(test), target_env = "gnu"))]
#[unsafe(no_mangle)]
extern "C" fn main(_count: std::ffi::c_int, _words: *const *const std::ffi::c_char) -> std::ffi::c_int {
    // Ends what the standard library has begun, so that nothing that was written is lost.
    std::process::exit(cli::main().code().into())
}

#[cfg(any(test, not(target_env = "gnu")))]
fn main() {
    std::process::exit(cli::main().code().into());
}
