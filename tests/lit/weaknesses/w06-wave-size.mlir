// W6: the wave size comes from the chip or from the option, and code, features and control constant agree. Upstream's
// `wave64` sets the constant alone. A size that the chip does not have is refused.

// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx1100 l=%S/../Inputs/oclc.ll format=isa" | %text | FileCheck %s --check-prefix=WAVE32
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx1100 wave-size=64 l=%S/../Inputs/oclc.ll format=isa" | %text | FileCheck %s --check-prefix=WAVE64
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx90a l=%S/../Inputs/oclc.ll format=isa" | %text | FileCheck %s --check-prefix=WAVE64
// Upstream's spelling in an attribute:
// RUN: sed 's/@m {/@m [#rocdl.target<chip = "gfx1100", flags = {wave64}>] {/' %s \
// RUN:   | gpulower-opt --gpulower-serialize="l=%S/../Inputs/oclc.ll format=isa" | %text | FileCheck %s --check-prefix=WAVE64
// RUN: not gpulower-opt %s --gpulower-to-binary="targets=gfx90a wave-size=32" 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: sed 's/@m {/@m [#rocdl.target<chip = "gfx90a", flags = {no_wave64}>] {/' %s \
// RUN:   | not gpulower-opt --gpulower-serialize="l=%S/../Inputs/oclc.ll format=isa" 2>&1 | FileCheck %s --check-prefix=REFUSED

// WAVE32: v_mov_b32_e32 v[[V:[0-9]+]], 0
// WAVE32: .amdhsa_wavefront_size32 1
// WAVE32: .wavefront_size: 32
// WAVE64: v_mov_b32_e32 v{{[0-9]+}}, 1
// WAVE64: .wavefront_size: 64
// REFUSED: error: {{.*}}gfx90a cannot run waves of 32 lanes: it has 64
gpu.module @m {
  func.func private @wave64() -> i32
  gpu.func @k(%out: memref<i32>) kernel {
    %0 = func.call @wave64() : () -> i32
    memref.store %0, %out[] : memref<i32>
    gpu.return
  }
}
