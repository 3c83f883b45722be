//! Machine code by the kernel: the kernels of a module are compiled apart, at the same time, and their cubins are joined to the
//! one that the PTX compiler makes of the whole. A kernel that another differs from in its name alone is compiled once, and
//! what was compiled before comes from the cache.

use std::{
    borrow::Cow,
    cell::Cell,
    cmp::Reverse,
    collections::{HashMap, HashSet},
    ops::Range,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use super::{
    apart::Apart,
    cached::{Kept, Made, get_or_make, machine_code_key, taken},
    pool::{Helpers, map_each},
    ptx_places::placed,
    stored_bytes,
};
use crate::{
    cache::{Cache, Found, Key, Source},
    error::{Cause, Error},
    image::{
        join_cubin::{CubinJoinError, Renaming, TakenApart, check, join_checked},
        ptx_canonical::{CanonicalPtx, PLACEHOLDER, canonical},
        ptx_components::{AddedFunctions, PtxComponent, components, declares_variables},
    },
    interrupt::{Interrupt, InterruptError},
    report::Decision,
    serialize::{
        nvidia::{Cubin, PtxCompiler, PtxToCubin, SPLIT_PTX_BYTES, SerializeError},
        nvidia_options::PtxOptions,
    },
    stage::Stage,
};

/// How PTX is made into a cubin.
pub(super) struct PtxWork<'a> {
    pub compiler: &'a PtxToCubin,
    pub cache: Option<&'a Cache>,
    /// The module, for messages.
    pub module: &'a str,
    pub chip: &'a str,
    pub options: &'a PtxOptions,
    pub choice: Option<PtxCompiler>,
    /// Kernels are not worth a call of the compiler each.
    pub at_once: bool,
    pub interrupt: &'a Interrupt,
    /// Is told how many kernels are done, and of how many.
    pub told: &'a (dyn Fn(usize, usize) + Sync),
}

/// A cubin, and what of it was known.
pub(super) struct MadeCubin {
    pub cubin: Cubin,
    /// How many kernels, or groups of kernels, there are, and how many were known.
    pub kernels: usize,
    pub known: usize,
    /// Where those that were known came from.
    pub from: Option<Source>,
}

impl MadeCubin {
    /// What there is to say of what was known.
    pub(super) fn taken(&self) -> Option<Decision> {
        let from = self.from?;
        Some(match self.known < self.kernels {
            true => Decision::known(from.name(), self.known, self.kernels, "kernels"),
            false => taken(from),
        })
    }

    fn whole(Made { value, from, .. }: Made<Stored>) -> Self {
        Self {
            cubin: value.into_cubin(),
            kernels: 1,
            known: usize::from(from.is_some()),
            from,
        }
    }
}

/// What identifies PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(super) struct Content([u8; 32]);

impl Content {
    pub(super) fn of(ptx: &str) -> Self {
        Self(*blake3::hash(ptx.as_bytes()).as_bytes())
    }

    /// That of several kernels together.
    pub(super) fn of_all<'a>(kernels: impl Iterator<Item = &'a KernelPtx<'a>>) -> Self {
        let mut hasher = blake3::Hasher::new();
        for kernel in kernels {
            hasher.update(&kernel.content.0);
        }
        Self(*hasher.finalize().as_bytes())
    }
}

/// A kernel that is compiled apart, or kernels that cannot be divided.
pub(super) struct KernelPtx<'a> {
    /// Its canonical text.
    pub content: Content,
    /// The kernel that is called [`PLACEHOLDER`] in the text, if one is.
    pub kernel: Option<String>,
    /// How long the text is, as far as that is known: what is long takes long.
    pub bytes: usize,
    /// How many kernels it has, or 1 where they cannot be divided.
    pub count: usize,
    /// What the PTX compiler adds to it.
    pub adds: AddedFunctions,
    /// Makes the text, for what is not known yet.
    pub text: Box<dyn Fn() -> Option<String> + Sync + 'a>,
}

/// The PTX of a module.
#[derive(Clone, Copy)]
pub(super) enum PtxCode<'a> {
    Text(&'a str),
    Apart(&'a Apart),
}

/// A call of the PTX compiler that has several kernels has no more text. What a call costs beside them, some 4 ms, is little for so
/// much, and its memory grows with the text.
const MOST_BYTES_OF_A_CALL: usize = 64 << 10;

/// As many cubins are taken apart at a time.
const TAKEN_APART_AT_A_TIME: usize = 32;

/// A cubin as it is kept: its bytes, and the rest.
#[derive(serde::Serialize, serde::Deserialize)]
struct Stored(
    #[serde(with = "stored_bytes")] Vec<u8>,
    Cubin,
    /// Whether it is known to be one that can be joined.
    bool,
);

impl Stored {
    fn into_cubin(self) -> Cubin {
        Cubin {
            bytes: self.0,
            ..self.1
        }
    }
}

impl PtxWork<'_> {
    /// The cubin of `code`: of its kernels joined, or of the whole where that cannot be done.
    pub(super) fn cubin(&self, code: PtxCode<'_>, helpers: Helpers<'_>) -> Result<MadeCubin, Error> {
        let apart = match code {
            PtxCode::Apart(apart) if !self.at_once && !self.has_places() && !self.options.relocatable => {
                apart.kernels().map(|kernels| (apart, kernels))
            }
            _ => None,
        };
        if let Some((apart, kernels)) = &apart
            && let Some(joined) = self.grouped_or_joined(kernels, helpers, &|range| apart.ptx_of(range).ok())?
        {
            return Ok(joined);
        }
        let whole = match code {
            PtxCode::Text(ptx) => Cow::Borrowed(ptx),
            PtxCode::Apart(apart) => Cow::Owned(apart.ptx()?),
        };
        // What was tried is not tried again.
        if apart.is_none() && (!self.at_once || whole.len() >= SPLIT_PTX_BYTES) {
            let components = self.components(&whole);
            let kernels = kernels_of(&components);
            let text = |range| Some(PtxComponent::of_all(components.get(range)?).text());
            if let Some(joined) = self.grouped_or_joined(&kernels, helpers, &text)? {
                return Ok(joined);
            }
        }
        let tools = self.compiler.identity(self.choice);
        let made = self.get_or_compile(Content::of(&whole), &tools, false, Cache::get, || {
            let Self { chip, options, .. } = self;
            self.compiler
                .compile_until(&whole, chip, options, self.choice, self.interrupt)
        });
        made.map(MadeCubin::whole)
            .map_err(|error| placed(error, &whole, &format!("{}.ptx", self.module)))
    }

    /// The joined cubins of kernels: of several in a call where that is sooner, or of each. `text` is that of some of them.
    fn grouped_or_joined(
        &self,
        kernels: &[KernelPtx<'_>],
        helpers: Helpers<'_>,
        text: &(dyn Fn(Range<usize>) -> Option<String> + Sync),
    ) -> Result<Option<MadeCubin>, Error> {
        // With variables outside of functions, the order of names in a cubin of all kernels is another than in one that was joined.
        let groups = match self.gains_by_fewer_calls(kernels)
            && text(0..kernels.len()).is_some_and(|ptx| !declares_variables(&ptx))
        {
            true => groups(kernels, helpers.threads(), text),
            false => Vec::new(),
        };
        for kernels in [groups.as_slice(), kernels] {
            if let Some(joined) = self.joined(kernels, helpers)? {
                return Ok(Some(joined));
            }
        }
        Ok(None)
    }

    /// Whether a call of the compiler for several kernels gives a cubin sooner than one for each kernel, which costs some
    /// milliseconds beside the kernel: nothing is kept of kernels, and no two are the same.
    fn gains_by_fewer_calls(&self, kernels: &[KernelPtx<'_>]) -> bool {
        let contents: HashSet<Content> = kernels.iter().map(|kernel| kernel.content).collect();
        let are_single = kernels.len() > 1 && kernels.iter().all(|kernel| kernel.kernel.is_some());
        self.cache.is_none() && are_single && contents.len() == kernels.len()
    }

    /// The joined cubins of kernels. `None` where the whole has to be compiled: it cannot be divided, there is nothing to
    /// gain, or something failed, which the whole does as well, with the places in its text.
    fn joined(&self, kernels: &[KernelPtx<'_>], helpers: Helpers<'_>) -> Result<Option<MadeCubin>, Error> {
        let mut different: Vec<&KernelPtx<'_>> = Vec::new();
        let mut places: HashMap<Content, usize> = HashMap::new();
        let parts: Vec<usize> = kernels
            .iter()
            .map(|kernel| {
                *places.entry(kernel.content).or_insert_with(|| {
                    different.push(kernel);
                    different.len() - 1
                })
            })
            .collect();
        let Some(made) = self.compile_all(&different, helpers)? else {
            return Ok(None);
        };
        let known = parts
            .iter()
            .filter(|&&part| made.get(part).is_some_and(|made| made.from.is_some()));
        let (known, from) = (known.count(), made.iter().find_map(|made| made.from));
        let parts: Vec<(Option<&str>, usize)> = kernels
            .iter()
            .zip(parts)
            .map(|(kernel, part)| (kernel.kernel.as_deref(), part))
            .collect();
        let made: Vec<(&Stored, bool)> = made
            .iter()
            .zip(&different)
            .map(|(made, kernel)| (&made.value, kernel.count > 1))
            .collect();
        let joined = join(&made, &parts, helpers);
        if joined.is_none() {
            tracing::debug!(module = self.module, "the PTX is compiled as a whole");
        }
        Ok(joined.map(|cubin| MadeCubin {
            cubin,
            kernels: kernels.iter().map(|kernel| kernel.count).sum(),
            known,
            from,
        }))
    }

    /// Whether the machine code has places in the whole text.
    const fn has_places(&self) -> bool {
        self.options.line_info || self.options.device_debug
    }

    /// The components that are compiled apart. None where nothing is gained.
    fn components<'ptx>(&self, ptx: &'ptx str) -> Vec<PtxComponent<'ptx>> {
        let has_places = self.has_places() || ptx.contains(".loc ") || ptx.contains(".loc\t");
        let is_one = ptx.match_indices(".entry").nth(1).is_none();
        if has_places || self.options.relocatable || (is_one && self.cache.is_none()) {
            return Vec::new();
        }
        let components = components(ptx)
            .inspect_err(|reason| tracing::debug!(%reason, "the PTX is compiled as a whole"))
            .unwrap_or_default();
        match components.as_slice() {
            [one] if one.kernels.len() > 1 => Vec::new(),
            _ => components,
        }
    }

    /// Compiles different kernels, or takes them from the cache.
    fn compile_all(
        &self,
        kernels: &[&KernelPtx<'_>],
        helpers: Helpers<'_>,
    ) -> Result<Option<Vec<Made<Stored>>>, Error> {
        let failed = AtomicBool::new(false);
        let done = AtomicUsize::new(0);
        let count = kernels.iter().map(|kernel| kernel.count).sum();
        let tools = self.compiler.identity(self.choice);
        // A service is asked for all at once.
        let there = self.cache.filter(|cache| cache.remote().is_some()).map(|cache| {
            let keys = kernels.iter().map(|kernel| self.key(kernel.content, &tools));
            cache.get_all(&keys.collect::<Vec<_>>())
        });
        // The longest first: no thread is left with a long one while the others wait.
        let mut order: Vec<usize> = (0..kernels.len()).collect();
        order.sort_by_key(|index| Reverse(kernels.get(*index).map_or(0, |kernel| kernel.bytes)));
        let made = map_each(helpers, kernels.len(), |index| {
            let place = *order.get(index)?;
            let kernel = kernels.get(place)?;
            if failed.load(Ordering::Relaxed) {
                return None;
            }
            let name = kernel.kernel.as_deref().unwrap_or("kernels");
            let _span = tracing::debug_span!("kernel", module = self.module, chip = self.chip, name).entered();
            let look = |cache: &Cache, key: &Key| match &there {
                Some(there) => there.get(place)?.clone(),
                None => cache.get(key),
            };
            let made = self.get_or_compile(kernel.content, &tools, true, look, || {
                let Self { chip, options, .. } = self;
                // The PTX compiler refuses nothing at all: the whole is compiled then.
                let text = (kernel.text)().unwrap_or_default();
                self.compiler
                    .compile_kernel(&text, chip, options, self.choice, self.interrupt)
            });
            failed.fetch_or(made.is_err(), Ordering::Relaxed);
            (self.told)(done.fetch_add(kernel.count, Ordering::Relaxed) + kernel.count, count);
            Some(made)
        });
        let mut made: Vec<_> = order.into_iter().zip(made).collect();
        made.sort_unstable_by_key(|(index, _)| *index);
        let mut all = Vec::with_capacity(kernels.len());
        for made in made.into_iter().map(|(_, made)| made.flatten()) {
            match made {
                Some(Ok(made)) => all.push(made),
                // What the cache has is another cubin: that is not for the whole to hide.
                Some(Err(error)) if error.stage == Stage::Cache => return Err(error),
                Some(Err(_)) | None => return Ok(None),
            }
        }
        Ok(Some(all).filter(|all| !all.is_empty()))
    }

    fn get_or_compile(
        &self,
        content: Content,
        tools: &str,
        is_part: bool,
        look: impl FnOnce(&Cache, &Key) -> Option<Found>,
        compile: impl FnOnce() -> Result<Cubin, SerializeError>,
    ) -> Result<Made<Stored>, Error> {
        let kept = Kept {
            what: "a cubin",
            module: self.module,
            same: |known: &Stored, made| known.0 == made.0,
            may_be_kept: |_| true,
        };
        // What there was before is looked at once for all kernels, and after each that was made.
        let before = Cell::new(self.cache.and_then(|_| self.key(content, tools)));
        let key = || {
            before
                .take()
                .or_else(|| self.key(content, &self.compiler.identity(self.choice)))
        };
        get_or_make(
            self.cache,
            key,
            &kept,
            &|| self.interrupt.check().is_err(),
            look,
            || {
                let mut cubin = compile().map_err(|error| {
                    let cause: Cause = match error {
                        SerializeError::Cancelled { .. } => InterruptError::Cancelled.into(),
                        SerializeError::Timeout { limit, .. } => InterruptError::TimeLimit { limit }.into(),
                        error => error.into(),
                    };
                    Error::new(Stage::PtxToCubin, cause)
                })?;
                let is_checked = is_part && check(&cubin.bytes).is_ok();
                Ok(Stored(std::mem::take(&mut cubin.bytes), cubin, is_checked))
            },
        )
    }

    fn key(&self, content: Content, tools: &str) -> Option<Key> {
        let how = postcard::to_allocvec(&(self.options, self.choice)).ok()?;
        let fields: [(&str, &[u8]); 4] = [
            ("ptx", &content.0),
            ("chip", self.chip.as_bytes()),
            ("options", &how),
            ("tools", tools.as_bytes()),
        ];
        Some(machine_code_key("cubin", &fields))
    }
}

/// Components of PTX as they are compiled. None where a text does not have the documented form.
fn kernels_of(components: &[PtxComponent<'_>]) -> Vec<KernelPtx<'static>> {
    let kernel = |component| {
        let CanonicalPtx { text, kernel } = canonical(component)?;
        Some(KernelPtx {
            content: Content::of(&text),
            kernel,
            bytes: text.len(),
            count: 1,
            adds: AddedFunctions::of(&text),
            text: Box::new(move || Some(text.clone())),
        })
    };
    components.iter().map(kernel).collect::<Option<_>>().unwrap_or_default()
}

/// The same kernels, several in a text: fewer towards the end, so that `threads` threads end at about the same time. What
/// becomes of a kernel does not depend on that ([`AddedFunctions`]).
fn groups<'a>(
    kernels: &[KernelPtx<'_>],
    threads: usize,
    text: &'a (dyn Fn(Range<usize>) -> Option<String> + Sync),
) -> Vec<KernelPtx<'a>> {
    let mut left: usize = kernels.iter().map(|kernel| kernel.bytes).sum();
    let mut groups = Vec::new();
    let mut begin = 0;
    while begin < kernels.len() {
        let most = match threads {
            1 => MOST_BYTES_OF_A_CALL,
            _ => (left / (2 * threads)).min(MOST_BYTES_OF_A_CALL),
        };
        let (mut end, mut bytes, mut adds) = (begin, 0, AddedFunctions::Nothing);
        while let Some(kernel) = kernels.get(end)
            && (end == begin || (bytes + kernel.bytes <= most && adds.may_stand_with(kernel.adds)))
        {
            bytes += kernel.bytes;
            adds = adds.max(kernel.adds);
            end += 1;
        }
        left -= bytes;
        let range = begin..end;
        groups.push(KernelPtx {
            bytes,
            count: range.len(),
            adds,
            content: Content::of_all(kernels.get(range.clone()).unwrap_or_default().iter()),
            kernel: None,
            text: Box::new(move || text(range.clone())),
        });
        begin = end;
    }
    groups
}

/// One cubin of kernels that were compiled apart: each with its name and with the number of what was made of it, which may be of
/// several kernels.
fn join(made: &[(&Stored, bool)], kernels: &[(Option<&str>, usize)], helpers: Helpers<'_>) -> Option<Cubin> {
    let (Stored(_, first, _), _) = made.first()?;
    let is_alike = |cubin: &Cubin| {
        (cubin.compiler, &cubin.version, &cubin.decisions) == (first.compiler, &first.version, &first.decisions)
    };
    // nvJitLink links, and so joins in its own way. A message with a line is about the text of the whole.
    let is_fit =
        |cubin: &Cubin| is_alike(cubin) && cubin.compiler != PtxCompiler::NvJitLink && !cubin.log.contains(", line ");
    if !made.iter().all(|(Stored(_, cubin, _), _)| is_fit(cubin)) {
        return None;
    }
    let groups: Vec<&[(&Stored, bool)]> = made.chunks(TAKEN_APART_AT_A_TIME).collect();
    let read = map_each(helpers, groups.len(), |index| {
        let mut read = Vec::new();
        for (Stored(bytes, _, is_checked), is_of_several) in groups.get(index).copied().unwrap_or_default() {
            if !is_checked {
                check(bytes)?;
            }
            let taken_apart = TakenApart::read(bytes)?;
            if *is_of_several && taken_apart.mixes_functions() {
                return Ok(None);
            }
            read.push(taken_apart);
        }
        Ok(Some(read))
    });
    let read: Result<Option<Vec<Vec<TakenApart<'_>>>>, CubinJoinError> =
        read.into_iter().collect::<Option<Vec<_>>>()?.into_iter().collect();
    let renamings: Vec<[(&str, &str); 1]> = kernels
        .iter()
        .map(|(kernel, _)| [(PLACEHOLDER, kernel.unwrap_or(PLACEHOLDER))])
        .collect();
    let join = |read: Vec<Vec<TakenApart<'_>>>| {
        let read: Vec<&TakenApart<'_>> = read.iter().flatten().collect();
        let parts = kernels.iter().zip(&renamings).filter_map(|((kernel, part), renaming)| {
            let renaming: Renaming<'_> = if kernel.is_some() { renaming } else { &[] };
            Some((*read.get(*part)?, renaming))
        });
        join_checked(&parts.collect::<Vec<_>>())
    };
    let bytes = read
        .and_then(|read| read.map(join).transpose())
        .inspect_err(|reason| tracing::debug!(%reason, "cubins are not joined"))
        .ok()??;
    let parts: Vec<(Option<&str>, &Stored)> = kernels
        .iter()
        .filter_map(|(kernel, part)| Some((*kernel, made.get(*part)?.0)))
        .collect();
    Some(Cubin {
        bytes,
        log: join_logs(&parts),
        ..Cubin::clone(first)
    })
}

/// What the compiler says of the whole: what it says of all kernels first, the size of variables, and then the rest, of the last
/// kernel first.
fn join_logs(parts: &[(Option<&str>, &Stored)]) -> String {
    const NO_VARIABLES: &str = " 0 bytes gmem";
    let mut variables = "";
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for (kernel, Stored(_, cubin, _)) in parts.iter().rev() {
        let log = cubin.log.as_str();
        let named = |log: &str| match kernel {
            Some(name) => log.replace(PLACEHOLDER, name),
            None => log.to_owned(),
        };
        let line = log
            .lines()
            .find(|line| line.contains(" bytes gmem"))
            .unwrap_or_default();
        let (first, rest) = log.split_once(line).unwrap_or(("", log));
        before.push(named(first.trim_end_matches('\n')));
        after.push(named(rest.trim_start_matches('\n')));
        // One part at most has variables.
        if variables.is_empty() || variables.ends_with(NO_VARIABLES) {
            variables = line;
        }
    }
    let texts = before
        .iter()
        .map(|text| &**text)
        .chain([variables])
        .chain(after.iter().map(|text| &**text));
    let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}

#[cfg(test)]
#[path = "../../tests/compiler/kernels.rs"]
mod tests;
