// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: gpulower compile %s --target gfx942 --emit llvm -o - | FileCheck %s --check-prefix=AMD

// LLVM 22 ignores the mode for NVIDIA, and ends in "unsupported library call operation" for AMD. The numbers are compared
// in src/compiler/rounding_tests.rs.

gpu.module @kernels {
  // PTX-LABEL: .entry conversions(
  // PTX: cvt.rm.f32.f64
  // PTX-NOT: cvt.rn.{{b?}}f16
  // AMD: define {{.*}}amdgpu_kernel void @conversions(
  // AMD-NOT: constrained
  // AMD-NOT: fptrunc
  // AMD: ret void
  gpu.func @conversions(%a: f32, %b: f64, %v: vector<2xf32>, %p: memref<f16>, %q: memref<bf16>, %r: memref<f32>, %s: memref<vector<2xbf16>>) kernel {
    %0 = arith.truncf %a upward : f32 to f16
    memref.store %0, %p[] : memref<f16>
    %1 = arith.truncf %b toward_zero : f64 to bf16
    memref.store %1, %q[] : memref<bf16>
    %2 = arith.truncf %b downward : f64 to f32
    memref.store %2, %r[] : memref<f32>
    %3 = arith.truncf %v to_nearest_away : vector<2xf32> to vector<2xbf16>
    memref.store %3, %s[] : memref<vector<2xbf16>>
    gpu.return
  }

  // The usual mode is the usual instruction.
  // PTX-LABEL: .entry nearest(
  // PTX: cvt.rn.f16.f32
  // AMD: define {{.*}}amdgpu_kernel void @nearest(
  // AMD: fptrunc float
  gpu.func @nearest(%a: f32, %p: memref<f16>) kernel {
    %0 = arith.truncf %a to_nearest_even : f32 to f16
    memref.store %0, %p[] : memref<f16>
    gpu.return
  }
}
