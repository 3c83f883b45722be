// RUN: split-file %s %t
// RUN: mkdir -p %t/empty
// RUN: gpulower compile %t/wide.mlir --target sm_75 --cuda %t/empty --emit ptx -o - | FileCheck %t/wide.mlir
// RUN: gpulower compile %t/half.mlir --target sm_53 --cuda %t/empty --emit ptx -o - | FileCheck %t/half.mlir
// RUN: gpulower compile %t/brain.mlir --target sm_80 --cuda %t/empty --emit ptx -o - | FileCheck %t/brain.mlir
// RUN: not gpulower compile %t/brain.mlir --target sm_75 --cuda %t/empty --emit ptx -o - 2>&1 | FileCheck %t/brain.mlir --check-prefix=OLD

// Fused multiply-add is an instruction: it needs no library, so a toolkit without libdevice will do. MLIR's conversion calls
// libdevice's function for f32 instead, so that the short types are rounded twice.

//--- wide.mlir
// CHECK: fma.rn.f32
// CHECK: fma.rn.f64
gpu.module @kernels {
  gpu.func @k(%a: f32, %b: vector<2xf32>, %c: f64, %out: memref<f32>, %vectors: memref<vector<2xf32>>, %doubles: memref<f64>) kernel {
    %x = math.fma %a, %a, %a : f32
    memref.store %x, %out[] : memref<f32>
    %y = math.fma %b, %b, %b fastmath<contract> : vector<2xf32>
    memref.store %y, %vectors[] : memref<vector<2xf32>>
    %z = math.fma %c, %c, %c : f64
    memref.store %z, %doubles[] : memref<f64>
    gpu.return
  }
}

//--- half.mlir
// CHECK: fma.rn.f16
// CHECK: fma.rn.f16x2
// CHECK-NOT: f32
gpu.module @kernels {
  gpu.func @k(%a: f16, %b: vector<2xf16>, %out: memref<f16>, %vectors: memref<vector<2xf16>>) kernel {
    %x = math.fma %a, %a, %a : f16
    memref.store %x, %out[] : memref<f16>
    %y = math.fma %b, %b, %b : vector<2xf16>
    memref.store %y, %vectors[] : memref<vector<2xf16>>
    gpu.return
  }
}

//--- brain.mlir
// CHECK: fma.rn.bf16
// CHECK-NOT: f32
// The instruction came with sm_80: before, it is libdevice's.
// OLD: libdevice
gpu.module @kernels {
  gpu.func @k(%a: bf16, %out: memref<bf16>) kernel {
    %x = math.fma %a, %a, %a : bf16
    memref.store %x, %out[] : memref<bf16>
    gpu.return
  }
}
