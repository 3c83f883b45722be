//! The cache of results: its options, and `gpulower cache`.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    time::{Duration, SystemTime},
};

use clap::{Args, ValueEnum};
use gpulower::{
    cache::{Cache, CacheBuilder, Held, Key, PublicKey, Remote, SecretKey, SharedWith, Usage},
    toolkit,
};
use gpulower_remote::{Address, Credentials};

use super::{Failed, environment, message, message::Problem, text_to_stdout};

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
    #[command(flatten)]
    sharing: Sharing,
}

/// What machines share.
#[derive(Debug, Clone, Default, Args)]
pub struct Sharing {
    /// Share results with other machines: s3://BUCKET/PREFIX, redis://HOST/DB/PREFIX, webdavs://HOST/FOLDER and others
    /// [default: GPULOWER_CACHE_REMOTE]
    #[arg(long, value_name = "URL")]
    cache_remote: Option<Hidden>,
    /// Sign what is shared with the key in this file, which `gpulower cache keygen` makes [default: GPULOWER_CACHE_SIGN_KEY]
    #[arg(long, value_name = "FILE")]
    cache_sign_key: Option<PathBuf>,
    /// Take nothing from other machines but what this key has signed; several may be named [default:
    /// GPULOWER_CACHE_ACCEPT_KEYS]
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    cache_accept_key: Vec<PublicKey>,
    /// Use a cache directory that this group or user writes into: group:NAME or user:NAME [default:
    /// GPULOWER_CACHE_SHARED_WITH]
    #[arg(long, value_name = "WHOM")]
    cache_shared_with: Option<SharedWith>,
}

/// A URL that may have a password in it: it is read later, so that no message about arguments repeats it.
#[derive(Clone)]
struct Hidden(String);

impl FromStr for Hidden {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl std::fmt::Debug for Hidden {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("URL")
    }
}

impl Sharing {
    /// Whether the command line says anything of it.
    fn is_named(&self) -> bool {
        let keys = self.cache_sign_key.is_some() || !self.cache_accept_key.is_empty();
        self.cache_remote.is_some() || self.cache_shared_with.is_some() || keys
    }

    /// Fills in what the environment says, and makes the cache so.
    fn apply(&self, mut builder: CacheBuilder) -> Result<CacheBuilder, Problem> {
        if let Some(whom) = self.shared_with()? {
            builder = builder.shared_with(whom);
        }
        if let Some(remote) = self.remote()? {
            builder = builder.remote(remote);
        }
        Ok(builder)
    }

    fn shared_with(&self) -> Result<Option<SharedWith>, Problem> {
        or_variable(self.cache_shared_with, "GPULOWER_CACHE_SHARED_WITH")
    }

    /// The tier that machines share, if there is one.
    fn remote(&self) -> Result<Option<Remote>, Problem> {
        let given = self.cache_remote.as_ref().map(|Hidden(url)| url.clone());
        let variable = || environment::variable("GPULOWER_CACHE_REMOTE").map(|url| url.to_string_lossy().into_owned());
        let Some(url) = given.or_else(variable) else {
            return Ok(None);
        };
        let address: Address = url
            .parse()
            .map_err(|error: gpulower::cache::SettingError| Problem::plan(error.to_string()))?;
        let mut builder = gpulower_remote::open(&address, Credentials::OfEnvironment)
            .map_err(|error| Problem::plan(error.to_string()))?;
        let key = self.cache_sign_key.clone();
        if let Some(path) = key.or_else(|| environment::variable("GPULOWER_CACHE_SIGN_KEY").map(PathBuf::from)) {
            let key = SecretKey::read(&path).map_err(|error| Problem::plan(error.to_string()))?;
            builder = builder.sign_with(key);
        }
        let mut accepted = self.cache_accept_key.clone();
        if let (true, Some(keys)) = (accepted.is_empty(), environment::variable("GPULOWER_CACHE_ACCEPT_KEYS")) {
            let keys = keys.to_string_lossy().into_owned();
            for key in keys.split(',') {
                let key = key
                    .parse()
                    .map_err(|error| Problem::plan(format!("GPULOWER_CACHE_ACCEPT_KEYS: {error}")))?;
                accepted.push(key);
            }
        }
        Ok(Some(
            accepted
                .into_iter()
                .fold(builder, |builder, key| builder.accept(key))
                .build(),
        ))
    }
}

/// A value that was given, or that of a variable.
fn or_variable<T: FromStr<Err: ToString>>(given: Option<T>, name: &str) -> Result<Option<T>, Problem> {
    match (given, environment::variable(name)) {
        (None, Some(value)) => {
            let value = value.to_string_lossy().parse();
            value
                .map(Some)
                .map_err(|error: T::Err| Problem::plan(format!("{name}: {}", error.to_string())))
        }
        (given, _) => Ok(given),
    }
}

impl CacheOptions {
    /// Whether results may be kept. `hermetic`: no variable is asked.
    pub fn is_used(&self, hermetic: bool) -> bool {
        !self.no_cache && (hermetic || !is_off())
    }

    /// The cache, unless it is switched off or there is no place for it.
    pub fn cache(&self, toolkits: &environment::Toolkits) -> Result<Option<Cache>, Problem> {
        if !self.is_used(toolkits.is_hermetic()) {
            return Ok(None);
        }
        let mut builder = Cache::builder()
            // One compilation asks for nothing twice.
            .memory_bytes(0)
            .verify(self.cache_verify);
        let directory = toolkits.cache_directory();
        if let Some(directory) = &directory {
            builder = builder.directory(directory.join(RESULTS));
        }
        if let Some(Size(bytes)) = self.cache_size {
            builder = builder.disk_bytes(bytes);
        }
        if !toolkits.is_hermetic() {
            builder = self.sharing.apply(builder)?;
        } else if self.sharing.is_named() {
            let text =
                "--hermetic reads no credentials and asks no other machine: leave out what the cache is shared with";
            return Err(Problem::plan(text.to_owned()));
        }
        let cache = builder.build();
        Ok(Some(cache).filter(|cache| directory.is_some() || cache.remote().is_some()))
    }
}

fn is_off() -> bool {
    environment::variable("GPULOWER_CACHE").is_some_and(|value| value == "off")
}

/// The cache that the environment alone says.
pub fn of_environment(directory: Option<&Path>) -> Option<Cache> {
    if is_off() {
        return None;
    }
    let mut builder = Cache::builder();
    if let Some(directory) = directory {
        builder = builder.directory(directory.join(RESULTS));
    }
    let cache = match Sharing::default().apply(builder.clone()) {
        Ok(builder) => builder.build(),
        Err(problem) => {
            message::line(&format!("warning: {}; it is done without", problem.message()));
            builder.build()
        }
    };
    Some(cache).filter(|cache| directory.is_some() || cache.remote().is_some())
}

/// Waits for uploads, and says what went wrong with them.
pub fn finish(cache: Option<&Cache>) {
    let Some(cache) = cache else { return };
    cache.finish();
    for problem in cache.take_problems() {
        message::line(&format!("warning: cache: {problem}"));
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

/// A number of days or hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Age(Duration);

impl FromStr for Age {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected a number of days or hours, such as 30d or 12h";
        let (number, seconds) = match (text.strip_suffix('d'), text.strip_suffix('h')) {
            (Some(number), _) => (number, 24 * 3600),
            (None, Some(number)) => (number, 3600),
            (None, None) => return Err(EXPECTED),
        };
        let number: u64 = number.parse().map_err(|_| EXPECTED)?;
        number
            .checked_mul(seconds)
            .map(Duration::from_secs)
            .map(Self)
            .ok_or(EXPECTED)
    }
}

/// Look at the cache of compiled results, empty it, or move results between machines.
#[derive(Debug, Args)]
pub struct Arguments {
    /// What to do
    #[arg(value_enum, default_value_t = Action::Show)]
    action: Action,
    /// The new file for the key of keygen
    #[arg(required_if_eq("action", "keygen"))]
    file: Option<PathBuf>,
    /// The directory that was given when compiling [default: gpulower in XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// prune: remove what was used longest ago until so much is left, such as 500M or 2G
    #[arg(long, value_name = "SIZE")]
    keep: Option<Size>,
    /// prune: remove what was not used (shared with other machines: written) for so long, such as 30d
    #[arg(long, value_name = "AGE")]
    older_than: Option<Age>,
    #[command(flatten)]
    sharing: Sharing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Action {
    /// Where it is, and what it holds
    Show,
    /// Remove all results: with --cache-remote those that machines share, otherwise those on disk and what was made once for
    /// each toolkit
    Clear,
    /// Remove old results, in the same place
    Prune,
    /// Upload what is on disk and not yet shared
    Push,
    /// Download what is shared and not yet on disk
    Pull,
    /// Make a key to sign results with
    Keygen,
}

/// Shows or changes the cache.
pub fn run(arguments: &Arguments) -> Result<(), Failed> {
    if arguments.action == Action::Keygen {
        return keygen(arguments.file.as_deref().unwrap_or(Path::new("gpulower.key")));
    }
    if arguments.file.is_some() {
        return Err(Failed::Usage("a file is for keygen alone".to_owned()));
    }
    let is_pruning = arguments.action == Action::Prune;
    if is_pruning != (arguments.keep.is_some() || arguments.older_than.is_some()) {
        return Err(Failed::Usage(
            "prune needs --keep SIZE or --older-than AGE, which are for it alone".to_owned(),
        ));
    }
    let Some(directory) = arguments.cache_dir.clone().or_else(environment::cache_directory) else {
        return Err(Problem::plan(
            "there is no cache: neither XDG_CACHE_HOME nor HOME is set; name one with --cache-dir".to_owned(),
        )
        .into());
    };
    let builder = Cache::builder().directory(directory.join(RESULTS)).memory_bytes(0);
    let cache = arguments.sharing.apply(builder)?.build();
    match (arguments.action, cache.remote()) {
        (Action::Show, remote) => {
            tell(&cache, "holds", cache.usage())?;
            tell_made_once(&directory, "holds", false)?;
            show(remote)
        }
        // What the environment names is not emptied by the way.
        (Action::Clear, Some(remote)) if arguments.sharing.cache_remote.is_some() => remove(remote, |_| true),
        (Action::Prune, Some(remote)) if arguments.sharing.cache_remote.is_some() => prune(remote, arguments),
        (Action::Clear, _) => {
            tell(&cache, "held", cache.clear())?;
            tell_made_once(&directory, "held", true)
        }
        (Action::Prune, _) => {
            let keep = arguments.keep.map_or(u64::MAX, |Size(bytes)| bytes);
            let pruned = cache.prune(
                keep,
                arguments
                    .older_than
                    .and_then(|Age(age)| SystemTime::now().checked_sub(age)),
            );
            tell(&cache, "holds", pruned)
        }
        (Action::Push, Some(remote)) => push(&cache, remote),
        (Action::Pull, Some(remote)) => pull(&cache, remote),
        (Action::Push | Action::Pull, None) => Err(Failed::Usage(
            "name what machines share with --cache-remote, or in GPULOWER_CACHE_REMOTE".to_owned(),
        )),
        (Action::Keygen, _) => Ok(()),
    }
}

fn keygen(path: &Path) -> Result<(), Failed> {
    let problem = |error: gpulower::cache::SettingError| Failed::from(Problem::plan(error.to_string()));
    let key = SecretKey::generate().map_err(problem)?;
    key.write(path).map_err(problem)?;
    text_to_stdout(&format!("{}\n", key.public()))
}

fn tell(cache: &Cache, verb: &str, usage: Result<Usage, gpulower::cache::CacheError>) -> Result<(), Failed> {
    let Usage { entries, bytes, .. } = usage.map_err(|error| Problem::plan(error.to_string()))?;
    let directory = cache
        .directory()
        .map(|path| path.display().to_string())
        .unwrap_or_default();
    text_to_stdout(&held(&directory, verb, entries, bytes))
}

fn held(place: &str, verb: &str, entries: u64, bytes: u64) -> String {
    format!("{place} {verb} {entries} results in {}\n", readable(bytes))
}

/// A number of bytes for people.
fn readable(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    #[expect(clippy::cast_precision_loss, reason = "one digit behind the point is shown")]
    let mut size = bytes as f64;
    let mut text = format!("{bytes} bytes");
    for unit in UNITS {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        text = format!("{size:.1} {unit}");
    }
    text
}

/// What is made once for each toolkit: worth a word where it is more than notes of hashes.
fn tell_made_once(directory: &Path, verb: &str, remove: bool) -> Result<(), Failed> {
    let made = toolkit::made_once(directory, remove);
    let made = made.map_err(|error| Problem::plan(format!("{}: {error}", directory.display())))?;
    if made <= 4096 {
        return Ok(());
    }
    text_to_stdout(&format!(
        "{} {verb} {} that are made once for each toolkit\n",
        directory.display(),
        readable(made)
    ))
}

fn show(remote: Option<&Remote>) -> Result<(), Failed> {
    let Some(remote) = remote else { return Ok(()) };
    let text = match remote.list() {
        Ok(all) => {
            let entries: Vec<&Held> = all.iter().filter(|held| held.id.is_some()).collect();
            held(
                remote.place(),
                "holds",
                entries.len() as u64,
                entries.iter().map(|held| held.bytes).sum(),
            )
        }
        Err(error) if error.refusal == gpulower::cache::Refusal::Unsupported => {
            format!("{} does not say what it holds\n", remote.place())
        }
        Err(error) => return Err(of_remote(remote, &error)),
    };
    text_to_stdout(&text)
}

fn of_remote(remote: &Remote, error: &gpulower::cache::StoreError) -> Failed {
    let advice = match error.refusal {
        gpulower::cache::Refusal::Unsupported => {
            "; use the service's own tools, or let entries expire (ttl=30d in the URL)"
        }
        _ => "",
    };
    Problem::plan(format!("the shared cache {}: {error}{advice}", remote.place())).into()
}

/// Removes shared entries.
fn remove(remote: &Remote, is_wanted: impl Fn(&Held) -> bool) -> Result<(), Failed> {
    let failed = |error| of_remote(remote, &error);
    let all = remote.list().map_err(failed)?;
    let (mut entries, mut bytes) = (0, 0);
    for held in all.iter().filter(|held| is_wanted(held)) {
        remote.remove(held).map_err(failed)?;
        entries += u64::from(held.id.is_some());
        bytes += held.bytes;
    }
    let text = format!("{} lost {entries} results in {}\n", remote.place(), readable(bytes));
    text_to_stdout(&text)
}

fn prune(remote: &Remote, arguments: &Arguments) -> Result<(), Failed> {
    let mut all = remote.list().map_err(|error| of_remote(remote, &error))?;
    all.sort_by_key(|held| held.modified);
    let time = arguments
        .older_than
        .and_then(|Age(age)| SystemTime::now().checked_sub(age));
    let mut excess: u64 = all.iter().map(|held| held.bytes).sum();
    excess = excess.saturating_sub(arguments.keep.map_or(u64::MAX, |Size(bytes)| bytes));
    let mut oldest = Vec::new();
    for held in &all {
        let is_old = time.is_some_and(|time| held.modified.is_some_and(|modified| modified < time));
        if is_old || excess > 0 {
            excess = excess.saturating_sub(held.bytes);
            oldest.push(held.clone());
        }
    }
    remove(remote, |held| oldest.contains(held))
}

fn push(cache: &Cache, remote: &Remote) -> Result<(), Failed> {
    let (mut sent, mut known, mut bytes) = (0, 0, 0);
    // Where the service can say what it has, that is not sent again.
    let there: std::collections::HashSet<_> = remote.list().into_iter().flatten().filter_map(|held| held.id).collect();
    for key in cache.keys().map_err(|error| Problem::plan(error.to_string()))? {
        if there.contains(key.as_bytes()) {
            known += 1;
            continue;
        }
        // One that is damaged, or was removed meanwhile, is left out.
        let Some(content) = cache.peek_here(&key) else { continue };
        match remote.send(key.as_bytes(), &content) {
            Ok(gpulower::cache::Written::New) => {
                sent += 1;
                bytes += content.len() as u64;
            }
            Ok(gpulower::cache::Written::Existed) => known += 1,
            Err(error) if error.refusal == gpulower::cache::Refusal::TooLarge => {
                message::line(&format!("warning: cache: {key} is not shared: {error}"));
            }
            Err(error) => return Err(of_remote(remote, &error)),
        }
    }
    let place = remote.place();
    text_to_stdout(&format!(
        "{place} got {sent} results of {}, and had {known}\n",
        readable(bytes)
    ))
}

fn pull(cache: &Cache, remote: &Remote) -> Result<(), Failed> {
    let (mut got, mut known, mut bytes) = (0, 0, 0);
    let here: std::collections::HashSet<Key> = cache
        .keys()
        .map_err(|error| Problem::plan(error.to_string()))?
        .into_iter()
        .collect();
    let all = remote.list().map_err(|error| of_remote(remote, &error))?;
    for id in all.iter().filter_map(|held| held.id) {
        let key = Key::of_bytes(id);
        if here.contains(&key) {
            known += 1;
            continue;
        }
        match remote.fetch(&id) {
            Ok(Some(content)) => {
                got += 1;
                bytes += content.len() as u64;
                cache.put_here(&key, content);
            }
            Ok(None) => {}
            Err(what) => message::line(&format!("warning: cache: {what}")),
        }
    }
    for problem in cache.take_problems() {
        message::line(&format!("warning: cache: {problem}"));
    }
    let place = remote.place();
    text_to_stdout(&format!(
        "{place} gave {got} results of {}; {known} were here\n",
        readable(bytes)
    ))
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

    #[test]
    fn sizes_are_shown_for_people() {
        let cases = [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1536, "1.5 KiB"),
            (5 << 40, "5.0 TiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(readable(bytes), text);
        }
    }

    #[test]
    fn ages_have_units() {
        assert_eq!("30d".parse(), Ok(Age(Duration::from_secs(30 * 24 * 3600))));
        assert_eq!("12h".parse(), Ok(Age(Duration::from_secs(12 * 3600))));
        for wrong in ["", "d", "30", "1.5d", "99999999999999999999d"] {
            assert!(wrong.parse::<Age>().is_err(), "{wrong}");
        }
    }
}
