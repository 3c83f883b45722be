//! MLIR's and our own passes from the `gpu` dialect to that of one target, as text.

use crate::{
    options::{DebugLevel, Resolved, ResolvedVendor},
    target::{AmdTarget, Target},
};

/// What a module has that takes passes of its own, which other modules do without.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Contents {
    /// Floats of which only `arith-expand` knows what they are: scales and 4-bit elements. That pass would also take the
    /// instructions for maxima and minima apart.
    pub scaled_floats: bool,
    /// Matrices of warpgroups, which a loop may carry.
    pub warpgroups: bool,
    /// Operations of the `vector` dialect.
    pub vectors: bool,
}

/// The first of three pipelines, after each of which the module is checked: until control flow consists of branches. The order
/// of all of them, and why:
///
/// - 8-bit floats that the chip converts come before everything that would not know them;
/// - named address spaces become numbers first: conversions that know no names would complain about each memref;
/// - `scf` becomes `cf` before anything that expands to several blocks (`gpu.all_reduce`), and before `nvgpu`, whose
///   conversion cannot carry `!gpu.mma_matrix` through an `scf.for`; but that of the accumulators of warpgroups can, and
///   not through the branches that it becomes, so that where there are some `nvgpu` comes first;
/// - `vector` before `gpu`: masked transfers create `arith` and `memref` operations that the gpu conversion then takes;
/// - `func` before `gpu`: the gpu conversion would turn a declared device function into a C wrapper;
/// - `affine` twice: expanding strided metadata creates it anew.
///
/// The gpu conversion is told which dialects to take along. Left to itself it takes every dialect that is loaded, and
/// with NVVM loaded it prefers LLVM's intrinsics to the vendor's library for some of `math`.
pub(super) fn to_branches(resolved: &Resolved, contents: Contents) -> String {
    let (first, dialect_of_chip) = match &resolved.target {
        Target::Nvidia(_) => (String::new(), "convert-nvgpu-to-nvvm".to_owned()),
        Target::Amd(chip) => {
            let chipset = chipset(chip);
            (
                format!(
                    "gpulower-round-doubles-to-odd,convert-arith-to-amdgpu{{chipset={chipset} saturate-fp8-truncf=true}},"
                ),
                format!("convert-amdgpu-to-rocdl{{chipset={chipset}}}"),
            )
        }
    };
    let scaled = only(
        contents.scaled_floats,
        "arith-expand{include-f8e8m0=true include-f4e2m1=true},",
    );
    let vectors = only(contents.vectors, "convert-vector-to-scf,");
    let warpgroups = only(contents.warpgroups, "convert-nvgpu-to-nvvm,");
    let chip = expansion_options(resolved);
    in_gpu_module(&format!(
        "{first}gpulower-expand-gpu{{{chip}}},{scaled}{vectors}lower-affine,scf-forall-to-for,{warpgroups}convert-scf-to-cf,{dialect_of_chip}"
    ))
}

/// The second: until memory is accessed one element at a time.
pub(super) fn to_elements(resolved: &Resolved) -> String {
    let chip = expansion_options(resolved);
    in_gpu_module(&format!(
        "expand-strided-metadata,lower-affine,memref-expand,gpulower-expand-gpu-blocks{{{chip}}},gpulower-canonicalize,cse"
    ))
}

/// The third: to the `llvm` dialect and that of the target. `vectors`: whether there are operations of the `vector` dialect by
/// now. `updates`: whether there is a `memref.generic_atomic_rmw`. Where folding makes its result a constant on the way, it becomes a
/// `memref.atomic_rmw` behind the conversion that takes memory along, which has to run once more.
pub(super) fn to_llvm(resolved: &Resolved, vectors: bool, updates: bool) -> String {
    let index = index_option(resolved);
    let taken = format!(
        "allowed-dialects=arith,cf,complex,func,index,memref,ub,vector {}",
        memref_options(resolved)
    );
    let (gpu, last) = match &resolved.target {
        Target::Nvidia(chip) => (
            format!("convert-gpu-to-nvvm{{has-redux={} {taken}}}", chip.has_redux()),
            "convert-nvvm-to-llvm,",
        ),
        Target::Amd(chip) => (
            format!("convert-gpu-to-rocdl{{chipset={} runtime=HIP {taken}}}", chipset(chip)),
            "",
        ),
    };
    let vectors = match (vectors, resolved.index_bitwidth) {
        (false, _) => String::new(),
        (true, 64) => "convert-vector-to-llvm,".to_owned(),
        (true, _) => format!("gpulower-vector-to-llvm{{{index}}},"),
    };
    let again = match updates {
        true => format!("{gpu},gpulower-canonicalize,"),
        false => String::new(),
    };
    in_gpu_module(&format!(
        "{vectors}gpulower-func-to-llvm{{{index}}},{gpu},convert-math-to-llvm,convert-complex-to-llvm,{vectors}\
         convert-index-to-llvm{{{index}}},convert-ub-to-llvm,gpulower-canonicalize,cse,{again}{last}reconcile-unrealized-casts"
    ))
}

/// Passes that run on the one `gpu.module` of a module.
fn in_gpu_module(passes: &str) -> String {
    format!("builtin.module(gpu.module({passes}))")
}

const fn only(wanted: bool, pass: &'static str) -> &'static str {
    if wanted { pass } else { "" }
}

fn index_option(resolved: &Resolved) -> String {
    format!("index-bitwidth={}", resolved.index_bitwidth)
}

/// What comes before [`to_branches`], and before the expansion of `math` operations: it makes such operations.
pub(super) const COMPLEX: &str = "builtin.module(gpu.module(convert-complex-to-standard))";

/// Before everything: functions that cannot be lowered on their own.
pub(super) const INLINE: &str = "builtin.module(gpu.module(gpulower-inline-functions))";

/// Of a module that came in the `llvm` and `nvvm` dialects: what upstream's own pipeline does before it translates.
pub(super) const PTX_TEXT: &str = "builtin.module(gpu.module(convert-nvvm-to-llvm))";

/// What the `gpulower-expand-gpu*` passes have to know of the chip.
fn expansion_options(resolved: &Resolved) -> String {
    let bare = only(resolved.bare_pointers, " bare-pointers=true");
    match (&resolved.target, &resolved.vendor) {
        (Target::Nvidia(chip), _) => format!(
            "capability={} redux={} clusters={}{bare}",
            chip.number(),
            chip.has_redux(),
            chip.has_cluster()
        ),
        (Target::Amd(chip), ResolvedVendor::Amd { wave_size, .. }) => {
            format!("amd=true chipset={} subgroup-size={wave_size}{bare}", chipset(chip))
        }
        (Target::Amd(chip), _) => {
            format!(
                "amd=true chipset={} subgroup-size={}{bare}",
                chipset(chip),
                chip.default_wave_size()
            )
        }
    }
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
pub(super) fn debug_pipeline(resolved: &Resolved) -> String {
    let kind = match (resolved.debug, &resolved.target) {
        (DebugLevel::Full, _) => "Full",
        (_, Target::Nvidia(_)) => "DebugDirectivesOnly",
        (_, Target::Amd(_)) => "LineTablesOnly",
    };
    format!("builtin.module(ensure-debug-info-scope-on-llvm-func{{emission-kind={kind}}})")
}

/// The least debug info that says where instructions come from.
pub(super) const PLACES: &str =
    "builtin.module(ensure-debug-info-scope-on-llvm-func{emission-kind=DebugDirectivesOnly})";

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

    fn all(resolved: &Resolved) -> String {
        to_branches(resolved, Contents::default()) + &to_elements(resolved) + &to_llvm(resolved, false, false)
    }

    #[test]
    fn the_pipeline_knows_the_chip() {
        for (target, options, part) in [
            (
                "sm_75",
                &[][..],
                "gpulower-expand-gpu{capability=75 redux=false clusters=false}",
            ),
            (
                "sm_80",
                &[],
                "gpulower-expand-gpu{capability=80 redux=true clusters=false}",
            ),
            (
                "sm_90a",
                &[],
                "gpulower-expand-gpu{capability=90 redux=true clusters=true}",
            ),
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
            (
                "sm_90",
                &[("bare-pointers", "true")],
                "use-bare-ptr-memref-call-conv=true",
            ),
        ] {
            let text = all(&resolved(target, options));
            assert!(text.contains(part), "{target}: {part} is not in\n{text}");
        }
    }

    #[test]
    fn what_a_module_does_not_have_takes_no_passes() {
        let resolved = resolved("sm_90", &[]);
        assert!(!all(&resolved).contains("vector-to"));
        let vectors = Contents {
            vectors: true,
            ..Contents::default()
        };
        assert!(to_branches(&resolved, vectors).contains("convert-vector-to-scf"));
        assert_eq!(
            to_llvm(&resolved, true, false)
                .matches("convert-vector-to-llvm")
                .count(),
            2
        );
    }
}
