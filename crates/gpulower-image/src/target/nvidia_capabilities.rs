//! What the instruction sets of NVIDIA chips offer, for the choice of a lowering.

use super::{NvidiaTarget, Suffix};

/// What the instruction set of a chip offers, for the choice of a lowering. Numbers are those
/// of the "Target ISA Notes" in NVIDIA's "Parallel Thread Execution ISA".
impl NvidiaTarget {
    const fn at_least(&self, number: u16) -> bool {
        self.number() >= number
    }

    /// Tensor cores of any kind: `wmma` on f16.
    pub const fn has_tensor_cores(&self) -> bool {
        self.at_least(70)
    }

    /// `ldmatrix`, and `mma.sync` with more than the first generation's shape.
    pub const fn has_ldmatrix(&self) -> bool {
        self.at_least(75)
    }

    /// `redux.sync` on 32-bit integers.
    pub const fn has_redux(&self) -> bool {
        self.at_least(80)
    }

    /// `cp.async`: copies from global to shared memory in the background.
    pub const fn has_cp_async(&self) -> bool {
        self.at_least(80)
    }

    /// `fma` on bf16; tensor cores take bf16, tf32 and f64 from here too.
    pub const fn has_bf16_fma(&self) -> bool {
        self.at_least(80)
    }

    /// `mma.sync` on 8-bit floating point.
    pub const fn has_fp8_mma(&self) -> bool {
        self.at_least(89)
    }

    /// `add`, `sub` and `mul` on bf16.
    pub const fn has_bf16_arithmetic(&self) -> bool {
        self.at_least(90)
    }

    /// Clusters of blocks, their shared memory, and bulk tensor copies (TMA).
    pub const fn has_cluster(&self) -> bool {
        self.at_least(90)
    }

    /// `wgmma`: sm_90a alone; neither sm_90 nor any later chip has it.
    pub const fn has_wgmma(&self) -> bool {
        self.number() == 90 && matches!(self.suffix(), Suffix::ArchitectureSpecific)
    }

    /// `tcgen05`: the data-centre chips of Blackwell and later, with `a` or `f`.
    pub const fn has_tcgen05(&self) -> bool {
        matches!(self.number(), 100 | 101 | 103 | 110) && !matches!(self.suffix(), Suffix::Plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_follow_the_chip() {
        let with = |has: fn(&NvidiaTarget) -> bool| -> Vec<&str> {
            NvidiaTarget::all().filter(has).map(|target| target.chip()).collect()
        };
        let first = |has: fn(&NvidiaTarget) -> bool| with(has).first().copied();
        assert_eq!(first(NvidiaTarget::has_tensor_cores), Some("sm_70"));
        assert_eq!(first(NvidiaTarget::has_ldmatrix), Some("sm_75"));
        assert_eq!(first(NvidiaTarget::has_redux), Some("sm_80"));
        assert_eq!(first(NvidiaTarget::has_cp_async), Some("sm_80"));
        assert_eq!(first(NvidiaTarget::has_bf16_fma), Some("sm_80"));
        assert_eq!(first(NvidiaTarget::has_fp8_mma), Some("sm_89"));
        assert_eq!(first(NvidiaTarget::has_bf16_arithmetic), Some("sm_90"));
        assert_eq!(first(NvidiaTarget::has_cluster), Some("sm_90"));
        assert_eq!(with(NvidiaTarget::has_wgmma), ["sm_90a"]);
        assert_eq!(
            with(NvidiaTarget::has_tcgen05),
            [
                "sm_100a", "sm_100f", "sm_101a", "sm_101f", "sm_103a", "sm_103f", "sm_110a", "sm_110f"
            ]
        );
        assert!(
            "compute_90a"
                .parse()
                .is_ok_and(|target: NvidiaTarget| target.has_wgmma())
        );
    }
}
