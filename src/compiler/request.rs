//! One unit of work: one module, one run of code generation, and the images that come from it.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use melior::ir::{BlockLike, operation::OperationLike};
use serde::{Deserialize, Serialize};

use super::{
    cached::TAKEN,
    components::{Component, components},
    input::InputKind,
    module_text::ModuleText,
    stored_bytes,
};
use crate::{
    bridge::{LlvmError, edit::OwnedModule, mlir::place_of},
    cache::Key,
    error::Location,
    options::{Library, OptimizationLevel, Options},
    report::{Decision, Format, Image, KernelSignature, Warning},
    stage::{Stage, StageTime, Subject},
    target::{PtxPolicy, Target},
};

/// A module with one `gpu.module`, from which the requests for all of its targets start. Lowering changes a module: whoever
/// lowers it takes a copy when its turn comes, and the last one the module itself, so that there are as many copies as threads
/// and not as requests.
#[derive(Clone, Debug)]
pub(crate) struct SharedModule<'c> {
    module: Arc<Mutex<OwnedModule<'c>>>,
    divided: Divided,
    text: Option<Arc<ModuleText>>,
}

/// The kernels of a module that can be compiled apart, once somebody has looked for them: their text is what the module's content
/// is told by, and what each of its kernels is.
pub(super) type Divided = Arc<OnceLock<Option<Arc<[Component]>>>>;

impl<'c> SharedModule<'c> {
    pub(super) fn new(module: OwnedModule<'c>) -> Self {
        Self {
            module: Arc::new(Mutex::new(module)),
            divided: Divided::default(),
            text: None,
        }
    }

    /// Notes the text that it was read from, which was divided.
    pub(super) fn set_text(&mut self, text: &Arc<ModuleText>) {
        self.text = Some(Arc::clone(text));
    }

    /// The module, to be looked at. Nobody copies it meanwhile.
    pub(super) fn lock(&self) -> MutexGuard<'_, OwnedModule<'c>> {
        self.module.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its kernels, if they can be compiled apart.
    pub(super) fn components(&self) -> Option<Arc<[Component]>> {
        let find = || match self.text.as_ref().filter(|text| text.is_partial()) {
            Some(text) => text.components(&self.lock()).map(Arc::from),
            None => components(self.lock().module().body().first_operation()?, None).map(Arc::from),
        };
        self.divided.get_or_init(find).clone()
    }

    /// Where that is noted, and the text that it was read from.
    pub(super) fn divided(&self) -> (Divided, Option<Arc<ModuleText>>) {
        (Arc::clone(&self.divided), self.text.clone())
    }

    fn take(self) -> Result<OwnedModule<'c>, LlvmError> {
        match Arc::try_unwrap(self.module) {
            Ok(module) => Ok(module.into_inner().unwrap_or_else(PoisonError::into_inner)),
            Err(shared) => {
                let module = shared.lock().unwrap_or_else(PoisonError::into_inner);
                module.copy()
            }
        }
    }
}

/// What is compiled; MLIR in the form `M`.
#[derive(Clone, Debug)]
pub(crate) enum Source<M> {
    /// A module with one `gpu.module`.
    Mlir(M),
    /// LLVM IR, text or bitcode.
    Llvm(Arc<[u8]>),
    /// PTX.
    Ptx(Arc<str>),
}

impl<'c> Source<SharedModule<'c>> {
    /// The same with a module that may be changed.
    pub(super) fn take(self) -> Result<Source<OwnedModule<'c>>, LlvmError> {
        Ok(match self {
            Self::Mlir(module) => Source::Mlir(module.take()?),
            Self::Llvm(bytes) => Source::Llvm(bytes),
            Self::Ptx(text) => Source::Ptx(text),
        })
    }

    pub(super) const fn kind(&self) -> InputKind {
        match self {
            Self::Mlir(_) => InputKind::Mlir,
            Self::Llvm(_) => InputKind::Llvm,
            Self::Ptx(_) => InputKind::Ptx,
        }
    }
}

/// One module of a request.
#[derive(Debug)]
pub(crate) struct Part<M> {
    /// Name in messages.
    pub name: String,
    /// The module.
    pub source: Source<M>,
}

/// One thing that a request makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Product {
    /// What it is for: the target of the request, or another chip that its PTX is compiled for.
    pub target: Target,
    /// What it is.
    pub format: Format,
}

impl Product {
    /// Whether one of NVIDIA's compilers takes part.
    pub(super) const fn needs_ptx_compiler(&self) -> bool {
        matches!(self.target, Target::Nvidia(_)) && matches!(self.format, Format::Cubin | Format::Object)
    }
}

/// One module, or several that are joined, to be compiled with one run of code generation.
#[derive(Debug)]
pub(crate) struct Request<'c> {
    /// Name in results and messages.
    pub name: String,
    /// Which module of the input it is, counted from 0. Containers hold the images of one module.
    pub module: usize,
    /// What to compile: one module, or the modules that are joined.
    pub parts: Vec<Part<SharedModule<'c>>>,
    /// What code is generated for.
    pub target: Target,
    /// What is made of it, in order. Never empty.
    pub products: Vec<Product>,
    /// How.
    pub options: Options,
    /// Which PTX the module's container is to hold.
    pub include_ptx: PtxPolicy,
    /// What there is to say about the plan.
    pub notes: Vec<String>,
    /// Which of the module's target attributes asked for it, counted from 0; 0 where none did.
    pub position: usize,
}

impl Request<'_> {
    /// What is compiled. Where parts differ, what has the longest way to go.
    pub(super) fn input(&self) -> InputKind {
        let has = |kind| self.parts.iter().any(|part| part.source.kind() == kind);
        if has(InputKind::Mlir) {
            InputKind::Mlir
        } else if has(InputKind::Llvm) {
            InputKind::Llvm
        } else {
            InputKind::Ptx
        }
    }

    /// Where the first module that is MLIR stands: what an error has to do with that has no place of its own.
    pub(super) fn place(&self) -> Option<Location> {
        self.parts.iter().find_map(|part| {
            let Source::Mlir(module) = &part.source else {
                return None;
            };
            let module = module.lock();
            let place = place_of(module.module().body().first_operation()?.location());
            (!place.is_unknown()).then_some(place)
        })
    }

    /// Joined with modules, PTX is an object like others.
    pub(super) fn link_ptx_as_objects(&mut self) {
        if self.parts.len() < 2 || self.input() == InputKind::Ptx {
            return;
        }
        let Some(link) = &mut self.options.device_link else {
            return;
        };
        self.parts.retain(|part| {
            let Source::Ptx(text) = &part.source else { return true };
            link.objects.push(Library::Memory {
                name: part.name.clone(),
                bytes: text.as_bytes().into(),
            });
            false
        });
    }

    /// Whether objects are linked with it.
    pub(super) fn links_objects(&self) -> bool {
        self.options
            .device_link
            .as_ref()
            .is_some_and(|link| !link.objects.is_empty())
    }

    /// The files of libraries and objects that may be linked with it.
    pub(super) fn linked_files(&self) -> Vec<PathBuf> {
        let objects = self.options.device_link.iter().flat_map(|link| &link.objects);
        let libraries = self.options.libraries.iter().chain(objects);
        libraries
            .filter_map(|library| match library {
                Library::File(path) => Some(path.clone()),
                Library::Memory { .. } => None,
            })
            .collect()
    }

    pub(super) fn origin(&self) -> Origin {
        Origin {
            name: self.name.clone(),
            module: self.module,
            target: self.target,
            position: self.position,
            options: self.options.clone(),
            include_ptx: self.include_ptx.clone(),
        }
    }
}

/// What is known of a request after it was carried out.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub name: String,
    pub module: usize,
    pub target: Target,
    pub position: usize,
    pub options: Options,
    /// Which PTX the module's fat binary is to hold.
    pub include_ptx: PtxPolicy,
}

impl Origin {
    /// What progress is told about.
    pub(super) fn subject(&self) -> Subject<'_> {
        Subject {
            module: &self.name,
            target: &self.target,
        }
    }
}

/// What a request made. It is kept in the cache, and passed from one process to another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// The images and their bytes, in the order of the request's products.
    #[serde(with = "stored_bytes::of_images")]
    pub images: Vec<(Image, Vec<u8>)>,
    /// The kernels as MLIR declares them.
    pub signatures: Vec<KernelSignature>,
    /// The optimisation level that was used.
    pub optimization: OptimizationLevel,
    /// The choices on the way.
    pub decisions: Vec<Decision>,
    /// Warnings.
    pub warnings: Vec<Warning>,
    /// How long each stage took.
    pub stages: Vec<StageTime>,
    /// Under which key it is kept.
    #[serde(skip)]
    pub kept: Option<Key>,
}

impl Outcome {
    /// Whether it was known, and nothing was compiled.
    pub(super) fn is_from_cache(&self) -> bool {
        self.decisions
            .iter()
            .any(|decision| decision.stage == Stage::Cache && decision.outcome == TAKEN)
    }

    /// The same for a module that is identical: its warnings name that module, and its time was spent already.
    pub(super) fn shared_with(&self, first: &str, other: &str) -> Self {
        let mut shared = self.clone();
        for warning in &mut shared.warnings {
            warning.module = Some(other.to_owned());
        }
        shared.stages.clear();
        shared.decisions = vec![Decision {
            stage: Stage::Plan,
            choice: format!("identical to module {first}"),
            outcome: "serialized once".to_owned(),
        }];
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::input::{context, parse};

    #[test]
    fn the_last_request_takes_the_module_itself_and_the_others_copies() {
        let context = context();
        let module = parse(&context, "m.mlir", b"gpu.module @m {}").expect("parses");
        let place = |module: &OwnedModule<'_>| module.module().as_operation().to_raw().ptr;
        let first = SharedModule::new(OwnedModule::new(module).expect("closed"));
        let second = first.clone();
        let original = place(&first.lock());
        assert_ne!(place(&first.take().expect("taken")), original);
        assert_eq!(place(&second.take().expect("taken")), original);
    }
}
