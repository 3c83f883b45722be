// RUN: mkdir -p %t/empty
// RUN: gpulower compile %s --target sm_75 --cuda %t/empty --emit ptx -o - | FileCheck %s

// Fused multiply-add is an instruction: it needs no library, so a toolkit without libdevice will do.

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
