//! The arguments that the runtime builds for a memref are those that a compiled kernel has.

use gpulower::{
    Compiler, Emit, Options, Target,
    runtime::{Arguments, KernelInterface, MemRef, PtxFallback, choose},
    target::Vendor,
};

/// The kernel `k`, compiled for `target` with an option or none.
fn kernel(source: &str, target: &str, option: Option<(&str, &str)>) -> KernelInterface {
    let mut options = Options::default();
    if let Some((name, value)) = option {
        options.set(name, value).unwrap();
    }
    let compiler = Compiler::builder().options(options).build();
    let target: Target = target.parse().unwrap();
    let emit = match target.vendor() {
        Vendor::Nvidia => Emit::Ptx,
        Vendor::Amd => Emit::Hsaco,
    };
    let compiled = compiler
        .compile_source("k.mlir", source.as_bytes(), &[target], emit)
        .unwrap();
    let device = match target.vendor() {
        Vendor::Nvidia => "9.0",
        Vendor::Amd => "gfx942",
    };
    let bytes = &compiled.artifacts[0].bytes;
    let chosen = choose("k", bytes, device.parse().unwrap(), None, PtxFallback::Allowed).unwrap();
    chosen.kernels.into_iter().find(|kernel| kernel.name == "k").unwrap()
}

#[test]
fn memref_arguments_are_those_of_the_lowering() {
    const DYNAMIC: &str = "gpu.module @m { gpu.func @k(%a: f32, %x: memref<?x4xf32>, %s: memref<f32>) kernel {
        %c0 = arith.constant 0 : index
        memref.store %a, %x[%c0, %c0] : memref<?x4xf32>
        memref.store %a, %s[] : memref<f32>
        gpu.return } }";
    const STATIC: &str = "gpu.module @m { gpu.func @k(%a: f32, %x: memref<8x4xf32>, %i: index, %f: i1) kernel {
        memref.store %a, %x[%i, %i] : memref<8x4xf32>
        gpu.return } }";
    let two = MemRef::contiguous(0, &[8, 4]);
    let none = MemRef::contiguous(0, &[]);
    for target in ["sm_90", "gfx942"] {
        let mut arguments = Arguments::new();
        arguments.value(1.0f32).memref(&two).memref(&none);
        arguments.check(&kernel(DYNAMIC, target, None)).unwrap();

        arguments.clear();
        let narrow = |memref: &MemRef| memref.clone().with_index_bits(32);
        arguments.value(1.0f32).memref(&narrow(&two)).memref(&narrow(&none));
        arguments
            .check(&kernel(DYNAMIC, target, Some(("index-bitwidth", "32"))))
            .unwrap();

        arguments.clear();
        arguments.value(1.0f32).bare_memref(&two).value(0i64).value(true);
        arguments
            .check(&kernel(STATIC, target, Some(("bare-pointers", "true"))))
            .unwrap();
    }
}
