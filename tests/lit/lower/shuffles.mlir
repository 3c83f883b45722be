// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: gpulower compile %s --target gfx1100 --emit asm -o - | FileCheck %s --check-prefix=GCN
// RUN: gpulower compile %s --target gfx1100 --wave-size 64 --emit asm -o - | FileCheck %s --check-prefix=HALVES

// MLIR 22's conversions lose the second result: on AMD lanes below 0 are valid, on NVIDIA no lane is for `up` among fewer
// than 32. What is computed is compared with a model in src/compiler/shuffle_tests.rs.

gpu.module @kernels {
  // What is known is NVIDIA's instruction as it is; on AMD the lane below the offset takes part in the comparison.
  // PTX-LABEL: .entry up_by_one(
  // PTX: shfl.sync.up.b32 {{.*}}, 1, 0, -1;
  // GCN-LABEL: up_by_one:
  // GCN: v_mbcnt_lo_u32_b32
  // GCN: v_add_nc_u32_e32 {{v[0-9]+}}, -1
  // GCN: v_cmp_gt_u32
  // GCN: ds_bpermute_b32
  // HALVES-LABEL: up_by_one:
  // HALVES: v_readlane_b32
  gpu.func @up_by_one(%m: memref<?xi32>, %ok: memref<?xi1>) kernel {
    %t = gpu.thread_id x
    %offset = arith.constant 1 : i32
    %size = gpu.subgroup_size : index
    %width = arith.index_cast %size : index to i32
    %v = memref.load %m[%t] : memref<?xi32>
    %r, %valid = gpu.shuffle up %v, %offset, %width : i32
    memref.store %r, %m[%t] : memref<?xi32>
    memref.store %valid, %ok[%t] : memref<?xi1>
    gpu.return
  }

  // Among 16: lanes from 16 on wait for themselves alone, and nobody has to be there for them.
  // PTX-LABEL: .entry among_sixteen(
  // PTX: mov.u32 [[LANE:%r[0-9]+]], %laneid;
  // PTX: setp.lt.u32 {{%p[0-9]+}}, [[LANE]], 16;
  // PTX: selp.b32 [[MASK:%r[0-9]+]], 65535,
  // PTX: shfl.sync.up.b32 {{.*}}, 1, 0, [[MASK]];
  gpu.func @among_sixteen(%m: memref<?xi32>, %ok: memref<?xi1>) kernel {
    %t = gpu.thread_id x
    %offset = arith.constant 1 : i32
    %width = arith.constant 16 : i32
    %v = memref.load %m[%t] : memref<?xi32>
    %r, %valid = gpu.shuffle up %v, %offset, %width : i32
    memref.store %r, %m[%t] : memref<?xi32>
    memref.store %valid, %ok[%t] : memref<?xi1>
    gpu.return
  }

  // Within a half of the wave one permutation will do.
  // HALVES-LABEL: neighbours:
  // HALVES-NOT: v_readlane_b32
  // HALVES: ds_bpermute_b32
  gpu.func @neighbours(%m: memref<?xi32>) kernel {
    %t = gpu.thread_id x
    %offset = arith.constant 1 : i32
    %size = gpu.subgroup_size : index
    %width = arith.index_cast %size : index to i32
    %v = memref.load %m[%t] : memref<?xi32>
    %r, %valid = gpu.shuffle xor %v, %offset, %width : i32
    memref.store %r, %m[%t] : memref<?xi32>
    gpu.return
  }
}
