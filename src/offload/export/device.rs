//! The images of a program's kernels: which there have to be, and making them.

use melior::ir::{Attribute, Module, attribute::ArrayAttribute, operation::OperationRef};

use super::{
    super::{
        embed::ChipImage,
        error::OffloadError,
        host::HostProgram,
        images::{self, ImageRecipe},
        layout::ImageForm,
        openmp::{ARGUMENT_SIZE, KernelCall},
        profile::{self, IrSyntax},
        program::{Program, Runtime},
        release::FinishWith,
    },
    ExportedImage,
    makers::{Makers, release_in},
    openmp,
    precompiled::{self, Piece},
    stage,
};
use crate::{
    Target,
    bridge::{
        edit::copy_of,
        llvm::DeviceContext,
        mlir::{context_of, operations, set_attribute},
    },
    compiler::{Compiler, Emit, InputError, Targets, attribute, gpu_modules, symbol_name, target_attributes},
    device::lower::name_of,
    error::{Cause, Error, Failure},
    image::ptx,
    options::Options,
    report::{Artifact, Format, Warning},
    stage::Stage,
    target::{PtxIsa, Vendor},
};

/// An image to be embedded.
#[derive(Clone, Debug)]
pub(super) struct DeviceImage {
    /// Place of its module in the program.
    pub module: usize,
    pub target: Target,
    pub form: ImageForm,
    pub bytes: Vec<u8>,
    pub tool: Option<String>,
}

impl DeviceImage {
    pub(super) fn embedded(&self) -> ChipImage<'_> {
        ChipImage {
            target: self.target,
            form: self.form,
            bytes: &self.bytes,
        }
    }

    fn exported(&self, program: &Program) -> ExportedImage {
        let module = program.modules.get(self.module);
        ExportedImage {
            module: module.map(|module| module.symbol.clone()).unwrap_or_default(),
            target: self.target,
            form: self.form,
            bytes: self.bytes.len(),
            tool: self.tool.clone(),
        }
    }
}

/// What there is to say about the images.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub images: Vec<ExportedImage>,
    pub notes: Vec<String>,
    pub warnings: Vec<Warning>,
}

/// The fat binary or bundle of one module.
#[derive(Debug)]
pub(super) struct ModuleBinary {
    pub module: String,
    pub bytes: Vec<u8>,
    pub images: Vec<ExportedImage>,
}

/// What the program is exported for: the given targets, or those that its `gpu.module`s name, or else those of its
/// `gpu.binary`s.
pub(super) fn targets(module: &Module<'_>, given: &[Target], options: &Options) -> Result<Vec<Target>, Error> {
    let mut all = given.to_vec();
    if all.is_empty() {
        for operation in gpu_modules(module) {
            for target in target_attributes(operation) {
                let (target, _) = attribute::read(target, options)
                    .map_err(|cause| Error::new(Stage::Plan, cause).in_module(&symbol_name(operation)))?;
                all.push(target);
            }
        }
    }
    if all.is_empty() {
        for operation in operations(module).into_iter().filter(is_binary) {
            all.extend(
                precompiled::pieces(operation)
                    .map_err(stage)?
                    .iter()
                    .map(|piece| piece.target),
            );
        }
    }
    let mut each: Vec<Target> = Vec::new();
    for target in all {
        if !each.contains(&target) {
            each.push(target);
        }
    }
    if each.is_empty() && !gpu_modules(module).is_empty() {
        let location = None;
        return Err(Error::new(Stage::Plan, InputError::NoTarget { location }));
    }
    Ok(each)
}

fn is_binary(operation: &OperationRef<'_, '_>) -> bool {
    name_of(operation) == "gpu.binary"
}

/// How the image for each target is made.
pub(super) fn recipes(
    targets: &[Target],
    finish_with: &FinishWith,
    makers: &Makers<'_>,
    host_is_ir: bool,
) -> Result<Vec<(Target, ImageRecipe)>, OffloadError> {
    let releases = makers.releases();
    targets
        .iter()
        .map(|target| {
            let recipe = match target {
                Target::Nvidia(nvidia) => images::nvidia(finish_with, nvidia, &releases, host_is_ir)?,
                Target::Amd(amd) => images::amd(finish_with, amd, makers.first().options().code_object_version)?,
            };
            Ok((*target, recipe))
        })
        .collect()
}

/// The images for clang's linker wrapper, by module and then by target.
pub(super) fn images(
    makers: &Makers<'_>,
    host: &HostProgram<'_>,
    recipes: &[(Target, ImageRecipe)],
    finish_with: &FinishWith,
) -> Result<(Vec<DeviceImage>, Account), Failure> {
    let mut images: Vec<DeviceImage> = Vec::new();
    let mut account = Account::default();
    let program = host.program();
    let place = |symbol: &str| program.modules.iter().position(|module| module.symbol == symbol);

    let call = (program.runtime == Runtime::OpenMp).then(|| KernelCall::of(finish_with.clangs()));
    let has_source = !gpu_modules(host.device()).is_empty();
    let mut planned: Vec<ImageRecipe> = recipes.iter().map(|(_, recipe)| *recipe).collect();
    planned.dedup();
    for recipe in planned.into_iter().filter(|_| has_source) {
        let its: Vec<Target> = recipes
            .iter()
            .filter(|(_, other)| *other == recipe)
            .map(|(target, _)| *target)
            .collect();
        let (compiler, emit) = maker(makers, recipe);
        for artifact in compile(&compiler, host.device(), &its, emit, call)? {
            let Some(module) = place(&artifact.module) else {
                continue;
            };
            account.warnings.extend(artifact.warnings.iter().cloned());
            images.push(finished(artifact, module, recipe, &mut account.notes)?);
        }
    }

    for operation in operations(host.device()).into_iter().filter(is_binary) {
        let symbol = symbol_name(operation);
        let Some(module) = place(&symbol) else { continue };
        if call.is_some() {
            let problem = format!(
                "the module {symbol} was compiled before, and libomptarget hands over {ARGUMENT_SIZE} bytes for each argument, \
                 for which kernels have to be compiled: give it as a gpu.module"
            );
            return Err(stage(OffloadError::new(problem)).into());
        }
        let pieces = precompiled::pieces(operation).map_err(stage)?;
        for (target, recipe) in recipes {
            let piece = precompiled::choose(&symbol, &pieces, target, *recipe, finish_with).map_err(stage)?;
            let image = match piece.form() {
                Some(form) if precompiled::is_final(form, *recipe) => DeviceImage {
                    module,
                    target: *target,
                    form,
                    bytes: piece.bytes.clone(),
                    tool: None,
                },
                _ => {
                    let (compiler, emit) = maker(makers, *recipe);
                    let artifact = from_piece(&compiler, &symbol, piece, target, emit)?;
                    account.warnings.extend(artifact.warnings.iter().cloned());
                    finished(artifact, module, *recipe, &mut account.notes)?
                }
            };
            precompiled::check_kernels(program, module, &image).map_err(stage)?;
            images.push(image);
        }
    }
    images.sort_by_key(|image| {
        let place = recipes.iter().position(|(target, _)| *target == image.target);
        (image.module, place)
    });
    account.images = images.iter().map(|image| image.exported(program)).collect();
    Ok((images, account))
}

/// The compiler for a recipe, and what to ask it for.
fn maker(makers: &Makers<'_>, recipe: ImageRecipe) -> (Compiler, Emit) {
    let first = makers.first();
    match recipe {
        ImageRecipe::RelocatableCubin { ptxas } => (makers.with_ptxas(ptxas).to_builder().build(), Emit::Object),
        ImageRecipe::Ptx { .. } => (first.to_builder().build(), Emit::Ptx),
        ImageRecipe::Bitcode { .. } => (first.to_builder().build(), Emit::Bitcode),
        ImageRecipe::AmdObject { version } => {
            let options = Options {
                code_object_version: Some(version),
                ..first.options().clone()
            };
            (first.to_builder().options(options).build(), Emit::Object)
        }
    }
}

/// Compiles every `gpu.module` for the targets: with the options of its target attributes, where it has one for each of
/// them, else with those of the compiler alone. `call`: how libomptarget calls them, if it does.
fn compile(
    compiler: &Compiler,
    device: &Module<'_>,
    targets: &[Target],
    emit: Emit,
    call: Option<KernelCall>,
) -> Result<Vec<Artifact>, Failure> {
    let mut copy = copy_of(device).map_err(|error| Error::new(Stage::Plan, error))?;
    if let Some(call) = call {
        openmp::adapt(&mut copy, call, compiler.options()).map_err(stage)?;
    }
    let context = context_of(copy.context());
    let mut by_attributes = true;
    for operation in gpu_modules(&copy) {
        let kept: Vec<Attribute<'_>> = target_attributes(operation)
            .into_iter()
            .filter(|target| {
                let target = attribute::read(*target, compiler.options());
                target.is_ok_and(|(target, _)| targets.contains(&target))
            })
            .collect();
        by_attributes &= kept.len() == targets.len();
        if !kept.is_empty() {
            set_attribute(operation, "targets", ArrayAttribute::new(context, &kept).into());
        }
    }
    let targets = if by_attributes {
        Targets::Attributes
    } else {
        Targets::List(targets.to_vec())
    };
    Ok(compiler.compile(&copy, targets, emit)?.artifacts)
}

/// Compiles an image that was not machine code yet.
fn from_piece(
    compiler: &Compiler,
    symbol: &str,
    piece: &Piece,
    target: &Target,
    emit: Emit,
) -> Result<Artifact, Failure> {
    let name = format!("{symbol}.{}", piece.kind.extension());
    let mut compilation = compiler.compile_source(&name, &piece.bytes, &[*target], emit)?;
    compilation.artifacts.pop().ok_or_else(|| nothing_made(symbol).into())
}

/// What was compiled as an image, after a look at whether it is what was planned.
fn finished(
    artifact: Artifact,
    module: usize,
    recipe: ImageRecipe,
    notes: &mut Vec<String>,
) -> Result<DeviceImage, Error> {
    let Some(image) = artifact.images.first() else {
        return Err(nothing_made(&artifact.module));
    };
    let (target, tool) = (image.target, image.tool.clone());
    let bytes = match recipe {
        ImageRecipe::RelocatableCubin { ptxas } => {
            let made_by = tool.clone().unwrap_or_default();
            if release_in(&made_by) != Some(ptxas) {
                return Err(stage(OffloadError::new(format!(
                    "the cubin for {target} was to be made by the ptxas of CUDA {ptxas}, and {made_by} made it, whose cubins the \
                     nvlink on the other machine may refuse; ask for that ptxas alone with --ptx-compiler=ptxas, which says \
                     why it cannot"
                ))));
            }
            artifact.bytes
        }
        ImageRecipe::Ptx { newest } => {
            let text = String::from_utf8_lossy(&artifact.bytes);
            let version = ptx::header(&text).version;
            let found = version.map_or_else(|| "unknown".to_owned(), |(major, minor)| format!("{major}.{minor}"));
            match found.parse::<PtxIsa>() {
                Ok(isa) if isa <= newest => {}
                _ => {
                    let module = artifact.module;
                    return Err(stage(OffloadError::new(format!(
                        "the PTX of the module {module} for {target} is of version {found}, and the ptxas on the other machine \
                         reads up to {newest}; finish with a newer CUDA"
                    ))));
                }
            }
            artifact.bytes
        }
        ImageRecipe::Bitcode { oldest } => {
            let context = DeviceContext::new();
            let device = context
                .parse(&artifact.bytes, &artifact.module)
                .map_err(|error| stage(error).for_target(&target))?;
            let written = profile::write(&device, oldest, IrSyntax::Bitcode)
                .map_err(|error| stage(error).in_module(&artifact.module).for_target(&target))?;
            notes.extend(written.notes.iter().map(|note| format!("{}: {note}", artifact.module)));
            written.bytes
        }
        ImageRecipe::AmdObject { .. } => artifact.bytes,
    };
    Ok(DeviceImage {
        module,
        target,
        form: recipe.form(),
        bytes,
        tool,
    })
}

/// One fat binary (CUDA) or bundle (HIP) for each module of the program, in its order.
pub(super) fn containers(
    compiler: &Compiler,
    host: &HostProgram<'_>,
    targets: &[Target],
) -> Result<(Vec<Vec<u8>>, Account), Failure> {
    let is_amd = targets.iter().any(|target| target.vendor() == Vendor::Amd);
    let emit = if is_amd { Emit::Bundle } else { Emit::Fatbin };
    let mut account = Account::default();
    let mut made: Vec<ModuleBinary> = Vec::new();
    if !gpu_modules(host.device()).is_empty() {
        for artifact in compile(compiler, host.device(), targets, emit, None)? {
            account.warnings.extend(artifact.warnings.iter().cloned());
            made.push(module_binary(artifact));
        }
    }
    for operation in operations(host.device()).into_iter().filter(is_binary) {
        made.push(precompiled::container(compiler, host.program(), operation, targets)?);
    }
    let mut binaries = Vec::new();
    for module in &host.program().modules {
        let found = made.iter().position(|binary| binary.module == module.symbol);
        let Some(binary) = found.map(|found| made.swap_remove(found)) else {
            return Err(nothing_made(&module.symbol).into());
        };
        account.images.extend(binary.images);
        binaries.push(binary.bytes);
    }
    Ok((binaries, account))
}

fn module_binary(artifact: Artifact) -> ModuleBinary {
    let images = artifact.images.iter().map(|image| ExportedImage {
        module: artifact.module.clone(),
        target: image.target,
        form: match image.format {
            Format::Ptx => ImageForm::Ptx,
            Format::Hsaco => ImageForm::AmdLinked,
            _ => ImageForm::LinkedCubin,
        },
        bytes: image.bytes,
        tool: image.tool.clone(),
    });
    ModuleBinary {
        images: images.collect(),
        module: artifact.module,
        bytes: artifact.bytes,
    }
}

fn nothing_made(module: &str) -> Error {
    let problem = format!("nothing was made of the module {module}");
    Error::new(Stage::Export, Cause::Internal(problem))
}
