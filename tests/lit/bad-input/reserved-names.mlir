// Lowering puts functions of its own beside those of the input, under names of its own.
//
// RUN: not gpulower compile %s -t sm_90 -e ptx -o %t 2>&1 | FileCheck %s
// RUN: not gpulower compile %s -t gfx942 -e asm -o %t 2>&1 | FileCheck %s

// CHECK: reserved-names.mlir:[[#@LINE+2]]:{{[0-9]+}}: {{.*}}the function __gpulower_math_clampf_f32 cannot be lowered: names that begin with __gpulower_ are gpulower's; give it another
gpu.module @m {
  func.func @__gpulower_math_clampf_f32(%x: f32) -> f32 {
    return %x : f32
  }
  gpu.func @k(%out: memref<1xf32>, %x: f32) kernel {
    %c0 = arith.constant 0 : index
    %y = func.call @__gpulower_math_clampf_f32(%x) : (f32) -> f32
    %z = math.clampf %y to [%x, %x] : f32
    memref.store %z, %out[%c0] : memref<1xf32>
    gpu.return
  }
}
