// Libraries: from the pass option, from the attribute as a path or as bytes, in text or in bitcode; only what is needed of
// them is linked, and nothing of them stays visible.

// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa l=%S/../Inputs/scale.ll" | %text | FileCheck %s --check-prefix=NVIDIA
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 format=isa l=%S/../Inputs/scale.ll" | %text | FileCheck %s --check-prefix=AMD
// RUN: gpulower-opt %s --gpulower-attach-targets="targets=sm_80 l=%S/../Inputs/scale.ll" --gpulower-lower --gpulower-serialize=format=isa | %text | FileCheck %s --check-prefix=NVIDIA
// RUN: gpulower-opt %s --gpulower-attach-targets="targets=sm_80" --gpulower-serialize="format=isa l=%S/../Inputs/scale.ll" | %text | FileCheck %s --check-prefix=NVIDIA
// RUN: llvm-as %S/../Inputs/scale.ll -o %t.bc
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa l=%t.bc" | %text | FileCheck %s --check-prefix=NVIDIA
// A library that is no library:
// RUN: echo "not IR" > %t.txt
// RUN: not gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa l=%t.txt" 2>&1 | FileCheck %s --check-prefix=BROKEN
// RUN: head -c 300 %t.bc > %t.cut.bc
// RUN: not gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa l=%t.cut.bc" 2>&1 | FileCheck %s --check-prefix=CUT
// A library's own gaps are the user's to fill:
// RUN: sed 's/@scale/@not_needed/' %s | not gpulower-opt --gpulower-to-binary="targets=sm_80 format=isa l=%S/../Inputs/scale.ll" 2>&1 | FileCheck %s --check-prefix=GAP

// NVIDIA: .target sm_80
// NVIDIA-NOT: {{\.extern|\.visible \.func|scale|not_needed}}
// NVIDIA: .visible .entry k(
// NVIDIA-NOT: {{\.extern|scale|not_needed}}
// NVIDIA: mul.rn.f32 {{.*}}, 0f40200000;
// AMD: .amdgcn_target
// AMD-NOT: scale
// AMD: v_mul_f32
// AMD-NOT: {{scale|not_needed}}
// BROKEN: error: link, module m, target sm_80: cannot link the library {{.*}}.txt:
// CUT: error: link, module m, target sm_80: cannot link the library {{.*}}.cut.bc:
// GAP: error: link, module m, target sm_80: unresolved symbol:
// GAP-NEXT: nobody_has_this (needed by kernel k){{.*}}: give the bitcode library that defines it
gpu.module @m {
  func.func private @scale(f32) -> f32
  gpu.func @k(%x: f32, %out: memref<f32>) kernel {
    %0 = func.call @scale(%x) : (f32) -> f32
    memref.store %0, %out[] : memref<f32>
    gpu.return
  }
}
