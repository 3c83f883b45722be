//! The compilation options as flags: one for each entry of [`DESCRIPTIONS`], read by [`Options::set`].

use std::path::PathBuf;

use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches,
    error::{Error, ErrorKind},
};
use gpulower::{
    Library, Options, Target,
    options::{DESCRIPTIONS, DebugLevel, OptionDescription},
};

use super::{message::Problem, suggested::Suggested};

/// Values of an option that may stand alone, which then means the first of them.
const SWITCH: &str = "true|false";

/// The options that the flags ask for.
#[derive(Clone, Debug, Default)]
pub struct Flags(pub Options);

impl Flags {
    /// The options, with libraries to link what is needed of.
    pub fn with_libraries(&self, libraries: &[PathBuf]) -> Options {
        Options {
            libraries: libraries.iter().cloned().map(Library::File).collect(),
            ..self.0.clone()
        }
    }
}

/// The targets that are listed, if any are.
pub fn listed_targets(targets: &[String]) -> Result<Vec<Target>, Problem> {
    if targets.is_empty() {
        return Ok(Vec::new());
    }
    Target::parse_list(&targets.join(",")).map_err(|error| Problem::target(error.to_string()))
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        let full_debug_info = Arg::new("g")
            .short('g')
            .help("The same as --debug=full")
            .action(ArgAction::SetTrue)
            .conflicts_with("debug");
        command
            .next_help_heading("Code generation")
            .args(DESCRIPTIONS.iter().map(flag))
            .arg(full_debug_info)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn flag(option: &OptionDescription) -> Arg {
    let name = option.name();
    let arg = Arg::new(name)
        .help(option.help())
        .value_name(option.values)
        .value_parser(Suggested::words(option.values))
        .hide_possible_values(true)
        .allow_hyphen_values(option.values == "WORDS");
    let mut letter = name.chars();
    let arg = match (letter.next(), letter.next(), option.names) {
        (Some(letter), None, [_, long, ..]) => arg.short(letter).long(*long),
        _ => arg
            .long(name)
            .visible_aliases(option.names.get(1..).unwrap_or_default().iter().copied()),
    };
    let arg = if option.rules.adds_up {
        arg.action(ArgAction::Append)
    } else {
        arg.overrides_with(name)
    };
    if option.values == SWITCH {
        arg.num_args(0..=1).require_equals(true).default_missing_value("true")
    } else {
        arg
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        let Self(options) = self;
        for option in DESCRIPTIONS {
            for value in matches.get_many::<String>(option.name()).into_iter().flatten() {
                options
                    .set(option.name(), value)
                    .map_err(|error| Error::raw(ErrorKind::InvalidValue, error.to_string()))?;
            }
        }
        if matches.get_flag("g") {
            options.debug = DebugLevel::Full;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options, String> {
        let command = Flags::augment_args(Command::new("test").no_binary_name(true));
        let matches = command
            .try_get_matches_from(arguments)
            .map_err(|error| error.to_string())?;
        Flags::from_arg_matches(&matches)
            .map(|flags| flags.0)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn every_described_option_is_a_flag() {
        for option in DESCRIPTIONS {
            for (name, value) in option
                .names
                .iter()
                .flat_map(|name| option.examples.iter().map(move |value| (name, value)))
            {
                let mut expected = Options::default();
                expected.set(option.name(), value).expect("an option");
                let flag = match *name {
                    "O" => format!("-O{value}"),
                    name => format!("--{name}={value}"),
                };
                assert_eq!(parse(&[&flag]), Ok(expected), "{flag}");
            }
        }
    }

    #[test]
    fn switches_stand_alone_or_take_a_value() {
        let parse = |arguments: &[&str]| parse(arguments).expect("read");
        assert!(parse(&["--fast"]).fast);
        assert!(!parse(&["--fast", "--fast=false"]).fast, "the last one counts");
        assert_eq!(parse(&["--daz"]).ftz, Some(true));
        assert_eq!(parse(&["--prec-sqrt=false"]).prec_sqrt, Some(false));
    }

    #[test]
    fn the_usual_spellings_work() {
        let parse = |arguments: &[&str]| parse(arguments).expect("read");
        let level = |arguments: &[&str]| parse(arguments).optimization.map(|level| level.number());
        assert_eq!(level(&["-O1"]), Some(1));
        assert_eq!(level(&["-O", "2"]), Some(2));
        assert_eq!(level(&["--optimization", "0"]), Some(0));
        assert_eq!(level(&["-O1", "-O3"]), Some(3));
        assert_eq!(parse(&["-g"]).debug, DebugLevel::Full);
        assert_eq!(
            parse(&["--ptxas-options", "-v --warn-on-spills", "--ptxas-options=-lineinfo"]).ptxas_options,
            ["-v", "--warn-on-spills", "-lineinfo"]
        );
        let twice = parse(&["--debug-prefix-map=/a=/b", "--debug-prefix-map", "/c=/d"]);
        assert_eq!(twice.debug_prefix_map.len(), 2);
    }

    #[test]
    fn a_wrong_value_is_refused_in_the_librarys_words() {
        let message = parse(&["--wave-size", "48"]).expect_err("refused");
        assert_eq!(message, "error: option 'wave-size' cannot be '48': expected 32|64");
        assert!(parse(&["-g", "--debug=none"]).is_err_and(|message| message.contains("cannot be used with")));
        assert!(parse(&["--fats"]).is_err_and(|message| message.contains("--fast")));
    }
}
