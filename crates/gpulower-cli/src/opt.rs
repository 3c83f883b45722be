//! `gpulower-opt`: `mlir-opt` with gpulower's passes.

use std::{
    collections::BTreeSet,
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
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
    let words = with_words_of_files(&arguments);
    if let Some(flag) = words.iter().find_map(|word| plugin_flag(word)) {
        eprintln!(
            "gpulower-opt: --{flag} cannot work: MLIR is linked into this program, and a plugin finds none of its symbols. \
             Load gpulower's passes into the mlir-opt that takes your plugin (docs/plugin.md)"
        );
        return 1;
    }
    // Pipelines stand in words of several flags.
    if let Err(error) = words
        .iter()
        .try_for_each(|word| passes::check_pipeline(&word.to_string_lossy()))
    {
        eprintln!("gpulower-opt: {error}");
        return 1;
    }
    let cache_directory = toolkit::cache_directory(|name| env::var_os(name));
    let is_told = words.iter().skip(1).any(|word| gpulower::is_llvm_option(word));
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
    #[allow(unsafe_code, reason = "LLVM's options change the process, which is this program")]
    // SAFETY: no other thread is in LLVM yet, and words that name plugins were refused.
    let status = unsafe { gpulower::opt_main(arguments, cli::shown) };
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

/// The words of a command line, and those of the files that `@FILE` names in it and in these files. What is no regular file is left to
/// LLVM, since it may be readable once, or have no end.
fn with_words_of_files(arguments: &[OsString]) -> Vec<OsString> {
    let (mut words, mut files, mut next) = (arguments.to_vec(), BTreeSet::new(), 0);
    while let Some(word) = words.get(next) {
        next += 1;
        let Some(file) = word
            .as_bytes()
            .strip_prefix(b"@")
            .map(OsStr::from_bytes)
            .map(PathBuf::from)
        else {
            continue;
        };
        if file.metadata().is_ok_and(|file| file.is_file())
            && let Ok(text) = fs::read(&file)
            && files.insert(file)
        {
            words.extend(split(&decoded(text)));
        }
    }
    words
}

/// The text of a file as LLVM reads it, which takes it for UTF-16 if it begins so.
fn decoded(text: Vec<u8>) -> Vec<u8> {
    let of_pairs = |pairs: &[u8], unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = pairs.as_chunks().0.iter().map(|pair| unit(*pair)).collect();
        String::from_utf16_lossy(&units).into_bytes()
    };
    match text.as_slice() {
        [0xff, 0xfe, rest @ ..] => of_pairs(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => of_pairs(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => rest.to_vec(),
        _ => text,
    }
}

/// The words of a file, as LLVM splits them.
fn split(text: &[u8]) -> Vec<OsString> {
    let (mut words, mut word, mut quote) = (Vec::new(), Vec::new(), None);
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => word.extend(bytes.next()),
            _ if quote == Some(byte) => quote = None,
            b'"' | b'\'' if quote.is_none() => quote = Some(byte),
            b' ' | b'\t' | b'\r' | b'\n' | 0 if quote.is_none() => words.push(std::mem::take(&mut word)),
            _ => word.push(byte),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words.into_iter().map(OsString::from_vec).collect()
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

    #[test]
    fn files_of_words_are_split_as_llvm_does() {
        let text = b"--a  'b \"c'\t\"d 'e\\\"\"f \\ g\n#h @i\0j''k\r\n'l m";
        let words = ["--a", "b \"c", "d 'e\"f", " g", "#h", "@i", "jk", "l m"];
        assert_eq!(split(text), words.map(OsString::from));
        for begin in 0..text.len() {
            split(&text[begin..]);
        }
        let pairs = |unit: fn(u16) -> [u8; 2]| "\u{feff}@\u{e4}".encode_utf16().flat_map(unit).collect();
        for text in [
            pairs(u16::to_le_bytes),
            pairs(u16::to_be_bytes),
            "\u{feff}@\u{e4}".as_bytes().to_vec(),
        ] {
            assert_eq!(decoded(text), "@\u{e4}".as_bytes());
        }
    }
}
