//! The sections in which host objects carry device code, and what is in them.
//!
//! A runtime is given a *wrapper*, 24 bytes with a magic number, a version and a pointer to the fat binary or bundle, by
//! the constructor that registers the kernels. Tools find the device code by the names of the sections alone.
//!
//! Established from objects of nvcc 13.0.88 and clang 22 (`CGCUDANV.cpp`, and `OffloadWrapper.cpp` of LLVM).

/// Section with fat binaries, one after the other: flags A, [`NV_FATBIN_ALIGN`].
pub const NV_FATBIN_SECTION: &str = ".nv_fatbin";
/// Alignment of each fat binary, in bytes.
pub const NV_FATBIN_ALIGN: u64 = 8;
/// Section with the wrappers of fat binaries: flags WA, since the pointers are relocated when the program is loaded.
pub const NV_WRAPPER_SECTION: &str = ".nvFatBinSegment";
/// First field of the wrapper of a fat binary (`FATBINC_MAGIC` in CUDA's `fatbinary_section.h`).
pub const NV_WRAPPER_MAGIC: u32 = 0x4662_43b1;

/// Section with offload bundles for HIP: flags A, [`HIP_FATBIN_ALIGN`].
pub const HIP_FATBIN_SECTION: &str = ".hip_fatbin";
/// Alignment of each bundle, in bytes. Code objects lie at multiples of it within the bundle, and are mapped from there.
pub const HIP_FATBIN_ALIGN: u64 = 4096;
/// Section with the wrappers of bundles: flags WA.
pub const HIP_WRAPPER_SECTION: &str = ".hipFatBinSegment";
/// First field of the wrapper of a bundle, "HIPF".
pub const HIP_WRAPPER_MAGIC: u32 = 0x4849_5046;

/// Second field of either wrapper: a fat binary or bundle that is complete. (NVIDIA's version 2 refers to code that
/// nvlink has linked.)
pub const WRAPPER_VERSION: u32 = 1;
/// Size of a wrapper: magic (u32), version (u32), pointer to the data, and a pointer that version 1 leaves null.
pub const WRAPPER_SIZE: u64 = 24;
/// Where in a wrapper the pointer to the data is.
pub const WRAPPER_DATA_OFFSET: u64 = 8;
/// Alignment of each wrapper, in bytes.
pub const WRAPPER_ALIGN: u64 = 8;

/// Section with LLVM's offload binaries, one after the other: type [`SHT_LLVM_OFFLOADING`], flags E (`SHF_EXCLUDE`),
/// [`LLVM_OFFLOADING_ALIGN`]. The linker drops it; before that, clang's linker wrapper has taken it out.
pub const LLVM_OFFLOADING_SECTION: &str = ".llvm.offloading";
/// Type of that section (`llvm/BinaryFormat/ELF.h`). Of another type, it is ignored.
pub const SHT_LLVM_OFFLOADING: u32 = 0x6fff_4c0b;
/// Alignment of each offload binary, in bytes.
pub const LLVM_OFFLOADING_ALIGN: u64 = 8;
