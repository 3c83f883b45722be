//! From a whole program, host code and kernels, to the file that is carried to another machine, and the command that
//! finishes it there.
//!
//! | step | where |
//! |---|---|
//! | what has to be embedded, for which chips and in which form | `device.rs`, `precompiled.rs`, [`images`](super::images) |
//! | host code with stubs, and what registers them | `host`, [`entries`], [`embed`], [`registration`] |
//! | the file | `host_file.rs`, [`profile`](super::profile) |
//! | a look at it | [`mod@check`] |
//! | the command | [`finish`] |

mod device;
mod dialect;
mod error;
pub mod finish;
mod host_file;
mod makers;
mod precompiled;

use std::{fmt, str::FromStr};

use melior::ir::Module;

use self::{
    device::{Account, DeviceImage},
    makers::Makers,
};
pub use self::{
    dialect::{ExportedModule, export_module},
    error::ExportError,
    finish::Finish,
};
use super::{
    check, embed, entries,
    error::OffloadError,
    host::{self, HostOptions, HostProgram, Names},
    ir_text::IrText,
    layout::{self, ImageForm, LayoutSet},
    program::{Program, Runtime},
    registration,
    release::FinishWith,
    triple::HostTriple,
};
use crate::{
    Target,
    bridge::mlir::context_of,
    compiler::{self, Compiler, InputKind},
    error::{Error, Failure},
    report::Warning,
    stage::Stage,
    target::Vendor,
    toolkit::Toolkit,
};

/// What is carried over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ExportForm {
    /// A host object with offload entries and embedded images, which clang's linker wrapper finishes. No IR crosses.
    #[default]
    Object,
    /// Textual LLVM IR of the host code, which clang compiles and finishes.
    Llvm,
    /// The same as bitcode.
    Bitcode,
    /// A host object that registers its kernels by itself: any linker finishes it. The form that carries PTX.
    SelfRegistering,
}

/// Names on the command line.
const FORMS: [(&str, ExportForm); 4] = [
    ("obj", ExportForm::Object),
    ("ll", ExportForm::Llvm),
    ("bc", ExportForm::Bitcode),
    ("self", ExportForm::SelfRegistering),
];

impl ExportForm {
    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        FORMS
            .iter()
            .find(|(_, form)| *form == self)
            .map_or("obj", |(name, _)| name)
    }

    /// The usual extension of its file, without the dot.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Object | Self::SelfRegistering => "o",
            Self::Llvm => "ll",
            Self::Bitcode => "bc",
        }
    }

    /// Whether the host code crosses as IR.
    #[must_use]
    pub const fn is_ir(self) -> bool {
        matches!(self, Self::Llvm | Self::Bitcode)
    }
}

impl fmt::Display for ExportForm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for ExportForm {
    type Err = ExportError;

    fn from_str(name: &str) -> Result<Self, ExportError> {
        FORMS
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, form)| *form)
            .ok_or_else(|| ExportError::UnknownForm { name: name.to_owned() })
    }
}

/// How a program is exported.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// What is carried over.
    pub form: ExportForm,
    /// What finishes it there. Needed for every form but [`ExportForm::SelfRegistering`].
    pub finish_with: Option<FinishWith>,
    /// The machine that it runs on.
    pub triple: HostTriple,
    /// Whose runtime the host code has to call; none for that of the targets.
    pub runtime: Option<Runtime>,
    /// What the program is called, such as its file's name without folders: a part of its kernels' names.
    pub unit: String,
    /// How kernels and device variables are named.
    pub names: Names,
    /// Further toolkits whose ptxas may be used: relocatable cubins have to be made by one that is not newer than the
    /// nvlink on the other machine.
    pub further_toolkits: Vec<Toolkit>,
}

impl ExportOptions {
    /// An object with unique names; what finishes it is still to be said.
    pub fn new(unit: impl Into<String>, triple: HostTriple) -> Self {
        Self {
            form: ExportForm::Object,
            finish_with: None,
            triple,
            runtime: None,
            unit: unit.into(),
            names: Names::Unique,
            further_toolkits: Vec::new(),
        }
    }
}

/// An image in an exported file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedImage {
    /// The device module.
    pub module: String,
    /// What it is for.
    pub target: Target,
    /// What it is.
    pub form: ImageForm,
    /// Its size in bytes.
    pub bytes: usize,
    /// The name and version of the tool that made it, where that is known.
    pub tool: Option<String>,
}

/// An exported program.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Export {
    /// The file to carry.
    pub bytes: Vec<u8>,
    /// What is in it.
    pub program: Program,
    /// The images, by module and then by target.
    pub images: Vec<ExportedImage>,
    /// How it is finished.
    pub finish: Finish,
    /// What was assumed or left out on the way.
    pub notes: Vec<String>,
    /// Warnings of the compilation of the kernels.
    pub warnings: Vec<Warning>,
}

/// Exports a program: its host code launches kernels of its `gpu.module`s, or of `gpu.binary`s that were compiled before.
///
/// With no targets, the kernels are compiled for the targets that the modules' target attributes name. The module is not
/// changed, but its context gets the dialects and passes that lowering needs.
///
/// ```no_run
/// use gpulower::{
///     Compiler, Target, compiler,
///     offload::{ExportOptions, export},
/// };
///
/// let context = compiler::context();
/// let source = std::fs::read("app.mlir")?;
/// let module = compiler::parse(&context, "app.mlir", &source)?;
/// let mut options = ExportOptions::new("app.mlir", "x86_64-unknown-linux-gnu".parse()?);
/// options.finish_with = Some("clang-19,cuda-12.4".parse()?);
/// let exported = export(
///     &Compiler::builder().build(),
///     &module,
///     &Target::parse_list("sm_80,sm_90")?,
///     &options,
/// )?;
/// std::fs::write("app.o", &exported.bytes)?;
/// println!("{}", exported.finish.commands("app.o", "app"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Failure`], with errors of the kind [`ErrorKind::Export`](crate::ErrorKind::Export) among others. Nothing has been written
/// then.
pub fn export(
    compiler: &Compiler,
    module: &Module<'_>,
    targets: &[Target],
    options: &ExportOptions,
) -> Result<Export, Failure> {
    compiler::with_deep_stack(|| export_program(compiler, module, targets, options))
}

fn export_program(
    compiler: &Compiler,
    module: &Module<'_>,
    targets: &[Target],
    options: &ExportOptions,
) -> Result<Export, Failure> {
    compiler::prepare(context_of(module.context()));
    let Prepared {
        host,
        mut parts,
        images,
        account,
        layouts,
        finish_with,
    } = prepare(compiler, module, targets, options)?;
    if let Some(layouts) = &layouts {
        let embedded: Vec<_> = images.iter().map(DeviceImage::embedded).collect();
        embed::add(&mut parts, &embedded, layouts).map_err(stage)?;
    }
    let Account {
        images: exported,
        mut notes,
        warnings,
    } = account;
    let level = compiler.options().optimization;
    let bytes = host_file::write(&host, &parts, options, level, finish_with.as_ref(), &mut notes)?;
    if let Some(layouts) = &layouts {
        confirm(&bytes, layouts)?;
    }
    Ok(Export {
        bytes,
        finish: Finish::new(host.program(), options, finish_with, layouts.as_ref()),
        images: exported,
        notes,
        warnings,
        program: host.program().clone(),
    })
}

/// Exports a program in memory, MLIR as text or bytecode. `name` is for messages.
///
/// # Errors
///
/// As [`export`]; and what is no MLIR.
pub fn export_source(
    compiler: &Compiler,
    name: &str,
    bytes: &[u8],
    targets: &[Target],
    options: &ExportOptions,
) -> Result<Export, Failure> {
    match InputKind::of(name, bytes).map_err(|error| Error::new(Stage::Input, error))? {
        InputKind::Mlir => {}
        InputKind::Llvm | InputKind::Ptx => return Err(Error::new(Stage::Input, ExportError::NotMlir).into()),
    }
    compiler::worker::reading(compiler, &[(name, bytes)], |inputs| {
        let bytes = inputs.first().map_or(bytes, |(_, bytes)| *bytes);
        compiler::Contexts::new(0).with(bytes.len(), Failure::is_fatal_in_mlir, |context| {
            let module = compiler::parse(context, name, bytes).map_err(|error| Error::new(Stage::Input, error))?;
            export(compiler, &module, targets, options)
        })
    })
}

/// A program whose parts are all there.
struct Prepared<'c> {
    /// The host code.
    host: HostProgram<'c>,
    /// What registers its kernels.
    parts: IrText,
    /// What has to be embedded, unless it registers itself.
    images: Vec<DeviceImage>,
    /// What there is to say of the images.
    account: Account,
    /// For which releases of clang, unless it registers itself.
    layouts: Option<LayoutSet>,
    /// What finishes it, with what was assumed.
    finish_with: Option<FinishWith>,
}

/// Lowers the host code, compiles the kernels, and puts together what registers them.
fn prepare<'c>(
    compiler: &Compiler,
    module: &Module<'c>,
    targets: &[Target],
    options: &ExportOptions,
) -> Result<Prepared<'c>, Failure> {
    let targets = device::targets(module, targets, compiler.options())?;
    let runtime = runtime_of(&targets).map_err(stage)?;
    if let Some(asked) = options.runtime.filter(|asked| *asked != runtime) {
        return Err(stage(ExportError::OtherRuntime { asked, needed: runtime }).into());
    }
    let host_options = HostOptions {
        names: options.names,
        modules_apart: options.form == ExportForm::SelfRegistering,
        bare_pointers: compiler.options().bare_pointers,
        index_bitwidth: compiler.options().index_bitwidth,
        ..HostOptions::new(runtime, options.triple.clone(), options.unit.clone())
    };
    if options.form == ExportForm::SelfRegistering {
        let host = host::lower(module, &host_options).map_err(offload)?;
        let (binaries, account) = device::containers(compiler, &host, &targets)?;
        let binaries: Vec<&[u8]> = binaries.iter().map(Vec::as_slice).collect();
        let mut parts = IrText::default();
        registration::add(&mut parts, host.program(), &binaries).map_err(stage)?;
        return Ok(Prepared {
            host,
            parts,
            images: Vec::new(),
            account,
            layouts: None,
            finish_with: None,
        });
    }

    let asked = options
        .finish_with
        .as_ref()
        .ok_or_else(|| stage(ExportError::NoFinishWith { form: options.form }))?;
    check_runtime(asked, runtime).map_err(stage)?;
    let layouts = layout::choose(asked.clangs(), runtime).map_err(stage)?;
    let makers = Makers::new(compiler, &options.further_toolkits);
    let (finish_with, assumed) = makers.with_cuda(asked, runtime);
    let recipes = device::recipes(&targets, &finish_with, &makers, options.form).map_err(stage)?;
    let host = host::lower(module, &host_options).map_err(offload)?;
    let (images, mut account) = device::images(&makers, &host, &recipes, &finish_with)?;
    account.notes.extend(assumed);

    let mut parts = IrText::default();
    entries::add(&mut parts, host.program(), &layouts).map_err(stage)?;
    Ok(Prepared {
        host,
        parts,
        images,
        account,
        layouts: Some(layouts),
        finish_with: Some(finish_with),
    })
}

fn stage(error: impl Into<ExportError>) -> Error {
    Error::new(Stage::Export, error.into())
}

fn offload(error: OffloadError) -> Error {
    Error::new(Stage::Export, error)
}

/// The runtime for the targets, which have to be of one vendor.
fn runtime_of(targets: &[Target]) -> Result<Runtime, ExportError> {
    let of = |vendor| targets.iter().find(|target| target.vendor() == vendor);
    match (of(Vendor::Nvidia), of(Vendor::Amd)) {
        (Some(nvidia), Some(amd)) => Err(ExportError::MixedVendors {
            nvidia: nvidia.to_string(),
            amd: amd.to_string(),
        }),
        (None, Some(_)) => Ok(Runtime::Hip),
        _ => Ok(Runtime::Cuda),
    }
}

fn check_runtime(finish_with: &FinishWith, runtime: Runtime) -> Result<(), ExportError> {
    match runtime {
        Runtime::Cuda if finish_with.rocm() => Err(ExportError::OtherToolkit {
            toolkit: "rocm".to_owned(),
            runtime: "CUDA",
        }),
        Runtime::Hip => match finish_with.cudas().first() {
            Some(release) => Err(ExportError::OtherToolkit {
                toolkit: format!("cuda-{release}"),
                runtime: "HIP",
            }),
            None => Ok(()),
        },
        Runtime::Cuda => Ok(()),
    }
}

/// Reads the file once more, with the eyes of every release that it is for: a wrong one is not diagnosed by anything else.
fn confirm(bytes: &[u8], layouts: &LayoutSet) -> Result<(), Error> {
    let report = check::check(bytes).map_err(|error| stage(ExportError::Unconfirmed(error.to_string())))?;
    if report.is_complete(&layouts.releases) {
        return Ok(());
    }
    let of_releases = layouts.releases.iter().filter_map(|release| {
        let registered = report.of(*release)?;
        let problem = registered.problems.first().cloned();
        (!registered.is_complete()).then(|| format!("{release}: {}", problem.unwrap_or_default()))
    });
    let problem = report.problems.iter().cloned().chain(of_releases).next();
    Err(stage(ExportError::Unconfirmed(problem.unwrap_or_default())))
}
