// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: gpulower compile %s --target gfx942 --emit llvm -o - | FileCheck %s --check-prefix=AMD
// RUN: gpulower compile %s --target gfx1100 --emit asm -o - | FileCheck %s --check-prefix=RDNA3
// RUN: gpulower compile %s --target gfx1103,gfx11-generic -O 1 --emit hsaco -o %t/

// NVIDIA's driver prints and reports failed assertions. On AMD both go through ockl's printf, which asks the host for help: a
// failed assertion hands over its text, in which % stands for itself, and ends the kernel.

gpu.module @kernels {
  // PTX-LABEL: .entry prints(
  // PTX: vprintf
  // AMD-DAG: [[TEXT:@[a-z_.0-9]+]] = internal {{.*}}constant [{{[0-9]+}} x i8] c"{{.*}}print-and-assert.mlir:[[#]]: asserts: Device-side assertion `i is not 100%% positive' failed.\0A\00"
  // AMD: define internal {{.*}}void @__gpulower_assertion_failed(
  // AMD: call void @llvm.trap()
  // AMD: define {{.*}}amdgpu_kernel void @prints(
  // AMD: amdgpu_kernel void @asserts(
  // AMD: call {{.*}}void @__gpulower_assertion_failed(ptr {{.*}}[[TEXT]] to ptr)
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
    cf.assert %ok, "i is not 100% positive"
    memref.store %i, %m[%t] : memref<?xi32>
    gpu.return
  }

  // LLVM 22's own trap for these chips leaves pseudo-instructions behind it: an object was a fatal error, and in the text
  // an addition was missing.
  // RDNA3-LABEL: __gpulower_assertion_failed:
  // RDNA3: s_trap 2
  // RDNA3: s_sethalt 5
  gpu.func @both(%i: i32, %ok: i1) kernel {
    cf.assert %ok, "not ok"
    gpu.printf "i = %d\0A", %i : i32
    gpu.return
  }
}
