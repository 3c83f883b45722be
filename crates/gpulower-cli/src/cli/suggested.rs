//! Values that shells complete. What is not among them may be right, too.

use std::{ffi::OsStr, sync::LazyLock};

use clap::{
    Arg, Command, Error,
    builder::{PossibleValue, StringValueParser, TypedValueParser},
};
use gpulower::Target;

/// Takes any text.
#[derive(Clone, Debug)]
pub struct Suggested(Vec<PossibleValue>);

impl Suggested {
    /// The chips, one of which may be a part of the value.
    pub fn targets() -> Self {
        static NAMES: LazyLock<Vec<String>> =
            LazyLock::new(|| Target::all().map(|target| target.to_string()).collect());
        Self(NAMES.iter().map(|name| PossibleValue::new(name.as_str())).collect())
    }

    /// The words among alternatives such as `none|lowest|sm_XX[,..]`.
    pub fn words(alternatives: &'static str) -> Self {
        let is_word = |text: &&str| {
            !text.is_empty()
                && text
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        };
        Self(
            alternatives
                .split('|')
                .filter(is_word)
                .map(PossibleValue::new)
                .collect(),
        )
    }
}

impl TypedValueParser for Suggested {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().cloned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_from_what_stands_for_something() {
        let names = |alternatives| {
            let Suggested(values) = Suggested::words(alternatives);
            values
                .iter()
                .map(|value| value.get_name().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names("none|lowest|sm_XX[,..]"), ["none", "lowest"]);
        assert!(names("N").is_empty());
        assert!(
            Suggested::targets()
                .possible_values()
                .is_some_and(|mut all| all.any(|chip| chip.matches("sm_90a", false)))
        );
    }
}
