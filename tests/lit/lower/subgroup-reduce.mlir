// RUN: gpulower compile %s --target sm_80 --emit ptx -o - | FileCheck %s --check-prefix=REDUX
// RUN: gpulower compile %s --target sm_75 --emit ptx -o - | FileCheck %s --check-prefix=SHFL
// RUN: gpulower compile %s --target gfx942 --emit asm -o - | FileCheck %s --check-prefixes=DPP,WAVE64
// RUN: gpulower compile %s --target gfx1100 --emit asm -o - | FileCheck %s --check-prefixes=DPP,WAVE32

// A reduction over a subgroup takes the instructions that the chip has: redux.sync from sm_80 on, for integers; shuffles
// before; data-parallel primitives on AMD where all subgroups are full.

gpu.module @kernels {
  // REDUX-LABEL: .entry integers(
  // REDUX: redux.sync.add.s32
  // REDUX: redux.sync.min.u32
  // REDUX: redux.sync.max.s32
  // REDUX-NOT: shfl.sync
  // REDUX: ret;
  // Five steps for each reduction; the first exchange of two of them is the same.
  // SHFL-LABEL: .entry integers(
  // SHFL-COUNT-14: shfl.sync.bfly.b32
  // SHFL-NOT: redux.sync
  // DPP-LABEL: integers:
  // DPP: v_add_{{(nc_)?}}u32_dpp {{.*}} row_half_mirror
  // WAVE64: row_bcast:31
  // WAVE64: v_readlane_b32 s{{[0-9]+}}, v{{[0-9]+}}, 63
  // WAVE32: v_permlanex16_b32
  // WAVE32: v_readlane_b32 s{{[0-9]+}}, v{{[0-9]+}}, 31
  gpu.func @integers(%words: memref<?xi32>, %bytes: memref<?xi8>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %t = gpu.thread_id x
    %word = memref.load %words[%t] : memref<?xi32>
    %sum = gpu.subgroup_reduce add %word uniform : (i32) -> i32
    %least = gpu.subgroup_reduce minui %word uniform : (i32) -> i32
    %both = arith.addi %sum, %least : i32
    memref.store %both, %words[%t] : memref<?xi32>
    %byte = memref.load %bytes[%t] : memref<?xi8>
    %most = gpu.subgroup_reduce maxsi %byte uniform : (i8) -> i8
    memref.store %most, %bytes[%t] : memref<?xi8>
    gpu.return
  }

  // REDUX-LABEL: .entry floats(
  // REDUX-COUNT-5: shfl.sync.bfly.b32
  // SHFL-LABEL: .entry floats(
  // SHFL-COUNT-5: shfl.sync.bfly.b32
  // The size of the workgroup is not known here: the last wave may have lanes that do not run.
  // DPP-LABEL: floats:
  // DPP-NOT: row_mirror
  // DPP: ds_bpermute_b32
  // DPP: .end_amdhsa_kernel
  gpu.func @floats(%m: memref<?xf32>) kernel {
    %t = gpu.thread_id x
    %value = memref.load %m[%t] : memref<?xf32>
    %sum = gpu.subgroup_reduce add %value uniform : (f32) -> f32
    memref.store %sum, %m[%t] : memref<?xf32>
    gpu.return
  }

  // Four lanes each; and values wider and narrower than a register.
  // SHFL-LABEL: .entry clusters(
  // SHFL-COUNT-2: shfl.sync.bfly.b32
  gpu.func @clusters(%m: memref<?xf32>) kernel {
    %t = gpu.thread_id x
    %value = memref.load %m[%t] : memref<?xf32>
    %sum = gpu.subgroup_reduce add %value cluster(size = 4) : (f32) -> f32
    memref.store %sum, %m[%t] : memref<?xf32>
    gpu.return
  }

  // SHFL-LABEL: .entry wide_and_narrow(
  // SHFL: shfl.sync.bfly.b32
  gpu.func @wide_and_narrow(%d: memref<?xf64>, %h: memref<?xf16>, %v: memref<?xvector<4xf16>>) kernel {
    %t = gpu.thread_id x
    %a = memref.load %d[%t] : memref<?xf64>
    %b = gpu.subgroup_reduce add %a uniform : (f64) -> f64
    memref.store %b, %d[%t] : memref<?xf64>
    %e = memref.load %h[%t] : memref<?xf16>
    %f = gpu.subgroup_reduce maxnumf %e uniform : (f16) -> f16
    memref.store %f, %h[%t] : memref<?xf16>
    %k = memref.load %v[%t] : memref<?xvector<4xf16>>
    %l = gpu.subgroup_reduce add %k uniform : (vector<4xf16>) -> vector<4xf16>
    memref.store %l, %v[%t] : memref<?xvector<4xf16>>
    gpu.return
  }
}
