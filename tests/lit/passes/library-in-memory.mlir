// A library inside the target attribute, as bytes: needs no file.

// RUN: gpulower-opt %s --gpulower-serialize=format=isa | %text | FileCheck %s
// RUN: gpulower-opt %s --gpulower-lower --gpulower-serialize=format=isa | %text | FileCheck %s
// RUN: sed 's/@twice/@thrice/' %s | not gpulower-opt --gpulower-serialize=format=isa 2>&1 | FileCheck %s --check-prefix=MISSING

// CHECK: .visible .entry k(
// CHECK: add.rn.f32
// CHECK-NOT: twice
// MISSING: error: link, module m, target sm_80: unresolved symbol:
// MISSING-NEXT: thrice (needed by kernel k)
gpu.module @m [#nvvm.target<chip = "sm_80", link = [dense_resource<library> : tensor<74xi8>]>] {
  func.func private @twice(f32) -> f32
  gpu.func @k(%x: f32, %out: memref<f32>) kernel {
    %0 = func.call @twice(%x) : (f32) -> f32
    memref.store %0, %out[] : memref<f32>
    gpu.return
  }
}

{-#
  dialect_resources: {
    builtin: {
      library: "0x01000000646566696E6520666C6F61742040747769636528666C6F617420257829207B0A20202579203D206661646420666C6F61742025782C2025780A202072657420666C6F61742025790A7D0A"
    }
  }
#-}
