// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: gpulower compile %s --target gfx942 --emit asm -o - | FileCheck %s --check-prefix=GCN

// What lanes of a subgroup hand to each other, and how they are counted.

gpu.module @kernels {
  // A half travels in a word, four floats in four words, three halves in three.
  // PTX-LABEL: .entry shuffles(
  // PTX-COUNT-8: shfl.sync.bfly.b32
  // GCN-LABEL: shuffles:
  // GCN: ds_bpermute_b32
  gpu.func @shuffles(%h: memref<?xf16>, %v: memref<?xvector<4xf32>>, %w: memref<?xvector<3xf16>>) kernel {
    %t = gpu.thread_id x
    %one = arith.constant 1 : i32
    %width = arith.constant 32 : i32
    %a = memref.load %h[%t] : memref<?xf16>
    %b, %valid = gpu.shuffle xor %a, %one, %width : f16
    memref.store %b, %h[%t] : memref<?xf16>
    %c = memref.load %v[%t] : memref<?xvector<4xf32>>
    %d, %valid2 = gpu.shuffle xor %c, %one, %width : vector<4xf32>
    memref.store %d, %v[%t] : memref<?xvector<4xf32>>
    %e = memref.load %w[%t] : memref<?xvector<3xf16>>
    %f, %valid3 = gpu.shuffle xor %e, %one, %width : vector<3xf16>
    memref.store %f, %w[%t] : memref<?xvector<3xf16>>
    gpu.return
  }

  // PTX-LABEL: .entry rotates(
  // PTX: and.b32 {{.*}}, 15;
  // PTX: shfl.sync.idx.b32
  // GCN-LABEL: rotates:
  // GCN: ds_bpermute_b32
  gpu.func @rotates(%m: memref<?xf32>) kernel {
    %t = gpu.thread_id x
    %a = memref.load %m[%t] : memref<?xf32>
    %b, %valid = gpu.rotate %a, 3, 16 : f32
    memref.store %b, %m[%t] : memref<?xf32>
    gpu.return
  }

  // Lanes may have gone different ways before: only those that are here take part.
  // PTX-LABEL: .entry broadcasts(
  // PTX: activemask.b32 [[MASK:%r[0-9]+]]
  // PTX: shfl.sync.idx.b32 {{.*}}, 31, [[MASK]];
  // GCN-LABEL: broadcasts:
  // GCN: v_readfirstlane_b32
  gpu.func @broadcasts(%m: memref<?xf32>) kernel {
    %t = gpu.thread_id x
    %a = memref.load %m[%t] : memref<?xf32>
    %b = gpu.subgroup_broadcast %a, first_active_lane : f32
    memref.store %b, %m[%t] : memref<?xf32>
    gpu.return
  }

  // PTX-LABEL: .entry counts(
  // PTX: %ntid.x
  // PTX: shr.u
  // GCN-LABEL: counts:
  gpu.func @counts(%m: memref<?xindex>) kernel {
    %t = gpu.thread_id x
    %size = gpu.subgroup_size : index
    %number = gpu.num_subgroups : index
    %id = gpu.subgroup_id : index
    %a = arith.addi %size, %number : index
    %b = arith.addi %a, %id : index
    memref.store %b, %m[%t] : memref<?xindex>
    gpu.return
  }

  // Lane 0 computes, the others read what it found: each subgroup has its own slot.
  // PTX-LABEL: .entry one_lane(
  // PTX: .shared .align 16 .b8 __gpulower_workgroup_0[128];
  // PTX: st.shared.b32
  // PTX: bar.warp.sync
  // PTX: ld.shared.b32
  // GCN-LABEL: one_lane:
  // GCN: ds_read_b32
  gpu.func @one_lane(%m: memref<?xf32>) kernel {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %lane = gpu.lane_id
    %r = gpu.warp_execute_on_lane_0(%lane)[32] -> (f32) {
      %a = memref.load %m[%c0] : memref<?xf32>
      %b = arith.addf %a, %a : f32
      gpu.yield %b : f32
    }
    memref.store %r, %m[%t] : memref<?xf32>
    gpu.return
  }
}
