//! `--color`: whether messages and help have colours.

use std::{
    ffi::OsString,
    sync::atomic::{AtomicU8, Ordering},
};

use clap::{ColorChoice, ValueEnum};

use super::environment;

const AUTO: u8 = 0;
const ALWAYS: u8 = 1;
const NEVER: u8 = 2;

static CHOICE: AtomicU8 = AtomicU8::new(AUTO);

/// Sets what `--color` says.
pub fn choose(choice: ColorChoice) {
    let choice = match choice {
        ColorChoice::Auto => AUTO,
        ColorChoice::Always => ALWAYS,
        ColorChoice::Never => NEVER,
    };
    CHOICE.store(choice, Ordering::Relaxed);
}

/// Whether something for a terminal, or for something else, has colours.
pub fn is_wanted(is_terminal: bool) -> bool {
    match CHOICE.load(Ordering::Relaxed) {
        ALWAYS => true,
        NEVER => false,
        _ => {
            let is_dumb = environment::variable("TERM").is_some_and(|term| term == "dumb");
            is_terminal && !is_dumb && environment::variable("NO_COLOR").is_none()
        }
    }
}

/// What a command line says that is not read yet: its own help and errors come before.
pub fn in_words(arguments: &[OsString]) -> ColorChoice {
    let words: Vec<&str> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    let given = words
        .iter()
        .enumerate()
        .filter_map(|(index, word)| match word.strip_prefix("--color") {
            Some("") => words.get(index + 1).copied(),
            Some(value) => value.strip_prefix('='),
            None => None,
        });
    given
        .reduce(|_, last| last)
        .and_then(|value| ColorChoice::from_str(value, false).ok())
        .unwrap_or_default()
}
