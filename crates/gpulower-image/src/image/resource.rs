//! Static resource usage of a compiled kernel, in one form for every vendor.
//!
//! The cubin reader and the hsaco reader both fill [`KernelResources`]. A field which the vendor's
//! container does not record is `None`, never a guess: a zero means that the container says zero.

use serde::{Deserialize, Serialize};

/// What one kernel of a compiled GPU binary needs from the hardware, as far as the binary records it.
///
/// Sizes are bytes. Register counts are per thread (NVIDIA) or per lane of a wavefront (AMD VGPRs and
/// AGPRs) or per wavefront (AMD SGPRs).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelResources {
    /// The kernel's symbol name, as the loader of the binary knows it.
    pub name: String,
    /// NVIDIA: 32-bit registers per thread.
    pub registers: Option<u32>,
    /// AMD: scalar registers per wavefront.
    pub sgprs: Option<u32>,
    /// AMD: vector registers per lane, as the container says: on chips whose accumulation registers share the file
    /// (gfx90a and later with MFMA) those are counted in.
    pub vgprs: Option<u32>,
    /// AMD: accumulation registers per lane. `None` on chips that have none (gfx10, gfx11, gfx12).
    pub agprs: Option<u32>,
    /// NVIDIA: bytes stored to local memory by register spilling (from the compiler's log only).
    pub spill_store_bytes: Option<u32>,
    /// NVIDIA: bytes loaded from local memory by register spilling (from the compiler's log only).
    pub spill_load_bytes: Option<u32>,
    /// AMD: number of scalar registers spilled.
    pub spilled_sgprs: Option<u32>,
    /// AMD: number of vector registers spilled.
    pub spilled_vgprs: Option<u32>,
    /// Shared memory (LDS) per block that the program itself declares statically, in bytes.
    ///
    /// Excludes what the system reserves (see `reserved_shared_bytes`) and dynamic shared memory.
    pub shared_bytes: u64,
    /// Shared memory per block that the system reserves and the binary accounts for, in bytes
    /// (NVIDIA sm_90 and newer: 1024 when the kernel has a shared section, otherwise 0).
    pub reserved_shared_bytes: u64,
    /// Stack frame and private memory per thread (lane), in bytes.
    pub scratch_bytes: u64,
    /// Whether the stack size depends on the run (recursion, indirect calls, dynamic allocation), so
    /// that `scratch_bytes` is only a lower bound. `None` when the binary does not say.
    pub dynamic_stack: Option<bool>,
    /// Size of the kernel's machine code, in bytes, if the binary allows to tell.
    pub code_bytes: Option<u64>,
    /// Largest number of threads per block the kernel was compiled for (flat, x * y * z).
    pub max_threads_per_block: Option<u32>,
    /// Exact block shape the kernel requires, if it requires one.
    pub required_block: Option<[u32; 3]>,
    /// AMD: lanes per wavefront, 32 or 64. NVIDIA warps always have 32 threads: `None`.
    pub wavefront_size: Option<u32>,
    /// NVIDIA: constant bank sizes, in bytes.
    pub constant_banks: Vec<ConstantBank>,
    /// NVIDIA: shape of the thread block cluster, if the kernel fixes one.
    pub cluster: Option<[u32; 3]>,
    /// NVIDIA: largest number of blocks per cluster, if the kernel states one.
    pub max_cluster_rank: Option<u32>,
    /// NVIDIA: number of named barriers the kernel uses, if the binary says.
    pub barriers: Option<u32>,
    /// Total size of the parameter block, in bytes (kernarg segment on AMD), including hidden
    /// arguments.
    pub parameter_bytes: Option<u32>,
    /// The kernel's parameters in order.
    pub parameters: Vec<Parameter>,
}

/// Size of one constant bank of an NVIDIA kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConstantBank {
    /// Bank number: 0 holds the parameters.
    pub bank: u32,
    /// Size in bytes.
    pub bytes: u64,
}

/// One parameter of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    /// Position among the parameters, from 0.
    pub ordinal: u32,
    /// Offset from the start of the parameter block, in bytes.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// Kind as the container names it (AMD `.value_kind`: `global_buffer`, `by_value`,
    /// `hidden_block_count_x`, ...; the type in PTX: `u64`, `b8[40]`). `None` in cubins.
    pub kind: Option<String>,
    /// Name in the source, if the container keeps it.
    pub name: Option<String>,
}

impl KernelResources {
    /// Whether any register was spilled to memory, if it is known.
    #[must_use]
    pub fn spills(&self) -> Option<bool> {
        let counts = [
            self.spill_store_bytes,
            self.spill_load_bytes,
            self.spilled_sgprs,
            self.spilled_vgprs,
        ];
        counts
            .iter()
            .flatten()
            .map(|&count| count > 0)
            .reduce(|one, other| one || other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spills_are_unknown_without_a_source() {
        assert_eq!(KernelResources::default().spills(), None);
    }

    #[test]
    fn one_spilled_register_class_is_enough() {
        let kernel = KernelResources {
            spilled_sgprs: Some(0),
            spilled_vgprs: Some(2),
            ..KernelResources::default()
        };
        assert_eq!(kernel.spills(), Some(true));
        let clean = KernelResources {
            spill_store_bytes: Some(0),
            spill_load_bytes: Some(0),
            ..KernelResources::default()
        };
        assert_eq!(clean.spills(), Some(false));
    }
}
