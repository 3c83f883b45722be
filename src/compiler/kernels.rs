//! Machine code by the kernel: the kernels of a module are compiled apart, at the same time, and their cubins are joined to the
//! one that the PTX compiler makes of the whole. A kernel that another differs from in its name alone is compiled once, and
//! what was compiled before comes from the cache.

use std::{
    borrow::Cow,
    cell::Cell,
    collections::{HashMap, HashSet},
};

use super::{
    apart::Apart,
    cached::{Kept, Made, get_or_make, machine_code_key, taken},
    kernel_groups::{PtxTraits, groups, log_of_all, of_several},
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
        ptx_components::{PtxComponent, components},
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
pub(super) struct Stored(
    #[serde(with = "stored_bytes")] Vec<u8>,
    Cubin,
    /// Whether it is known to be one that can be joined.
    bool,
);

impl Stored {
    pub(super) fn new(mut cubin: Cubin) -> Self {
        Self(std::mem::take(&mut cubin.bytes), cubin, false)
    }

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
            let compile = |text: &str| compiler.compile_until(text, chip, options, self.choice, self.interrupt);
            let fitted = self.with_best_bounds(&whole, compile);
            fitted.map(|cubin| (cubin, false))
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
        let has_places = self.has_places() || has_lines(ptx);
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

    pub(super) fn compile(&self, text: &str) -> Result<Cubin, SerializeError> {
        let Self { chip, options, .. } = self;
        let compile = |text: &str| {
            self.compiler
                .compile_kernel(text, chip, options, self.choice, self.interrupt)
        };
        self.with_best_bounds(text, compile)
    }

    /// `compile` says of the cubin whether it is known to be one that can be joined.
    pub(super) fn get_or_compile(
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

    pub(super) fn key(&self, content: Content, tools: &str) -> Option<Key> {
        let how = postcard::to_allocvec(&(self.options, self.choice)).ok()?;
        let fields: [(&str, &[u8]); 5] = [
            ("ptx", &content.0),
            ("chip", self.chip.as_bytes()),
            ("options", &how),
            ("tools", tools.as_bytes()),
            ("registers", b"with the best bounds"),
        ];
        Some(machine_code_key("cubin", &fields))
    }
}

/// Whether instructions say the lines that they come of.
pub(super) fn has_lines(ptx: &str) -> bool {
    ptx.contains(".loc ") || ptx.contains(".loc\t")
}

/// What of a module is compiled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    /// A kernel, alone or as the first of a call.
    Kernel,
    /// A kernel whose call has another one already.
    OfCall,
}

/// Components of PTX as they are compiled. None where a text does not have the documented form.
pub(super) fn kernels_of(components: &[PtxComponent<'_>]) -> Vec<KernelPtx<'static>> {
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
pub(super) fn join(made: &[(&Stored, bool)], kernels: &[(Option<&str>, usize)], helpers: Helpers<'_>) -> Option<Cubin> {
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
