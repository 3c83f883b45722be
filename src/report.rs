//! What a compilation returns when it succeeds: artifacts, and how they came about.

use std::fmt;

use gpulower_runtime::{Context, LoadOptions, Module, ModuleError};
use serde::{Deserialize, Serialize, Serializer, ser::SerializeStruct};

use crate::{
    error::Location,
    image::resource::KernelResources,
    options::OptimizationLevel,
    stage::{Stage, StageTime},
    target::{PtxPolicy, Target},
};

gpulower_image::table! {
    /// What the bytes of an artifact are.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    #[non_exhaustive]
    pub enum Format: (&'static str, &'static str) {
        /// MLIR in the dialect of the target.
        Mlir = ("MLIR", "mlir");
        /// Textual LLVM IR, linked and optimised.
        Llvm = ("LLVM IR", "ll");
        /// LLVM bitcode, linked and optimised.
        Bitcode = ("bitcode", "bc");
        /// PTX.
        Ptx = ("PTX", "ptx");
        /// AMDGPU assembly.
        Asm = ("assembly", "s");
        /// NVIDIA's machine code as text. The library does not make it: a disassembler makes it of a cubin.
        Sass = ("SASS", "sass");
        /// A relocatable object: ELF for AMD, a relocatable cubin for NVIDIA.
        Object = ("object", "o");
        /// An NVIDIA cubin.
        Cubin = ("cubin", "cubin");
        /// An AMD code object, linked.
        Hsaco = ("hsaco", "hsaco");
        /// An NVIDIA fat binary.
        Fatbin = ("fat binary", "fatbin");
        /// A clang offload bundle, which HIP loads as its fat binary.
        Bundle = ("offload bundle", "hipfb");
        /// LLVM offload binaries, one for each image.
        Offload = ("offload binary", "offload");
    }
}

impl Format {
    /// Whether it holds images for several targets.
    pub const fn is_container(self) -> bool {
        matches!(self, Self::Fatbin | Self::Bundle | Self::Offload)
    }

    /// What people call it.
    pub const fn title(self) -> &'static str {
        self.row().0
    }

    /// The usual extension of a file, without the dot.
    pub const fn extension(self) -> &'static str {
        self.row().1
    }
}

/// A choice that was made, and why: which serializer ran, which were passed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The stage.
    pub stage: Stage,
    /// What was considered.
    pub choice: String,
    /// What became of it.
    pub outcome: String,
}

impl Decision {
    /// Something about the plan that a user may want to know.
    pub(crate) fn of_plan(note: String) -> Self {
        Self {
            stage: Stage::Plan,
            choice: "images".to_owned(),
            outcome: note,
        }
    }

    /// That so many pieces of something were kept.
    pub(crate) fn known(what: &str, known: usize, of: usize, pieces: &str) -> Self {
        Self {
            stage: Stage::Cache,
            choice: what.to_owned(),
            outcome: format!("{known} of {of} {pieces} taken from the cache"),
        }
    }
}

/// Something that deserves attention and did not stop the compilation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// The stage that found it.
    pub stage: Stage,
    /// The module.
    pub module: Option<String>,
    /// The target.
    pub target: Option<Target>,
    /// Where in the source, where that is known.
    pub location: Option<Location>,
    /// What it is.
    pub message: String,
}

/// All but the place.
impl fmt::Display for Warning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.stage.name())?;
        if let Some(module) = &self.module {
            write!(formatter, ", module {module}")?;
        }
        if let Some(target) = &self.target {
            write!(formatter, ", target {target}")?;
        }
        write!(formatter, ": {}", self.message)
    }
}

/// A kernel as the lowered MLIR declares it, in MLIR's syntax.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelSignature {
    /// The kernel's symbol.
    pub name: String,
    /// Its type, such as `!llvm.func<void (ptr, i64)>`.
    pub function_type: String,
    /// Attributes of its arguments, an array of dictionaries, if any.
    pub argument_attributes: Option<String>,
}

impl Warning {
    /// The location as editors follow it, `kernel.mlir:3:5`, where it is a position in a file; else in MLIR's syntax.
    pub fn place(&self) -> Option<String> {
        self.location.as_ref().map(ToString::to_string)
    }
}

/// One image of an artifact: what one kind of device loads.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Image {
    /// The target.
    pub target: Target,
    /// What the image is.
    pub format: Format,
    /// Its size in bytes, before a container compresses it.
    pub bytes: usize,
    /// The name and version of the tool that made the machine code, such as `ptxas 13.0.88` or `lld 22.1.8`.
    pub tool: Option<String>,
    /// Resources of each kernel; empty for formats that are not machine code.
    pub kernels: Vec<KernelResources>,
    /// What the vendor's tool said.
    pub log: String,
}

/// Which input of a call something came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputId {
    /// Its place among the inputs of the call, from 0 on.
    pub index: usize,
    /// The name that it was given.
    pub name: String,
}

/// One result: for one module and one target, or for one module and all targets where the format is a container.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Artifact {
    /// The input that it was made of; `None` for a module of the caller's own context, and where modules of several inputs
    /// became one image.
    pub input: Option<InputId>,
    /// The symbol of the `gpu.module`, or the name of the input.
    pub module: String,
    /// What the bytes are.
    pub format: Format,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The images in it, in their order: one, unless the format is a container.
    pub images: Vec<Image>,
    /// Which PTX was asked for; `None` without images of NVIDIA's, and for what is no container.
    pub include_ptx: Option<PtxPolicy>,
    /// The kernels as MLIR declares them; empty when the input was not MLIR.
    pub signatures: Vec<KernelSignature>,
    /// The optimisation level that was used.
    pub optimization: OptimizationLevel,
    /// The choices on the way.
    pub decisions: Vec<Decision>,
    /// Warnings for this artifact.
    pub warnings: Vec<Warning>,
    /// How long each stage took. Never part of `bytes`.
    pub stages: Vec<StageTime>,
}

impl Artifact {
    /// Loads what the context's device takes of it.
    ///
    /// # Errors
    ///
    /// [`ModuleError`], also for a form that no driver loads, such as LLVM IR.
    pub fn load(&self, context: &Context, options: &LoadOptions) -> Result<Module, ModuleError> {
        match self.format {
            Format::Ptx | Format::Cubin | Format::Hsaco | Format::Fatbin | Format::Bundle | Format::Offload => {}
            // The driver links a relocatable cubin; of AMD's objects the reader says that they are to be linked.
            Format::Object => {}
            Format::Mlir | Format::Llvm | Format::Bitcode | Format::Asm | Format::Sass => {
                return Err(ModuleError::NotMachineCode {
                    name: self.module.clone(),
                    title: self.format.title(),
                });
            }
        }
        Module::load(context, &self.module, &self.bytes, options)
    }

    /// The targets of its images, each once, in order.
    pub fn targets(&self) -> Vec<Target> {
        let mut targets = Vec::new();
        for image in &self.images {
            if !targets.contains(&image.target) {
                targets.push(image.target);
            }
        }
        targets
    }

    /// The targets as text: `sm_80, sm_90`.
    pub fn target_names(&self) -> String {
        let names: Vec<String> = self.targets().iter().map(ToString::to_string).collect();
        names.join(", ")
    }

    /// The kernels of all images.
    pub fn kernels(&self) -> impl Iterator<Item = &KernelResources> {
        self.images.iter().flat_map(|image| &image.kernels)
    }
}

impl Serialize for Artifact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Timing {
            stage: Stage,
            milliseconds: f64,
        }
        let stages: Vec<Timing> = self
            .stages
            .iter()
            .map(|entry| Timing {
                stage: entry.stage,
                // Microseconds are all that a wall clock is good for.
                milliseconds: (entry.time.as_secs_f64() * 1e6).round() / 1e3,
            })
            .collect();
        #[derive(Serialize)]
        struct Placed<'a> {
            #[serde(flatten)]
            warning: &'a Warning,
            file: Option<&'a str>,
            line: Option<u32>,
            column: Option<u32>,
        }
        let warnings: Vec<Placed<'_>> = self
            .warnings
            .iter()
            .map(|warning| {
                let location = warning.location.as_ref();
                Placed {
                    warning,
                    file: location.and_then(Location::file),
                    line: location.and_then(Location::line),
                    column: location.and_then(Location::column),
                }
            })
            .collect();
        let mut report = serializer.serialize_struct("Artifact", 7)?;
        report.serialize_field("module", &self.module)?;
        report.serialize_field("format", &self.format)?;
        report.serialize_field("bytes", &self.bytes.len())?;
        report.serialize_field("images", &self.images)?;
        report.serialize_field("stages", &stages)?;
        report.serialize_field("decisions", &self.decisions)?;
        report.serialize_field("warnings", &warnings)?;
        report.end()
    }
}

/// The result of one call: an artifact for each module and target, or for each module where the format is a container, in
/// the order of the input.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Compilation {
    /// The artifacts.
    pub artifacts: Vec<Artifact>,
    /// Warnings that belong to none of them, such as of the cache.
    pub warnings: Vec<Warning>,
}

impl Compilation {
    /// All warnings: those of no artifact, then in the order of the artifacts.
    pub fn warnings(&self) -> impl Iterator<Item = &Warning> {
        let artifacts = self.artifacts.iter().flat_map(|artifact| &artifact.warnings);
        self.warnings.iter().chain(artifacts)
    }
}
