//! From the `gpu` dialect, and all that may stand beside it in a `gpu.module`, to the dialect of one target.

use std::collections::BTreeSet;

use melior::{
    Context,
    ir::{
        AttributeLike, BlockLike, Module, RegionLike, Type, ValueLike,
        attribute::StringAttribute,
        operation::{OperationBuilder, OperationLike, OperationRef},
    },
    pass::PassManager,
    utility::parse_pass_pipeline,
};

use super::{math, validate};
use crate::{
    bridge::{
        LlvmError,
        mlir::{
            self, MlirDiagnostic, capture_diagnostics, context_of, location_text, operations, remove_attribute,
            set_attribute, symbol_attribute_name,
        },
        passes::register_patterns,
    },
    options::{DebugLevel, Resolved, ResolvedVendor},
    target::{AmdTarget, Target},
};

/// Why a module could not be lowered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LowerError {
    /// MLIR's passes refused it.
    #[error("{}", first_message(.0))]
    Refused(Vec<MlirDiagnostic>),
    /// Operations that no conversion for this target knows.
    #[error("cannot lower {} for {target}{}", .names.join(", "), lowered_hint(.names))]
    Unsupported {
        /// The operations' names, each once.
        names: Vec<String>,
        /// The target.
        target: String,
        /// Where the first of them is, in MLIR's syntax.
        location: String,
    },
    /// An operation of another vendor's dialect.
    #[error("{name} cannot be compiled for {target}: {advice}")]
    Foreign {
        /// The operation.
        name: String,
        /// The target.
        target: String,
        /// What to do.
        advice: &'static str,
        /// Where it is, in MLIR's syntax.
        location: String,
    },
    /// A vector that would keep LLVM busy for minutes.
    #[error(
        "{kind} is too large: vectors have at most {LONGEST_VECTOR} elements in their last dimension and \
         {MOST_ELEMENTS} in all; work on parts of it in a loop"
    )]
    LargeVector {
        /// Its type.
        kind: String,
        /// Where it is, in MLIR's syntax.
        location: String,
    },
    /// A buffer of a type that LLVM does not have. MLIR's passes crash on it.
    #[error(
        "a kernel has a buffer of type {kind}, whose elements have no type in LLVM: store them as f32, or as integers"
    )]
    ForeignBuffer {
        /// Its type.
        kind: String,
        /// Where the kernel is, in MLIR's syntax.
        location: String,
    },
    /// A dimension that a memref does not have. MLIR's passes crash on it.
    #[error("memref.dim asks for dimension {dimension}, which the memref does not have; they count from 0")]
    MissingDimension {
        /// The dimension.
        dimension: i64,
        /// Where it is, in MLIR's syntax.
        location: String,
    },
    /// An initial value that would keep LLVM busy for minutes, and fill memory.
    #[error(
        "{name} has an initial value of {bytes} bytes: at most {MOST_INITIAL_BYTES} can be compiled; fill it when the \
         program runs"
    )]
    LargeGlobal {
        /// The symbol.
        name: String,
        /// Its size.
        bytes: u64,
        /// Where it is, in MLIR's syntax.
        location: String,
    },
    /// A fatal error of LLVM in the midst of MLIR's passes. The MLIR context should not be used further.
    #[error(transparent)]
    Fatal(LlvmError),
    /// The pipeline itself is wrong, which is a bug of gpulower.
    #[error("internal error: the lowering pipeline cannot be built: {0}")]
    Pipeline(String),
}

impl LowerError {
    /// Where the problem is, in MLIR's syntax.
    pub fn location(&self) -> Option<&str> {
        match self {
            Self::Refused(diagnostics) => diagnostics.first().map(|diagnostic| diagnostic.location.as_str()),
            Self::Unsupported { location, .. }
            | Self::Foreign { location, .. }
            | Self::LargeVector { location, .. }
            | Self::ForeignBuffer { location, .. }
            | Self::MissingDimension { location, .. }
            | Self::LargeGlobal { location, .. } => Some(location),
            Self::Fatal(_) | Self::Pipeline(_) => None,
        }
    }
}

fn first_message(diagnostics: &[MlirDiagnostic]) -> String {
    match diagnostics {
        [] => "MLIR's lowering passes failed without a diagnostic".to_owned(),
        [only] => only.message.clone(),
        [first, rest @ ..] => format!("{} (and {} more diagnostics)", first.message, rest.len()),
    }
}

fn lowered_hint(names: &[String]) -> &'static str {
    let dialect_is = |dialects: &[&str]| {
        names
            .iter()
            .any(|name| dialects.contains(&name.split('.').next().unwrap_or_default()))
    };
    if dialect_is(&["tensor", "bufferization", "linalg", "shape"]) {
        "; bufferize tensors and turn linalg into loops before"
    } else {
        ""
    }
}

/// Longest last dimension of a vector, which is one vector in LLVM. The time that LLVM's AMDGPU back end takes for a store
/// grows with the square of the length: 2 s for 4096 elements of 8 bits, 36 s for 16384.
pub const LONGEST_VECTOR: u32 = 4096;

/// Most elements of a vector of any shape: each row of it is a vector in LLVM.
pub const MOST_ELEMENTS: u32 = 1 << 16;

/// Most bytes of an initial value. LLVM makes one constant of it, and the text of PTX has four characters for each byte.
pub const MOST_INITIAL_BYTES: u64 = 1 << 28;

/// Dialects that lowering starts from or passes through; they have to be loaded before pipelines run.
pub const DIALECTS: &[&str] = &[
    "affine", "amdgpu", "arith", "builtin", "cf", "complex", "dlti", "func", "gpu", "index", "llvm", "math", "memref",
    "nvgpu", "nvvm", "rocdl", "scf", "tensor", "ub", "vector",
];

/// Lowers the one `gpu.module` inside `module` for one target.
///
/// A module that is in the target's dialect already is left as it is.
pub fn lower(module: &mut Module<'_>, resolved: &Resolved) -> Result<Vec<MlirDiagnostic>, LowerError> {
    let context = context_of(module.context());
    verify(context, module)?;
    if let Some((kind, location)) = mlir::large_vector(module, LONGEST_VECTOR, MOST_ELEMENTS) {
        return Err(LowerError::LargeVector { kind, location });
    }
    if let Some((kind, location)) = mlir::foreign_buffer(module) {
        return Err(LowerError::ForeignBuffer { kind, location });
    }
    refuse_large_globals(module)?;
    refuse_foreign(module, &resolved.target)?;
    let mut warnings = Vec::new();
    if !unlowered(module, &resolved.target).is_empty() {
        synchronize_repeated_reductions(module);
        if operations(module)
            .iter()
            .any(|operation| name_of(operation).starts_with("complex."))
        {
            warnings.extend(run(context, module, COMPLEX)?);
        }
        math::expand(context, module, &resolved.target).map_err(LowerError::Pipeline)?;
        let stated = kernels_with_a_stated_block(module);
        for part in pipeline(resolved, has_scaled_floats(module), has_warpgroup_matrices(module)) {
            warnings.extend(run_unverified(context, module, &part)?);
            verify(context, module)?;
        }
        if let Target::Nvidia(_) = resolved.target {
            require_the_stated_block(module, &stated);
        }
        let mut rest = unlowered(module, &resolved.target);
        // Casts stay where the operations at their ends do, and say nothing to whoever wrote those.
        let is_cast = |name: &str| name == "builtin.unrealized_conversion_cast";
        if rest.iter().any(|(name, _)| !is_cast(name)) {
            rest.retain(|(name, _)| !is_cast(name));
        }
        if let Some((_, location)) = rest.first() {
            let location = location.clone();
            let mut names: Vec<String> = rest.into_iter().map(|(name, _)| name).collect();
            names.sort();
            names.dedup();
            return Err(LowerError::Unsupported {
                names,
                target: resolved.target.to_string(),
                location,
            });
        }
        refuse_foreign(module, &resolved.target)?;
    }
    if let Target::Amd(_) = resolved.target {
        mlir::widen_dimensions(module);
        allow_full_work_groups(context, module);
    }
    if resolved.debug != DebugLevel::None {
        warnings.extend(run(context, module, &debug_pipeline(resolved))?);
    }
    Ok(warnings)
}

/// MLIR's own checks, which see what the target's chip does not have once a target attribute is attached.
fn verify(context: &Context, module: &Module<'_>) -> Result<(), LowerError> {
    match capture_diagnostics(context, || mlir::verify(module.as_operation())) {
        (Ok(()), _) => Ok(()),
        (Err(LlvmError::Refused(_)), diagnostics) => Err(LowerError::Refused(diagnostics)),
        (Err(fatal), _) => Err(LowerError::Fatal(fatal)),
    }
}

/// Runs a textual pass pipeline on `module`; returns its warnings.
pub fn run(context: &Context, module: &mut Module<'_>, pipeline: &str) -> Result<Vec<MlirDiagnostic>, LowerError> {
    run_with(context, module, pipeline, true)
}

/// The same without MLIR's checks after each pass, which take a quarter of the passes' time: the caller checks the result.
fn run_unverified(
    context: &Context,
    module: &mut Module<'_>,
    pipeline: &str,
) -> Result<Vec<MlirDiagnostic>, LowerError> {
    run_with(context, module, pipeline, false)
}

fn run_with(
    context: &Context,
    module: &mut Module<'_>,
    pipeline: &str,
    verify_each: bool,
) -> Result<Vec<MlirDiagnostic>, LowerError> {
    if let Some((dimension, location)) = mlir::missing_dimension(module) {
        return Err(LowerError::MissingDimension { dimension, location });
    }
    register_patterns();
    let manager = PassManager::new(context);
    manager.enable_verifier(verify_each);
    let (parsed, _) = capture_diagnostics(context, || {
        parse_pass_pipeline(manager.as_operation_pass_manager(), pipeline)
    });
    parsed.map_err(|error| LowerError::Pipeline(error.to_string()))?;
    let (result, diagnostics) = capture_diagnostics(context, || mlir::run_passes(manager, module));
    let (errors, warnings): (Vec<_>, Vec<_>) = diagnostics.into_iter().partition(|diagnostic| diagnostic.is_error);
    match result {
        Ok(()) => {
            // Conversions complain about what they leave to a later one; what stays is found in the end.
            for error in errors {
                tracing::debug!(location = error.location, "left to a later pass: {}", error.message);
            }
            Ok(warnings)
        }
        Err(LlvmError::Refused(_)) => Err(LowerError::Refused(errors)),
        Err(fatal) => Err(LowerError::Fatal(fatal)),
    }
}

/// The one pipeline, in parts: after each the module is checked. Why in this order:
///
/// - 8-bit floats that the chip converts come before everything that would not know them;
/// - named address spaces become numbers first: conversions that know no names would complain about each memref;
/// - `scf` becomes `cf` before anything that expands to several blocks (`gpu.all_reduce`), and before `nvgpu`, whose
///   conversion cannot carry `!gpu.mma_matrix` through an `scf.for`; but that of the accumulators of warpgroups can, and
///   not through the branches that it becomes, so that where there are some `nvgpu` comes first;
/// - `vector` before `gpu`: masked transfers create `arith` and `memref` operations that the gpu conversion then takes;
/// - loops are interleaved while they are `scf.for`, and tidied before, so that constants can be seen;
/// - `func` before `gpu`: the gpu conversion would turn a declared device function into a C wrapper;
/// - `affine` twice: expanding strided metadata creates it anew.
///
/// The gpu conversion is told which dialects to take along. Left to itself it takes every dialect that is loaded, and
/// with NVVM loaded it prefers LLVM's intrinsics to the vendor's library for some of `math`.
pub fn pipeline(resolved: &Resolved, scaled_floats: bool, warpgroups: bool) -> [String; 3] {
    let taken = format!(
        "allowed-dialects=arith,cf,complex,func,index,memref,ub,vector {}",
        memref_options(resolved)
    );
    let chip = expansion_options(resolved);
    let (first, dialect_of_chip, gpu, last) = match &resolved.target {
        Target::Nvidia(chip) => (
            String::new(),
            "convert-nvgpu-to-nvvm".to_owned(),
            format!("convert-gpu-to-nvvm{{has-redux={} {taken}}}", chip.has_redux()),
            "convert-nvvm-to-llvm,",
        ),
        Target::Amd(chip) => {
            let chipset = chipset(chip);
            (
                format!("convert-arith-to-amdgpu{{chipset={chipset} saturate-fp8-truncf=true}},"),
                format!("convert-amdgpu-to-rocdl{{chipset={chipset}}}"),
                format!("convert-gpu-to-rocdl{{chipset={chipset} runtime=HIP {taken}}}"),
                "",
            )
        }
    };
    let scaled = if scaled_floats {
        "arith-expand{include-f8e8m0=true include-f4e2m1=true},"
    } else {
        ""
    };
    let warpgroups = if warpgroups { "convert-nvgpu-to-nvvm," } else { "" };
    let index = format!("index-bitwidth={}", resolved.index_bitwidth);
    let interleave = match resolved.interleave {
        0 | 1 => String::new(),
        count => format!("canonicalize,cse,gpulower-interleave-loops{{count={count} {index}}},"),
    };
    let loops = format!(
        "{first}gpulower-expand-gpu{{{chip}}},{scaled}\
         convert-vector-to-scf,lower-affine,scf-forall-to-for,{warpgroups}{interleave}convert-scf-to-cf,{dialect_of_chip}"
    );
    let memory = format!(
        "expand-strided-metadata,lower-affine,memref-expand,gpulower-expand-gpu-blocks{{{chip}}},canonicalize,cse"
    );
    let llvm = format!(
        "convert-vector-to-llvm,gpulower-func-to-llvm{{{index}}},\
         {gpu},convert-math-to-llvm,convert-complex-to-llvm,convert-vector-to-llvm,\
         convert-index-to-llvm{{{index}}},convert-ub-to-llvm,\
         canonicalize,cse,{last}reconcile-unrealized-casts"
    );
    [loops, memory, llvm].map(|passes| format!("builtin.module(gpu.module({passes}))"))
}

/// What comes before [`pipeline`], and before the expansion of `math` operations: it makes such operations.
const COMPLEX: &str = "builtin.module(gpu.module(convert-complex-to-standard))";

/// Whether a loop may carry accumulators of warpgroups.
fn has_warpgroup_matrices(module: &Module<'_>) -> bool {
    operations(module)
        .iter()
        .any(|operation| name_of(operation).starts_with("nvgpu.warpgroup."))
}

/// What the `gpulower-expand-gpu*` passes have to know of the chip.
fn expansion_options(resolved: &Resolved) -> String {
    match (&resolved.target, &resolved.vendor) {
        (Target::Nvidia(chip), _) => format!("redux={} clusters={}", chip.has_redux(), chip.has_cluster()),
        (Target::Amd(chip), ResolvedVendor::Amd { wave_size, .. }) => {
            format!("amd=true chipset={} subgroup-size={wave_size}", chipset(chip))
        }
        (Target::Amd(chip), _) => {
            format!(
                "amd=true chipset={} subgroup-size={}",
                chipset(chip),
                chip.default_wave_size()
            )
        }
    }
}

/// Whether a module has floats of which only `arith-expand` knows what they are: scales and 4-bit elements. That pass
/// would also take the instructions for maxima and minima apart, so it runs for these alone.
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

fn memref_options(resolved: &Resolved) -> String {
    format!(
        "index-bitwidth={} use-bare-ptr-memref-call-conv={}",
        resolved.index_bitwidth, resolved.bare_pointers
    )
}

/// The chip as MLIR's AMD conversions name it: they know no generic targets, whose common ground is the family's
/// oldest chip.
fn chipset(chip: &AmdTarget) -> String {
    let version = chip.isa_version();
    format!("gfx{}{}{:x}", version.major, version.minor, version.stepping)
}

/// Debug scopes for every function. NVIDIA's compiler accepts optimised code only with bare `.loc` directives.
fn debug_pipeline(resolved: &Resolved) -> String {
    let kind = match (resolved.debug, &resolved.target) {
        (DebugLevel::Full, _) => "Full",
        (_, Target::Nvidia(_)) => "DebugDirectivesOnly",
        (_, Target::Amd(_)) => "LineTablesOnly",
    };
    format!("builtin.module(ensure-debug-info-scope-on-llvm-func{{emission-kind={kind}}})")
}

/// Operations that are not in the target's dialect yet: name and location.
fn unlowered(module: &Module<'_>, target: &Target) -> Vec<(String, String)> {
    let device = match target {
        Target::Nvidia(_) => "nvvm",
        Target::Amd(_) => "rocdl",
    };
    operations(module)
        .into_iter()
        .filter(|operation| {
            let name = operation.name();
            let name = name.as_string_ref();
            let name = name.as_str().unwrap_or_default();
            let dialect = name.split('.').next().unwrap_or_default();
            !(dialect == "llvm" || dialect == device || name == "gpu.module" || name == "builtin.module")
        })
        .map(|operation| (name_of(&operation), location_text(operation.location())))
        .collect()
}

fn refuse_large_globals(module: &Module<'_>) -> Result<(), LowerError> {
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
            return Err(LowerError::LargeGlobal {
                name: symbol_of(&operation).unwrap_or_default(),
                bytes,
                location: location_text(operation.location()),
            });
        }
    }
    Ok(())
}

fn refuse_foreign(module: &Module<'_>, target: &Target) -> Result<(), LowerError> {
    for operation in operations(module) {
        let name = name_of(&operation);
        if let Some(advice) = validate::foreign_dialect(&name, target) {
            return Err(LowerError::Foreign {
                name,
                target: target.to_string(),
                advice,
                location: location_text(operation.location()),
            });
        }
    }
    Ok(())
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

/// MLIR expands `gpu.all_reduce` to writes and reads of a shared buffer with no barrier behind the last read: repeated,
/// one thread's next write may overtake another's read. A barrier in front of every reduction that may run again
/// closes the gap.
fn synchronize_repeated_reductions(module: &Module<'_>) {
    for reduction in operations(module)
        .into_iter()
        .filter(|operation| name_of(operation) == "gpu.all_reduce")
    {
        let mut repeated = false;
        let mut parent = reduction.parent_operation();
        while let Some(operation) = parent {
            let name = name_of(&operation);
            if matches!(
                name.as_str(),
                "scf.for" | "scf.while" | "scf.parallel" | "scf.forall" | "affine.for" | "affine.parallel"
            ) {
                repeated = true;
            }
            if name == "gpu.func" || name == "func.func" {
                // Unstructured control flow may loop.
                repeated |= operation.regions().any(|region| {
                    region
                        .first_block()
                        .is_some_and(|block| block.next_in_region().is_some())
                });
                break;
            }
            parent = operation.parent_operation();
        }
        let Some(block) = reduction.block() else { continue };
        if repeated && let Ok(barrier) = OperationBuilder::new("gpu.barrier", reduction.location()).build() {
            block.insert_operation_before(reduction, barrier);
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

/// The symbols that a lowered module defines for itself alone: functions and variables with `private` visibility. In LLVM
/// IR they look like any others.
pub fn private_definitions(module: &Module<'_>) -> Vec<String> {
    operations(module)
        .into_iter()
        .filter(|operation| {
            let has_body = |operation: &OperationRef<'_, '_>| {
                operation.region(0).is_ok_and(|region| region.first_block().is_some())
            };
            let is_definition = match name_of(operation).as_str() {
                "llvm.func" => has_body(operation),
                "llvm.mlir.global" => has_body(operation) || operation.has_attribute("value"),
                _ => false,
            };
            is_definition
                && operation
                    .attribute("sym_visibility")
                    .is_ok_and(|visibility| visibility.to_string() == "\"private\"")
        })
        .filter_map(|operation| symbol_of(&operation))
        .collect()
}

/// Where a lowered module defines or declares `symbol`, in MLIR's syntax.
pub fn location_of_symbol(module: &Module<'_>, symbol: &str) -> Option<String> {
    operations(module)
        .into_iter()
        .filter(|operation| matches!(name_of(operation).as_str(), "llvm.func" | "llvm.mlir.global"))
        .find(|operation| symbol_of(operation).as_deref() == Some(symbol))
        .map(|operation| location_text(operation.location()))
}

fn symbol_of(operation: &OperationRef<'_, '_>) -> Option<String> {
    mlir::string_value(operation.attribute(symbol_attribute_name()).ok()?)
}

/// Where an operation calls or names `symbol`, in MLIR's syntax.
pub fn location_of_use(module: &Module<'_>, symbol: &str) -> Option<String> {
    let reference = format!("@{symbol}");
    let quoted = format!("@\"{symbol}\"");
    operations(module)
        .into_iter()
        .filter(|operation| matches!(name_of(operation).as_str(), "llvm.call" | "llvm.mlir.addressof"))
        .find(|operation| {
            operation.attributes().any(|(_, attribute)| {
                attribute.is_flat_symbol_ref() && {
                    let text = mlir::shown(&attribute);
                    text == reference || text == quoted
                }
            })
        })
        .map(|operation| location_text(operation.location()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    fn resolved(target: &str, options: &[(&str, &str)]) -> Resolved {
        let mut asked = Options::default();
        for (name, value) in options {
            asked.set(name, value).expect("an option");
        }
        asked
            .resolve(&target.parse().expect("a target"), None)
            .expect("resolves")
    }

    #[test]
    fn the_pipeline_knows_the_chip() {
        for (target, options, part) in [
            ("sm_75", &[][..], "gpulower-expand-gpu{redux=false clusters=false}"),
            ("sm_80", &[], "gpulower-expand-gpu{redux=true clusters=false}"),
            ("sm_90a", &[], "gpulower-expand-gpu{redux=true clusters=true}"),
            (
                "gfx942",
                &[],
                "gpulower-expand-gpu{amd=true chipset=gfx942 subgroup-size=64}",
            ),
            (
                "gfx1100",
                &[],
                "gpulower-expand-gpu{amd=true chipset=gfx1100 subgroup-size=32}",
            ),
            (
                "gfx1100",
                &[("wave-size", "64")],
                "gpulower-expand-gpu{amd=true chipset=gfx1100 subgroup-size=64}",
            ),
            ("gfx90a:xnack+", &[], "convert-amdgpu-to-rocdl{chipset=gfx90a}"),
            ("gfx9-4-generic", &[], "convert-gpu-to-rocdl{chipset=gfx94"),
            (
                "sm_90",
                &[("index-bitwidth", "32")],
                "gpulower-func-to-llvm{index-bitwidth=32}",
            ),
            ("sm_90", &[], "gpulower-interleave-loops{count=4 index-bitwidth=64}"),
            ("sm_90", &[("O", "2")], "gpulower-interleave-loops{count=4 "),
            (
                "sm_90",
                &[("O", "1"), ("interleave", "2")],
                "gpulower-interleave-loops{count=2 ",
            ),
            (
                "gfx942",
                &[("interleave", "8"), ("index-bitwidth", "32")],
                "gpulower-interleave-loops{count=8 index-bitwidth=32}",
            ),
            (
                "sm_90",
                &[("bare-pointers", "true")],
                "use-bare-ptr-memref-call-conv=true",
            ),
        ] {
            let text = pipeline(&resolved(target, options), false, false).concat();
            assert!(text.contains(part), "{target}: {part} is not in\n{text}");
        }
    }

    #[test]
    fn loops_are_interleaved_where_it_was_measured_or_asked_for() {
        for (target, options) in [
            ("sm_90", &[("interleave", "1")][..]),
            ("sm_90", &[("O", "1")]),
            ("sm_90", &[("debug", "full")]),
            ("gfx942", &[]),
        ] {
            let text = pipeline(&resolved(target, options), false, false).concat();
            assert!(!text.contains("interleave"), "{target} {options:?}:\n{text}");
        }
    }

    #[test]
    fn tensors_are_refused_with_advice() {
        let error = LowerError::Unsupported {
            names: vec!["tensor.extract".to_owned()],
            target: "sm_90".to_owned(),
            location: "here".to_owned(),
        };
        assert_eq!(
            error.to_string(),
            "cannot lower tensor.extract for sm_90; bufferize tensors and turn linalg into loops before"
        );
    }
}
