// A kernel that spills is worth a warning, above the threshold that the user sets.

// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=bin max-registers=24" 2>&1 | FileCheck %s --check-prefix=NVIDIA
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx1100 format=bin max-registers=16" 2>&1 | FileCheck %s --check-prefix=AMD
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80,gfx1100 format=bin" 2>&1 | FileCheck %s --check-prefix=ROOM
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=bin max-registers=24 spill-warning=10000" 2>&1 | FileCheck %s --check-prefix=ROOM
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx1100 format=bin max-registers=16 spill-warning=10000" 2>&1 | FileCheck %s --check-prefix=ROOM

// NVIDIA: spill-warning.mlir:[[#@LINE+4]]:1: warning: target sm_80: kernel k spills [[#]] bytes; raise max-registers (24), use a smaller block, or hold fewer values at once
// NVIDIA: spill_load_bytes = {{[1-9][0-9]*}} : i64, spill_store_bytes = {{[1-9][0-9]*}} : i64
// AMD: warning: target gfx1100: kernel k spills [[#]] registers; raise max-registers (16), use a smaller block, or hold fewer values at once
// ROOM-NOT: warning:
gpu.module @m {
  gpu.func @k(%in: memref<?xf32>, %out: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %i = gpu.thread_id x
    %v = vector.load %in[%i] : memref<?xf32>, vector<64xf32>
    gpu.barrier
    %w = arith.mulf %v, %v : vector<64xf32>
    vector.store %w, %out[%i] : memref<?xf32>, vector<64xf32>
    gpu.return
  }
}
