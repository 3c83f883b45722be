//! `gpulower-opt`: `mlir-opt` with gpulower's passes.

use std::{env, ffi::OsString};

use gpulower::{
    passes::{self, Environment},
    toolkit,
};

use crate::cli::{self, search};

/// Runs the program on a command line, whose first word is its name, and returns the exit status. It prints, and ends the
/// process for `--help` and bad options.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let cache_directory = toolkit::cache_directory(|name| env::var_os(name));
    let cache = cli::cache_of_environment(cache_directory.as_deref());
    passes::register(Environment {
        search: search(),
        cache: cache.clone(),
        cache_directory,
    });
    let status = gpulower::opt_main(arguments);
    cli::finish_cache(cache.as_ref());
    u8::try_from(status).unwrap_or(1)
}
