//! From the `gpu` dialect, and all that may stand beside it in a `gpu.module`, to the dialect of one target.

use std::collections::BTreeSet;

use melior::{
    Context,
    ir::{
        Attribute, AttributeLike, BlockLike, Module, RegionLike, Type, ValueLike,
        attribute::StringAttribute,
        operation::{OperationLike, OperationRef},
    },
    pass::PassManager,
    utility::parse_pass_pipeline,
};

use super::{
    DeviceError, Refusal, atomics, contracts,
    error::{self, explained},
    lower_pipeline::{COMPLEX, Contents, INLINE, PLACES, PTX_TEXT, debug_pipeline, to_branches, to_elements, to_llvm},
    math,
    repeated::synchronize_repeated_reductions,
    rounding::check_rounding_modes,
    symbols::symbol_of,
    validate,
};
use crate::{
    bridge::{
        LlvmError, edit,
        mlir::{
            self, MlirDiagnostic, capture_diagnostics, context_of, operations, place_of, remove_attribute,
            set_attribute, symbol_attribute_name,
        },
        mlir_passes::register_patterns,
    },
    options::{DebugLevel, OptionDescription, Resolved},
    target::Target,
};

/// Longest last dimension of a vector, which is one vector in LLVM. The time that LLVM's AMDGPU back end takes for a store
/// grows with the square of the length: 2 s for 4096 elements of 8 bits, 36 s for 16384.
pub const LONGEST_VECTOR: u32 = 4096;

/// Most elements of a vector of any shape: each row of it is a vector in LLVM.
pub const MOST_ELEMENTS: u32 = 1 << 16;

/// Most bytes of an initial value. LLVM makes one constant of it, and the text of PTX has four characters for each byte.
pub const MOST_INITIAL_BYTES: u64 = 1 << 28;

/// How the names of functions begin that lowering puts into a module (`math.rs`, `float_power.rs`, `patterns.cpp`).
pub const RESERVED_NAMES: &str = "__gpulower_";

/// Dialects that lowering starts from or passes through; they have to be loaded before pipelines run.
pub const DIALECTS: &[&str] = &[
    "affine", "amdgpu", "arith", "builtin", "cf", "complex", "dlti", "func", "gpu", "index", "llvm", "math", "memref",
    "nvgpu", "nvvm", "rocdl", "scf", "tensor", "ub", "vector",
];

/// Lowers the one `gpu.module` inside `module` for one target.
///
/// A module that is in the target's dialect already is left as it is.
pub fn lower(module: &mut Module<'_>, resolved: &Resolved) -> Result<Vec<MlirDiagnostic>, DeviceError> {
    let context = context_of(module.context());
    // MLIR's check says of it that the module lacks an attribute.
    if let Some(launch) = operations(module)
        .into_iter()
        .find(|operation| name_of(operation) == "gpu.launch_func")
    {
        let message = "a kernel cannot launch another: launches are for host code; move it there, or call a function";
        return Err(refused(message.to_owned(), launch));
    }
    verify(context, module)?;
    if let Some((kind, location)) = mlir::large_vector(module, LONGEST_VECTOR, MOST_ELEMENTS) {
        let message = format!(
            "{kind} is too large: vectors have at most {LONGEST_VECTOR} elements in their last dimension and {MOST_ELEMENTS} in \
             all; work on parts of it in a loop"
        );
        return Err(Refusal::lowering(message).at(location).into());
    }
    contracts::check_stated_sizes(module, &resolved.target)?;
    refuse_misplaced_operations(module)?;
    refuse_large_globals(module)?;
    refuse_foreign(module, &resolved.target)?;
    refuse_unknown_dialects(module, &resolved.target)?;
    check_rounding_modes(module, &resolved.target)?;
    atomics::check_scopes(module, &resolved.target)?;
    mark_kernels(context, module, &resolved.target);
    let mut warnings = Vec::new();
    if unlowered(module, &resolved.target).next().is_some() {
        refuse_reserved_names(module)?;
        if has_any(module, "func.call") {
            warnings.extend(run(context, module, INLINE)?);
        }
        synchronize_repeated_reductions(module);
        atomics::mark_stated(context, module);
        if has_any(module, "complex.") {
            warnings.extend(run(context, module, COMPLEX)?);
        }
        edit::edit(module, |root, edits| {
            math::expand(context, root, edits, &resolved.target)
        })
        .map_err(DeviceError::Pipeline)?;
        let stated = kernels_with_a_stated_block(module);
        let contents = Contents {
            scaled_floats: has_scaled_floats(module),
            warpgroups: has_any(module, "nvgpu.warpgroup."),
            vectors: has_any(module, "vector."),
        };
        warnings.extend(run_and_verify(context, module, &to_branches(resolved, contents))?);
        warnings.extend(run_and_verify(context, module, &to_elements(resolved))?);
        let vectors = has_any(module, "vector.");
        let updates = has_any(module, "memref.generic_atomic_rmw");
        if !resolved.bare_pointers {
            mlir::carry_promises(module);
        }
        warnings.extend(run_and_verify(context, module, &to_llvm(resolved, vectors, updates))?);
        mlir::carry_promises(module);
        if let Target::Nvidia(_) = resolved.target {
            require_the_stated_block(module, &stated);
        }
        atomics::order_the_others(context, module, resolved);
        let mut rest: Vec<OperationRef<'_, '_>> = unlowered(module, &resolved.target).collect();
        // Casts stay where the operations at their ends do, and say nothing to whoever wrote those.
        let is_cast = |operation: &OperationRef<'_, '_>| name_of(operation) == "builtin.unrealized_conversion_cast";
        if rest.iter().any(|operation| !is_cast(operation)) {
            rest.retain(|operation| !is_cast(operation));
        }
        if let Some(&first) = rest.first() {
            let mut names: Vec<String> = rest.iter().map(name_of).collect();
            names.sort();
            names.dedup();
            return Err(unsupported(&names, first, &resolved.target));
        }
        refuse_foreign(module, &resolved.target)?;
    }
    if let Some((kind, location)) = mlir::foreign_type(module) {
        let message = format!("a value of type {kind}, which LLVM does not have, cannot be lowered: use another type");
        return Err(Refusal::lowering(message).at(location).into());
    }
    match resolved.target {
        Target::Nvidia(_) => {
            if mlir::has_ptx_text(module) {
                warnings.extend(run(context, module, PTX_TEXT)?);
            }
            mlir::load_single_registers(module);
            mlir::name_assertions(module);
        }
        Target::Amd(_) => {
            mlir::widen_dimensions(module);
            mlir::bound_group_numbers(module);
            allow_full_work_groups(context, module);
        }
    }
    if resolved.debug != DebugLevel::None {
        warnings.extend(run(context, module, &debug_pipeline(resolved))?);
    }
    Ok(warnings)
}

/// MLIR's own checks, which see what the target's chip does not have once a target attribute is attached.
fn verify(context: &Context, module: &Module<'_>) -> Result<(), DeviceError> {
    match capture_diagnostics(context, || mlir::verify(module.as_operation())) {
        (Ok(()), _) => Ok(()),
        (Err(LlvmError::Refused(_)), diagnostics) => Err(DeviceError::Mlir(diagnostics)),
        (Err(fatal), _) => Err(DeviceError::FatalInMlir(fatal)),
    }
}

/// Runs a textual pass pipeline on `module`; returns its warnings.
pub fn run(context: &Context, module: &mut Module<'_>, pipeline: &str) -> Result<Vec<MlirDiagnostic>, DeviceError> {
    run_with(context, module, pipeline, true)
}

/// The same with MLIR's checks after all of them: after each pass they take a quarter of the passes' time.
fn run_and_verify(
    context: &Context,
    module: &mut Module<'_>,
    pipeline: &str,
) -> Result<Vec<MlirDiagnostic>, DeviceError> {
    let warnings = run_with(context, module, pipeline, false)?;
    verify(context, module)?;
    Ok(warnings)
}

fn run_with(
    context: &Context,
    module: &mut Module<'_>,
    pipeline: &str,
    verify_each: bool,
) -> Result<Vec<MlirDiagnostic>, DeviceError> {
    // What MLIR's passes crash on may be the work of passes before them: reductions bring buffers along.
    if let Some((dimension, location)) = mlir::missing_dimension(module) {
        let message =
            format!("memref.dim asks for dimension {dimension}, which the memref does not have; they count from 0");
        return Err(Refusal::lowering(message).at(location).into());
    }
    if let Some((kind, location)) = mlir::foreign_buffer(module) {
        let message = format!(
            "a kernel has a buffer of type {kind}, whose elements have no type in LLVM: store them as f32, or as integers"
        );
        return Err(Refusal::lowering(message).at(location).into());
    }
    register_patterns(OptionDescription::expected);
    let manager = PassManager::new(context);
    manager.enable_verifier(verify_each);
    let (parsed, _) = capture_diagnostics(context, || {
        parse_pass_pipeline(manager.as_operation_pass_manager(), pipeline)
    });
    parsed.map_err(|error| DeviceError::Pipeline(error.to_string()))?;
    let (result, diagnostics) = capture_diagnostics(context, || mlir::run_passes(manager, module));
    let (errors, warnings): (Vec<_>, Vec<_>) = diagnostics.into_iter().partition(|diagnostic| diagnostic.is_error);
    match result {
        Ok(()) => {
            // Conversions complain about what they leave to a later one; what stays is found in the end.
            for error in errors {
                tracing::debug!(
                    location = error.location.as_mlir(),
                    "left to a later pass: {}",
                    error.message
                );
            }
            Ok(warnings)
        }
        Err(LlvmError::Refused(_)) => Err(DeviceError::Mlir(errors.into_iter().map(explained).collect())),
        Err(fatal) => Err(DeviceError::FatalInMlir(fatal)),
    }
}

/// Gives a lowered module what its translation makes debug info of.
pub fn add_places(module: &mut Module<'_>) -> Result<(), DeviceError> {
    let context = context_of(module.context());
    run(context, module, PLACES).map(|_| ())
}

/// See [`Contents::scaled_floats`].
fn has_scaled_floats(module: &Module<'_>) -> bool {
    operations(module).into_iter().any(|operation| {
        let name = name_of(&operation);
        name.starts_with("arith.scaling_")
            || matches!(name.as_str(), "arith.extf" | "arith.truncf") && {
                let scaled = |kind: Type<'_>| {
                    let text = mlir::shown(&kind);
                    text.contains("f8E8M0FNU") || text.contains("f4E2M1FN")
                };
                operation.operands().any(|operand| scaled(operand.r#type()))
                    || operation.results().any(|result| scaled(result.r#type()))
            }
    })
}

/// Operations that are not in the target's dialect yet.
fn unlowered<'c, 'a>(module: &'a Module<'c>, target: &Target) -> impl Iterator<Item = OperationRef<'c, 'a>> {
    let device = match target {
        Target::Nvidia(_) => "nvvm",
        Target::Amd(_) => "rocdl",
    };
    operations(module).into_iter().filter(move |operation| {
        let name = operation.name();
        let name = name.as_string_ref();
        let name = name.as_str().unwrap_or_default();
        let dialect = name.split('.').next().unwrap_or_default();
        // MLIR translates them whatever their types are, and no GPU has coroutines.
        let of_coroutines = name.starts_with("llvm.intr.coro.");
        let lowered = dialect == "llvm" || dialect == device || name == "gpu.module" || name == "builtin.module";
        of_coroutines || !lowered
    })
}

/// Whether the names of any operations begin so.
fn has_any(module: &Module<'_>, prefix: &str) -> bool {
    operations(module).iter().any(|operation| {
        let name = operation.name();
        let name = name.as_string_ref();
        name.as_str().is_ok_and(|name| name.starts_with(prefix))
    })
}

/// Operations without a symbol that may stand in a module (`mlir/include/mlir/Dialect/LLVMIR/LLVMOps.td`).
const OF_MODULES: &[&str] = &[
    "llvm.linker_options",
    "llvm.mlir.global_ctors",
    "llvm.mlir.global_dtors",
    "llvm.module_flags",
];

/// Refuses what may stand in a `gpu.module` for MLIR, and not for its translation.
fn refuse_misplaced_operations(module: &Module<'_>) -> Result<(), DeviceError> {
    let kernels = module.body().first_operation();
    let region = kernels.as_ref().and_then(|kernels| kernels.region(0).ok());
    let mut next = region.and_then(|region| region.first_block()?.first_operation());
    while let Some(operation) = next {
        let name = name_of(&operation);
        if ["gpu.module", "builtin.module"].contains(&name.as_str()) {
            let symbol = symbol_of(&operation).unwrap_or_default();
            let message = format!("the {name} {symbol} stands inside of a gpu.module: put it beside that");
            return Err(refused(message, operation));
        }
        if operation.attribute(symbol_attribute_name()).is_err() && !OF_MODULES.contains(&name.as_str()) {
            // MLIR's translation crashes on it.
            let message = format!("{name} stands outside of a function: move it into one");
            return Err(refused(message, operation));
        }
        next = operation.next_in_block();
    }
    Ok(())
}

/// Refuses functions with names that lowering gives to functions of its own. Variables get names that nothing else has.
fn refuse_reserved_names(module: &Module<'_>) -> Result<(), DeviceError> {
    for operation in operations(module) {
        let Some(name) = symbol_of(&operation).filter(|name| name.starts_with(RESERVED_NAMES)) else {
            continue;
        };
        if ["func.func", "gpu.func", "llvm.func"].contains(&name_of(&operation).as_str()) {
            let message = format!(
                "the function {name} cannot be lowered: names that begin with {RESERVED_NAMES} are gpulower's; give it another"
            );
            return Err(refused(message, operation));
        }
    }
    Ok(())
}

fn refuse_large_globals(module: &Module<'_>) -> Result<(), DeviceError> {
    for operation in operations(module) {
        let value = match name_of(&operation).as_str() {
            "memref.global" => operation.attribute("initial_value"),
            "llvm.mlir.global" => operation.attribute("value"),
            _ => continue,
        };
        // A unit stands for a variable without an initial value.
        if !value.is_ok_and(|value| !value.is_unit()) {
            continue;
        }
        if let Some(bytes) = mlir::global_size(operation).filter(|bytes| *bytes > MOST_INITIAL_BYTES) {
            let name = symbol_of(&operation).unwrap_or_default();
            let message = format!(
                "{name} has an initial value of {bytes} bytes: at most {MOST_INITIAL_BYTES} can be compiled; fill it when the \
                 program runs"
            );
            return Err(refused(message, operation));
        }
    }
    Ok(())
}

/// Refuses operations of dialects that nothing here lowers: what they have in their regions would be lowered, and their
/// verifiers complain of it.
fn refuse_unknown_dialects(module: &Module<'_>, target: &Target) -> Result<(), DeviceError> {
    for operation in operations(module) {
        let name = name_of(&operation);
        let dialect = name.split('.').next().unwrap_or_default();
        if !DIALECTS.contains(&dialect) {
            return Err(unsupported(&[name], operation, target));
        }
    }
    Ok(())
}

/// `first`: the first of the operations with these names.
fn unsupported(names: &[String], first: OperationRef<'_, '_>, target: &Target) -> DeviceError {
    let refusal = error::unsupported(names, &types_of(first), target);
    refusal.at(place_of(first.location())).into()
}

/// Something is wrong with an operation.
pub(super) fn refused(message: String, operation: OperationRef<'_, '_>) -> DeviceError {
    Refusal::lowering(message).at(place_of(operation.location())).into()
}

/// Types of an operation's operands and results, as MLIR writes them: `(tensor<4xf32>, index) -> f32`.
pub(crate) fn types_of(operation: OperationRef<'_, '_>) -> String {
    let list = |types: Vec<String>| types.join(", ");
    let operands = list(operation.operands().map(|value| mlir::shown(&value.r#type())).collect());
    let results = list(operation.results().map(|value| mlir::shown(&value.r#type())).collect());
    format!("({operands}) -> ({results})")
}

fn refuse_foreign(module: &Module<'_>, target: &Target) -> Result<(), DeviceError> {
    for operation in operations(module) {
        let name = name_of(&operation);
        if let Some(advice) = validate::foreign_dialect(&name, target) {
            let message = format!("{name} cannot be compiled for {target}: {advice}");
            return Err(refused(message, operation));
        }
    }
    Ok(())
}

/// `gpu.kernel` on a function of the `llvm` dialect becomes the target's own attribute, which translation looks at.
fn mark_kernels(context: &Context, module: &Module<'_>, target: &Target) {
    const OWN: [&str; 2] = ["nvvm.kernel", "rocdl.kernel"];
    let attribute = match target {
        Target::Nvidia(_) => OWN[0],
        Target::Amd(_) => OWN[1],
    };
    for function in operations(module) {
        if name_of(&function) == "llvm.func"
            && function.has_attribute("gpu.kernel")
            && !OWN.iter().any(|own| function.has_attribute(own))
        {
            set_attribute(function, attribute, Attribute::unit(context));
        }
    }
}

/// The kernels that state the size of their block, and say nothing else of it.
fn kernels_with_a_stated_block(module: &Module<'_>) -> BTreeSet<String> {
    operations(module)
        .into_iter()
        .filter(|operation| {
            name_of(operation) == "gpu.func"
                && operation.has_attribute("known_block_size")
                && !operation.has_attribute("nvvm.maxntid")
        })
        .map(symbol)
        .collect()
}

/// The symbol of an operation as MLIR prints it; empty where it has none.
fn symbol(operation: OperationRef<'_, '_>) -> String {
    operation
        .attribute(symbol_attribute_name())
        .map_or_else(|_| String::new(), |name| name.to_string())
}

/// MLIR makes `.maxntid` of a stated block, which a smaller one passes. The size is a constant in the code, though: `.reqntid`
/// has the driver refuse a launch with any other.
fn require_the_stated_block(module: &Module<'_>, stated: &BTreeSet<String>) {
    for function in operations(module) {
        if name_of(&function) == "llvm.func"
            && stated.contains(&symbol(function))
            && let Ok(size) = function.attribute("nvvm.maxntid")
        {
            set_attribute(function, "nvvm.reqntid", size);
            remove_attribute(function, "nvvm.maxntid");
        }
    }
}

/// Kernels without a stated work-group size may be launched with up to 1024 threads, as HIP's compiler assumes; MLIR's
/// translation would assume 256, and a larger launch would fail.
fn allow_full_work_groups<'c>(context: &'c Context, module: &Module<'c>) {
    for operation in operations(module) {
        if name_of(&operation) == "llvm.func"
            && operation.has_attribute("rocdl.kernel")
            && !operation.has_attribute("rocdl.flat_work_group_size")
            && !operation.has_attribute("rocdl.max_flat_work_group_size")
            && !operation.has_attribute("rocdl.reqd_work_group_size")
        {
            set_attribute(
                operation,
                "rocdl.flat_work_group_size",
                StringAttribute::new(context, "1,1024").into(),
            );
        }
    }
}

/// The operation's name, dialect included.
pub fn name_of<'c: 'a, 'a>(operation: &impl OperationLike<'c, 'a>) -> String {
    operation.name().as_string_ref().as_str().unwrap_or_default().to_owned()
}
