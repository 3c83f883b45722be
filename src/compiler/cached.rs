//! Results that were made before: what identifies them, and taking them from the cache.
//!
//! Three things are kept, each under a key of its own kind:
//!
//! | key | is over | a hit saves |
//! |---|---|---|
//! | source | the bytes of an input | everything, reading it included |
//! | module | a `gpu.module`, or LLVM IR or PTX, for one target | lowering, LLVM and the vendor's tools |
//! | machine code | PTX for a chip, or an AMDGPU object | the PTX compiler, lld |
//!
//! Beside that a key is over what would give another result: gpulower itself, LLVM, the options, the bytes of every library,
//! and the hash of every tool that could take part. Failures are not kept, and neither are results with a warning that names
//! a place in the source: the same code may stand elsewhere the next time.

use std::{
    borrow::Cow,
    sync::{Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};

use super::{
    Compiler, Targets,
    emit::Emit,
    job,
    phases::llvm_part,
    pool::Helpers,
    request::{Outcome, Product, Request},
    stored_bytes,
};
use crate::{
    cache::{Cache, CacheError, Found, Key, KeyBuilder, Source},
    device::VendorLibrary,
    error::Error,
    interrupt::Interrupt,
    options::{DebugLevel, Library, OptimizationLevel, Options},
    report::{Artifact, Decision, Format, Image, KernelSignature, Warning},
    stage::Stage,
    target::{Target, Vendor},
};

/// A change of what is stored, or of what a key is over, is another number.
const FORMAT: &str = "7";

/// What identifies gpulower: its version, and a hash of its sources (from `build.rs`).
const GPULOWER: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("GPULOWER_SOURCE_HASH"));

/// What is said of a result that was known.
pub(super) const TAKEN: &str = "taken from the cache";

/// What a compilation made, or what was known.
pub(super) struct Made<T> {
    pub value: T,
    /// Where it was known from.
    pub from: Option<Source>,
    /// Under which key it is kept.
    pub kept: Option<Key>,
}

/// How one kind of result is kept.
pub(super) struct Kept<'a, T> {
    /// What it is, for messages.
    pub what: &'static str,
    /// The module, for messages.
    pub module: &'a str,
    /// Whether the one that was known is what was made now.
    pub same: fn(&T, &T) -> bool,
    /// Whether it may be kept.
    pub may_be_kept: fn(&T) -> bool,
    /// Whether machines that share the cache are told when it is being made, and may wait for it.
    pub is_claimed: bool,
}

/// Requests to come, which a service is asked for together: one question after the other would be waiting for most of the time.
pub(super) struct Ahead {
    keys: Vec<Option<Key>>,
    /// What there is of each [`Self::AT_ONCE`] requests, once one of them is carried out, and since when it is known.
    found: Vec<OnceLock<Batch>>,
}

type Batch = (Instant, Mutex<Vec<Option<Found>>>);

impl Ahead {
    /// So few that entries do not wait in memory for long.
    const AT_ONCE: usize = 64;
    /// How long what was not there is taken not to be there: other machines make things meanwhile.
    const STALE: Duration = Duration::from_secs(1);

    fn get(&self, cache: &Cache, index: usize, key: &Key) -> Option<Found> {
        // A tool or a library may have changed meanwhile.
        if self.keys.get(index)?.as_ref() != Some(key) {
            return cache.get(key);
        }
        let batch = index / Self::AT_ONCE;
        let (since, found) = self.found.get(batch)?.get_or_init(|| {
            let keys = self.keys.chunks(Self::AT_ONCE).nth(batch).unwrap_or_default();
            (Instant::now(), Mutex::new(cache.get_all(keys)))
        });
        let found = found
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_mut(index % Self::AT_ONCE)?
            .take();
        match found {
            None if since.elapsed() > Self::STALE => cache.get(key),
            found => found,
        }
    }
}

/// What a cache has under a key, which `look` finds, or what `make` makes. The key is computed again afterwards: what was made
/// while a tool or a library changed is not kept. What another thread or machine is making is waited for, unless `stop` says to.
pub(super) fn get_or_make<T: Serialize + DeserializeOwned>(
    cache: Option<&Cache>,
    key: impl Fn() -> Option<Key>,
    kept: &Kept<'_, T>,
    stop: &dyn Fn() -> bool,
    look: impl FnOnce(&Cache, &Key) -> Option<Found>,
    make: impl FnOnce() -> Result<T, Error>,
) -> Result<Made<T>, Error> {
    let fresh = |value| Made {
        value,
        from: None,
        kept: None,
    };
    let Some((cache, before)) = cache.and_then(|cache| Some((cache, key()?))) else {
        return make().map(fresh);
    };
    let (what, module) = (kept.what, kept.module);
    let decoded = |(bytes, from): Found| {
        postcard::from_bytes::<T>(&bytes)
            .map(|value| (value, from))
            .map_err(|_| cache.note(CacheError::Undecodable { what: kept.what }))
            .ok()
    };
    let mut known = look(cache, &before).and_then(decoded);
    // Somebody else may be making it.
    let mut turn = None;
    if known.is_none() && !cache.verifies() {
        let (making, made) = cache.turn(&before, kept.is_claimed, stop);
        known = made.and_then(decoded);
        turn = Some(making);
    }
    let known = match known {
        Some((value, from)) if !cache.verifies() => {
            tracing::debug!(what, module, ?from, "cache hit");
            return Ok(Made {
                value,
                from: Some(from),
                kept: Some(before),
            });
        }
        other => other.map(|(value, _)| value),
    };
    tracing::debug!(what, module, "cache miss");
    let made = make()?;
    let mut kept_as = None;
    if let Some(known) = known {
        if !(kept.same)(&known, &made) {
            let entry = cache
                .path(&before)
                .map_or_else(|| before.to_string(), |path| path.display().to_string());
            let mismatch = CacheError::Mismatch {
                what: kept.what,
                module: Some(kept.module.to_owned()),
                entry,
            };
            return Err(Error::new(Stage::Cache, mismatch));
        }
    } else if (kept.may_be_kept)(&made)
        && key() == Some(before)
        && let Ok(bytes) = postcard::to_allocvec(&made)
    {
        cache.put(&before, bytes);
        kept_as = Some(before);
    }
    drop(turn);
    Ok(Made {
        kept: kept_as,
        ..fresh(made)
    })
}

/// Starts a key: what gives another result whatever is compiled.
pub(super) fn begin(kind: &str) -> KeyBuilder {
    KeyBuilder::new(kind)
        .field("format", FORMAT)
        .field("gpulower", GPULOWER)
        .field("llvm", llvm_part("LLVM"))
}

/// A key for machine code that was made from one piece of code.
pub(super) fn machine_code_key(kind: &str, fields: &[(&str, &[u8])]) -> Key {
    let key = fields
        .iter()
        .fold(begin(kind), |key, (name, value)| key.field(name, value));
    key.finish()
}

impl Compiler {
    /// The cache, if it may answer in the place of the stages: a listener that may change what they make has to see them.
    fn result_cache(&self) -> Option<&Cache> {
        let free = self.listeners.iter().all(|listener| listener.checkpoints().is_empty());
        self.results.as_ref().filter(|_| free)
    }

    /// Where what is known of kernels may be taken from.
    pub(super) fn known_kernels(&self) -> Option<&Cache> {
        self.result_cache().filter(|cache| !cache.verifies())
    }

    /// Whether results are kept.
    pub(super) fn keeps_results(&self) -> bool {
        self.result_cache().is_some()
    }

    /// What a service is asked for about these requests, each with what identifies its content. `None` without a service.
    pub(super) fn ahead<'a, 'c: 'a>(
        &self,
        requests: impl ExactSizeIterator<Item = (&'a Request<'c>, Option<&'a Key>)>,
    ) -> Option<Ahead> {
        self.result_cache().filter(|cache| cache.remote().is_some())?;
        let found = (0..requests.len().div_ceil(Ahead::AT_ONCE)).map(|_| OnceLock::new());
        Some(Ahead {
            found: found.collect(),
            keys: requests
                .map(|(request, content)| self.request_key(&Described::of(request, content?)))
                .collect(),
        })
    }

    /// Carries out one request, unless its result is known. `content` identifies what it compiles; `ahead` looks up many at once,
    /// of which this is the one with the number.
    pub(super) fn carry_out(
        &self,
        request: Request<'_>,
        content: Option<&Key>,
        ahead: Option<(&Ahead, usize)>,
        helpers: Helpers<'_>,
    ) -> Result<Outcome, Error> {
        let name = request.name.clone();
        let described = content.map(|content| Described::of(&request, content));
        let key = || self.request_key(described.as_ref()?);
        let kept = Kept {
            is_claimed: true,
            what: "a module",
            module: &name,
            same: |known: &Outcome, made| {
                known
                    .images
                    .iter()
                    .map(|(_, bytes)| bytes)
                    .eq(made.images.iter().map(|(_, bytes)| bytes))
            },
            may_be_kept: |outcome| names_no_place(&outcome.warnings),
        };
        let interrupt = Interrupt::new(&self.cancellation, request.options.time_limit);
        let stop = || interrupt.check().is_err();
        let look = |cache: &Cache, key: &Key| match ahead {
            Some((ahead, index)) => ahead.get(cache, index, key),
            None => cache.get(key),
        };
        let Made { mut value, from, kept } = get_or_make(self.result_cache(), key, &kept, &stop, look, || {
            job::run(self, request, helpers)
        })?;
        value.kept = kept;
        if let Some(from) = from {
            value.stages.clear();
            value.decisions.push(taken(from));
            for warning in &mut value.warnings {
                warning.module = Some(name.clone());
            }
        }
        Ok(value)
    }

    fn request_key(&self, described: &Described) -> Option<Key> {
        let key = begin("module")
            .field("content", described.content.as_bytes())
            .field("made", postcard::to_allocvec(&described.made).ok()?);
        let key = self.made_with(key, &described.options, described.made.0.vendor())?;
        Some(key.finish())
    }

    /// What is known of whole inputs.
    pub(super) fn known_artifacts(&self, keys: &[Option<Key>]) -> Vec<Option<Vec<Artifact>>> {
        let Some(cache) = self.known_kernels() else {
            return keys.iter().map(|_| None).collect();
        };
        let found = cache.get_all(keys).into_iter();
        found.map(|found| Self::artifacts(cache, found?)).collect()
    }

    fn artifacts(cache: &Cache, (bytes, from): Found) -> Option<Vec<Artifact>> {
        match postcard::from_bytes::<Vec<(StoredArtifact, Bytes<'_>)>>(&bytes) {
            Ok(stored) => stored
                .into_iter()
                .map(|(artifact, bytes)| Some(artifact.taken(bytes.found(cache)?, from)))
                .collect(),
            Err(_) => {
                cache.note(CacheError::Undecodable { what: "an input" });
                None
            }
        }
    }

    /// Keeps what came of a whole input, if nothing has changed since the key was computed.
    /// `images`: where the bytes of each are kept already.
    pub(super) fn keep_artifacts(
        &self,
        before: Option<Key>,
        after: Option<Key>,
        artifacts: &[Artifact],
        images: &[Option<KeptImage>],
    ) {
        let Some((cache, key)) = self.result_cache().zip(before.filter(|_| before == after)) else {
            return;
        };
        if artifacts.iter().all(|artifact| names_no_place(&artifact.warnings)) {
            let images = images.iter().copied().chain(std::iter::repeat(None));
            let stored = artifacts.iter().zip(images).map(|(artifact, image)| {
                let bytes = match image {
                    // A service is asked once.
                    Some((key, place)) if artifact.bytes.len() >= LEAST_BYTES_ELSEWHERE && cache.remote().is_none() => {
                        Bytes::Elsewhere(*key.as_bytes(), place)
                    }
                    _ => Bytes::Here(Cow::Borrowed(&artifact.bytes)),
                };
                (StoredArtifact::of(artifact), bytes)
            });
            let stored: Vec<(StoredArtifact, Bytes<'_>)> = stored.collect();
            if let Ok(bytes) = postcard::to_allocvec(&stored) {
                cache.put(&key, bytes);
            }
        }
    }

    /// The key of an input as it was given. `None` where nothing is kept.
    pub(super) fn source_key(&self, name: &str, bytes: &[u8], targets: &Targets, emit: Emit) -> Option<Key> {
        self.result_cache()?;
        let has = |word: &str| match std::str::from_utf8(bytes) {
            Ok(text) => text.contains(word),
            Err(_) => bytes.windows(word.len()).any(|window| window == word.as_bytes()),
        };
        // The whole name is in the output where places are: in debug info, and in the messages of assertions.
        let shows_places = self.options.debug != DebugLevel::None || has("assert");
        let file = name.rsplit('/').next().unwrap_or(name);
        let key = begin("source")
            .field("name", if shows_places { name } else { file })
            .field("bytes", bytes)
            .field("emit", emit.name());
        let key = with_targets(key, targets);
        // Both vendors: what the input's own attributes ask for is not known yet.
        let key = self.made_with(key, &self.options, Vendor::Nvidia)?;
        let key = self.made_with(key, &self.options, Vendor::Amd)?;
        Some(key.finish())
    }

    /// Adds the options, the libraries and the tools. `None` where one cannot be read: compiling will tell.
    pub(super) fn made_with(&self, key: KeyBuilder, options: &Options, vendor: Vendor) -> Option<KeyBuilder> {
        let mut key = options.identity().fold(key, |key, (name, value)| {
            key.field("option", name).field("value", value)
        });
        let linked = options.device_link.iter().flat_map(|link| &link.objects);
        for (kind, library) in [("library", &options.libraries)]
            .into_iter()
            .flat_map(|(kind, libraries)| libraries.iter().map(move |library| (kind, library)))
            .chain(linked.map(|object| ("object", object)))
        {
            // Its name is in messages and, for objects, in what is reported.
            key = key.field(kind, library.name());
            key = match library {
                Library::File(path) => key.field(
                    kind,
                    crate::read_file::read_file(path, crate::read_file::MOST_BYTES).ok()?,
                ),
                Library::Memory { bytes, .. } => key.field(kind, bytes),
            };
        }
        let (libraries, tools): (&[VendorLibrary], String) = match vendor {
            Vendor::Nvidia => (
                &[VendorLibrary::Libdevice],
                self.ptx_to_cubin.identity(options.ptx_compiler),
            ),
            Vendor::Amd => (&[VendorLibrary::Ocml, VendorLibrary::Ockl], String::new()),
        };
        for library in libraries {
            key = match self.vendor_digest(*library) {
                Some(digest) => key.field("vendor library", digest.as_bytes()),
                None => key.field("no vendor library", []),
            };
        }
        Some(key.field("tools", tools))
    }
}

/// Adds what is compiled for.
fn with_targets(key: KeyBuilder, targets: &Targets) -> KeyBuilder {
    match targets {
        Targets::Attributes => key.field("targets", "attributes"),
        Targets::List(list) => list
            .iter()
            .fold(key, |key, target| key.field("target", target.to_string())),
        Targets::Plan(plan) => {
            let key = key.field("include-ptx", plan.include_ptx.to_string());
            let key = plan
                .notes
                .iter()
                .fold(key, |key, note| key.field("note", note.to_string()));
            plan.generations.iter().fold(key, |key, generation| {
                let key = key.field("generation", generation.target.to_string());
                let images = generation.images.iter();
                images.fold(key, |key, image| key.field("image", image.to_string()))
            })
        }
    }
}

/// What a request is made of, as far as its key is over it.
struct Described {
    content: Key,
    /// What is made of it: target, products, and what there is to say about them.
    made: (Target, Vec<Product>, Vec<String>),
    options: Options,
}

impl Described {
    fn of(request: &Request<'_>, content: &Key) -> Self {
        Self {
            content: *content,
            made: (request.target, request.products.clone(), request.notes.clone()),
            options: request.options.clone(),
        }
    }
}

fn names_no_place(warnings: &[Warning]) -> bool {
    warnings.iter().all(|warning| warning.location.is_none())
}

/// That a result was known.
pub(super) fn taken(from: Source) -> Decision {
    Decision {
        stage: Stage::Cache,
        choice: from.name().to_owned(),
        outcome: TAKEN.to_owned(),
    }
}

/// An artifact as it is kept, without its bytes.
#[derive(Serialize, Deserialize)]
struct StoredArtifact {
    module: String,
    format: Format,
    images: Vec<Image>,
    include_ptx: Option<String>,
    signatures: Vec<KernelSignature>,
    optimization: OptimizationLevel,
    decisions: Vec<Decision>,
    warnings: Vec<Warning>,
}

impl StoredArtifact {
    fn of(artifact: &Artifact) -> Self {
        let Artifact {
            input: _,
            module,
            format,
            bytes: _,
            images,
            include_ptx,
            signatures,
            optimization,
            decisions,
            warnings,
            stages: _,
        } = artifact;
        Self {
            module: module.clone(),
            format: *format,
            images: images.clone(),
            include_ptx: include_ptx.as_ref().map(ToString::to_string),
            signatures: signatures.clone(),
            optimization: *optimization,
            // Where it came from this time is not where it comes from next time.
            decisions: decisions
                .iter()
                .filter(|decision| decision.stage != Stage::Cache)
                .cloned()
                .collect(),
            warnings: warnings.clone(),
        }
    }

    fn taken(self, bytes: Vec<u8>, from: Source) -> Artifact {
        let Self {
            module,
            format,
            images,
            include_ptx,
            signatures,
            optimization,
            mut decisions,
            warnings,
        } = self;
        decisions.push(taken(from));
        Artifact {
            input: None,
            module,
            format,
            bytes,
            images,
            include_ptx: include_ptx.and_then(|policy| policy.parse().ok()),
            signatures,
            optimization,
            decisions,
            warnings,
            stages: Vec::new(),
        }
    }
}

/// An image of a request, which is kept under this key: which one of the request.
pub(super) type KeptImage = (Key, usize);

/// Large artifacts that are images of a request are not kept once more.
const LEAST_BYTES_ELSEWHERE: usize = 64 << 10;

/// The bytes of an artifact, which are not copied to be kept.
#[derive(Serialize, Deserialize)]
enum Bytes<'a> {
    Here(#[serde(serialize_with = "stored_bytes::serialize", deserialize_with = "owned_bytes")] Cow<'a, [u8]>),
    Elsewhere([u8; 32], usize),
}

impl Bytes<'_> {
    /// `None` where they are not kept any more.
    fn found(self, cache: &Cache) -> Option<Vec<u8>> {
        match self {
            Self::Here(bytes) => Some(bytes.into_owned()),
            Self::Elsewhere(key, place) => {
                let (bytes, _) = cache.get(&Key::of_bytes(key))?;
                let outcome: Outcome = postcard::from_bytes(&bytes).ok()?;
                Some(outcome.images.into_iter().nth(place)?.1)
            }
        }
    }
}

fn owned_bytes<'a, 'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'a, [u8]>, D::Error> {
    stored_bytes::deserialize(deserializer).map(Cow::Owned)
}

#[cfg(test)]
#[path = "cached_tests.rs"]
mod tests;
