//! Device modules that were compiled before: `gpu.binary`s, with objects that may be images or containers of images.

use melior::ir::{
    attribute::ArrayAttribute,
    operation::{OperationLike, OperationRef},
};

use super::{
    super::{
        check::{WithLlvm, form_of, symbols_of},
        error::{OffloadError, known},
        images::{self, ImageRecipe},
        layout::{ImageForm, refusal},
        program::{Program, Runtime},
        release::{ClangRelease, FinishWith},
    },
    ExportedImage,
    device::{DeviceImage, ModuleBinary},
    makers::release_in,
    stage,
};
use crate::{
    FileKind, Target,
    bridge::mlir::read_gpu_object,
    compiler::{Compiler, Emit, attribute, symbol_name},
    error::Failure,
    image::{elf::Elf, producer},
    inspect::inspect_with,
    options::{Compression, Options},
    pack::{Member, Pack, PackFormat},
    target::Suffix,
};

/// An image in a `gpu.binary`.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub target: Target,
    pub kind: FileKind,
    pub bytes: Vec<u8>,
}

impl Piece {
    /// What it is to a linker wrapper, if it is anything to it.
    pub(super) fn form(&self) -> Option<ImageForm> {
        form_of(&self.bytes)
    }

    /// Whether it is PTX that can be compiled for a target: that of the same architecture, or of an older one without
    /// features of its own.
    fn is_ptx_for(&self, target: &Target) -> bool {
        let (Target::Nvidia(own), Target::Nvidia(wanted)) = (&self.target, target) else {
            return false;
        };
        let same = own.number() == wanted.number() && own.suffix() == wanted.suffix();
        self.kind == FileKind::Ptx && (same || (own.suffix() == Suffix::Plain && own.number() < wanted.number()))
    }

    fn name(&self) -> String {
        let form = self.form().map(|form| form.to_string());
        let kind = form.unwrap_or_else(|| self.kind.name().to_owned());
        format!("{kind} for {}", self.target)
    }
}

/// All images of a `gpu.binary`, those in containers too.
pub(super) fn pieces(operation: OperationRef<'_, '_>) -> Result<Vec<Piece>, OffloadError> {
    let module = symbol_name(operation);
    let problem = |problem: String| binary(&module, &problem);
    let objects = operation
        .attribute("objects")
        .ok()
        .and_then(|objects| ArrayAttribute::try_from(objects).ok())
        .ok_or_else(|| problem("it has no objects".to_owned()))?;
    let mut pieces = Vec::new();
    for object in (0..objects.len()).filter_map(|index| objects.element(index).ok()) {
        let Some((attribute, bytes)) = read_gpu_object(object) else {
            return Err(problem(format!("{object} is not a #gpu.object")));
        };
        let (named, _) = attribute::read(attribute, &Options::default()).map_err(|cause| problem(cause.to_string()))?;
        let mut found: Vec<(FileKind, Option<String>, Vec<u8>)> = Vec::new();
        let mut see = |image: &crate::inspect::Image, bytes: &[u8]| {
            found.push((image.kind, image.target.clone(), bytes.to_vec()));
        };
        let inspection =
            inspect_with(&module, &bytes, &mut see).map_err(|error| problem(format!("its object: {error}")))?;
        if let Some((place, what)) = inspection.problems().next() {
            return Err(problem(format!("its object is damaged: {place}: {what}")));
        }
        let alone = found.len() == 1;
        for (kind, target, bytes) in found {
            // A cubin or PTX on its own may say less than the attribute.
            let own = target.and_then(|target| target.parse::<Target>().ok());
            let target = match own {
                Some(own) if !alone || own.chip() != named.chip() => own,
                _ => named,
            };
            pieces.push(Piece { target, kind, bytes });
        }
    }
    Ok(pieces)
}

/// Whether an image of this form is embedded as it is.
pub(super) fn is_final(form: ImageForm, recipe: ImageRecipe) -> bool {
    match form {
        // What releases differ on is for `embed` to refuse, with the reason.
        ImageForm::RelocatableCubin | ImageForm::LinkedCubin | ImageForm::AmdObject(_) | ImageForm::AmdLinked => true,
        ImageForm::Ptx => matches!(recipe, ImageRecipe::Ptx { .. }),
        ImageForm::Bitcode => false,
    }
}

/// The image for a target that serves best: machine code that the releases take, else what can be compiled.
pub(super) fn choose<'p>(
    module: &str,
    pieces: &'p [Piece],
    target: &Target,
    recipe: ImageRecipe,
    finish_with: &FinishWith,
) -> Result<&'p Piece, OffloadError> {
    let its = || pieces.iter().filter(|piece| piece.target == *target);
    let refused = |piece: &Piece| {
        let form = piece.form()?;
        let refusing = |release: &ClangRelease| Some((*release, form, refusal(*release, form)?));
        finish_with.clangs().iter().find_map(refusing)
    };
    let taken = |piece: &&Piece| refused(piece).is_none() && piece.form().is_some_and(|form| is_final(form, recipe));
    let to_cubin = matches!(recipe, ImageRecipe::RelocatableCubin { .. });
    let found = its()
        .find(taken)
        .or_else(|| its().find(|piece| piece.kind == FileKind::Bitcode))
        .or_else(|| pieces.iter().find(|piece| to_cubin && piece.is_ptx_for(target)));
    let Some(found) = found else {
        return Err(match its().find_map(refused) {
            Some((release, form, reason)) => binary(
                module,
                &format!(
                    "its {form} for {target} cannot be embedded for {release}: {reason}; keep it as a gpu.module, or \
                     serialize it as bitcode (gpulower-serialize{{format=offloading}}), which is compiled here"
                ),
            ),
            None => no_image(module, target, pieces),
        });
    };
    if found.form() == Some(ImageForm::RelocatableCubin)
        && let Some(maker) = maker_of(&found.bytes)
        && let Some(linker) = finish_with
            .cudas()
            .iter()
            .find(|linker| !images::links(maker, **linker))
    {
        return Err(OffloadError::new(format!(
            "the relocatable cubin for {target} in the gpu.binary {module} was made by CUDA {maker}, and the nvlink of CUDA \
             {linker} does not take it; keep the module as a gpu.module, or compile it with CUDA {linker}"
        )));
    }
    Ok(found)
}

fn no_image(module: &str, target: &Target, pieces: &[Piece]) -> OffloadError {
    let found: Vec<String> = pieces.iter().map(Piece::name).collect();
    OffloadError::new(format!(
        "the module {module} has no image for {target}{}; export for the targets that it has, or keep it as a gpu.module, \
         which is compiled here",
        known(&found)
    ))
}

/// An image of a `gpu.binary` cannot be used.
fn binary(module: &str, problem: &str) -> OffloadError {
    OffloadError::new(format!("the gpu.binary {module}: {problem}"))
}

/// The CUDA release that made a cubin, as far as it says so.
fn maker_of(cubin: &[u8]) -> Option<crate::target::CudaRelease> {
    let elf = Elf::parse(cubin).ok()?;
    release_in(&producer::of_cubin(&elf).ok()??.version?)
}

/// Refuses an image of a compiled module that lacks a kernel which the program launches.
pub(super) fn check_kernels(program: &Program, module: usize, image: &DeviceImage) -> Result<(), OffloadError> {
    let Some(found) = symbols_of(&image.bytes, Some(&WithLlvm)).map(|symbols| symbols.kernels) else {
        return Ok(());
    };
    match program.kernels_of(module).find(|kernel| !found.contains(&kernel.name)) {
        None => Ok(()),
        Some(kernel) => Err(OffloadError::new(format!(
            "the kernel {} is launched, and the {} for {} in the gpu.binary {} does not define it{}",
            kernel.source_name,
            image.form,
            image.target,
            program.modules.get(module).map_or("", |module| module.symbol.as_str()),
            known(&Vec::from_iter(found))
        ))),
    }
}

/// The fat binary or bundle of a `gpu.binary`, with its images for the targets; PTX for other targets comes along.
pub(super) fn container(
    compiler: &Compiler,
    program: &Program,
    operation: OperationRef<'_, '_>,
    targets: &[Target],
) -> Result<ModuleBinary, Failure> {
    let symbol = symbol_name(operation);
    let pieces = pieces(operation).map_err(stage)?;
    let place = program.modules.iter().position(|module| module.symbol == symbol);
    let mut pack = Pack::default();
    let mut images = Vec::new();
    let refused = |problem: String| stage(binary(&symbol, &problem));
    let mut add = |kind: FileKind, form: ImageForm, target: Target, bytes: Vec<u8>, tool: Option<String>| {
        let image = DeviceImage {
            module: place.unwrap_or_default(),
            target,
            form,
            bytes,
            tool,
        };
        check_kernels(program, image.module, &image).map_err(stage)?;
        images.push(ExportedImage {
            module: symbol.clone(),
            target,
            form,
            bytes: image.bytes.len(),
            tool: image.tool,
        });
        pack.push(Member {
            input: symbol.clone(),
            kind,
            target: target.to_string(),
            bytes: image.bytes,
            identifier: None,
            options: String::new(),
            debug: false,
        })
        .map_err(|error| refused(error.to_string()))
    };
    for target in targets {
        let its = || pieces.iter().filter(|piece| piece.target == *target);
        let ready = its().find(|piece| matches!(piece.kind, FileKind::Cubin | FileKind::Hsaco));
        let ptx = pieces.iter().find(|piece| piece.is_ptx_for(target));
        let source = its().find(|piece| piece.kind == FileKind::Bitcode);
        for piece in ready.into_iter().chain(ptx) {
            let form = piece.form().unwrap_or(ImageForm::Ptx);
            add(piece.kind, form, piece.target, piece.bytes.clone(), None)?;
        }
        if let (None, None, Some(source)) = (ready, ptx, source) {
            let compiled = compiler.compile_source(&format!("{symbol}.bc"), &source.bytes, &[*target], Emit::Binary)?;
            for artifact in compiled.artifacts {
                let tool = artifact.images.first().and_then(|image| image.tool.clone());
                let (kind, form) = match program.runtime {
                    Runtime::Cuda | Runtime::OpenMp => (FileKind::Cubin, ImageForm::LinkedCubin),
                    Runtime::Hip => (FileKind::Hsaco, ImageForm::AmdLinked),
                };
                add(kind, form, *target, artifact.bytes, tool)?;
            }
        } else if ready.is_none() && ptx.is_none() {
            return Err(stage(no_image(&symbol, target, &pieces)).into());
        }
    }
    let format = match program.runtime {
        Runtime::Cuda | Runtime::OpenMp => PackFormat::Fatbin,
        Runtime::Hip => PackFormat::Bundle,
    };
    let compression = compiler.options().compression.unwrap_or(Compression::None);
    let bytes = pack
        .write(format, compression)
        .map_err(|error| refused(error.to_string()))?;
    Ok(ModuleBinary {
        module: symbol,
        bytes,
        images,
    })
}
