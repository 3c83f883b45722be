// W5: __oclc_ISA_version is major * 1000 + minor * 100 + stepping, on every chip. Upstream swaps minor and stepping.

// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx906,gfx908,gfx90a,gfx942,gfx950,gfx1030,gfx1100,gfx1151,gfx1201,gfx9-4-generic l=%S/../Inputs/oclc.ll format=isa" | %text | FileCheck %s

// CHECK-LABEL: chip = "gfx906"
// CHECK: v_mov_b32_e32 v{{[0-9]+}}, 0x232e{{$}}
// CHECK-LABEL: chip = "gfx908"
// CHECK: v_mov_b32_e32 v{{[0-9]+}}, 0x2330{{$}}
// 9010
// CHECK-LABEL: chip = "gfx90a"
// CHECK: v_mov_b32_e32 v{{[0-9]+}}, 0x2332{{$}}
// 9402
// CHECK-LABEL: chip = "gfx942"
// CHECK: v_mov_b32_e32 v{{[0-9]+}}, 0x24ba{{$}}
// 9500
// CHECK-LABEL: chip = "gfx950"
// CHECK: v_mov_b32_e32 v{{[0-9]+}}, 0x251c{{$}}
// 10300
// CHECK-LABEL: chip = "gfx1030"
// CHECK: v_mov_b32_e32 v{{[0-9]+}}, 0x283c{{$}}
// 11000
// CHECK-LABEL: chip = "gfx1100"
// CHECK: 0x2af8{{$}}
// 11501
// CHECK-LABEL: chip = "gfx1151"
// CHECK: 0x2ced{{$}}
// 12001
// CHECK-LABEL: chip = "gfx1201"
// CHECK: 0x2ee1{{$}}
// 9402, as in the constants that ROCm ships for it
// CHECK-LABEL: chip = "gfx9-4-generic"
// CHECK: v_mov_b32_e32 v{{[0-9]+}}, 0x24ba{{$}}
gpu.module @m {
  func.func private @isa_version() -> i32
  gpu.func @k(%out: memref<i32>) kernel {
    %0 = func.call @isa_version() : () -> i32
    memref.store %0, %out[] : memref<i32>
    gpu.return
  }
}
