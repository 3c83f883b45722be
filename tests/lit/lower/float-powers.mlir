// RUN: mkdir -p %t/empty
// RUN: gpulower compile %s --target sm_90 --cuda %t/empty --emit ptx -o - | FileCheck %s

// Powers of floats by integers. MLIR calls libdevice's function, which multiplies and rounds each time, and takes an exponent of
// 32 bits, with an exponent of any type. Ours needs no library; scripts/gpu/accuracy.py measures what it computes.
gpu.module @kernels {
  // Few factors are multiplied, and nothing else.
  // CHECK-LABEL: .entry cube(
  // CHECK: mul.rn.f32
  // CHECK-NEXT: mul.rn.f32
  // CHECK-NEXT: st.global
  gpu.func @cube(%x: f32, %out: memref<f32>) kernel {
    %n = arith.constant 3 : i32
    %r = math.fpowi %x, %n : f32, i32
    memref.store %r, %out[] : memref<f32>
    gpu.return
  }

  // What a product loses when it is rounded is kept.
  // CHECK-LABEL: .entry any(
  // CHECK: setp.ne.b32
  // CHECK-NEXT: mul.rn.f32 [[P:%r[0-9]+]],
  // CHECK-NEXT: neg.f32 [[N:%r[0-9]+]], [[P]];
  // CHECK-NEXT: fma.rn.f32 {{.*}}, [[N]];
  gpu.func @any(%x: f32, %n: i32, %out: memref<f32>) kernel {
    %r = math.fpowi %x, %n : f32, i32
    memref.store %r, %out[] : memref<f32>
    gpu.return
  }

  // CHECK-LABEL: .entry long(
  // CHECK: fma.rn.f64
  gpu.func @long(%x: f64, %n: i64, %out: memref<f64>) kernel {
    %r = math.fpowi %x, %n : f64, i64
    memref.store %r, %out[] : memref<f64>
    gpu.return
  }

  // Two elements with exponents of their own, in f32.
  // CHECK-LABEL: .entry vectors(
  // CHECK: cvt.f32.f16
  // CHECK: fma.rn.f32
  // CHECK: cvt.rn.f16{{(x2)?}}.f32
  gpu.func @vectors(%x: vector<1x2xf16>, %n: vector<1x2xi16>, %out: memref<vector<1x2xf16>>) kernel {
    %r = math.fpowi %x, %n : vector<1x2xf16>, vector<1x2xi16>
    memref.store %r, %out[] : memref<vector<1x2xf16>>
    gpu.return
  }
}
