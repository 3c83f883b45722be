//! Kernels told from the text of MLIR before it is parsed: what is known of a kernel's text, or stands in the module under another
//! name as well, need not be parsed, verified and printed again to find out what it is.
//!
//! A text is divided where it has nothing but aliases and one `gpu.module` of functions in custom form, in a `module` or not. A kernel
//! may be left out that names no other symbol, and that no other text names. Its key is over its text without its name, the
//! aliases that it uses, and the headers of what it is in. The lexer follows MLIR's; where it is in doubt, the text is not divided.
//! A text of which kernels were left out is parsed in full where an error is found, and where a module is compiled as a whole.
//! Where several threads work, kernels that are not known are left out as well, and parsed by all of them, some at a time.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use melior::{Context, ir::BlockLike};

use super::{
    cached::begin,
    components::{Component, PLACEHOLDER, Traits, components, is_name_of_ptx, references},
    contexts::Contexts,
    input::{InputError, parse},
    pool::{Helpers, map_each},
    requests::gpu_modules,
};
use crate::{
    bridge::edit::OwnedModule,
    cache::{Cache, Key, KeyBuilder},
    device::lower::DIALECTS,
    error::Error,
    stage::Stage,
};

/// A text, and its name in messages.
#[derive(Debug)]
struct Source {
    name: String,
    text: String,
}

/// A `gpu.module` of a text.
#[derive(Clone, Debug)]
pub(super) struct ModuleText {
    source: Arc<Source>,
    /// Which one of the text.
    number: usize,
    functions: Vec<FunctionOfText>,
}

/// A function of it, in the order of the text.
#[derive(Clone, Debug)]
struct FunctionOfText {
    name: String,
    /// What identifies its text.
    key: Option<Key>,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Parsed,
    /// Left out: an earlier function differs in its name alone.
    Like(usize),
    /// Left out: this is what it was found to be before.
    Known(Traits),
    /// Left out: it was parsed with a few others, and this is its operation as text.
    Apart(Arc<str>, Traits),
}

/// Who reads a text, besides the thread that divides it.
#[derive(Clone, Copy)]
pub(super) struct Readers<'a> {
    pub helpers: Helpers<'a>,
    pub contexts: &'a Contexts,
    /// What is known of kernels.
    pub cache: Option<&'a Cache>,
}

/// Kernels are parsed apart where there is so much of them: less may be compiled as a whole, for which it would be parsed again.
const LEAST_BYTES_APART: usize = 128 << 10;

/// As much as is parsed at a time, at least: to parse what is around the kernels costs something, too.
const BYTES_AT_A_TIME: usize = 8 << 10;

/// As many entries of the cache are looked up at a time.
const LOOKED_UP_AT_A_TIME: usize = 16;

impl ModuleText {
    /// Divides a text, and returns it without what need not be parsed, at the same places. `None` where it cannot be divided.
    pub(super) fn divide(name: &str, text: &str, readers: Readers<'_>) -> Option<(String, Vec<Self>)> {
        let modules = modules(text, readers.helpers)
            .inspect_err(|_| tracing::debug!(name, "the text is not divided"))
            .ok()?;
        let source = Arc::new(Source {
            name: name.to_owned(),
            text: text.to_owned(),
        });
        let (mut rest, mut copied) = (String::with_capacity(text.len() / 8), 0);
        let mut divided = Vec::new();
        for (number, module) in modules.into_iter().enumerate() {
            let states = readers.states(name, text, &module);
            for (function, state) in module.iter().zip(&states) {
                if !matches!(state, State::Parsed) {
                    // What follows keeps its line and its column.
                    let left_out = text.get(function.range.clone())?;
                    let (lines, last) = left_out.rsplit_once('\n').unwrap_or(("", left_out));
                    rest.push_str(text.get(copied..function.range.start)?);
                    let ends = lines.bytes().filter(|byte| *byte == b'\n').count();
                    rest.extend(std::iter::repeat_n(
                        '\n',
                        ends + usize::from(last.len() < left_out.len()),
                    ));
                    rest.extend(std::iter::repeat_n(' ', last.len()));
                    copied = function.range.end;
                }
            }
            let functions = module.into_iter().zip(states).map(|(function, state)| FunctionOfText {
                name: function.name.to_owned(),
                key: function.key,
                state,
            });
            divided.push(Self {
                source: Arc::clone(&source),
                number,
                functions: functions.collect(),
            });
        }
        rest.push_str(text.get(copied..)?);
        Some((rest, divided))
    }

    /// Whether kernels were left out.
    pub(super) fn is_partial(&self) -> bool {
        self.functions
            .iter()
            .any(|function| !matches!(function.state, State::Parsed))
    }

    /// The components of the whole, given what was parsed.
    pub(super) fn components(&self, parsed: &OwnedModule<'_>) -> Option<Vec<Component>> {
        let is_parsed = |function: &&FunctionOfText| matches!(function.state, State::Parsed);
        let names: Vec<&str> = self.functions.iter().map(|function| function.name.as_str()).collect();
        let places: Vec<usize> = (0..names.len())
            .filter(|&place| self.functions.get(place).is_some_and(|function| is_parsed(&function)))
            .collect();
        let mut found = components(parsed.module().body().first_operation()?, Some((&names, &places)))?;
        let mut left_out = Vec::new();
        {
            let single = found.iter().filter(|component| component.is_nameless);
            let of_place: HashMap<usize, &Component> = single
                .filter_map(|component| Some((component.functions.first()?.0, component)))
                .collect();
            for (place, function) in self.functions.iter().enumerate() {
                let first = match function.state {
                    State::Like(first) => first,
                    _ => place,
                };
                let (text, traits) = match &self.functions.get(first)?.state {
                    State::Parsed if first == place => continue,
                    State::Parsed => {
                        let first = of_place.get(&first)?;
                        (first.text.clone(), first.traits)
                    }
                    State::Apart(text, traits) => (Some(Arc::clone(text)), *traits),
                    State::Known(traits) => (None, *traits),
                    State::Like(_) => return None,
                };
                left_out.push(Component {
                    text,
                    traits,
                    is_nameless: true,
                    functions: vec![(place, function.name.clone())],
                });
            }
        }
        found.extend(left_out);
        found.sort_by_key(|component| component.functions.first().map(|(place, _)| *place));
        (found.len() >= 2).then_some(found)
    }

    /// Keeps what was found of the kernels that were parsed.
    pub(super) fn keep(&self, components: &[Component], cache: &Cache) {
        for component in components.iter().filter(|component| component.is_nameless) {
            if let [(place, name)] = component.functions.as_slice()
                && let Some(function) = self.functions.get(*place).filter(|function| function.name == *name)
                && let (Some(key), State::Parsed | State::Apart(..)) = (&function.key, &function.state)
                && let Ok(bytes) = postcard::to_allocvec(&component.traits)
            {
                cache.put_here(key, bytes);
            }
        }
    }

    /// The module with all of its functions.
    pub(super) fn parse<'c>(&self, context: &'c Context) -> Result<OwnedModule<'c>, Error> {
        let Source { name, text } = &*self.source;
        let module = parse(context, name, text.as_bytes()).map_err(|error| Error::new(Stage::Input, error))?;
        let modules = gpu_modules(&module);
        let found = modules.get(self.number);
        let operation = found.ok_or_else(|| Error::new(Stage::Plan, InputError::NoModule))?;
        OwnedModule::around(*operation).map_err(|error| Error::new(Stage::Plan, error))
    }
}

impl Readers<'_> {
    /// What need not be parsed with the whole: of each function.
    fn states(&self, name: &str, text: &str, functions: &[Found<'_>]) -> Vec<State> {
        // The first function of each key, and those that differ from it in their names.
        let mut firsts: HashMap<Key, usize> = HashMap::new();
        let mut different = Vec::new();
        let mut first = |place: usize, key: Key| {
            *firsts.entry(key).or_insert_with(|| {
                different.push((place, key));
                place
            })
        };
        let first_of: Vec<Option<usize>> = functions
            .iter()
            .enumerate()
            .map(|(place, function)| Some(first(place, function.key?)))
            .collect();
        let mut states: Vec<State> = functions.iter().map(|_| State::Parsed).collect();
        let mut unknown = Vec::new();
        for ((place, _), known) in different.iter().zip(self.known(&different)) {
            match (known, states.get_mut(*place)) {
                (Some(traits), Some(state)) => *state = State::Known(traits),
                _ => unknown.push(*place),
            }
        }
        for (place, component) in self.parsed(name, text, functions, &unknown).unwrap_or_default() {
            if let (Some(text), Some(state)) = (component.text, states.get_mut(place)) {
                *state = State::Apart(text, component.traits);
            }
        }
        for (place, (state, first)) in states.iter_mut().zip(first_of).enumerate() {
            if let Some(first) = first.filter(|first| *first != place) {
                *state = State::Like(first);
            }
        }
        states
    }

    /// What is known of kernels with these keys.
    fn known(&self, kernels: &[(usize, Key)]) -> Vec<Option<Traits>> {
        let look = |cache: &Cache, key: &Key| postcard::from_bytes(&cache.peek_here(key)?).ok();
        let Some(cache) = self.cache else {
            return kernels.iter().map(|_| None).collect();
        };
        let pieces: Vec<&[(usize, Key)]> = kernels.chunks(LOOKED_UP_AT_A_TIME).collect();
        let found = map_each(self.helpers, pieces.len(), |index| {
            let keys = pieces.get(index).copied().unwrap_or_default();
            keys.iter().map(|(_, key)| look(cache, key)).collect::<Vec<_>>()
        });
        found
            .into_iter()
            .zip(pieces)
            .flat_map(|(found, keys)| found.unwrap_or_else(|| vec![None; keys.len()]))
            .collect()
    }

    /// The kernels at these places, parsed some at a time by all threads. `None` where one thread parses the whole: there is little to
    /// parse, nobody to help, or something that the whole reports.
    fn parsed(
        &self,
        name: &str,
        text: &str,
        functions: &[Found<'_>],
        places: &[usize],
    ) -> Option<Vec<(usize, Component)>> {
        let size = |place: &usize| functions.get(*place).map_or(0, |function| function.range.len());
        let bytes: usize = places.iter().map(size).sum();
        let threads = self.helpers.threads();
        let before = text.get(..functions.first()?.range.start)?;
        let after = text.get(functions.last()?.range.end..)?;
        if threads < 2 || bytes < LEAST_BYTES_APART || before.len() + after.len() > BYTES_AT_A_TIME {
            return None;
        }
        let room = (bytes / (4 * threads)).max(BYTES_AT_A_TIME);
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut free = 0;
        for place in places {
            if free == 0 {
                groups.push(Vec::new());
                free = room;
            }
            free = free.saturating_sub(size(place));
            groups.last_mut()?.push(*place);
        }
        let names: Vec<&str> = functions.iter().map(|function| function.name).collect();
        let parse_group = |group: &[usize]| {
            let mut own = before.to_owned();
            for place in group {
                own.push_str(text.get(functions.get(*place)?.range.clone())?);
                own.push('\n');
            }
            own.push_str(after);
            let is_fatal = |failed: &Option<InputError>| matches!(failed, Some(InputError::Fatal { .. }));
            let found = self.contexts.with(own.len(), is_fatal, |context| {
                let module = parse(context, name, own.as_bytes())?;
                let found = gpu_modules(&module)
                    .first()
                    .and_then(|module| components(*module, Some((&names, group))));
                found.ok_or(None)
            });
            let found = found.ok()?;
            let is_it = |(component, place): (&Component, &usize)| {
                component.is_nameless && matches!(component.functions.as_slice(), [(own, _)] if own == place)
            };
            (found.len() == group.len() && found.iter().zip(group).all(is_it)).then_some(found)
        };
        let failed = AtomicBool::new(false);
        let parsed = map_each(self.helpers, groups.len(), |index| {
            let group = groups.get(index).filter(|_| !failed.load(Ordering::Relaxed))?;
            let parsed = parse_group(group);
            failed.fetch_or(parsed.is_none(), Ordering::Relaxed);
            parsed
        });
        let parsed: Vec<Vec<Component>> = parsed.into_iter().map(Option::flatten).collect::<Option<_>>()?;
        Some(places.iter().copied().zip(parsed.into_iter().flatten()).collect())
    }
}

/// A function as it stands in a text.
#[derive(Debug)]
struct Found<'t> {
    name: &'t str,
    range: Range<usize>,
    /// What identifies the text of a kernel that names nothing but itself.
    key: Option<Key>,
}

/// The lexer does not know what MLIR would make of the text, or it is not of the form that is divided.
#[derive(Debug)]
struct InDoubt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Word,
    Symbol,
    /// `#name` or `!name`, with a body in angle brackets or not.
    Alias,
    Open(u8),
    Close(u8),
    Other,
    End,
}

/// Which bytes are of a kind.
type Bytes = [bool; 256];

/// Letters, digits, and some more.
const fn and_alphanumeric(more: &[u8]) -> Bytes {
    let mut bytes = [false; 256];
    let mut byte = 0u8;
    while byte < 128 {
        bytes[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let mut index = 0;
    while index < more.len() {
        bytes[more[index] as usize] = true;
        index += 1;
    }
    bytes
}

const OF_WORDS: Bytes = and_alphanumeric(b"_$.");

/// Names, numbers, and what has nothing to do with where brackets end.
const WITHOUT_BRACKETS: Bytes = and_alphanumeric(b" \n\t\r%@^$._-<>,:=+*?|");

struct Lexer<'t> {
    text: &'t str,
    at: usize,
    /// What may be an alias, since this was emptied.
    used: Vec<&'t str>,
}

const MODULES: [&str; 3] = ["gpu.module", "module", "builtin.module"];
const FUNCTIONS: [&str; 2] = ["gpu.func", "func.func"];

/// Texts of so many bytes are looked at by several threads.
const LEAST_BYTES_FOR_ALL: usize = 64 << 10;

/// So many functions are looked at by one of them at a time.
const FUNCTIONS_AT_A_TIME: usize = 32;

/// The functions of each `gpu.module`.
fn modules<'t>(text: &'t str, helpers: Helpers<'_>) -> Result<Vec<Vec<Found<'t>>>, InDoubt> {
    let helpers = if text.len() < LEAST_BYTES_FOR_ALL {
        Helpers::None
    } else {
        helpers
    };
    // A launch becomes a module of its own. Places, resources and quoted names are left to MLIR. So are operations of other
    // releases: a context has to know of them before anything is lowered in it.
    let others = ["vector.splat", "vector.extractelement", "vector.insertelement"];
    let words: Vec<&str> = ["gpu.launch", "dense_resource", "@\""]
        .into_iter()
        .chain(others)
        .collect();
    let is_in_doubt = map_each(helpers, words.len() + 1, |index| match words.get(index) {
        Some(word) => text.contains(word),
        None => has_places(text),
    });
    if is_in_doubt != vec![Some(false); words.len() + 1] {
        return Err(InDoubt);
    }
    let mut lexer = Lexer {
        text,
        at: 0,
        used: Vec::new(),
    };
    let aliases = lexer.aliases()?;
    // Those whose text names a symbol, directly or through another.
    let symbolic: HashSet<&str> = match text.get(..lexer.at).is_some_and(|text| text.contains('@')) {
        true => aliases.keys().copied().collect(),
        false => HashSet::new(),
    };
    lexer.used.clear();
    let mut around = begin("kernel text");
    let mut modules: Vec<Vec<Found<'_>>> = Vec::new();
    let mut start = lexer.at;
    let mut token = lexer.token()?;
    let is_wrapped = matches!(token, (Token::Word, "module" | "builtin.module"));
    if is_wrapped {
        lexer.header()?;
        around = around.field("in", text.get(start..lexer.at).unwrap_or_default());
        around = with_aliases(around, &aliases, &lexer.used);
        token = lexer.token()?;
    }
    while token == (Token::Word, "gpu.module") {
        lexer.used.clear();
        let (Token::Symbol, _) = lexer.token()? else {
            return Err(InDoubt);
        };
        start = lexer.at;
        lexer.header()?;
        let around = around
            .clone()
            .field("of", text.get(start..lexer.at).unwrap_or_default());
        let around = with_aliases(around, &aliases, &lexer.used);
        let mut lexed: Vec<(&str, Range<usize>, bool, Vec<&str>)> = Vec::new();
        loop {
            match lexer.token()? {
                (Token::Word, word) if FUNCTIONS.contains(&word) => {
                    let start = lexer.at - word.len();
                    lexer.used.clear();
                    let name = lexer.function()?;
                    let range = start..lexer.at;
                    lexed.push((name, range, word == "gpu.func", std::mem::take(&mut lexer.used)));
                }
                (Token::Close(b'}'), _) => break,
                _ => return Err(InDoubt),
            }
        }
        let key = |(name, range, is_gpu_function, used): &(&str, Range<usize>, bool, Vec<&str>)| {
            let own = text.get(range.clone())?;
            let (before, rest) = own.split_once('@').filter(|_| *is_gpu_function)?;
            let is_alone = !rest.contains('@')
                && is_name_of_ptx(name)
                && !name.contains(PLACEHOLDER)
                && used.iter().all(|used| !symbolic.contains(used))
                && has_known_dialects(own);
            let after = rest.get(name.len()..).filter(|_| is_alone)?;
            let key = around.clone().field("before", before).field("after", after);
            Some(with_aliases(key, &aliases, used).finish())
        };
        let groups: Vec<_> = lexed.chunks(FUNCTIONS_AT_A_TIME).collect();
        let keys = map_each(helpers, groups.len(), |index| {
            let group = groups.get(index).copied().unwrap_or_default();
            group.iter().map(key).collect::<Vec<_>>()
        });
        let keys = keys.into_iter().collect::<Option<Vec<_>>>().ok_or(InDoubt)?;
        let keys = keys.into_iter().flatten();
        let functions = lexed.iter().zip(keys).map(|((name, range, ..), key)| Found {
            name,
            range: range.clone(),
            key,
        });
        modules.push(functions.collect());
        token = lexer.token()?;
    }
    if is_wrapped && token.0 == Token::Close(b'}') {
        token = lexer.token()?;
    } else if is_wrapped {
        return Err(InDoubt);
    }
    // Where kernels turn out to be unknown for a target the whole is parsed for its module: once for each would be the square.
    if token.0 != Token::End || modules.len() != 1 {
        return Err(InDoubt);
    }
    check_names(text, &mut modules)?;
    Ok(modules)
}

/// Whether a text has `loc(...)`.
fn has_places(text: &str) -> bool {
    text.match_indices("loc").any(|(at, word)| {
        let before = text.get(..at).unwrap_or_default();
        let after = text.get(at + word.len()..).unwrap_or_default();
        !before.ends_with(|last: char| last.is_ascii_alphanumeric() || "_$.".contains(last))
            && after.trim_start().starts_with('(')
    })
}

/// Whether a kernel has words of no dialects but those that every context has loaded. Parsing another later loads it, while
/// other modules are lowered in the same context.
fn has_known_dialects(text: &str) -> bool {
    let bytes = text.as_bytes();
    text.match_indices('.').all(|(at, _)| {
        let before = bytes.get(..at).unwrap_or_default();
        let other = before.iter().rposition(|byte| !OF_WORDS[usize::from(*byte)]);
        let word = before.get(other.map_or(0, |other| other + 1)..).unwrap_or_default();
        let first = word.split(|byte| *byte == b'.').next().unwrap_or_default();
        first.first().is_none_or(u8::is_ascii_digit) || DIALECTS.iter().any(|dialect| dialect.as_bytes() == first)
    })
}

/// Names are there once, and no kernel is named from outside that may be left out.
fn check_names(text: &str, modules: &mut [Vec<Found<'_>>]) -> Result<(), InDoubt> {
    let mut outside = HashSet::new();
    let mut last = 0;
    for kernel in modules.iter().flatten().filter(|function| function.key.is_some()) {
        outside.extend(references(text.get(last..kernel.range.start).unwrap_or_default()));
        last = kernel.range.end;
    }
    outside.extend(references(text.get(last..).unwrap_or_default()));
    for module in modules {
        let names: HashSet<&str> = module.iter().map(|function| function.name).collect();
        if names.len() != module.len() {
            return Err(InDoubt);
        }
        for function in module.iter_mut().filter(|function| outside.contains(function.name)) {
            function.key = None;
        }
    }
    Ok(())
}

/// What aliases stand for, as hashes.
type Aliases<'t> = HashMap<&'t str, Key>;

/// Adds what aliases stand for. Words that are none are the names of dialects.
fn with_aliases(key: KeyBuilder, aliases: &Aliases<'_>, used: &[&str]) -> KeyBuilder {
    used.iter().fold(key, |key, name| match aliases.get(name) {
        Some(meaning) => key.field(name, meaning.as_bytes()),
        None => key,
    })
}

impl<'t> Lexer<'t> {
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'t [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn skip_while(&mut self, is_part: impl Fn(u8) -> bool) {
        let rest = self.rest();
        self.at += rest.iter().position(|byte| !is_part(*byte)).unwrap_or(rest.len());
    }

    fn skip(&mut self, bytes: &Bytes) {
        self.skip_while(|byte| bytes[usize::from(byte)]);
    }

    /// The rest of a name after its sigil.
    fn name(&mut self) {
        if self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.skip_while(|byte| byte.is_ascii_digit());
        } else {
            self.skip_while(|byte| byte.is_ascii_alphanumeric() || b"$._-".contains(&byte));
        }
    }

    /// Skips comments, too.
    fn skip_blanks(&mut self) {
        loop {
            self.skip_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
            if self.byte() != Some(b'/') || !self.rest().starts_with(b"//") {
                return;
            }
            self.skip_while(|byte| !matches!(byte, b'\r' | b'\n'));
        }
    }

    fn token(&mut self) -> Result<(Token, &'t str), InDoubt> {
        self.skip_blanks();
        let start = self.at;
        let Some(byte) = self.byte() else {
            return Ok((Token::End, ""));
        };
        self.at += 1;
        let token = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                self.skip(&OF_WORDS);
                Token::Word
            }
            b'%' | b'^' => {
                self.name();
                Token::Other
            }
            b'0'..=b'9' => {
                self.skip(&OF_WORDS);
                Token::Other
            }
            b'@' => {
                self.skip_while(|byte| byte.is_ascii_alphanumeric() || b"$._".contains(&byte));
                Token::Symbol
            }
            b'#' | b'!' => {
                self.name();
                let name = self.text.get(start..self.at).unwrap_or_default();
                self.used.push(name);
                self.body()?;
                return Ok((Token::Alias, name));
            }
            b'"' => {
                self.string()?;
                Token::Other
            }
            // The resources of a file.
            b'{' if self.rest().starts_with(b"-#") => return Err(InDoubt),
            b'(' | b'[' | b'{' => Token::Open(byte),
            b')' | b']' | b'}' => Token::Close(byte),
            b'-' if self.byte() == Some(b'>') => {
                self.at += 1;
                Token::Other
            }
            b'<' | b'>' | b',' | b':' | b'=' | b'+' | b'-' | b'*' | b'?' | b'|' => Token::Other,
            _ => return Err(InDoubt),
        };
        Ok((token, self.text.get(start..self.at).unwrap_or_default()))
    }

    /// The rest of a string.
    fn string(&mut self) -> Result<(), InDoubt> {
        loop {
            self.skip_while(|byte| !matches!(byte, b'"' | b'\\' | b'\n'));
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.at += 2,
                _ => return Err(InDoubt),
            }
        }
    }

    /// What a dialect has in angle brackets: MLIR looks for its end in the bare text, in which there are no comments.
    fn body(&mut self) -> Result<(), InDoubt> {
        if self.byte() != Some(b'<') {
            self.skip_blanks();
            return if self.byte() == Some(b'<') {
                Err(InDoubt)
            } else {
                Ok(())
            };
        }
        let mut open = Vec::new();
        loop {
            let byte = self.byte().ok_or(InDoubt)?;
            self.at += 1;
            match byte {
                b'<' => open.push(b'>'),
                b'(' => open.push(b')'),
                b'[' => open.push(b']'),
                b'{' => open.push(b'}'),
                b'-' if self.byte() == Some(b'>') => self.at += 1,
                b'>' | b')' | b']' | b'}' => {
                    if open.pop() != Some(byte) {
                        return Err(InDoubt);
                    }
                    if open.is_empty() {
                        return Ok(());
                    }
                }
                b'"' => self.string()?,
                b'/' if self.byte() == Some(b'/') => return Err(InDoubt),
                b'#' | b'!' => {
                    let start = self.at - 1;
                    self.name();
                    self.used.extend(self.text.get(start..self.at));
                }
                0 => return Err(InDoubt),
                _ => {}
            }
        }
    }

    /// The rest of what is in brackets.
    fn block(&mut self, first: u8) -> Result<(), InDoubt> {
        let close = |open| match open {
            b'(' => b')',
            b'[' => b']',
            _ => b'}',
        };
        let mut open = vec![close(first)];
        while let Some(last) = open.last() {
            self.skip(&WITHOUT_BRACKETS);
            match self.token()?.0 {
                Token::Open(byte) => open.push(close(byte)),
                Token::Close(byte) if byte == *last => drop(open.pop()),
                Token::Close(_) | Token::End => return Err(InDoubt),
                _ => {}
            }
        }
        Ok(())
    }

    /// What an operation has before its region, and the bracket that opens that.
    fn header(&mut self) -> Result<(), InDoubt> {
        let mut previous = "";
        loop {
            let (token, word) = self.token()?;
            match token {
                Token::Open(b'{') if previous != "attributes" => return Ok(()),
                Token::Open(byte) => self.block(byte)?,
                Token::Close(_) | Token::End => return Err(InDoubt),
                Token::Word if FUNCTIONS.contains(&word) || MODULES.contains(&word) => return Err(InDoubt),
                _ => {}
            }
            previous = word;
        }
    }

    /// The rest of a function with a body; its name.
    fn function(&mut self) -> Result<&'t str, InDoubt> {
        let mut token = self.token()?;
        if matches!(token, (Token::Word, "private" | "public" | "nested")) {
            token = self.token()?;
        }
        let (Token::Symbol, name) = token else {
            return Err(InDoubt);
        };
        self.header()?;
        self.block(b'{')?;
        name.get(1..).ok_or(InDoubt)
    }

    /// The aliases at the beginning of a text.
    fn aliases(&mut self) -> Result<Aliases<'t>, InDoubt> {
        let mut aliases = Aliases::new();
        loop {
            let start = self.at;
            let (Token::Alias, name) = self.token()? else {
                self.at = start;
                return Ok(aliases);
            };
            self.used.clear();
            if self.token()? != (Token::Other, "=") {
                return Err(InDoubt);
            }
            let start = self.at;
            let end = self.end_of_alias()?;
            let key = begin("alias").field("text", self.text.get(start..end).unwrap_or_default());
            let key = with_aliases(key, &aliases, &self.used).finish();
            // The second of a name is an error.
            if aliases.insert(name, key).is_some() {
                return Err(InDoubt);
            }
        }
    }

    /// Where the definition of an alias ends: before the next one, or before a module.
    fn end_of_alias(&mut self) -> Result<usize, InDoubt> {
        loop {
            let (start, used) = (self.at, self.used.len());
            match self.token()? {
                (Token::Open(byte), _) => self.block(byte)?,
                (Token::Close(_) | Token::End, _) => return Err(InDoubt),
                (Token::Word, word) if MODULES.contains(&word) => {
                    self.at = start;
                    return Ok(start);
                }
                (Token::Alias, _) => {
                    let after = self.at;
                    let is_next = self.token()? == (Token::Other, "=");
                    self.at = if is_next { start } else { after };
                    if is_next {
                        self.used.truncate(used);
                        return Ok(start);
                    }
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
#[path = "../../tests/compiler/module_text.rs"]
mod tests;
