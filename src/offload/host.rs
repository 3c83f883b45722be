//! Host code: from a module with launches to the LLVM dialect, with everything in it but the images of the kernels.

use melior::{
    Context,
    ir::{
        Attribute, Module,
        attribute::StringAttribute,
        operation::{OperationLike, OperationRef},
    },
};

use super::{
    error::OffloadError,
    modules,
    program::{Program, Runtime},
    release::ClangRelease,
    stub, support,
    triple::HostTriple,
};
use crate::{
    bridge::{
        edit::{copy_of, edit},
        llvm::{DeviceContext, DeviceModule},
        mlir::{capture_diagnostics, context_of, operations, operations_below, place_of, set_attribute},
        target_machine::TargetMachine,
    },
    compiler,
    device::DeviceError,
    device::lower::{self, name_of},
    error::Cause,
};

/// What host code is made for, and how.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// The runtime that it calls.
    pub runtime: Runtime,
    /// The machine that it runs on.
    pub triple: HostTriple,
    /// What the program is called, such as its file's name without folders: a part of its kernels' names.
    pub unit: String,
    /// How kernels and device variables are named.
    pub names: Names,
    /// Whether kernels take memrefs as plain pointers. Has to be what the kernels are compiled with
    /// ([`Options::bare_pointers`](crate::Options)).
    pub bare_pointers: bool,
    /// Bits of `index` in kernels, 32 or 64. Has to be what the kernels are compiled with.
    pub index_bitwidth: u32,
    /// Who defines the functions that host code calls for the GPU.
    pub support: Support,
    /// Whether each device module is loaded on its own. Then kernels that were compiled before, whose names are theirs for
    /// good, may have one name in several modules; linked together, they may not.
    pub modules_apart: bool,
    /// The releases of clang that finish it. For OpenMP: their libomptarget launches the kernels.
    pub releases: Vec<ClangRelease>,
}

impl HostOptions {
    /// The usual: unique names, memrefs as descriptors, indices of 64 bits.
    pub fn new(runtime: Runtime, triple: HostTriple, unit: impl Into<String>) -> Self {
        Self {
            runtime,
            triple,
            unit: unit.into(),
            names: Names::Unique,
            bare_pointers: false,
            index_bitwidth: 64,
            support: Support::Included,
            modules_apart: false,
            releases: Vec::new(),
        }
    }
}

/// Who defines the functions that host code calls for the GPU, `mgpu*` and `__gpulower_launch*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Support {
    /// They are part of the host code, and call the runtime. Host code that launches nothing is refused.
    #[default]
    Included,
    /// Whoever runs the host code. It need not launch anything.
    External,
}

/// How kernels and device variables are named in the exported program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Names {
    /// As in the source, and a hash of program and module: programs can be linked together.
    #[default]
    Unique,
    /// As in the source, for code that refers to them by name. The device variables' shadows are visible symbols then.
    Keep,
}

/// A program whose host code is ready.
#[derive(Debug)]
pub struct HostProgram<'c> {
    program: Program,
    host: Module<'c>,
    device: Module<'c>,
}

impl<'c> HostProgram<'c> {
    /// What host code and images have to agree on.
    pub const fn program(&self) -> &Program {
        &self.program
    }

    /// The host code, in the LLVM dialect alone, with triple and data layout. It defines every stub, handle and shadow that
    /// the program names.
    pub fn host(&self) -> &Module<'c> {
        &self.host
    }

    /// One `gpu.module` (or `gpu.binary`, where it was compiled before) for each of [`Program::modules`], in that order and
    /// with its symbol, kernels and variables renamed: what has to be compiled.
    pub fn device(&self) -> &Module<'c> {
        &self.device
    }

    /// The host code as LLVM IR.
    pub(crate) fn translate<'l>(&self, context: &'l DeviceContext) -> Result<DeviceModule<'l>, OffloadError> {
        let mlir = context_of(self.host().context());
        // Translation changes what it translates.
        let mut copy = copy_of(self.host())?;
        let (result, diagnostics) = capture_diagnostics(mlir, || context.translate(&mut copy));
        result.map_err(
            |error| match diagnostics.into_iter().find(|diagnostic| diagnostic.is_error) {
                Some(diagnostic) => OffloadError::refused(&[diagnostic]),
                None => error.into(),
            },
        )
    }
}

/// Makes the host code of a program. The module is not changed, but its context gets the dialects and passes that lowering
/// needs.
///
/// Kernels in `gpu.launch` regions are outlined first. Launches are calls of stubs afterwards, the other operations of the
/// `gpu` dialect calls of functions that are part of the host code and call the runtime; a failing call of the runtime
/// ends the program with a message.
pub fn lower<'c>(module: &Module<'c>, options: &HostOptions) -> Result<HostProgram<'c>, OffloadError> {
    let context = context_of(module.context());
    compiler::prepare(context);
    let outlined = compiler::outline(context, module).map_err(|error| match error.cause() {
        Some(Cause::Device(DeviceError::Mlir(diagnostics))) => OffloadError::refused(diagnostics),
        _ => OffloadError::of_compilation(error.kind, error.message, error.location),
    })?;
    let mut host = match outlined {
        Some(outlined) => outlined,
        None => copy_of(module)?,
    };

    remove_empty_modules(&mut host);
    let (mut program, device) = modules::take(context, &mut host, options)?;
    if has_any(&host, "linalg.") {
        lower::run(context, &mut host, "builtin.module(convert-linalg-to-loops)")?;
        // MLIR checks what is inside of those that are left, and does not know it once that is lowered.
        refuse(&host, |name| name.starts_with("linalg.") && name != "linalg.yield")?;
    }
    if has_any(&host, "async.") {
        lower::run(context, &mut host, TASKS)?;
    }
    hide_private_functions(context, &host);
    lower::run(context, &mut host, &pipeline(options))?;
    refuse_unlowered(&host)?;
    stub::define(context, &mut host, &mut program, options.names == Names::Unique)?;
    if options.support == Support::Included {
        support::link(context, &mut host, options)?;
    }
    program.external_functions = support::external_functions(&host, options.runtime);
    program.has_main = support::defines(&host, "main");
    set_target(context, &host, &options.triple)?;
    verify(context, &host)?;
    Ok(HostProgram { program, host, device })
}

/// Modules that passes have left empty, such as one whose kernels are elsewhere by now.
fn remove_empty_modules(host: &mut Module<'_>) {
    edit(host, |host, edits| {
        // Inner ones first: what is removed with an outer one is not there any more.
        for operation in operations_below(host).into_iter().skip(1).rev() {
            if is_empty_module(&operation) {
                edits.remove(operation);
            }
        }
    });
}

/// Whether it holds nothing but modules that are empty themselves.
fn is_empty_module(operation: &OperationRef<'_, '_>) -> bool {
    name_of(operation) == "builtin.module" && modules::body(*operation).iter().all(is_empty_module)
}

/// From everything that host code may be written in to the LLVM dialect. Why in this order: `complex` makes `math`
/// operations; copies become loops, and vector transfers too, before loops become branches; `affine` comes twice, since
/// expanding strided metadata creates it anew; `math` comes before the rest, since what LLVM has no intrinsic for becomes
/// calls of `func` functions.
fn pipeline(options: &HostOptions) -> String {
    format!(
        "builtin.module(convert-complex-to-standard,gpulower-expand-host,convert-vector-to-scf,lower-affine,\
         scf-forall-to-for,convert-scf-to-cf,expand-strided-metadata,lower-affine,memref-expand,arith-expand,\
         gpulower-canonicalize,cse,convert-math-to-llvm,convert-math-to-libm,convert-vector-to-llvm,\
         gpulower-host-to-llvm{{bare-pointers={} kernel-index-bitwidth={}}},reconcile-unrealized-casts,\
         gpulower-canonicalize,cse)",
        options.bare_pointers, options.index_bitwidth
    )
}

/// From the `async` dialect to coroutines, and calls of MLIR's runtime for them. References are counted where both are
/// explicit.
const TASKS: &str = "builtin.module(gpulower-expand-host,async-func-to-async-runtime,async-to-async-runtime,\
                     async-runtime-ref-counting,async-runtime-ref-counting-opt,convert-async-to-llvm)";

fn has_any(host: &Module<'_>, prefix: &str) -> bool {
    operations(host)
        .iter()
        .any(|operation| name_of(operation).starts_with(prefix))
}

/// Private functions become internal ones: two programs may have one of the same name each.
fn hide_private_functions<'c>(context: &'c Context, host: &Module<'c>) {
    let internal = Attribute::parse(context, "#llvm.linkage<internal>");
    for operation in operations(host) {
        let private = operation
            .attribute("sym_visibility")
            .is_ok_and(|visibility| visibility.to_string() == "\"private\"");
        // The second is the function that resumes a coroutine.
        if matches!(name_of(&operation).as_str(), "func.func" | "llvm.func")
            && private
            && has_body(operation)
            && let Some(internal) = internal
        {
            let linkage = if name_of(&operation) == "func.func" {
                "llvm.linkage"
            } else {
                "linkage"
            };
            set_attribute(operation, linkage, internal);
        }
    }
}

fn has_body(operation: OperationRef<'_, '_>) -> bool {
    use melior::ir::RegionLike;
    operation.region(0).is_ok_and(|region| region.first_block().is_some())
}

fn refuse_unlowered(host: &Module<'_>) -> Result<(), OffloadError> {
    refuse(host, |name| !name.starts_with("llvm.") && name != "builtin.module")
}

/// Refuses operations by their names.
fn refuse(host: &Module<'_>, is_refused: impl Fn(&str) -> bool) -> Result<(), OffloadError> {
    let mut rest: Vec<OperationRef<'_, '_>> = operations(host);
    rest.retain(|operation| is_refused(&name_of(operation)));
    // Casts stay where the operations at their ends do, and say nothing to whoever wrote those.
    let is_cast = |operation: &OperationRef<'_, '_>| name_of(operation) == "builtin.unrealized_conversion_cast";
    if !rest.iter().all(is_cast) {
        rest.retain(|operation| !is_cast(operation));
    }
    let Some(first) = rest.first() else {
        return Ok(());
    };
    let (types, location) = (lower::types_of(*first), place_of(first.location()));
    let mut names: Vec<String> = rest.iter().map(name_of).collect();
    names.sort();
    names.dedup();
    Err(OffloadError::unsupported(&names, &types).at(location))
}

fn set_target<'c>(context: &'c Context, host: &Module<'c>, triple: &HostTriple) -> Result<(), OffloadError> {
    let machine = TargetMachine::new(triple.as_str(), "", "", 2, false)?;
    let operation = host.as_operation();
    let text = |value: &str| StringAttribute::new(context, value).into();
    set_attribute(operation, "llvm.target_triple", text(triple.as_str()));
    set_attribute(operation, "llvm.data_layout", text(&machine.data_layout()));
    Ok(())
}

fn verify(context: &Context, host: &Module<'_>) -> Result<(), OffloadError> {
    match capture_diagnostics(context, || host.as_operation().verify()) {
        (true, _) => Ok(()),
        (false, diagnostics) => {
            let reason = diagnostics.first().map_or("", |first| first.message.as_str());
            Err(OffloadError::internal(format!("the host code is not valid: {reason}")))
        }
    }
}

#[cfg(test)]
#[path = "../../tests/offload/host.rs"]
mod tests;
