// RUN: gpulower compile %s --target sm_90 --emit llvm -o - | FileCheck %s
// RUN: gpulower-opt %s --gpulower-attach-targets=targets=sm_90 --gpulower-lower | FileCheck %s --check-prefix=PASS

// MLIR 22 says "(unknown)" for every function whose location has no name, and for every place that is fused of several.

// CHECK-DAG: c"plain\00"
// CHECK-DAG: c"first.mlir\00"
// CHECK-DAG: c"fused\00"
// CHECK-DAG: c"second.mlir\00"
// CHECK-DAG: c"named_by_location\00"
// CHECK-DAG: c"third.mlir\00"
// CHECK-DAG: c"callee\00"
// CHECK-DAG: c"fourth.mlir\00"
// CHECK-NOT: c"(unknown)\00"
// CHECK-DAG: call void @__assertfail(ptr {{.*}}, i32 12, ptr
// CHECK-DAG: call void @__assertfail(ptr {{.*}}, i32 34, ptr
// CHECK-DAG: call void @__assertfail(ptr {{.*}}, i32 56, ptr
// CHECK-DAG: call void @__assertfail(ptr {{.*}}, i32 78, ptr

// PASS-DAG: "plain\00"
// PASS-DAG: "fused\00"
gpu.module @kernels {
  gpu.func @plain(%ok: i1) kernel {
    cf.assert %ok, "not good" loc("first.mlir":12:3)
    gpu.return
  }
  gpu.func @fused(%ok: i1) kernel {
    cf.assert %ok, "not good" loc(fused<"tag">["second.mlir":34:3, "other.mlir":1:1])
    gpu.return
  }
  gpu.func @callsites(%ok: i1) kernel {
    cf.assert %ok, "not good" loc(callsite("named_by_location"("third.mlir":56:9) at "caller.mlir":10:8))
    gpu.return
  }
  // Functions with matrices are inlined by a pass.
  func.func private @callee(%ok: i1, %m: !gpu.mma_matrix<16x16xf32, "COp">) {
    cf.assert %ok, "not good" loc("fourth.mlir":78:3)
    return
  }
  gpu.func @inlines(%ok: i1) kernel {
    %z = arith.constant 0.0 : f32
    %m = gpu.subgroup_mma_constant_matrix %z : !gpu.mma_matrix<16x16xf32, "COp">
    func.call @callee(%ok, %m) : (i1, !gpu.mma_matrix<16x16xf32, "COp">) -> ()
    gpu.return
  }
}
