// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
// RUN: mkdir -p %t/empty
// RUN: not gpulower compile %s --target sm_90 --cuda %t/empty --emit ptx -o - 2>&1 | FileCheck %s --check-prefix=WITHOUT

// A power that may be approximated stays libdevice's, which multiplies: no product is made exact by a fused multiply-add.

// CHECK-LABEL: .entry power(
// CHECK: mul.{{.*}}f32
// CHECK-NOT: fma.rn.f32
// WITHOUT: __nv_powif
gpu.module @kernels {
  gpu.func @power(%x: f32, %n: i32, %out: memref<f32>) kernel {
    %r = math.fpowi %x, %n fastmath<afn> : f32, i32
    memref.store %r, %out[] : memref<f32>
    gpu.return
  }
}
