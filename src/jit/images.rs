//! The images of a program's kernels, and whose GPU they are for.

use melior::ir::{
    Module,
    attribute::ArrayAttribute,
    operation::{OperationLike, OperationRef},
};

use super::{ProgramOptions, error::RunError, gpu, gpu::KernelImages};
use crate::{
    bridge::mlir::{operations, read_gpu_object},
    compiler::{Compiler, Emit, attribute, gpu_modules, symbol_name, target_attributes},
    device::lower::name_of,
    error::{Cause, Error, ErrorKind, Failure},
    offload::HostProgram,
    options::Options,
    report::Compilation,
    stage::Stage,
    target::{Device as TargetDevice, Target, Vendor},
};

/// Whose GPU a program is for, and what its kernels are compiled for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gpus {
    /// None where nothing says it: whichever driver there is.
    pub vendor: Option<Vendor>,
    /// None where no kernel has to be compiled.
    pub target: Option<Target>,
}

impl Gpus {
    /// What the options and the module say, or else the device.
    pub(super) fn of(module: &Module<'_>, compiler: &Options, options: &ProgramOptions) -> Result<Self, RunError> {
        if let Some(target) = options.target {
            return Ok(Self {
                vendor: Some(target.vendor()),
                target: Some(target),
            });
        }
        let vendor = named_vendor(module, compiler);
        let has_kernels = operations(module)
            .iter()
            .any(|operation| matches!(name_of(operation).as_str(), "gpu.module" | "gpu.launch"));
        if !has_kernels {
            return Ok(Self { vendor, target: None });
        }
        let device = gpu::driver(vendor)?.device(options.device)?;
        let target = target_of(device.target()?)?;
        Ok(Self {
            vendor: Some(target.vendor()),
            target: Some(target),
        })
    }
}

/// All that the device has, as the code runs nowhere else; that there is no such target, if the device is too new.
fn target_of(device: TargetDevice) -> Result<Target, Failure> {
    let unknown = || match device {
        TargetDevice::Nvidia(capability) => format!("sm_{}", capability.number()).parse(),
        TargetDevice::Amd(target) => Ok(Target::Amd(target)),
    };
    device
        .own_target()
        .map_or_else(unknown, Ok)
        .map_err(|error| Error::new(Stage::Plan, Cause::Target(error)).into())
}

/// The vendor in the target attributes of modules, or of what was made of them.
fn named_vendor(module: &Module<'_>, options: &Options) -> Option<Vendor> {
    let vendor = |target| Some(attribute::read(target, options).ok()?.0.vendor());
    let of_modules = gpu_modules(module)
        .into_iter()
        .flat_map(target_attributes)
        .find_map(vendor);
    of_modules.or_else(|| {
        let binaries = operations(module).into_iter().filter(is_binary);
        binaries
            .flat_map(objects)
            .find_map(|object| vendor(read_gpu_object(object)?.0))
    })
}

fn is_binary(operation: &OperationRef<'_, '_>) -> bool {
    name_of(operation) == "gpu.binary"
}

fn objects<'c>(binary: OperationRef<'c, '_>) -> Vec<melior::ir::Attribute<'c>> {
    let objects = binary.attribute("objects").ok();
    let Some(objects) = objects.and_then(|objects| ArrayAttribute::try_from(objects).ok()) else {
        return Vec::new();
    };
    (0..objects.len())
        .filter_map(|index| objects.element(index).ok())
        .collect()
}

/// The images of each module of a program, in its order.
pub(super) fn make(
    compiler: &Compiler,
    host: &HostProgram<'_>,
    target: Option<Target>,
) -> Result<Vec<KernelImages>, RunError> {
    let modules = &host.program().modules;
    let mut all: Vec<KernelImages> = modules
        .iter()
        .map(|module| KernelImages {
            name: module.symbol.clone(),
            images: Vec::new(),
        })
        .collect();
    let mut add = |symbol: &str, image: Vec<u8>| {
        if let Some(module) = all.iter_mut().find(|module| module.name == symbol) {
            module.images.push(image);
        }
    };
    if let Some(target) = target.filter(|_| !gpu_modules(host.device()).is_empty()) {
        for artifact in compile(compiler, host.device(), target)?.artifacts {
            add(&artifact.module, artifact.bytes);
        }
    }
    for binary in operations(host.device()).into_iter().filter(is_binary) {
        let symbol = symbol_name(binary);
        for (_, image) in objects(binary).into_iter().filter_map(read_gpu_object) {
            add(&symbol, image);
        }
    }
    Ok(all)
}

/// Machine code; or PTX, which the driver compiles, where no compiler for it is at hand.
fn compile(compiler: &Compiler, device: &Module<'_>, target: Target) -> Result<Compilation, Failure> {
    let emit = |emit| compiler.compile(device, &[target], emit);
    emit(Emit::Binary).or_else(|failure| {
        let no_compiler = |error: &Error| error.stage == Stage::PtxToCubin && error.kind == ErrorKind::Toolkit;
        match failure.errors.iter().all(no_compiler) {
            true => emit(Emit::Ptx),
            false => Err(failure),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_get_all_that_the_device_has() {
        let of = |device: &str| target_of(device.parse().expect("a device"));
        assert_eq!(of("9.0").expect("a target").to_string(), "sm_90a");
        assert_eq!(of("8.6").expect("a target").to_string(), "sm_86");
        let message = of("19.5").expect_err("not known").to_string();
        assert!(message.contains("sm_195"), "{message}");
    }
}
