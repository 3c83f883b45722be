// RUN: mlir-opt %s --mlir-print-debuginfo -o %t.mlir \
// RUN:     --pass-pipeline='builtin.module(nvvm-attach-target{chip=sm_90},gpu.module(convert-gpu-to-nvvm),reconcile-unrealized-casts)'
// RUN: gpulower compile %t.mlir --emit llvm -o - | FileCheck %s
// RUN: gpulower-opt %t.mlir --gpulower-serialize=format=isa | FileCheck %s --check-prefix=PTX

// Assertions that upstream's own pass list has lowered: file, line and message are in its constants, and "(unknown)" for the function where
// its location has no name.

// CHECK-DAG: c"checks\00"
// CHECK-DAG: c"checks_too\00"
// CHECK-DAG: c"named\00"
// CHECK-DAG: c"checked.mlir\00"
// CHECK-DAG: c"must hold\00"
// CHECK-NOT: (unknown)
// CHECK-DAG: call void @__assertfail(ptr {{.*}}, i32 7, ptr
// CHECK-DAG: call void @__assertfail(ptr {{.*}}, i32 9, ptr
// PTX-DAG: [7] = {99, 104, 101, 99, 107, 115}
// PTX-DAG: [11] = {99, 104, 101, 99, 107, 115, 95, 116, 111, 111}
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @checks(%ok: i1, %other: i1) kernel {
      cf.assert %ok, "must hold" loc("checked.mlir":7:3)
      cf.assert %other, "must hold" loc("named"("checked.mlir":9:3))
      gpu.return
    }
    gpu.func @checks_too(%ok: i1) kernel {
      cf.assert %ok, "must hold" loc("checked.mlir":12:3)
      gpu.return
    }
  }
}
