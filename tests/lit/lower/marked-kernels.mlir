// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: gpulower compile %s --target gfx942 --emit asm -o - | FileCheck %s --check-prefix=GCN

// `gpu.kernel` alone makes a kernel of a function of the llvm dialect.
gpu.module @marked {
  // PTX: .visible .entry marked(
  // GCN: .amdhsa_kernel marked
  llvm.func @marked(%p: !llvm.ptr, %v: f32) attributes {gpu.kernel} {
    llvm.store %v, %p : f32, !llvm.ptr
    llvm.return
  }
}
