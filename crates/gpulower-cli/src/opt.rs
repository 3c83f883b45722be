//! `gpulower-opt`: `mlir-opt` with gpulower's passes.

use std::{env, ffi::OsString};

use gpulower::{
    cache::Cache,
    passes::{self, Environment},
    toolkit,
};

use crate::cli::search;

/// Runs the program on a command line, whose first word is its name, and returns the exit status. It prints, and ends the
/// process for `--help` and bad options.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let cache_directory = toolkit::cache_directory(|name| env::var_os(name));
    let is_off = env::var_os("GPULOWER_CACHE").is_some_and(|value| value == "off");
    let results = cache_directory.as_ref().filter(|_| !is_off);
    passes::register(Environment {
        search: search(),
        cache: results.map(|directory| Cache::builder().directory(directory.join("results")).build()),
        cache_directory,
    });
    u8::try_from(gpulower::opt_main(arguments)).unwrap_or(1)
}
