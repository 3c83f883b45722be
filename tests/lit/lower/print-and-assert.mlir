// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: gpulower compile %s --target gfx942 --emit llvm -o - | FileCheck %s --check-prefix=AMD

// NVIDIA's driver prints and reports failed assertions. On AMD printing goes through ockl's printf, which asks the host
// for help, and a failed assertion ends the kernel without a message.

gpu.module @kernels {
  // PTX-LABEL: .entry prints(
  // PTX: vprintf
  // AMD: define {{.*}}amdgpu_kernel void @prints(
  // AMD: amdgpu_kernel void @asserts(
  // AMD: call void @llvm.trap()
  // AMD-NOT: declare {{.*}}@__ockl_
  gpu.func @prints(%i: i32, %f: f32) kernel {
    gpu.printf "i = %d, f = %f\0A", %i, %f : i32, f32
    gpu.return
  }

  // PTX-LABEL: .entry asserts(
  // PTX: __assertfail
  gpu.func @asserts(%i: i32, %m: memref<?xi32>) kernel {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : i32
    %ok = arith.cmpi sgt, %i, %c0 : i32
    cf.assert %ok, "i is not positive"
    memref.store %i, %m[%t] : memref<?xi32>
    gpu.return
  }
}
