//! The list of functions against what MLIR's conversions call, and what is refused before the driver is asked.

use std::collections::BTreeSet;

use gpulower_testing::amd::run;

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

/// Host code with everything that MLIR makes calls of.
const HOST: &str = r#"module attributes {gpu.container_module} {
  gpu.binary @m [#gpu.object<#nvvm.target, "x">]
  gpu.binary @text [#gpu.object<#nvvm.target, assembly = "x">]
  llvm.func @launches(%a: !llvm.ptr, %n: i64, %s: i32, %t: !llvm.ptr) {
    gpu.launch_func <%t : !llvm.ptr> @m::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) : i64
      dynamic_shared_memory_size %s args(%a : !llvm.ptr)
    gpu.launch_func <%t : !llvm.ptr> @m::@k clusters in (%n, %n, %n) blocks in (%n, %n, %n)
      threads in (%n, %n, %n) : i64 dynamic_shared_memory_size %s args(%a : !llvm.ptr)
    llvm.return
  }
  func.func private @mgpuMemGetDeviceMemRef1dFloat(memref<?xf32>) -> memref<?xf32>
  func.func private @mgpuMemGetDeviceMemRef1dInt32(memref<?xi32>) -> memref<?xi32>
  func.func @memory(%a: memref<?xf32>, %i: memref<?xi32>, %u: memref<*xf32>, %n: index, %v: f32, %w: f16, %d: i32) {
    gpu.set_default_device %d
    gpu.host_register %u : memref<*xf32>
    gpu.host_unregister %u : memref<*xf32>
    %x = call @mgpuMemGetDeviceMemRef1dFloat(%a) : (memref<?xf32>) -> memref<?xf32>
    %y = call @mgpuMemGetDeviceMemRef1dInt32(%i) : (memref<?xi32>) -> memref<?xi32>
    %t0 = gpu.wait async
    %m, %t1 = gpu.alloc async [%t0] (%n) : memref<?xf32>
    %h, %t2 = gpu.alloc async [%t1] (%n) : memref<?xf16>
    %t3 = gpu.memcpy async [%t2] %m, %a : memref<?xf32>, memref<?xf32>
    %t4 = gpu.memset async [%t3] %m, %v : memref<?xf32>, f32
    %t5 = gpu.memset async [%t4] %h, %w : memref<?xf16>, f16
    %t6 = gpu.wait async
    %t7 = gpu.wait async [%t5, %t6]
    %t8 = gpu.dealloc async [%t7] %m : memref<?xf32>
    gpu.wait [%t8]
    return
  }
  func.func @tensor_map(%a: memref<64x128xf16>, %n: index) {
    %u = memref.cast %a : memref<64x128xf16> to memref<*xf16>
    %m = nvgpu.tma.create.descriptor %u box[%n, %n] : memref<*xf16> -> !nvgpu.tensormap.descriptor<
      tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
    return
  }
}"#;

/// What no conversion of MLIR calls: functions of ours, and those for programs' own calls, which are as
/// `mlir/lib/ExecutionEngine/CudaRuntimeWrappers.cpp` has them.
const NOT_IN_CONVERSIONS: &[&str] = &[
    "__gpulower_launch",
    "__gpulower_launch_clusters",
    "mgpuEventSynchronize",
    "mgpuMemHostRegister",
    "mgpuMemHostUnregister",
    "mgpuMemset8",
    "mgpuMemset64",
    "mgpuTensorMapEncodeTiled",
];

/// A type of ours as LLVM writes it in a declaration.
fn in_llvm(kind: &str) -> &str {
    match kind.replace(' ', "").as_str() {
        pointer if pointer.starts_with('*') => "ptr",
        "i64" | "u64" => "i64",
        "i32" | "u32" => "i32",
        "u16" => "i16",
        "u8" | "i8" => "i8",
        "" => "void",
        "MemRef1" => "{ ptr, ptr, i64, [1 x i64], [1 x i64] }",
        other => panic!("a type that is not expected: {other}"),
    }
}

/// Both sides are read: what MLIR 22 declares when it lowers, and what the functions here take.
#[test]
fn functions_take_and_return_what_mlir_declares() {
    let pipeline = [
        "--convert-nvgpu-to-nvvm",
        "--gpu-to-llvm",
        "--reconcile-unrealized-casts",
    ];
    let lowered = run("mlir-opt", &pipeline, HOST.as_bytes());
    let ir = String::from_utf8(run("mlir-translate", &["--mlir-to-llvmir"], &lowered)).expect("text");
    let declared: std::collections::BTreeMap<&str, (&str, Vec<&str>)> = ir
        .lines()
        .filter_map(|line| line.strip_prefix("declare ")?.split_once(" @"))
        .filter_map(|(result, rest)| {
            let (name, arguments) = rest.strip_suffix(')')?.split_once('(')?;
            let arguments = arguments.split(", ").filter(|argument| !argument.is_empty()).collect();
            Some((name, (result, arguments)))
        })
        .collect();
    for (name, kinds, result) in signatures() {
        let Some((wanted_result, wanted)) = declared.get(name) else {
            assert!(NOT_IN_CONVERSIONS.contains(&name), "{name} is not in\n{ir}");
            continue;
        };
        let kinds: Vec<&str> = kinds.into_iter().map(in_llvm).collect();
        assert_eq!((in_llvm(result), &kinds), (*wanted_result, wanted), "{name}");
    }
    assert!(declared.len() > 20, "{declared:?}");
}

#[test]
fn every_function_that_our_own_host_code_calls_is_there() {
    let own: BTreeSet<&str> = functions().into_iter().map(|(name, _)| name).collect();
    let support = concat!(
        include_str!("../../src/offload/support.mlir"),
        include_str!("../../src/offload/support_cuda.mlir")
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

fn descriptor(words: &[i64]) -> Result<Descriptor<'_>, String> {
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
        Err("the elements of the memref do not follow each other".to_owned())
    );
    assert_eq!(
        descriptor(&[0, 0, 0, i64::MAX, 4, 4, 1]).unwrap().dense_bytes(4),
        Err(TOO_LARGE.to_owned())
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
            Err("13 is no data type of tensor maps (CUtensorMapDataType)".to_owned())
        );
        assert!(memref.tensor_map([6, 0, 0, 0, 0], std::ptr::null()).is_err());
    }
}
