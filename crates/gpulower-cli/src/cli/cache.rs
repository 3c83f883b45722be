//! The cache of results: its options, and `gpulower cache`.

use std::{path::PathBuf, str::FromStr};

use clap::{Args, ValueEnum};
use gpulower::{
    cache::{Cache, Usage},
    toolkit,
};

use super::{Failed, environment, message::Problem, text_to_stdout};

/// The folder of the results, in the directory for what is kept between runs.
const RESULTS: &str = "results";

/// How results are kept, for every command that compiles.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Cache")]
pub struct CacheOptions {
    /// Neither take results from the cache nor keep them there (also: GPULOWER_CACHE=off)
    #[arg(long)]
    no_cache: bool,
    /// Most bytes that results may take, such as 500M or 2G [default: 4G]
    #[arg(long, value_name = "SIZE")]
    cache_size: Option<Size>,
    /// Compile in spite of a cached result, and fail if they differ
    #[arg(long, conflicts_with = "no_cache")]
    cache_verify: bool,
}

impl CacheOptions {
    /// The cache, unless it is switched off or there is no place for it.
    pub fn cache(&self, toolkits: &environment::Toolkits) -> Option<Cache> {
        if self.no_cache || environment::variable("GPULOWER_CACHE").is_some_and(|value| value == "off") {
            return None;
        }
        let mut builder = Cache::builder()
            .directory(toolkits.cache_directory()?.join(RESULTS))
            // One compilation asks for nothing twice.
            .memory_bytes(0)
            .verify(self.cache_verify);
        if let Some(Size(bytes)) = self.cache_size {
            builder = builder.disk_bytes(bytes);
        }
        Some(builder.build())
    }
}

/// A number of bytes, with a suffix for powers of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size(u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.trim_end_matches(|character: char| !character.is_ascii_digit());
        let shift = match text.get(digits.len()..).unwrap_or_default() {
            "" => 0,
            "K" => 10,
            "M" => 20,
            "G" => 30,
            "T" => 40,
            _ => return Err("expected a number of bytes, such as 1000000, 500M or 2G".to_owned()),
        };
        let number: u64 = digits
            .parse()
            .map_err(|_| "expected a number of bytes, such as 1000000, 500M or 2G".to_owned())?;
        number
            .checked_mul(1 << shift)
            .map(Self)
            .ok_or_else(|| "more bytes than there can be".to_owned())
    }
}

/// Look at the cache of compiled results, or empty it.
#[derive(Debug, Args)]
pub struct Arguments {
    /// What to do
    #[arg(value_enum, default_value_t = Action::Show)]
    action: Action,
    /// The directory that was given when compiling [default: gpulower in XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Action {
    /// Where it is, and what it holds
    Show,
    /// Remove all results, and what was made once for each toolkit
    Clear,
}

/// Shows or empties the cache.
pub fn run(arguments: &Arguments) -> Result<(), Failed> {
    let Some(directory) = arguments.cache_dir.clone().or_else(environment::cache_directory) else {
        return Err(Problem::plan(
            "there is no cache: neither XDG_CACHE_HOME nor HOME is set; name one with --cache-dir".to_owned(),
        )
        .into());
    };
    let results = directory.join(RESULTS);
    let cache = Cache::builder().directory(&results).build();
    let (verb, remove, usage) = match arguments.action {
        Action::Show => ("holds", false, cache.usage()),
        Action::Clear => ("held", true, cache.clear()),
    };
    let Usage { entries, bytes, .. } = usage.map_err(|error| Problem::plan(error.to_string()))?;
    let mut text = format!("{} {verb} {entries} results in {bytes} bytes\n", results.display());
    let made = toolkit::made_once(&directory, remove);
    let made = made.map_err(|error| Problem::plan(format!("{}: {error}", directory.display())))?;
    // Notes of hashes are not worth a word.
    if made > 4096 {
        text.push_str(&format!(
            "{} {verb} {made} bytes that are made once for each toolkit\n",
            directory.display()
        ));
    }
    text_to_stdout(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_suffixes() {
        let size = |text: &str| text.parse::<Size>().map(|Size(bytes)| bytes);
        assert_eq!(size("1000"), Ok(1000));
        assert_eq!(size("3K"), Ok(3 << 10));
        assert_eq!(size("2G"), Ok(2 << 30));
        for wrong in ["", "G", "-1", "1.5G", "1g", "1GB"] {
            assert!(size(wrong).is_err_and(|message| message.contains("such as")), "{wrong}");
        }
        assert_eq!(size("99999999999T"), Err("more bytes than there can be".to_owned()));
    }
}
