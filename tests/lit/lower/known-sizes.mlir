// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: gpulower compile %s --target gfx942 --emit asm -o - | FileCheck %s --check-prefix=GCN

// A kernel that states its block or grid size is never launched with another one: the size is a constant.

gpu.module @kernels {
  // With another block the driver does not launch it.
  // PTX-LABEL: .entry stated(
  // PTX: .reqntid 64, 2, 1
  // PTX-NOT: %ntid
  // PTX-NOT: %nctaid
  // PTX: ret;
  // GCN-LABEL: stated:
  // GCN: s_endpgm
  gpu.func @stated(%out: memref<?xindex>) kernel
      attributes {known_block_size = array<i32: 64, 2, 1>, known_grid_size = array<i32: 80, 1, 1>} {
    %i = gpu.global_id x
    %a = gpu.block_dim x
    %b = gpu.block_dim y
    %c = gpu.grid_dim x
    %ab = arith.muli %a, %b : index
    %abc = arith.muli %ab, %c : index
    memref.store %abc, %out[%i] : memref<?xindex>
    gpu.return
  }

  // PTX-LABEL: .entry not_stated(
  // PTX-NOT: ntid 64
  // PTX-DAG: %ntid.x
  // PTX-DAG: %nctaid.x
  // PTX: ret;
  gpu.func @not_stated(%out: memref<?xindex>) kernel {
    %i = gpu.global_id x
    %a = gpu.block_dim x
    %c = gpu.grid_dim x
    %ac = arith.muli %a, %c : index
    memref.store %ac, %out[%i] : memref<?xindex>
    gpu.return
  }

  // Whichever work item it is, it has four iterations, and no loop is left.
  // PTX-LABEL: .entry four_each(
  // PTX-COUNT-4: st.global
  // PTX-NOT: bra
  // PTX: ret;
  gpu.func @four_each(%out: memref<?xf32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %zero = arith.constant 0.0 : f32
    %c1024 = arith.constant 1024 : index
    %thread = gpu.thread_id x
    %threads = gpu.block_dim x
    scf.for %i = %thread to %c1024 step %threads {
      memref.store %zero, %out[%i] : memref<?xf32>
    }
    gpu.return
  }

  // Some have four iterations here, others three.
  // PTX-LABEL: .entry three_or_four(
  // PTX: bra
  // PTX: ret;
  gpu.func @three_or_four(%out: memref<?xf32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %zero = arith.constant 0.0 : f32
    %c1000 = arith.constant 1000 : index
    %thread = gpu.thread_id x
    %threads = gpu.block_dim x
    scf.for %i = %thread to %c1000 step %threads {
      memref.store %zero, %out[%i] : memref<?xf32>
    }
    gpu.return
  }
}
