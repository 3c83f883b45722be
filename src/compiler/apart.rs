//! The kernels of a module, lowered and compiled to PTX or to AMDGPU objects as if each was alone: at the same time, those that
//! differ in their names once, and those that are known not at all. What they become is the PTX, or the object, of the whole.
//!
//! Kernels are compiled in groups, since a run of LLVM and of MLIR's passes costs the same for one kernel and for ten. What a
//! kernel becomes does not depend on its group ([`crate::device::Split`]), nor on threads or the cache. Where anything is
//! unexpected, and where there is something to report, the whole is compiled, and reports it.

use std::{
    borrow::Cow,
    collections::{HashMap, hash_map::Entry},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use melior::{Context, ir::BlockLike};
use serde::{Deserialize, Serialize};

use super::{
    Compiler,
    cached::begin,
    components::{Component, components, numbered},
    input::parse,
    job::{CodeOfKernels, Job},
    kernel_groups::PtxTraits,
    kernels::{Content, KernelPtx},
    plan::Step,
    pool::map_each,
    request::Source,
    stored_bytes,
};
use crate::{
    bridge::{LlvmError, edit::OwnedModule},
    cache::{Cache, CacheError, Key, KeyBuilder},
    device::{DeviceOutput, FunctionText, LoadedLibrary, StageClock, assemble_ptx, cut_ptx},
    error::Error,
    image::{
        join_object,
        ptx_canonical::{CanonicalPtx, canonical},
        ptx_components,
    },
    interrupt::Interrupt,
    options::{DebugLevel, Options, Resolved, ResolvedVendor},
    report::{Decision, KernelSignature},
    stage::{Stage, StageTime},
    target::{Target, Vendor},
};

/// Groups have as many bytes of text or more, but for the last ones where several threads work: those are smaller, so that no
/// thread is left with a large one while the others wait.
const GROUP_BYTES: usize = 64 << 10;
const LAST_GROUP_BYTES: usize = 8 << 10;

/// What a kernel is called in what is kept.
const NAMELESS: &str = "\u{1}";

/// The code of a component, and what is known of its kernels.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Piece {
    /// For AMD. The rest is PTX.
    #[serde(with = "stored_bytes")]
    object: Vec<u8>,
    header: String,
    functions: Vec<FunctionText>,
    signatures: Vec<KernelSignature>,
    /// What the component is for the PTX compiler, if it can be compiled on its own.
    alone: Option<Alone>,
    /// Under which key the functions are kept, where they were not read.
    #[serde(skip)]
    kept: Option<Key>,
}

/// A component as a module of its own in its canonical form, whatever its kernel is called.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Alone {
    content: Content,
    /// The kernel whose name is not in the content.
    kernel: Option<String>,
    traits: PtxTraits,
}

impl Piece {
    /// `name` is what the kernel is called until it gets another name.
    fn new(header: &str, functions: Vec<FunctionText>, signatures: Vec<KernelSignature>, name: Option<&str>) -> Self {
        let mut piece = Self {
            header: header.to_owned(),
            functions,
            signatures,
            ..Self::default()
        };
        let is_lasting = |ptx: &CanonicalPtx| name.is_none_or(|name| !ptx.text.contains(name));
        piece.alone = piece.canonical().filter(is_lasting).map(|ptx| Alone {
            content: Content::of(&ptx.text),
            traits: PtxTraits::of(&ptx.text),
            kernel: ptx.kernel,
        });
        piece
    }

    /// As it is kept: with the functions in an entry of their own, which is not read where the machine code is known. A service is
    /// asked once.
    fn keep(&mut self, cache: &Cache, key: &Key) {
        if self.alone.is_some()
            && cache.remote().is_none()
            && let Ok(functions) = postcard::to_allocvec(&self.functions)
        {
            cache.put_here(&key_of_functions(key), functions);
            let functions = std::mem::take(&mut self.functions);
            self.put(cache, key);
            self.functions = functions;
        } else {
            self.put(cache, key);
        }
    }

    fn put(&self, cache: &Cache, key: &Key) {
        if let Ok(bytes) = postcard::to_allocvec(self) {
            cache.put(key, bytes);
        }
    }

    /// The same with its functions. `None` where they are not kept any more.
    fn with_functions(&self, cache: Option<&Cache>) -> Option<Cow<'_, Self>> {
        let Some(key) = self
            .kept
            .filter(|_| self.functions.is_empty() && self.object.is_empty())
        else {
            return Some(Cow::Borrowed(self));
        };
        let (bytes, _) = cache?.get(&key_of_functions(&key))?;
        Some(Cow::Owned(Self {
            functions: postcard::from_bytes(&bytes).ok()?,
            ..self.clone()
        }))
    }

    /// The text that the PTX compiler gets. `None` where it is not one component for it, too.
    fn canonical(&self) -> Option<CanonicalPtx> {
        let text = assemble_ptx(&self.header, &self.functions).ok()?;
        match ptx_components::components(&text).ok()?.as_slice() {
            [component] => canonical(component),
            _ => None,
        }
    }

    /// The same with another name. The content does not have it.
    fn renamed(self, from: &str, to: &str) -> Self {
        let renamed = |name: String| name.replace(from, to);
        Self {
            // The kernel of an object gets its name when objects are joined.
            object: self.object,
            header: self.header,
            functions: self
                .functions
                .iter()
                .map(|function| function.renamed(from, to))
                .collect(),
            signatures: self
                .signatures
                .into_iter()
                .map(|signature| KernelSignature {
                    name: renamed(signature.name),
                    ..signature
                })
                .collect(),
            alone: self.alone.map(|alone| Alone {
                kernel: alone.kernel.map(renamed),
                ..alone
            }),
            kept: self.kept,
        }
    }
}

/// Where the functions of the kernel with this key are kept.
fn key_of_functions(kernel: &Key) -> Key {
    begin("functions of a kernel")
        .field("kernel", kernel.as_bytes())
        .finish()
}

/// What came of the kernels of a module. The PTX of the whole is put together if somebody wants it.
pub(super) struct Apart {
    components: Arc<[Component]>,
    /// The piece of each component; those that differ in their names have one.
    of_component: Vec<usize>,
    pieces: Vec<Piece>,
    /// What is read of pieces when it is needed is here.
    cache: Option<Cache>,
}

impl Apart {
    /// The pieces of the components, and the name that a nameless one gets.
    fn named(&self) -> impl Iterator<Item = (&Piece, Option<&str>)> {
        self.components
            .iter()
            .zip(&self.of_component)
            .filter_map(|(component, place)| {
                let (_, name) = component.functions.first()?;
                let name = component.is_nameless.then_some(name.as_str());
                Some((self.pieces.get(*place)?, name))
            })
    }

    /// The places of functions in the module.
    fn places(&self) -> HashMap<&str, usize> {
        let functions = self.components.iter().flat_map(|component| &component.functions);
        functions.map(|(place, name)| (name.as_str(), *place)).collect()
    }

    /// The kernels in the order of the module.
    pub fn signatures(&self) -> Vec<KernelSignature> {
        let places = self.places();
        let of_piece = |(piece, name): (&Piece, Option<&str>)| {
            let named = |signature: &KernelSignature| KernelSignature {
                name: name.map_or_else(|| signature.name.clone(), |name| signature.name.replace(NAMELESS, name)),
                ..signature.clone()
            };
            piece.signatures.iter().map(named).collect::<Vec<_>>()
        };
        let mut signatures: Vec<KernelSignature> = self.named().flat_map(of_piece).collect();
        signatures.sort_by_key(|signature| places.get(signature.name.as_str()).copied());
        signatures
    }

    /// The code of the whole, as it is.
    pub fn code(&self) -> Result<Vec<u8>, Error> {
        if self.pieces.iter().all(|piece| piece.object.is_empty()) {
            return self.ptx().map(String::into_bytes);
        }
        let number = numbered(0);
        let names = self.named().map(|(_, name)| name.map(|name| (number.as_str(), name)));
        let names: Vec<Option<(&str, &str)>> = names.collect();
        let objects = self.named().zip(&names);
        let objects: Vec<_> = objects
            .map(|((piece, _), name)| (piece.object.as_slice(), name.as_slice()))
            .collect();
        join_object::join(&objects).map_err(|error| {
            tracing::debug!(%error, "not compiled apart");
            Error::new(Stage::CodeGen, LlvmError::Refused(error.to_string()))
        })
    }

    /// The PTX of the whole.
    pub fn ptx(&self) -> Result<String, Error> {
        let places = self.places();
        let refused = |reason: &str| Error::new(Stage::CodeGen, LlvmError::Refused(reason.to_owned()));
        let mut read: HashMap<usize, Cow<'_, Piece>> = HashMap::new();
        let mut functions: Vec<FunctionText> = Vec::new();
        for ((piece, name), place) in self.named().zip(&self.of_component) {
            let piece = match read.entry(*place) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => place.insert(
                    piece
                        .with_functions(self.cache.as_ref())
                        .ok_or_else(|| refused("a kernel is not in the cache any more"))?,
                ),
            };
            match name {
                Some(name) => functions.extend(Piece::clone(piece).renamed(NAMELESS, name).functions),
                None => functions.extend_from_slice(&piece.functions),
            }
        }
        functions.sort_by_key(|function| places.get(function.name.as_str()).copied());
        let header = self.pieces.first().map_or("", |piece| &piece.header);
        assemble_ptx(header, &functions).map_err(|error| {
            tracing::debug!(%error, "not compiled apart");
            Error::new(Stage::CodeGen, LlvmError::Refused(error.to_string()))
        })
    }

    /// The kernels as the PTX compiler gets them. `None` where they cannot be compiled on their own.
    pub fn kernels<'a>(&'a self) -> Option<Vec<KernelPtx<'a>>> {
        let kernel = |(piece, name): (&'a Piece, Option<&'a str>)| {
            let alone = piece.alone.as_ref()?;
            let kernel = alone.kernel.as_ref();
            Some(KernelPtx {
                count: 1,
                traits: alone.traits,
                content: alone.content,
                kernel: kernel.map(|kernel| name.map_or_else(|| kernel.clone(), |name| kernel.replace(NAMELESS, name))),
                text: Box::new(move || {
                    let whole = piece.with_functions(self.cache.as_ref())?.into_owned();
                    let named = whole.renamed(NAMELESS, name.unwrap_or(NAMELESS));
                    named.canonical().map(|ptx| ptx.text)
                }),
            })
        };
        self.named().map(kernel).collect()
    }
}

/// A group of kernels, compiled.
struct Compiled {
    pieces: Vec<Piece>,
    times: Vec<StageTime>,
}

impl Job<'_, '_> {
    /// The PTX of a module whose kernels can be compiled apart. `None` where the whole has to be compiled.
    pub(super) fn apart(&mut self, steps: &[Step]) -> Option<Apart> {
        let components = self.components(steps)?;
        // Those that differ in their names are one.
        let mut unique: Vec<&Component> = Vec::new();
        let mut places: HashMap<[u8; 32], usize> = HashMap::new();
        let of_component: Vec<usize> = components
            .iter()
            .map(|component| {
                *places.entry(component.traits.content).or_insert_with(|| {
                    unique.push(component);
                    unique.len() - 1
                })
            })
            .collect();
        let cache = self.compiler.cache();
        let size: usize = unique.iter().map(|component| component.traits.bytes).sum();
        let is_amd = self.target.vendor() == Vendor::Amd;
        // An object is of one kernel, and LLVM's run of its own costs some time that one thread alone does not get back.
        let is_cheaper_whole = size < 2 * GROUP_BYTES || (is_amd && self.helpers.threads() == 1);
        if cache.is_none() && unique.len() == components.len() && is_cheaper_whole {
            return None;
        }
        let base = cache.and_then(|_| self.key_of_piece("kernel"));
        let key_of = |index: usize| Some(base.clone()?.field("text", unique.get(index)?.traits.content).finish());
        let keys = map_each(self.helpers, unique.len(), key_of);
        let keys: Vec<Option<Key>> = keys.into_iter().map(Option::flatten).collect();
        let trusted = cache.filter(|cache| !cache.verifies());
        // A service is asked for all at once; a disk by the threads that there are.
        let there = trusted
            .filter(|cache| cache.remote().is_some())
            .map(|cache| cache.get_all(&keys));
        let is_cubin = |step: &Step| matches!(step, Step::Lower | Step::Device(_) | Step::PtxToCubin(_));
        let needs_text = !steps.iter().all(is_cubin);
        let pieces = map_each(self.helpers, keys.len(), |index| {
            let (cache, key) = (trusted?, keys.get(index)?.as_ref()?);
            let piece = match &there {
                Some(found) => known(cache, &found.get(index)?.as_ref()?.0),
                None => known(cache, &cache.get(key)?.0),
            };
            let piece = Piece {
                kept: Some(*key),
                ..piece?
            };
            match needs_text {
                true => Some(piece.with_functions(Some(cache))?.into_owned()),
                false => Some(piece),
            }
        });
        let mut pieces: Vec<Option<Piece>> = pieces.into_iter().map(Option::flatten).collect();
        let unknown: Vec<usize> = (0..unique.len())
            .filter(|&index| matches!(pieces.get(index), Some(None)))
            .collect();
        let was_left_out = |index: &usize| unique.get(*index).is_some_and(|component| component.text.is_none());
        if unknown.iter().any(was_left_out) {
            // It is known for another target, or with other options, or is not any more.
            return if self.complete().ok()? { self.apart(steps) } else { None };
        }
        let made = self.compile_groups(&unique, &unknown)?;
        // What was made while a tool or a library changed is not kept.
        let finished = |key: Option<KeyBuilder>| key.map(|key| key.finish());
        let is_as_before = unknown.is_empty() || finished(self.key_of_piece("kernel")) == finished(base);
        for (index, mut piece) in unknown.iter().zip(made) {
            if let (Some(cache), Some(Some(key)), true) = (cache, keys.get(*index), is_as_before) {
                piece.keep(cache, key);
            }
            *pieces.get_mut(*index)? = Some(piece);
        }
        let known = of_component
            .iter()
            .filter(|&place| unknown.binary_search(place).is_err())
            .count();
        if known > 0 {
            let what = if is_amd { "object" } else { "PTX" };
            self.decisions
                .push(Decision::known(what, known, components.len(), "kernels"));
        }
        let pieces: Vec<Piece> = pieces.into_iter().collect::<Option<_>>()?;
        if let (Some(text), Some(cache)) = (&self.text, cache) {
            text.keep(&components, cache);
        }
        if pieces
            .windows(2)
            .any(|pair| matches!(pair, [one, other] if one.header != other.header))
        {
            return None;
        }
        Some(Apart {
            components,
            of_component,
            pieces,
            cache: cache.cloned(),
        })
    }

    /// The kernels, if PTX or objects are made of them as they are, and nobody wants to see the steps on the way.
    fn components(&self, steps: &[Step]) -> Option<Arc<[Component]>> {
        let [part] = self.parts.as_slice() else { return None };
        let Source::Mlir(module) = &part.source else {
            return None;
        };
        let is_plain = self.resolved.debug == DebugLevel::None
            && self.resolved.optimization.number() > 0
            && self.options.device_link.is_none();
        let is_watched = self
            .compiler
            .listeners
            .iter()
            .any(|listener| !listener.checkpoints().is_empty());
        let vendor = self.target.vendor();
        let makes_code = steps.contains(&Step::Lower) && steps.contains(&Step::Device(code_of(vendor)));
        if !is_plain || is_watched || !makes_code || self.own.is_some() {
            return None;
        }
        let find = || components(module.module().body().first_operation()?, None).map(Arc::from);
        let found = self.divided.get_or_init(find).clone();
        // The object of the whole has functions in the order of the module.
        let are_kernels = |found: &Arc<[Component]>| found.iter().all(|component| component.functions.len() == 1);
        // ptxas gives every kernel of a module a section for dynamic shared memory if one of them has some.
        let are_alike = |found: &Arc<[Component]>| {
            let mut all = found.iter().map(|component| component.traits.has_dynamic_memory);
            let first = all.next();
            all.all(|has| Some(has) == first)
        };
        found.filter(|found| match vendor {
            Vendor::Nvidia => are_alike(found),
            Vendor::Amd => are_kernels(found),
        })
    }

    /// Compiles those of `components` that are at `places`; one piece for each.
    fn compile_groups(&mut self, components: &[&Component], places: &[usize]) -> Option<Vec<Piece>> {
        let mut groups: Vec<Vec<(usize, &Component)>> = Vec::new();
        let is_amd = self.target.vendor() == Vendor::Amd;
        let threads = self.helpers.threads();
        let size = |&place: &usize| components.get(place).map_or(0, |component| component.traits.bytes);
        let mut left: usize = places.iter().map(size).sum();
        let mut room = 0;
        for (number, &place) in places.iter().enumerate() {
            if room == 0 || is_amd {
                groups.push(Vec::new());
                room = group_bytes(left, threads);
            }
            let component = *components.get(place)?;
            room = room.saturating_sub(component.traits.bytes);
            left -= component.traits.bytes;
            // An object is kept with the name that its kernel has in it.
            groups.last_mut()?.push((if is_amd { 0 } else { number }, component));
        }
        let start = Instant::now();
        let failed = AtomicBool::new(false);
        let maker = GroupWork {
            compiler: self.compiler,
            name: &self.name,
            target: self.target,
            options: &self.options,
            resolved: &self.resolved,
            libraries: &self.libraries,
            interrupt: self.clock.interrupt(),
        };
        let compiled = map_each(self.helpers, groups.len(), |index| {
            let group = groups.get(index).filter(|_| !failed.load(Ordering::Relaxed))?;
            let compiled = maker.compile(group);
            failed.fetch_or(compiled.is_none(), Ordering::Relaxed);
            compiled
        });
        let compiled: Option<Vec<Compiled>> = compiled.into_iter().map(Option::flatten).collect();
        let compiled = compiled?;
        account(&mut self.clock, start.elapsed(), &compiled);
        Some(compiled.into_iter().flat_map(|group| group.pieces).collect())
    }

    /// What gives another result for the same piece of a module.
    pub(super) fn key_of_piece(&self, kind: &str) -> Option<KeyBuilder> {
        let key = begin(kind).field("target", self.target.to_string());
        let key = match self.resolved.vendor {
            ResolvedVendor::Nvidia { ptx, .. } => key.field("ptx", ptx.to_string()),
            ResolvedVendor::Amd { .. } => key,
        };
        self.compiler.made_with(key, &self.options, self.target.vendor())
    }
}

/// The size of the next group, of what is left for so many threads.
fn group_bytes(left: usize, threads: usize) -> usize {
    match threads {
        0 | 1 => GROUP_BYTES,
        _ => (left / (2 * threads)).clamp(LAST_GROUP_BYTES, GROUP_BYTES),
    }
}

fn known(cache: &Cache, bytes: &[u8]) -> Option<Piece> {
    let piece = postcard::from_bytes(bytes);
    piece
        .inspect_err(|_| cache.note(CacheError::Undecodable { what: "a kernel" }))
        .ok()
}

/// What kernels that are compiled apart become.
const fn code_of(vendor: Vendor) -> DeviceOutput {
    match vendor {
        Vendor::Nvidia => DeviceOutput::Assembly,
        Vendor::Amd => DeviceOutput::Object,
    }
}

/// What groups are compiled with, on any thread.
pub(super) struct GroupWork<'a> {
    pub compiler: &'a Compiler,
    pub name: &'a str,
    pub target: Target,
    pub options: &'a Options,
    pub resolved: &'a Resolved,
    pub libraries: &'a [LoadedLibrary],
    pub interrupt: &'a Interrupt,
}

impl GroupWork<'_> {
    /// The pieces of a group. `None` where there is anything to report, or something that may depend on other kernels.
    fn compile(&self, group: &[(usize, &Component)]) -> Option<Compiled> {
        let functions = group.iter().flat_map(|(_, component)| &component.functions);
        let kernels = functions.map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(" ");
        let _span = tracing::debug_span!("group", module = self.name, target = %self.target, kernels).entered();
        let contexts = &self.compiler.contexts;
        let is_fatal = |failed: &Option<Error>| failed.as_ref().is_some_and(Error::is_fatal_in_mlir);
        let bytes = group.iter().map(|(_, component)| component.traits.bytes).sum();
        let compiled = contexts.with(bytes, is_fatal, |context| self.compile_in(context, group));
        compiled
            .inspect_err(|reason| tracing::debug!(?reason, "not compiled apart"))
            .ok()
    }

    /// An error without a reason is no error of the kernels.
    fn compile_in(&self, context: &Context, group: &[(usize, &Component)]) -> Result<Compiled, Option<Error>> {
        let texts: String = group
            .iter()
            .map(|(number, component)| component.numbered(*number))
            .collect::<Option<_>>()
            .ok_or(None)?;
        let text = format!("gpu.module @kernels {{\n{texts}}}\n");
        let parsed = parse(context, self.name, text.as_bytes()).map_err(|error| Error::new(Stage::Input, error))?;
        let module = OwnedModule::new(parsed).map_err(|_| None)?;
        let names = group.iter().map(|(number, component)| match component.is_nameless {
            true => vec![numbered(*number)],
            false => component.functions.iter().map(|(_, name)| name.clone()).collect(),
        });
        let names: Vec<Vec<String>> = names.collect();
        let job = Job::of_kernels(self, module, names.iter().flatten().cloned().collect());
        let vendor = self.target.vendor();
        let CodeOfKernels {
            code,
            signatures,
            times,
        } = job.code_of_kernels(code_of(vendor))?;
        if vendor == Vendor::Amd {
            join_object::join(&[(&code, &[])]).map_err(|error| {
                tracing::debug!(%error, "not compiled apart");
                None
            })?;
            let piece = Piece {
                object: code,
                signatures,
                ..Piece::default()
            };
            let piece = match group {
                [(number, component)] if component.is_nameless => piece.renamed(&numbered(*number), NAMELESS),
                _ => piece,
            };
            let pieces = vec![piece];
            return Ok(Compiled { pieces, times });
        }
        let cut = std::str::from_utf8(&code).ok().and_then(|text| {
            cut_ptx(text)
                .inspect_err(|reason| tracing::debug!(%reason, "not compiled apart"))
                .ok()
        });
        let (header, functions) = cut.ok_or(None)?;
        let pieces = group.iter().zip(&names).map(|((number, component), names)| {
            let functions = functions.iter().filter(|function| names.contains(&function.name));
            let signatures = signatures.iter().filter(|kernel| names.contains(&kernel.name));
            let number = component.is_nameless.then(|| numbered(*number));
            let piece = Piece::new(
                &header,
                functions.cloned().collect(),
                signatures.cloned().collect(),
                number.as_deref(),
            );
            match number {
                Some(number) => piece.renamed(&number, NAMELESS),
                None => piece,
            }
        });
        let pieces: Vec<Piece> = pieces.collect();
        let placed: usize = pieces.iter().map(|piece| piece.functions.len()).sum();
        (placed == functions.len())
            .then_some(Compiled { pieces, times })
            .ok_or(None)
    }
}

/// Divides the time that passed among the stages as the groups did.
fn account(clock: &mut StageClock, passed: Duration, groups: &[Compiled]) {
    let times = || groups.iter().flat_map(|group| &group.times);
    let all: Duration = times().map(|entry| entry.time).sum();
    for StageTime { stage, time } in times() {
        clock.add(
            *stage,
            passed.mul_f64(time.as_secs_f64() / all.as_secs_f64().max(f64::MIN_POSITIVE)),
        );
    }
}

#[cfg(test)]
#[path = "../../tests/compiler/apart.rs"]
mod tests;
