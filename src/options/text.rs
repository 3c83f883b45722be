//! The options by name.

use gpulower_image::nearest;

use super::{
    OptionError, Options,
    form::Wrong,
    table::{DESCRIPTIONS, OptionDescription},
};

impl Options {
    /// Sets one option by name from text, as pass options, target attributes and the command line do.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        let Some(option) = OptionDescription::named(name) else {
            return Err(OptionError::Unknown {
                name: name.to_owned(),
                nearest: nearest(name, DESCRIPTIONS.iter().map(OptionDescription::name)),
            });
        };
        (option.access.read)(value, self).map_err(|wrong| match wrong {
            Wrong::Value => OptionError::Value {
                name: option.name(),
                value: value.to_owned(),
                expected: option.values_in_words(),
            },
            Wrong::Because(error) => error,
        })
    }

    /// The options that differ from the default and have a textual form, as [`Options::set`] takes them.
    pub fn to_pairs(&self) -> Vec<(&'static str, String)> {
        let given = DESCRIPTIONS.iter().filter(|option| option.is_given(self));
        given
            .map(|option| (option.name(), (option.access.print)(self)))
            .collect()
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
