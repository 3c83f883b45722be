//! The list of functions against what MLIR's conversions call, and what is refused before the driver is asked.

use std::collections::BTreeSet;

use super::*;

/// The functions for cuSPARSE, which are left to a shared library.
const SPARSE: &[&str] = &[
    "Bsr",
    "Coo",
    "Csc",
    "Csr",
    "CuSparse",
    "Cusparse",
    "DnMat",
    "DnVec",
    "SDDMM",
    "SpGEMM",
    "SpMM",
    "SpMV",
    "SpMat",
    "SparseEnv",
];

/// The names in MLIR's static libraries are those that its conversions make calls of.
#[test]
fn every_function_that_mlir_calls_is_there() {
    let folder = std::path::Path::new(env!("MLIR_SYS_220_PREFIX")).join("lib");
    let own: BTreeSet<&str> = functions().into_iter().map(|(name, _)| name).collect();
    let mut called = BTreeSet::new();
    for library in [
        "libMLIRGPUToGPURuntimeTransforms.a",
        "libMLIRGPUToLLVMIRTranslation.a",
        "libMLIRNVGPUToNVVM.a",
    ] {
        let path = folder.join(library);
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for text in bytes.split(|byte| !byte.is_ascii_alphanumeric()) {
            if let Some(name) = std::str::from_utf8(text).ok().filter(|name| name.starts_with("mgpu")) {
                called.insert(name.to_owned());
            }
        }
    }
    called.retain(|name| !SPARSE.iter().any(|part| name.contains(part)));
    assert!(called.len() >= 20, "{called:?}");
    let missing: Vec<&String> = called.iter().filter(|name| !own.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_function_that_our_own_host_code_calls_is_there() {
    let own: BTreeSet<&str> = functions().into_iter().map(|(name, _)| name).collect();
    let support = concat!(
        include_str!("../offload/support.mlir"),
        include_str!("../offload/support_cuda.mlir")
    );
    let defined = support.lines().filter_map(|line| {
        line.strip_prefix("llvm.func internal @")?
            .split_once('(')
            .map(|(name, _)| name)
    });
    let mut count = 0;
    for name in defined
        .filter(|name| name.starts_with("mgpu") || matches!(*name, "__gpulower_launch" | "__gpulower_launch_clusters"))
    {
        assert!(own.contains(name), "{name}");
        count += 1;
    }
    assert!(count > 20, "{count}");
}

fn descriptor(words: &[i64]) -> Result<Descriptor<'_>, MisuseError> {
    let rank = (words.len() as i64 - 3) / 2;
    // SAFETY: the words are a descriptor of that rank.
    unsafe { Descriptor::read(rank, words.as_ptr()) }
}

#[test]
fn a_descriptor_says_where_and_how_large_a_memref_is() {
    let dense = [0, 0x1000, 2, 3, 4, 4, 1];
    let memref = descriptor(&dense).unwrap();
    assert_eq!(memref.start(4), 0x1008);
    assert_eq!(memref.dense_bytes(4), Ok(48));
    assert_eq!(
        descriptor(&[0, 0x1000, 0]).unwrap().dense_bytes(8),
        Ok(8),
        "a memref of rank 0"
    );
    assert_eq!(
        descriptor(&[0, 0, 0, 3, 4, 5, 1]).unwrap().dense_bytes(4),
        Err(MisuseError::Gaps)
    );
    assert_eq!(
        descriptor(&[0, 0, 0, i64::MAX, 4, 4, 1]).unwrap().dense_bytes(4),
        Err(MisuseError::TooLarge)
    );
    assert!(descriptor(&[0, 0, 0, -3, 1]).unwrap().dense_bytes(4).is_err());
    // SAFETY: a null pointer and a negative rank are refused before anything is read.
    unsafe {
        assert!(Descriptor::read(1, std::ptr::null()).is_err());
        assert!(Descriptor::read(-1, dense.as_ptr()).is_err());
    }
}

#[test]
fn a_tensor_map_is_described_from_the_innermost_dimension_on() {
    let words = [0, 0x1000, 0, 64, 128, 128, 1];
    let memref = descriptor(&words).unwrap();
    // SAFETY: there is a number for each dimension.
    let map = unsafe { memref.tensor_map([6, 0, 3, 2, 0], [8, 64].as_ptr()) }.unwrap();
    assert_eq!(map.sizes, [128, 64, 1, 1, 1]);
    assert_eq!(map.strides, [256, 0, 0, 0, 0], "f16 has two bytes");
    assert_eq!(map.boxes, [64, 8, 1, 1, 1]);
    assert_eq!((map.swizzle, map.promotion), (3, 2));
    // SAFETY: as above; the second is refused before it is read.
    unsafe {
        assert_eq!(
            memref.tensor_map([13, 0, 0, 0, 0], [8, 64].as_ptr()),
            Err(MisuseError::TensorType(13))
        );
        assert!(memref.tensor_map([6, 0, 0, 0, 0], std::ptr::null()).is_err());
    }
}
