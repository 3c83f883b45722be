// RUN: gpulower compile %s --target sm_90 --interleave 1 --emit ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: gpulower compile %s --target gfx942 --emit asm -o - | FileCheck %s --check-prefix=GCN

// A reduction over the workgroup: shuffles, a buffer, barriers. In a loop there is one barrier more, so that no thread
// writes the buffer while another still reads the last result. Where NVIDIA's warps are known to be full, every warp
// joins the results of all, and none waits for another to do so.

gpu.module @kernels {
  // PTX-LABEL: .entry in_a_loop(
  // PTX-COUNT-2: bar.sync
  // PTX-NOT: bar.sync
  // PTX: ret;
  // GCN-LABEL: in_a_loop:
  // GCN-COUNT-3: s_barrier
  // GCN: s_endpgm
  gpu.func @in_a_loop(%m: memref<?xf32>, %n: index) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      %a = memref.load %m[%t] : memref<?xf32>
      %b = gpu.all_reduce add %a uniform {} : (f32) -> f32
      memref.store %b, %m[%i] : memref<?xf32>
    }
    gpu.return
  }

  // PTX-LABEL: .entry eight_warps(
  // PTX-COUNT-5: shfl.sync.bfly.b32
  // PTX-NOT: {{shfl|bar.sync}}
  // PTX: bar.sync
  // PTX-COUNT-3: shfl.sync.bfly.b32
  // PTX-NOT: {{shfl|bar.sync}}
  // PTX: ret;
  gpu.func @eight_warps(%m: memref<?xf32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %t = gpu.thread_id x
    %a = memref.load %m[%t] : memref<?xf32>
    %b = gpu.all_reduce add %a uniform {} : (f32) -> f32
    memref.store %b, %m[%t] : memref<?xf32>
    gpu.return
  }

  // Six warps: the first one joins the results, all of its lanes take part, and one lane writes what all lanes read.
  // PTX-LABEL: .entry six_warps(
  // PTX-COUNT-5: shfl.sync.bfly.b32 {{.*}}, 31, -1;
  // PTX-NOT: shfl
  // PTX: bar.sync
  // PTX-COUNT-5: shfl.sync.bfly.b32 {{.*}}, 5, -1;
  // PTX-NOT: shfl
  // PTX: setp.ne.b32 [[OTHER:%p[0-9]+]], {{%r[0-9]+}}, 0;
  // PTX-NEXT: @[[OTHER]] bra
  // PTX: st.shared.b32
  // PTX: bar.sync
  // PTX: ret;
  gpu.func @six_warps(%m: memref<?xf32>) kernel attributes {known_block_size = array<i32: 192, 1, 1>} {
    %t = gpu.thread_id x
    %a = memref.load %m[%t] : memref<?xf32>
    %b = gpu.all_reduce add %a uniform {} : (f32) -> f32
    memref.store %b, %m[%t] : memref<?xf32>
    gpu.return
  }

  // Of a size that is not known, the last warp may not be full: the code is there once, and a lane without a partner keeps what it has.
  // What is itself, joined with itself, needs no question.
  // PTX-LABEL: .entry any_size(
  // PTX-COUNT-5: shfl.sync.bfly.b32 {{%r[0-9]+\|%p[0-9]+.*}}, -1;
  // PTX-NOT: shfl
  // PTX: bar.sync
  // PTX-COUNT-5: shfl.sync.bfly.b32 {{%r[0-9]+\|%p[0-9]+.*}}, -1;
  // PTX-NOT: shfl
  // PTX: ret;
  // GCN-LABEL: any_size:
  // GCN-COUNT-10: ds_bpermute_b32
  // GCN-NOT: ds_bpermute_b32
  // GCN: s_endpgm
  gpu.func @any_size(%m: memref<?xf32>) kernel {
    %t = gpu.thread_id x
    %a = memref.load %m[%t] : memref<?xf32>
    %b = gpu.all_reduce add %a uniform {} : (f32) -> f32
    memref.store %b, %m[%t] : memref<?xf32>
    gpu.return
  }

  // PTX-LABEL: .entry largest(
  // PTX: shfl.sync.bfly.b32
  // PTX-NOT: selp
  // PTX: ret;
  gpu.func @largest(%m: memref<?xi64>) kernel {
    %t = gpu.thread_id x
    %a = memref.load %m[%t] : memref<?xi64>
    %b = gpu.all_reduce maxsi %a uniform {} : (i64) -> i64
    memref.store %b, %m[%t] : memref<?xi64>
    gpu.return
  }

  // One warp needs no barrier. 16 x 2 items are one, too.
  // PTX-LABEL: .entry one_warp(
  // PTX-NOT: bar.sync
  // PTX: redux.sync
  // PTX-NOT: bar.sync
  // PTX: ret;
  gpu.func @one_warp(%m: memref<?xi32>) kernel attributes {known_block_size = array<i32: 16, 2, 1>} {
    %t = gpu.thread_id x
    %a = memref.load %m[%t] : memref<?xi32>
    %b = gpu.all_reduce maxsi %a uniform {} : (i32) -> i32
    memref.store %b, %m[%t] : memref<?xi32>
    gpu.return
  }

  // A region joins two values where there are two.
  // PTX-LABEL: .entry halves(
  // PTX-COUNT-5: shfl.sync.bfly.b32 {{%r[0-9]+\|%p[0-9]+.*}}, -1;
  // PTX-NOT: shfl
  // PTX: bar.sync
  // PTX-COUNT-5: shfl.sync.bfly.b32 {{%r[0-9]+\|%p[0-9]+.*}}, -1;
  // PTX-NOT: shfl
  // PTX: ret;
  // GCN-LABEL: halves:
  gpu.func @halves(%m: memref<?xf16>) kernel {
    %t = gpu.thread_id x
    %a = memref.load %m[%t] : memref<?xf16>
    %b = gpu.all_reduce %a uniform {
    ^bb0(%x: f16, %y: f16):
      %z = arith.mulf %x, %y : f16
      gpu.yield %z : f16
    } : (f16) -> f16
    memref.store %b, %m[%t] : memref<?xf16>
    gpu.return
  }

  // A loop of branches inside another operation's region is a loop, too.
  // PTX-LABEL: .entry in_a_region(
  // PTX-COUNT-2: bar.sync
  // PTX-NOT: bar.sync
  // PTX: ret;
  // GCN-LABEL: in_a_region:
  // GCN-COUNT-3: s_barrier
  // GCN: s_endpgm
  gpu.func @in_a_region(%m: memref<?xf32>, %n: index) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.execute_region {
      cf.br ^head(%c0 : index)
    ^head(%i: index):
      %a = memref.load %m[%t] : memref<?xf32>
      %b = gpu.all_reduce add %a uniform {} : (f32) -> f32
      memref.store %b, %m[%i] : memref<?xf32>
      %j = arith.addi %i, %c1 : index
      %more = arith.cmpi ult, %j, %n : index
      cf.cond_br %more, ^head(%j : index), ^end
    ^end:
      scf.yield
    }
    gpu.return
  }

  // What runs once has one barrier, whatever it is in.
  // PTX-LABEL: .entry once(
  // PTX: bar.sync
  // PTX-NOT: bar.sync
  // PTX: ret;
  gpu.func @once(%m: memref<?xf32>, %yes: i1) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %t = gpu.thread_id x
    cf.br ^next
  ^next:
    scf.if %yes {
      %a = memref.load %m[%t] : memref<?xf32>
      %b = gpu.all_reduce add %a uniform {} : (f32) -> f32
      memref.store %b, %m[%t] : memref<?xf32>
    }
    gpu.return
  }
}
