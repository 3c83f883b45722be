// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: gpulower compile %s --target gfx942 --emit llvm -o - | FileCheck %s --check-prefix=AMD

// Complex arithmetic becomes real arithmetic, whose functions are the vendor's: LLVM has none of its own for atan2.

// AMD-NOT: @llvm.atan2
gpu.module @kernels {
  // PTX-LABEL: .entry functions(
  // AMD: amdgpu_kernel void @functions(
  gpu.func @functions(%m: memref<?xcomplex<f32>>, %i: index) kernel {
    %a = memref.load %m[%i] : memref<?xcomplex<f32>>
    %b = complex.sqrt %a : complex<f32>
    %c = complex.log %b : complex<f32>
    %d = complex.div %c, %a : complex<f32>
    %e = complex.exp %d : complex<f32>
    memref.store %e, %m[%i] : memref<?xcomplex<f32>>
    gpu.return
  }
}
