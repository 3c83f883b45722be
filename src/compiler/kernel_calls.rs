//! The calls of the PTX compiler for different kernels: which are known is looked up first, the others are compiled several in a
//! call, and what comes of that is kept for each.

use std::{
    cell::{Cell, OnceCell, RefCell},
    cmp::Reverse,
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use super::{
    cached::Made,
    kernel_groups::{can_be_split, groups, split_by_kernel, text_of},
    kernels::{KernelPtx, Part, PtxWork, Stored},
    pool::{Helpers, map_each},
};
use crate::{
    cache::{Cache, Found, Key},
    error::{Error, ErrorKind},
    image::ptx_components::AddedFunctions,
    serialize::nvidia::{Cubin, SerializeError},
    stage::Stage,
};

impl PtxWork<'_> {
    /// Compiles different kernels, or takes them from the cache.
    pub(super) fn compile_all(
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

    /// Ends the work on all of them: the whole is compiled.
    fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }
}

/// Nobody reads it: the whole is compiled, and reports what is wrong.
fn another_was_refused() -> SerializeError {
    SerializeError::Refused {
        kind: ErrorKind::Assembly,
        message: "another kernel was refused".to_owned(),
        decisions: Vec::new(),
    }
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
                return Err(another_was_refused());
            }
            let name = kernel.kernel.as_deref().unwrap_or("kernels");
            let _span = tracing::debug_span!("kernel", module = work.module, chip = work.chip, name).entered();
            // The PTX compiler refuses nothing at all: the whole is compiled then.
            let compiled = work.compile(&(kernel.text)().unwrap_or_default());
            compiled.map(|cubin| (cubin, false)).inspect_err(|_| self.all.fail())
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
