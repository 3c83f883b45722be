// RUN: rm -rf %t
// RUN: split-file %s %t
// RUN: not gpulower compile %t/scalable.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/scalable.mlir
// RUN: not gpulower compile %t/scalable.mlir --target gfx942 --emit asm -o %t/out 2>&1 | FileCheck %t/scalable.mlir
// RUN: not gpulower compile %t/f80.mlir --target gfx942 --emit asm -o %t/out 2>&1 | FileCheck %t/f80.mlir
// RUN: not gpulower compile %t/f128.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/f128.mlir
// RUN: not gpulower compile %t/f128.mlir --target gfx942 --emit asm -o %t/out 2>&1 | FileCheck %t/f128.mlir
// RUN: not gpulower compile %t/host.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/host.mlir
// RUN: not gpulower compile %t/launch.mlir --target sm_90 --emit ptx -o %t/out/ 2>&1 | FileCheck %t/launch.mlir
// RUN: not gpulower compile %t/chip.mlir --target sm_70 --emit ptx -o %t/out 2>&1 | FileCheck %t/chip.mlir --check-prefix=NVIDIA
// RUN: not gpulower compile %t/chip.mlir --target sm_70 --isolation worker --emit ptx -o %t/out 2>&1 | FileCheck %t/chip.mlir --check-prefix=NVIDIA
// RUN: not gpulower compile %t/amd-chip.mlir --target gfx942 --emit asm -o %t/out 2>&1 | FileCheck %t/amd-chip.mlir
// RUN: not gpulower compile %t/amd-node.mlir --target gfx1030 --emit asm -o %t/out 2>&1 | FileCheck %t/amd-node.mlir
// RUN: gpulower compile %t/chip.mlir --target sm_80 --emit ptx -o - | FileCheck %t/chip.mlir --check-prefix=PTX
// RUN: test ! -e %t/out

// What LLVM would end in a fatal error over, or MLIR say something else about, is refused where it stands; and what a chip
// has no instruction for is found by the place of its intrinsic.

//--- scalable.mlir
gpu.module @kernels {
  // CHECK: scalable.mlir:[[#@LINE+1]]:3: error: {{.*}}cannot lower func.func with 'vector<[4]xf32>': no GPU has vectors of a size that is not known; use one of a fixed size
  func.func @f(%a: vector<[4]xf32>) -> vector<[4]xf32> {
    return %a : vector<[4]xf32>
  }
}

//--- f80.mlir
gpu.module @kernels {
  func.func @f(%a: f32) -> f32 {
    // CHECK: f80.mlir:[[#@LINE+1]]:10: error: {{.*}}cannot lower arith.extf with 'f80': no GPU computes with it; use another type
    %b = arith.extf %a : f32 to f80
    %c = arith.mulf %b, %b : f80
    %d = arith.truncf %c : f80 to f32
    return %d : f32
  }
}

//--- f128.mlir
gpu.module @kernels {
  func.func @f(%a: f128) -> f128 {
    %n = arith.negf %a : f128
    // CHECK: f128.mlir:[[#@LINE+1]]:10: error: {{.*}}cannot lower arith.addf with 'f128': no GPU has an instruction for it, and no device library a function; use f64 or narrower
    %b = arith.addf %n, %a : f128
    return %b : f128
  }
}

//--- host.mlir
gpu.module @kernels {
  gpu.func @k(%a: memref<4xf32>, %b: memref<4xf32>) kernel {
    // CHECK: host.mlir:[[#@LINE+1]]:5: error: {{.*}}cannot lower gpu.memcpy in device code: it is for host code; {{.*}}is copied by loads and stores
    gpu.memcpy %a, %b : memref<4xf32>, memref<4xf32>
    gpu.return
  }
}

//--- launch.mlir
gpu.module @kernels {
  gpu.func @k(%i: index) kernel {
    // CHECK: launch.mlir:[[#@LINE+1]]:5: error: {{.*}}a kernel cannot launch another: launches are for host code
    gpu.launch blocks(%a, %b, %c) in (%d = %i, %e = %i, %f = %i) threads(%g, %h, %j) in (%k = %i, %l = %i, %m = %i) {
      gpu.terminator
    }
    gpu.return
  }
}

//--- chip.mlir
gpu.module @kernels {
  gpu.func @k(%a: memref<64x64xf16, 3>, %o: memref<4x2xf16>) kernel {
    %c = arith.constant 0 : index
    // NVIDIA: chip.mlir:[[#@LINE+3]]:10: error: code-gen, {{.*}}Cannot select: intrinsic %llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16; the target has no instruction for it
    // NVIDIA-NEXT: %v = nvgpu.ldmatrix
    // NVIDIA-NEXT: {{^}}         ^
    %v = nvgpu.ldmatrix %a[%c, %c] {transpose = false, numTiles = 4 : i32} : memref<64x64xf16, 3> -> vector<4x2xf16>
    vector.transfer_write %v, %o[%c, %c] : vector<4x2xf16>, memref<4x2xf16>
    gpu.return
  }
}
// PTX: ldmatrix
// PTX-NOT: .loc

//--- amd-chip.mlir
gpu.module @kernels {
  llvm.func @f(%a: i32) -> i32 {
    // CHECK: amd-chip.mlir:[[#@LINE+1]]:10: error: code-gen, {{.*}}Cannot select: intrinsic %llvm.amdgcn.permlanex16; the target has no instruction for it
    %r = rocdl.permlanex16 %a, %a, %a, %a, true, false : i32, i32
    llvm.return %r : i32
  }
}

//--- amd-node.mlir
gpu.module @kernels {
  func.func private @other() { return }
  // CHECK: amd-node.mlir:[[#@LINE+1]]:3: error: code-gen, {{.*}}Cannot select: AMDGPUISD::BUFFER_ATOMIC_FADD
  func.func @f(%v: f32, %d: memref<128xf32>, %i: i32) {
    // CHECK-NOT: 0x
    amdgpu.raw_buffer_atomic_fadd %v -> %d[%i] : f32 -> memref<128xf32>, i32
    return
  }
}
