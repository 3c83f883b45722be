//! From a whole program, host code and kernels, to the file that is carried to another machine, and the command that
//! finishes it there.
//!
//! | step | where |
//! |---|---|
//! | what has to be embedded, for which chips and in which form | `device.rs`, `precompiled.rs`, [`images`](super::images) |
//! | host code with stubs, and what registers them | `host`, `entries`, `embed`, `registration` |
//! | kernels as libomptarget calls them | `openmp.rs` |
//! | the file | `host_file.rs`, `profile` |
//! | a look at it | [`mod@check`] |
//! | the command | [`finish`] |

mod device;
mod dialect;
pub mod finish;
mod host_file;
mod makers;
mod openmp;
mod precompiled;

use melior::ir::{
    Module,
    operation::{OperationLike, OperationRef},
};

use self::{
    device::{Account, DeviceImage},
    makers::Makers,
};
pub use self::{
    dialect::{ExportedModule, export_module},
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
    release::{ClangRelease, FinishWith},
    triple::HostTriple,
};
use crate::{
    Target,
    bridge::mlir::{context_of, operations, place_of, shown},
    compiler::{self, Compiler, InputKind},
    device::lower::name_of,
    error::{Error, Failure},
    report::Warning,
    stage::Stage,
    target::Vendor,
    toolkit::Toolkit,
};

/// What is carried over, and what finishes it there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportForm {
    /// A host object with offload entries and embedded images, which clang's linker wrapper finishes. No IR crosses.
    Object(FinishWith),
    /// Textual LLVM IR of the host code, which clang compiles and finishes.
    Llvm(FinishWith),
    /// The same as bitcode.
    Bitcode(FinishWith),
    /// A host object that registers its kernels by itself: any linker finishes it. The form that carries PTX.
    SelfRegistering,
}

impl ExportForm {
    /// The form with a name of the command line, `obj`, `ll`, `bc` or `self`, and what finishes it.
    ///
    /// # Errors
    ///
    /// [`OffloadError`] for another name, and where a clang is missing or superfluous.
    pub fn named(name: &str, finish_with: Option<FinishWith>) -> Result<Self, OffloadError> {
        let by_clang = match name {
            "obj" => Self::Object,
            "ll" => Self::Llvm,
            "bc" => Self::Bitcode,
            "self" => {
                return match finish_with {
                    None => Ok(Self::SelfRegistering),
                    Some(_) => Err(OffloadError::new(
                        "a program that registers itself is finished by any linker: leave out what finishes it \
                         (--finish-with)",
                    )),
                };
            }
            _ => {
                return Err(OffloadError::new(format!(
                    "unknown form '{name}': expected obj, ll, bc or self"
                )));
            }
        };
        finish_with.map(by_clang).ok_or_else(|| {
            OffloadError::new(format!(
                "say which clang finishes the program on the other machine (--finish-with clang-19,cuda-12.4): the layout of \
                 the offload entries differs from release to release; --emit self needs no clang, and was not asked for \
                 ({name} was)"
            ))
        })
    }

    /// The usual extension of its file, without the dot.
    #[must_use]
    pub const fn extension(&self) -> &'static str {
        match self {
            Self::Object(_) | Self::SelfRegistering => "o",
            Self::Llvm(_) => "ll",
            Self::Bitcode(_) => "bc",
        }
    }

    /// Whether the host code crosses as IR.
    #[must_use]
    pub const fn is_ir(&self) -> bool {
        matches!(self, Self::Llvm(_) | Self::Bitcode(_))
    }

    /// What finishes it, unless any linker does.
    #[must_use]
    pub const fn finish_with(&self) -> Option<&FinishWith> {
        match self {
            Self::Object(finish_with) | Self::Llvm(finish_with) | Self::Bitcode(finish_with) => Some(finish_with),
            Self::SelfRegistering => None,
        }
    }
}

/// How a program is exported.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// What is carried over, and what finishes it there.
    pub form: ExportForm,
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
    /// A program with unique names, for the runtime of its targets.
    pub fn new(form: ExportForm, unit: impl Into<String>, triple: HostTriple) -> Self {
        Self {
            form,
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
///     offload::{ExportForm, ExportOptions, export},
/// };
///
/// let context = compiler::context();
/// let source = std::fs::read("app.mlir")?;
/// let module = compiler::parse(&context, "app.mlir", &source)?;
/// let form = ExportForm::Object("clang-19,cuda-12.4".parse()?);
/// let options = ExportOptions::new(form, "app.mlir", "x86_64-unknown-linux-gnu".parse()?);
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
    check_main(module).map_err(stage)?;
    let Prepared {
        host,
        mut parts,
        images,
        account,
        layouts,
        loaded_by,
        form,
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
    let bytes = host_file::write(&host, &parts, &form, level, &mut notes)?;
    let mut serves = match &layouts {
        Some(layouts) => confirm(&bytes, layouts)?,
        None => Vec::new(),
    };
    serves.retain(|release| loaded_by.contains(release));
    Ok(Export {
        bytes,
        finish: Finish::new(host.program(), form, serves),
        images: exported,
        notes,
        warnings,
        program: host.program().clone(),
    })
}

/// Refuses a `main` that the C library would call with other arguments than it takes.
fn check_main(module: &Module<'_>) -> Result<(), OffloadError> {
    let is_main = |operation: &OperationRef<'_, '_>| {
        ["func.func", "llvm.func"].contains(&name_of(operation).as_str())
            && compiler::symbol_name(*operation) == "main"
            && operation
                .parent_operation()
                .is_some_and(|parent| name_of(&parent) == "builtin.module")
    };
    let main = operations(module).into_iter().find(is_main);
    let Some((main, Ok(kind))) = main.map(|main| (main, main.attribute("function_type"))) else {
        return Ok(());
    };
    let kind = shown(&kind);
    let taken = kind
        .strip_prefix("!llvm.func<")
        .and_then(|text| Some(text.split_once(' ')?.1));
    let taken = taken.unwrap_or(&kind);
    if ["()", "(i32, !llvm.ptr", "(i32, ptr"]
        .iter()
        .any(|start| taken.starts_with(start))
    {
        return Ok(());
    }
    let problem = format!(
        "main has the type {kind}: the C library calls a program's main with nothing, or with (i32, !llvm.ptr). Allocate in main \
         what it takes, or give the function another name and call it from host code of yours"
    );
    Err(OffloadError::new(problem).at(place_of(main.location())))
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
        InputKind::Llvm | InputKind::Ptx => {
            let problem = "only MLIR can be exported, with host code that launches kernels; compile device code alone with \
                           `gpulower compile`";
            return Err(Error::new(Stage::Input, OffloadError::new(problem)).into());
        }
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
    /// The releases of clang whose runtime library loads the images.
    loaded_by: Vec<ClangRelease>,
    /// The form, with what was assumed about what finishes it.
    form: ExportForm,
}

/// Lowers the host code, compiles the kernels, and puts together what registers them.
fn prepare<'c>(
    compiler: &Compiler,
    module: &Module<'c>,
    targets: &[Target],
    options: &ExportOptions,
) -> Result<Prepared<'c>, Failure> {
    let targets = device::targets(module, targets, compiler.options())?;
    let runtime = runtime_of(&targets, options.runtime).map_err(stage)?;
    let host_options = HostOptions {
        names: options.names,
        modules_apart: options.form == ExportForm::SelfRegistering,
        bare_pointers: compiler.options().bare_pointers,
        index_bitwidth: compiler.options().index_bitwidth,
        releases: options
            .form
            .finish_with()
            .map_or_else(Vec::new, |asked| asked.clangs().to_vec()),
        ..HostOptions::new(runtime, options.triple.clone(), options.unit.clone())
    };
    let Some(asked) = options.form.finish_with() else {
        if runtime == Runtime::OpenMp {
            let problem = "a program for OpenMP is registered by clang's linker wrapper, not by itself: say which clang \
                           finishes it (--finish-with), or leave out --kind openmp";
            return Err(stage(OffloadError::new(problem)).into());
        }
        let host = host::lower(module, &host_options).map_err(stage)?;
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
            loaded_by: Vec::new(),
            form: ExportForm::SelfRegistering,
        });
    };
    check_runtime(asked, runtime).map_err(stage)?;
    let layouts = layout::choose(asked.clangs(), runtime).map_err(stage)?;
    let makers = Makers::new(compiler, &options.further_toolkits);
    let (finish_with, assumed) = makers.with_cuda(asked, &targets);
    let recipes = device::recipes(&targets, &finish_with, &makers, options.form.is_ir()).map_err(stage)?;
    let loaded_by = if runtime == Runtime::OpenMp {
        openmp::check_images(&recipes, &finish_with).map_err(stage)?;
        openmp::loaded_by(&recipes, &finish_with)
    } else {
        ClangRelease::all().collect()
    };
    let host = host::lower(module, &host_options).map_err(stage)?;
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
        loaded_by,
        form: match options.form {
            ExportForm::Llvm(_) => ExportForm::Llvm(finish_with),
            ExportForm::Bitcode(_) => ExportForm::Bitcode(finish_with),
            _ => ExportForm::Object(finish_with),
        },
    })
}

fn stage(error: impl Into<OffloadError>) -> Error {
    Error::new(Stage::Export, error.into())
}

/// The runtime for the targets, which have to be of one vendor for CUDA and HIP.
fn runtime_of(targets: &[Target], asked: Option<Runtime>) -> Result<Runtime, OffloadError> {
    let of = |vendor| targets.iter().find(|target| target.vendor() == vendor);
    let runtime = match (of(Vendor::Nvidia), of(Vendor::Amd)) {
        _ if asked == Some(Runtime::OpenMp) => Runtime::OpenMp,
        (Some(nvidia), Some(amd)) => {
            return Err(OffloadError::new(format!(
                "{nvidia} and {amd} cannot be in one program: its host code calls either CUDA or HIP; export once for each, \
                 or for OpenMP (--kind openmp)"
            )));
        }
        (None, Some(_)) => Runtime::Hip,
        _ => Runtime::Cuda,
    };
    match asked {
        Some(asked) if asked != runtime => Err(OffloadError::new(format!(
            "kind '{}' was asked for, and the targets need '{}'",
            asked.language(),
            runtime.language()
        ))),
        _ => Ok(runtime),
    }
}

fn check_runtime(finish_with: &FinishWith, runtime: Runtime) -> Result<(), OffloadError> {
    let (toolkit, needed) = match runtime {
        Runtime::Cuda => (finish_with.rocm().then(|| "rocm".to_owned()), "CUDA"),
        Runtime::Hip => (
            finish_with.cudas().first().map(|release| format!("cuda-{release}")),
            "HIP",
        ),
        Runtime::OpenMp => (None, "OpenMP"),
    };
    match toolkit {
        Some(toolkit) => Err(OffloadError::new(format!(
            "the program is finished with {toolkit}, and its targets need {needed}; name targets of the same vendor"
        ))),
        None => Ok(()),
    }
}

/// Reads the file once more, with the eyes of every release that it is for: a wrong one is not diagnosed by anything else.
fn confirm(bytes: &[u8], layouts: &LayoutSet) -> Result<Vec<ClangRelease>, Error> {
    let report = check::check(bytes).map_err(|error| unconfirmed(&error.to_string()))?;
    if report.is_complete(&layouts.releases) {
        let complete = report
            .releases
            .iter()
            .filter(|(_, registered)| registered.is_complete());
        return Ok(complete.map(|(release, _)| *release).collect());
    }
    let of_releases = layouts.releases.iter().filter_map(|release| {
        let registered = report.of(*release)?;
        let problem = registered.problems.first().cloned();
        (!registered.is_complete()).then(|| format!("{release}: {}", problem.unwrap_or_default()))
    });
    let problem = report.problems.iter().cloned().chain(of_releases).next();
    Err(unconfirmed(&problem.unwrap_or_default()))
}

fn unconfirmed(problem: &str) -> Error {
    let what = format!("what was exported is not what it has to be: {problem}");
    stage(OffloadError::internal(what))
}
