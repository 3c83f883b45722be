//! `gpulower-opt`: `mlir-opt` with gpulower's passes.

use std::{env, process::ExitCode};

use gpulower::{
    Search,
    cache::Cache,
    opt_main,
    passes::{self, Environment},
    toolkit,
};

#[global_allocator]
static ALLOCATOR: gpulower::ReservingAllocator = gpulower::ReservingAllocator;

fn main() -> ExitCode {
    gpulower::fail_in_words();
    let cache_directory = toolkit::cache_directory(|name| env::var_os(name));
    let is_off = env::var_os("GPULOWER_CACHE").is_some_and(|value| value == "off");
    let results = cache_directory.as_ref().filter(|_| !is_off);
    passes::register(Environment {
        search: Search::from_variables(|name| env::var_os(name)),
        cache: results.map(|directory| Cache::builder().directory(directory.join("results")).build()),
        cache_directory,
    });
    match u8::try_from(opt_main(env::args_os())) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(status) => ExitCode::from(status),
        Err(_) => ExitCode::FAILURE,
    }
}
