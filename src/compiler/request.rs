//! One unit of work: one module, one run of code generation, and the images that come from it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::input::InputKind;
use crate::{
    bridge::mlir::OwnedModule,
    options::{Library, OptimizationLevel, Options},
    report::{Decision, Format, Image, KernelSignature, Warning},
    stage::{Stage, StageTime},
    target::{PtxPolicy, Target},
};

/// What a request starts from.
#[derive(Debug)]
pub(crate) enum Source<'c> {
    /// A module with one `gpu.module`.
    Mlir(OwnedModule<'c>),
    /// LLVM IR, text or bitcode.
    Llvm(Arc<[u8]>),
    /// PTX.
    Ptx(Arc<str>),
}

impl<'c> Source<'c> {
    /// A second handle on the same source; MLIR is cloned.
    pub(super) fn share(&self) -> Self {
        match self {
            Self::Mlir(module) => Self::Mlir(OwnedModule::clone_whole(module.module())),
            Self::Llvm(bytes) => Self::Llvm(Arc::clone(bytes)),
            Self::Ptx(text) => Self::Ptx(Arc::clone(text)),
        }
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
pub(crate) struct Part<'c> {
    /// Name in messages.
    pub name: String,
    /// The module.
    pub source: Source<'c>,
}

/// One thing that a request makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    pub parts: Vec<Part<'c>>,
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

/// What a request made. It is kept in the cache, and passed from one process to another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// The images and their bytes, in the order of the request's products.
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
}

impl Outcome {
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
