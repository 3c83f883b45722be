//! Which passes LLVM runs on a linked module, as text.

use crate::{options::Resolved, target::Vendor};

/// What the PTX compiler at its first level does not do: it knows neither what may be inlined nor which memory an address is
/// in, moves nothing out of loops, and divides numbers of 64 bits as such. `default<O1>` takes ten times as long.
const FAST_PASSES: &str = "default<O0>,cgscc(function(sroa,early-cse,simplifycfg),inline),globaldce,\
    function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,nvptx-lower-args,infer-address-spaces,\
    loop-mssa(licm<allowspeculation>),early-cse,gpulower-bypass-divisions)";

/// LLVM's passes, and after them ours, which interleaves loops.
pub(super) fn pipeline(resolved: &Resolved) -> String {
    if let Some(passes) = &resolved.llvm_passes {
        return passes.clone();
    }
    let (passes, last) = match llvm_pipeline(resolved) {
        "default<O3>" if resolved.target.vendor() == Vendor::Nvidia => (
            passes_for_ptx(),
            ",function(gpulower-compare-again,gpulower-branch-to-rare-ends)",
        ),
        passes => (passes.to_owned(), ""),
    };
    match resolved.interleave {
        count if count > 1 && !resolved.input_optimized => {
            format!("{passes},function(gpulower-interleave<{count}>){last}")
        }
        _ => passes + last,
    }
}

/// The pipeline of LLVM's own whose work [`pipeline`] does.
pub(crate) fn llvm_pipeline(resolved: &Resolved) -> &str {
    if let Some(passes) = &resolved.llvm_passes {
        return passes;
    }
    match resolved.optimization.number() {
        _ if resolved.input_optimized => "default<O0>",
        0 => "default<O0>",
        1 if resolved.fast_compile => FAST_PASSES,
        1 => "default<O1>",
        2 => "default<O2>",
        _ => "default<O3>",
    }
}

/// `default<O3>` of LLVM 22 without what brings nothing on a GPU, or nothing that the PTX compiler does not find:
/// docs/code-quality.md has the measurements. The order is LLVM's.
///
/// - Not for kernels: coroutines, OpenMP, profiles, vectors of a loop, calls of a C library, jump threading (which LLVM leaves
///   out itself where threads part).
/// - `instcombine` runs five times instead of seven, and once more where [loops were unrolled](../bridge/cpp/for_ptx.cpp);
///   `simplifycfg` six times instead of seven.
/// - `sccp`, `bdce`, `constraint-elimination`, `correlated-propagation` before the loops, `vector-combine`, `loop-sink`: no
///   machine code but that of one kernel in 191 differed.
fn passes_for_ptx() -> String {
    const COMBINE: &str = "instcombine<no-verify-fixpoint>";
    // What may be made of branches grows from step to step.
    const BRANCHES: &str = "simplifycfg<switch-range-to-icmp>";
    const BRANCHES_AFTER_LOOPS: &str =
        "simplifycfg<switch-range-to-icmp;switch-to-arithmetic;hoist-common-insts;sink-common-insts>";
    const BRANCHES_WITHOUT_LOOPS: &str = "simplifycfg<forward-switch-cond;switch-range-to-icmp;switch-to-arithmetic;\
        switch-to-lookup;no-keep-loops;hoist-common-insts;sink-common-insts>";
    const LAST_BRANCHES: &str = "simplifycfg<switch-range-to-icmp;switch-to-arithmetic;\
        hoist-loads-stores-with-cond-faulting;speculate-unpredictables>";
    let before_inlining = format!(
        "function(nvvm-intr-range),inferattrs,function<eager-inv>(lower-expect,simplifycfg,sroa<modify-cfg>,early-cse),ipsccp,globalopt,\
         function<eager-inv>(mem2reg,{COMBINE},{BRANCHES}),always-inline,require<globals-aa>,function(invalidate<aa>)"
    );
    let of_function = format!(
        "gpulower-replace-merged-addresses,sroa<modify-cfg>,early-cse<memssa>,speculative-execution<only-if-divergent-target>,{BRANCHES},{COMBINE},\
         aggressive-instcombine,tailcallelim,reassociate,\
         loop-mssa(licm<no-allowspeculation>,loop-rotate,licm,simple-loop-unswitch<nontrivial;trivial>),{BRANCHES},{COMBINE},\
         gpulower-unroll-for-arrays,gpulower-keep-accumulators,loop(gpulower-count-bits,loop-idiom,indvars,loop-deletion,gpulower-unroll-whole),sroa<modify-cfg>,gvn,correlated-propagation,adce,\
         memcpyopt,dse,loop-mssa(licm),{BRANCHES_AFTER_LOOPS},{COMBINE}"
    );
    let inlining = format!(
        "cgscc(devirt<4>(inline,function-attrs<skip-non-recursive-function-attrs>,argpromotion,\
         function<eager-inv;no-rerun>({of_function}),function-attrs)),deadargelim,globalopt,globaldce,recompute-globalsaa"
    );
    let last = format!(
        "function<eager-inv>(float2int,lower-constant-intrinsics,scalarize-masked-mem-intrin,gpulower-expand-copies,gpulower-infer-address-spaces,gpulower-leave-unrolling,loop(loop-rotate,loop-deletion),\
         loop-load-elim,{COMBINE},{BRANCHES_WITHOUT_LOOPS},slp-vectorizer,gpulower-unroll,gpulower-separate-exclusive-ors,infer-alignment,instsimplify,\
         div-rem-pairs,{LAST_BRANCHES},gpulower-rotate-remainders,gpulower-load-before-branches,gpulower-compute-early),globaldce,constmerge"
    );
    format!("{before_inlining},{inlining},{last}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    fn passes(target: &str, options: &[(&str, &str)]) -> String {
        let mut asked = Options::default();
        for (name, value) in options {
            asked.set(name, value).expect("an option");
        }
        let target = target.parse().expect("a target");
        pipeline(&asked.resolve(&target, None).expect("resolves"))
    }

    #[test]
    fn kernels_for_nvidia_get_passes_of_their_own() {
        for (target, level, begins) in [
            ("sm_90", "3", "function(nvvm-intr-range)"),
            ("sm_90", "2", "default<O2>"),
            ("sm_90", "1", "default<O1>"),
            ("gfx942", "3", "default<O3>"),
        ] {
            let passes = passes(target, &[("O", level)]);
            assert!(passes.starts_with(begins), "{target} -O{level}: {passes}");
        }
    }

    #[test]
    fn loops_are_interleaved_where_it_was_measured_or_asked_for() {
        for (target, options, count) in [
            ("sm_90", &[][..], Some(4)),
            ("sm_90", &[("O", "2")], Some(4)),
            ("sm_90", &[("O", "1"), ("interleave", "2")], Some(2)),
            ("gfx942", &[("interleave", "8")], Some(8)),
            ("sm_90", &[("interleave", "1")], None),
            ("sm_90", &[("O", "1")], None),
            ("sm_90", &[("debug", "full")], None),
            ("sm_90", &[("llvm-passes", "dce")], None),
            ("gfx942", &[], None),
        ] {
            let passes = passes(target, options);
            match count {
                Some(count) => assert!(
                    passes.contains(&format!(",function(gpulower-interleave<{count}>)")),
                    "{target} {options:?}: {passes}"
                ),
                None => assert!(!passes.contains("interleave"), "{target} {options:?}: {passes}"),
            }
        }
    }
}
