//! `gpulower-opt`: `mlir-opt` with gpulower's passes.

use std::process::ExitCode;

use gpulower::{
    Search,
    bridge::opt_main::opt_main,
    passes::{self, Environment},
};

fn main() -> ExitCode {
    passes::register(Environment {
        search: Search::from_variables(|name| std::env::var_os(name)),
        cache_directory: gpulower::toolkit::cache_directory(|name| std::env::var_os(name)),
    });
    match u8::try_from(opt_main(std::env::args_os())) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(status) => ExitCode::from(status),
        Err(_) => ExitCode::FAILURE,
    }
}
