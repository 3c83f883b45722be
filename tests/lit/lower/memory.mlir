// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: gpulower compile %s --target gfx942 --emit asm -o - | FileCheck %s --check-prefix=GCN

// Memory: what is allocated in workgroup memory is shared indeed, atomics exist for every type, copies need no runtime.

gpu.module @kernels {
  // PTX-LABEL: .entry shared_buffer(
  // PTX: .shared .align 16 .b8 __gpulower_workgroup_0[256];
  // PTX: st.shared.b32
  // PTX: bar{{.*}}sync
  // PTX: ld.shared.b32
  // GCN-LABEL: shared_buffer:
  // GCN: ds_write_b32
  // GCN: s_barrier
  // GCN: ds_read_b32
  // GCN: .amdhsa_group_segment_fixed_size 256
  gpu.func @shared_buffer(%m: memref<?xf32>) kernel {
    %t = gpu.thread_id x
    %c63 = arith.constant 63 : index
    %buffer = memref.alloca() : memref<64xf32, #gpu.address_space<workgroup>>
    %a = memref.load %m[%t] : memref<?xf32>
    memref.store %a, %buffer[%t] : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %other = arith.subi %c63, %t : index
    %b = memref.load %buffer[%other] : memref<64xf32, #gpu.address_space<workgroup>>
    memref.store %b, %m[%t] : memref<?xf32>
    gpu.return
  }

  // PTX-LABEL: .entry private_array(
  // PTX: .local .align 4 .b8 {{.*}}[32]
  gpu.func @private_array(%m: memref<?xf32>, %i: index, %j: index)
      private(%p: memref<8xf32, #gpu.address_space<private>>) kernel {
    %a = memref.load %m[%i] : memref<?xf32>
    memref.store %a, %p[%i] : memref<8xf32, #gpu.address_space<private>>
    %b = memref.load %p[%j] : memref<8xf32, #gpu.address_space<private>>
    memref.store %b, %m[%j] : memref<?xf32>
    gpu.return
  }

  // PTX-LABEL: .entry dynamic(
  // PTX: st.shared.b8
  // PTX: ld.shared.b8
  // GCN-LABEL: dynamic:
  // GCN: ds_write_b8
  // GCN: ds_read_u8
  gpu.func @dynamic(%m: memref<?xi8>, %i: index) kernel {
    %t = gpu.thread_id x
    %s = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %v = memref.load %m[%t] : memref<?xi8>
    memref.store %v, %s[%t] : memref<?xi8, #gpu.address_space<workgroup>>
    gpu.barrier
    %w = memref.load %s[%i] : memref<?xi8, #gpu.address_space<workgroup>>
    memref.store %w, %m[%t] : memref<?xi8>
    gpu.return
  }

  // PTX-LABEL: .entry atomics(
  // PTX: atom{{.*}}add.f32
  // PTX: atom{{.*}}cas.b32
  // PTX: atom{{.*}}cas.b64
  // PTX: atom{{.*}}max.s32
  // GCN-LABEL: atomics:
  // GCN: global_atomic_cmpswap v
  // GCN: global_atomic_cmpswap_x2
  gpu.func @atomics(%f: memref<?xf32>, %d: memref<?xf64>, %i: memref<?xi32>, %v: f32, %w: f64, %n: i32) kernel {
    %t = gpu.thread_id x
    %0 = memref.atomic_rmw addf %v, %f[%t] : (f32, memref<?xf32>) -> f32
    %1 = memref.atomic_rmw mulf %v, %f[%t] : (f32, memref<?xf32>) -> f32
    %2 = memref.generic_atomic_rmw %d[%t] : memref<?xf64> {
    ^bb0(%old: f64):
      %new = arith.divf %old, %w : f64
      memref.atomic_yield %new : f64
    }
    %3 = memref.atomic_rmw maxs %n, %i[%t] : (i32, memref<?xi32>) -> i32
    gpu.return
  }

  // PTX-LABEL: .entry copies(
  // PTX-NOT: call
  // PTX: ret;
  // GCN-LABEL: copies:
  // GCN-NOT: s_swappc
  // GCN: s_endpgm
  gpu.func @copies(%from: memref<?x?xf32>, %to: memref<?x4xf32>, %n: index) kernel {
    %part = memref.subview %from[0, 0] [%n, 4] [1, 1] : memref<?x?xf32> to memref<?x4xf32, strided<[?, 1]>>
    memref.copy %part, %to : memref<?x4xf32, strided<[?, 1]>> to memref<?x4xf32>
    gpu.return
  }
}
