//! Machine code by the kernel: the kernels of a module are compiled apart, at the same time, and their cubins are joined to the
//! one that the PTX compiler makes of the whole. A kernel that another differs from in its name alone is compiled once, and
//! what was compiled before comes from the cache.

use std::{
    borrow::Cow,
    cell::{Cell, OnceCell, RefCell},
    cmp::Reverse,
    collections::{HashMap, HashSet},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use super::{
    apart::Apart,
    cached::{Kept, Made, get_or_make, machine_code_key, taken},
    kernel_groups::{PtxTraits, can_be_split, groups, log_of_all, of_several, split_by_kernel, text_of},
    pool::{Helpers, map_each},
    ptx_places::placed,
    stored_bytes,
};
use crate::{
    cache::{Cache, Found, Key, Source},
    error::{Cause, Error, ErrorKind},
    image::{
        join_cubin::{CubinJoinError, Renaming, TakenApart, check, join_checked},
        ptx_canonical::{CanonicalPtx, PLACEHOLDER, canonical},
        ptx_components::{AddedFunctions, PtxComponent, components},
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
    /// How many kernels it has, or 1 where they cannot be divided.
    pub count: usize,
    pub traits: PtxTraits,
    /// Makes the text, for what is not known yet.
    pub text: Box<dyn Fn() -> Option<String> + Sync + 'a>,
}

/// The PTX of a module.
#[derive(Clone, Copy)]
pub(super) enum PtxCode<'a> {
    Text(&'a str),
    Apart(&'a Apart),
}

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
                apart.kernels()
            }
            _ => None,
        };
        if let Some(kernels) = &apart
            && let Some(joined) = self.grouped_or_joined(kernels, helpers)?
        {
            return Ok(joined);
        }
        let whole = match code {
            PtxCode::Text(ptx) => Cow::Borrowed(ptx),
            PtxCode::Apart(apart) => Cow::Owned(apart.ptx()?),
        };
        // What was tried is not tried again.
        if apart.is_none() && (!self.at_once || whole.len() >= SPLIT_PTX_BYTES) {
            let kernels = kernels_of(&self.components(&whole));
            if let Some(joined) = self.grouped_or_joined(&kernels, helpers)? {
                return Ok(joined);
            }
        }
        let tools = self.compiler.identity(self.choice);
        let made = self.get_or_compile(Content::of(&whole), &tools, Part::Whole, Cache::get, || {
            let Self { chip, options, .. } = self;
            let compiler = self.compiler;
            let compiled = compiler.compile_until(&whole, chip, options, self.choice, self.interrupt);
            compiled.map(|cubin| (cubin, false))
        });
        made.map(MadeCubin::whole)
            .map_err(|error| placed(error, &whole, &format!("{}.ptx", self.module)))
    }

    /// The joined cubins of kernels: of several in a call where nothing has to be known of each, or of each.
    fn grouped_or_joined(&self, kernels: &[KernelPtx<'_>], helpers: Helpers<'_>) -> Result<Option<MadeCubin>, Error> {
        if !self.needs_none_alone(kernels) {
            return self.joined(kernels, true, helpers);
        }
        let several: Vec<&KernelPtx<'_>> = kernels.iter().collect();
        let groups = groups(&several, helpers.threads()).into_iter();
        let groups: Vec<KernelPtx<'_>> = groups
            .filter_map(|range| Some(of_several(several.get(range)?)))
            .collect();
        match self.joined(&groups, false, helpers)? {
            // What was tried is not tried again.
            None => self.joined(kernels, false, helpers),
            joined => Ok(joined),
        }
    }

    /// Whether nothing is kept of kernels, and no two are the same. With variables outside of functions, the order of names in a cubin
    /// of all kernels is another than in one that was joined.
    fn needs_none_alone(&self, kernels: &[KernelPtx<'_>]) -> bool {
        let contents: HashSet<Content> = kernels.iter().map(|kernel| kernel.content).collect();
        let are_named = |kernel: &KernelPtx<'_>| kernel.kernel.is_some() && !kernel.traits.has_variables;
        self.cache.is_none() && kernels.len() > 1 && kernels.iter().all(are_named) && contents.len() == kernels.len()
    }

    /// The joined cubins of kernels. `None` where the whole has to be compiled: it cannot be divided, there is nothing to
    /// gain, or something failed, which the whole does as well, with the places in its text.
    fn joined(
        &self,
        kernels: &[KernelPtx<'_>],
        several_in_a_call: bool,
        helpers: Helpers<'_>,
    ) -> Result<Option<MadeCubin>, Error> {
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
        let Some(made) = self.compile_all(&different, several_in_a_call, helpers)? else {
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
        several_in_a_call: bool,
        helpers: Helpers<'_>,
    ) -> Result<Option<Vec<Made<Stored>>>, Error> {
        let done = AtomicUsize::new(0);
        let count = kernels.iter().map(|kernel| kernel.count).sum();
        let all = Kernels {
            work: self,
            kernels,
            tools: self.compiler.identity(self.choice),
            known: self.find(kernels, helpers),
            failed: AtomicBool::new(false),
            cannot_be_split: AtomicBool::new(!several_in_a_call),
        };
        let calls = all.calls(helpers.threads());
        let made = map_each(helpers, calls.len(), |index| {
            let places = calls.get(index)?;
            let call = Call {
                all: &all,
                to_compile: RefCell::default(),
                was_made_meanwhile: Cell::new(false),
                cubins: OnceCell::new(),
                made: RefCell::default(),
            };
            call.make(places);
            let compiled: usize = all.each(places).map(|kernel| kernel.count).sum();
            (self.told)(done.fetch_add(compiled, Ordering::Relaxed) + compiled, count);
            Some(call.made.into_inner())
        });
        let mut made: Vec<_> = made.into_iter().flatten().flatten().flatten().collect();
        made.sort_unstable_by_key(|(place, _)| *place);
        let mut compiled = Vec::with_capacity(kernels.len());
        for (_, made) in made {
            match made {
                Ok(made) => compiled.push(made),
                // What the cache has is another cubin: that is not for the whole to hide.
                Err(error) if error.stage == Stage::Cache => return Err(error),
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(compiled).filter(|compiled| !compiled.is_empty() && compiled.len() == kernels.len()))
    }

    /// What the cache has of kernels. A service is asked for all at once.
    fn find(&self, kernels: &[&KernelPtx<'_>], helpers: Helpers<'_>) -> Vec<Mutex<Option<Found>>> {
        let Some(cache) = self.cache else {
            return Vec::new();
        };
        let tools = self.compiler.identity(self.choice);
        let keys: Vec<Option<Key>> = kernels.iter().map(|kernel| self.key(kernel.content, &tools)).collect();
        let found = match cache.remote() {
            Some(_) => cache.get_all(&keys),
            None => {
                let found = map_each(helpers, keys.len(), |index| cache.get((*keys.get(index)?).as_ref()?));
                found.into_iter().map(Option::flatten).collect()
            }
        };
        found.into_iter().map(Mutex::new).collect()
    }

    fn compile(&self, text: &str) -> Result<Cubin, SerializeError> {
        let Self { chip, options, .. } = self;
        self.compiler
            .compile_kernel(text, chip, options, self.choice, self.interrupt)
    }

    /// `compile` says of the cubin whether it is known to be one that can be joined.
    fn get_or_compile(
        &self,
        content: Content,
        tools: &str,
        part: Part,
        look: impl FnOnce(&Cache, &Key) -> Option<Found>,
        compile: impl FnOnce() -> Result<(Cubin, bool), SerializeError>,
    ) -> Result<Made<Stored>, Error> {
        let kept = Kept {
            is_claimed: part != Part::OfCall,
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
                let (mut cubin, is_checked) = compile().map_err(|error| {
                    let cause: Cause = match error {
                        SerializeError::Cancelled { .. } => InterruptError::Cancelled.into(),
                        SerializeError::Timeout { limit, .. } => InterruptError::TimeLimit { limit }.into(),
                        error => error.into(),
                    };
                    Error::new(Stage::PtxToCubin, cause)
                })?;
                let is_checked = is_checked || (part != Part::Whole && check(&cubin.bytes).is_ok());
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

/// Different kernels, which are made by any thread.
struct Kernels<'c> {
    work: &'c PtxWork<'c>,
    kernels: &'c [&'c KernelPtx<'c>],
    tools: String,
    /// What the cache had of them. Empty without a cache.
    known: Vec<Mutex<Option<Found>>>,
    /// The whole has to be compiled.
    failed: AtomicBool,
    /// What a call makes of several kernels is not taken apart, so that each has a call.
    cannot_be_split: AtomicBool,
}

impl<'c> Kernels<'c> {
    fn each(&self, places: &[usize]) -> impl Iterator<Item = &'c KernelPtx<'c>> {
        places.iter().filter_map(|place| self.kernels.get(*place).copied())
    }

    /// The kernels by the calls of the compiler that they stand in, those that are known alone, and the longest call first: no thread is
    /// left with a long one while the others wait.
    fn calls(&self, threads: usize) -> Vec<Vec<usize>> {
        let PtxWork { cache, .. } = self.work;
        let one_at_a_time = cache.is_some_and(Cache::verifies);
        let is_known = |place: usize| self.known.get(place).is_some_and(|known| lock(known).is_some());
        let has_name = |place: usize| self.kernels.get(place).is_some_and(|kernel| kernel.kernel.is_some());
        let is_alone = |place: &usize| one_at_a_time || is_known(*place) || !has_name(*place);
        let (mut alone, mut together): (Vec<usize>, Vec<usize>) = (0..self.kernels.len()).partition(is_alone);
        if together.len() < 2 || self.cannot_be_split.load(Ordering::Relaxed) || !self.can_be_split() {
            alone.append(&mut together);
        }
        // Kernels to which several functions are added seldom stand with others.
        let adds_several = |place: &usize| {
            let kernel = self.kernels.get(*place);
            kernel.is_some_and(|kernel| kernel.traits.adds == AddedFunctions::Several)
        };
        together.sort_by_key(adds_several);
        let unknown: Vec<&KernelPtx<'_>> = self.each(&together).collect();
        let calls = groups(&unknown, threads).into_iter();
        let calls = calls.filter_map(|range| Some(together.get(range)?.to_vec()));
        let mut calls: Vec<Vec<usize>> = calls.chain(alone.into_iter().map(|place| vec![place])).collect();
        calls.sort_by_key(|call| Reverse(self.each(call).map(|kernel| kernel.traits.bytes).sum::<usize>()));
        calls
    }

    fn can_be_split(&self) -> bool {
        let PtxWork {
            compiler, chip, choice, ..
        } = self.work;
        let first = compiler.first(*choice).map(|(first, _)| first);
        first.is_some_and(|first| {
            let version = compiler.version(first);
            version.is_ok_and(|version| can_be_split(chip, first, version))
        })
    }

    /// Ends the work on all of them. Nobody reads why: the whole is compiled, and reports it.
    fn fail(&self) -> SerializeError {
        self.failed.store(true, Ordering::Relaxed);
        SerializeError::Refused {
            kind: ErrorKind::Assembly,
            message: "another kernel was refused".to_owned(),
            decisions: Vec::new(),
        }
    }
}

/// What of a module is compiled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    /// A kernel, alone or as the first of a call.
    Kernel,
    /// A kernel whose call has another one already.
    OfCall,
}

type MadeKernel = Result<Made<Stored>, Error>;

/// Kernels that stand in one call of the compiler, as far as nobody else makes them.
struct Call<'c> {
    all: &'c Kernels<'c>,
    /// The places of those that turned out to have to be compiled.
    to_compile: RefCell<Vec<usize>>,
    /// Whether one was not known at first, and somebody else made it: others of the call are there as well, then.
    was_made_meanwhile: Cell<bool>,
    /// What came of the call for them.
    cubins: OnceCell<RefCell<HashMap<usize, Cubin>>>,
    made: RefCell<Vec<(usize, MadeKernel)>>,
}

impl Call<'_> {
    /// Makes the kernels at `places`, or takes them from the cache. The turn to make the first is kept until all others are made, and
    /// it alone is claimed among machines: who waits for it finds them all.
    fn make(&self, places: &[usize]) {
        let Kernels { work, kernels, .. } = *self.all;
        let Some((&place, rest)) = places.split_first() else {
            return;
        };
        let Some(kernel) = kernels.get(place) else { return };
        if self.all.failed.load(Ordering::Relaxed) {
            return;
        }
        let has_to_compile = Cell::new(false);
        let known = self.all.known.get(place).and_then(|known| lock(known).take());
        let was_known = known.is_some();
        let look = |cache: &Cache, key: &Key| {
            known.or_else(|| match self.was_made_meanwhile.get() {
                true => cache.get(key),
                false => cache.get_here(key),
            })
        };
        let part = match self.to_compile.borrow().is_empty() {
            true => Part::Kernel,
            false => Part::OfCall,
        };
        let made = work.get_or_compile(kernel.content, &self.all.tools, part, look, || {
            has_to_compile.set(true);
            self.to_compile.borrow_mut().push(place);
            self.make(rest);
            let cubins = self.cubins.get_or_init(|| RefCell::new(self.compile()));
            let cubin = cubins.borrow_mut().remove(&place);
            if let Some(cubin) = cubin {
                return Ok((cubin, true));
            }
            if self.all.failed.load(Ordering::Relaxed) {
                return Err(self.all.fail());
            }
            let name = kernel.kernel.as_deref().unwrap_or("kernels");
            let _span = tracing::debug_span!("kernel", module = work.module, chip = work.chip, name).entered();
            // The PTX compiler refuses nothing at all: the whole is compiled then.
            let compiled = work.compile(&(kernel.text)().unwrap_or_default());
            compiled
                .map(|cubin| (cubin, false))
                .inspect_err(|_| drop(self.all.fail()))
        });
        if !has_to_compile.get() {
            self.was_made_meanwhile.set(self.was_made_meanwhile.get() || !was_known);
            self.make(rest);
        }
        self.made.borrow_mut().push((place, made));
    }

    /// What one call makes of all that have to be compiled. Empty where each has to be compiled alone.
    fn compile(&self) -> HashMap<usize, Cubin> {
        let Kernels {
            work, cannot_be_split, ..
        } = self.all;
        let places = self.to_compile.borrow();
        let kernels: Vec<&KernelPtx<'_>> = self.all.each(&places).collect();
        let [first, _, ..] = kernels.as_slice() else {
            return HashMap::new();
        };
        if cannot_be_split.load(Ordering::Relaxed) {
            return HashMap::new();
        }
        let name = first.kernel.as_deref().unwrap_or("kernels");
        let (module, chip, count) = (work.module, work.chip, kernels.len());
        let _span = tracing::debug_span!("kernels", module, chip, name, count).entered();
        let Some(text) = text_of(&kernels) else {
            return HashMap::new();
        };
        let Ok(cubin) = work.compile(&text) else {
            // One of them is refused, which the whole reports, or time is over.
            self.all.fail();
            return HashMap::new();
        };
        let cubins = split_by_kernel(&cubin, work.chip, &kernels);
        cannot_be_split.fetch_or(cubins.is_none(), Ordering::Relaxed);
        places.iter().copied().zip(cubins.into_iter().flatten()).collect()
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Components of PTX as they are compiled. None where a text does not have the documented form.
fn kernels_of(components: &[PtxComponent<'_>]) -> Vec<KernelPtx<'static>> {
    let kernel = |component| {
        let CanonicalPtx { text, kernel } = canonical(component)?;
        Some(KernelPtx {
            content: Content::of(&text),
            kernel,
            count: 1,
            traits: PtxTraits::of(&text),
            text: Box::new(move || Some(text.clone())),
        })
    };
    components.iter().map(kernel).collect::<Option<_>>().unwrap_or_default()
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
    let logs: Vec<(Option<&str>, &str)> = kernels
        .iter()
        .filter_map(|(kernel, part)| Some((*kernel, made.get(*part)?.0.1.log.as_str())))
        .collect();
    Some(Cubin {
        bytes,
        log: log_of_all(&logs),
        ..Cubin::clone(first)
    })
}

#[cfg(test)]
#[path = "../../tests/compiler/kernels.rs"]
mod tests;
