//! `gpulower-opt`: `mlir-opt` with gpulower's passes.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    path::Path,
};

use gpulower::{
    passes::{self, Environment},
    toolkit,
};

use crate::cli::{self, search};

/// The switch that does what the name `mlir-opt` does.
const AS_MLIR_OPT: &str = "--as-mlir-opt";

/// Flags of `mlir-opt` that cannot work here, and why.
const PLUGINS: [&str; 2] = ["load-pass-plugin", "load-dialect-plugin"];

/// Runs the program on a command line, whose first word is its name, and returns the exit status. It prints, and ends the
/// process for `--help` and bad options.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let in_place = is_in_place(&arguments);
    arguments.retain(|word| word != AS_MLIR_OPT);
    if let Some(flag) = arguments.iter().find_map(|word| plugin_flag(word)) {
        eprintln!(
            "gpulower-opt: --{flag} cannot work: MLIR is linked into this program, and a plugin finds none of its symbols. \
             Load gpulower's passes into the mlir-opt that takes your plugin (docs/plugin.md)"
        );
        return 1;
    }
    if let Err(error) = arguments.iter().try_for_each(|word| check_pipelines(word)) {
        eprintln!("gpulower-opt: {error}");
        return 1;
    }
    let cache_directory = toolkit::cache_directory(|name| env::var_os(name));
    let is_told = arguments.iter().skip(1).any(|word| gpulower::is_llvm_option(word));
    // What LLVM is told behind our back is in no key.
    let cache = cli::cache_of_environment(cache_directory.as_deref()).filter(|_| !is_told);
    let environment = Environment {
        search: search(),
        cache: cache.clone(),
        cache_directory,
    };
    if in_place {
        passes::register_in_place_of_upstreams(environment);
    } else {
        passes::register(environment);
    }
    let status = gpulower::opt_main(arguments, cli::shown);
    cli::finish_cache(cache.as_ref());
    u8::try_from(status).unwrap_or(1)
}

/// Whether somebody takes this program for an `mlir-opt`: called so (`mlir-opt`, `mlir-opt-22`), or told so.
fn is_in_place(arguments: &[OsString]) -> bool {
    let program = arguments.first().and_then(|program| Path::new(program).file_name());
    let called = |program: &OsStr| {
        let name = program.to_string_lossy();
        name.strip_prefix("mlir-opt")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    program.is_some_and(called) || arguments.iter().any(|word| word == AS_MLIR_OPT)
}

/// Refuses pipelines that nest too deeply. They stand in words of several flags, and in files of words.
fn check_pipelines(word: &OsStr) -> Result<(), gpulower::Error> {
    let word = word.to_string_lossy();
    passes::check_pipeline(&word)?;
    let words = word.strip_prefix('@').and_then(|file| fs::read_to_string(file).ok());
    words.map_or(Ok(()), |words| passes::check_pipeline(&words))
}

/// The flag of a plugin that a word gives.
fn plugin_flag(word: &OsStr) -> Option<&'static str> {
    let word = word.to_str()?;
    let name = word.strip_prefix('-')?.trim_start_matches('-').split('=').next()?;
    PLUGINS.into_iter().find(|flag| *flag == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_or_a_switch_makes_an_mlir_opt() {
        let words = |words: &[&str]| is_in_place(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(words(&["/opt/llvm/bin/mlir-opt", "k.mlir"]));
        assert!(words(&["mlir-opt-22"]));
        assert!(words(&["gpulower-opt", "k.mlir", "--as-mlir-opt"]));
        assert!(!words(&["gpulower-opt", "mlir-opt"]));
        assert!(!words(&["mlir-optimizer"]));
    }
}
