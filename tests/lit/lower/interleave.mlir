// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s --check-prefixes=CHECK,FOUR
// RUN: gpulower compile %s --target sm_90 --emit ptx -o - --interleave 8 | FileCheck %s --check-prefixes=CHECK,EIGHT
// RUN: gpulower compile %s --target sm_90 --emit ptx -o - --interleave 1 | FileCheck %s --check-prefix=ONE
// RUN: gpulower compile %s --target sm_90 --emit ptx -o - -O1 | FileCheck %s --check-prefix=ONE
// RUN: gpulower compile %s --target sm_90 --emit ptx -o - --index-bitwidth 32 | FileCheck %s --check-prefix=NARROW
// RUN: gpulower compile %s --target gfx942 --emit asm -o - | FileCheck %s --check-prefix=GCN
// RUN: gpulower compile %s --target gfx942 --emit asm -o - --interleave 4 | FileCheck %s --check-prefix=GCN-FOUR

// Several iterations of a loop at once, all loads of them first (interleave-run.mlir runs such loops). The other loop has
// the iterations that are left.

gpu.module @kernels {
  // CHECK-LABEL: .entry only_loads(
  // FOUR-COUNT-4: ld.global.b32
  // FOUR-NOT: ld.global
  // FOUR: add.rn.f32
  // EIGHT-COUNT-8: ld.global.b32
  // EIGHT-NOT: ld.global
  // EIGHT: add.rn.f32
  // ONE-LABEL: .entry only_loads(
  // ONE: ld.global.b32
  // ONE-NOT: ld.global
  // ONE: ret;
  // NARROW-LABEL: .entry only_loads(
  // NARROW-COUNT-4: ld.global.b32
  // NARROW: ret;
  // GCN-LABEL: only_loads:
  // GCN-COUNT-1: {{global|flat}}_load_dword
  // GCN-NOT: {{global|flat}}_load_dword
  // GCN: s_endpgm
  // GCN-FOUR-LABEL: only_loads:
  // GCN-FOUR-COUNT-4: {{global|flat}}_load_dword
  gpu.func @only_loads(%x: memref<?xf32>, %out: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : memref<?xf32>
    %thread = gpu.thread_id x
    %threads = gpu.block_dim x
    %sum = scf.for %i = %thread to %n step %threads iter_args(%s = %zero) -> (f32) {
      %v = memref.load %x[%i] : memref<?xf32>
      %t = arith.addf %s, %v : f32
      scf.yield %t : f32
    }
    memref.store %sum, %out[%thread] : memref<?xf32>
    gpu.return
  }

  // The PTX compiler does this one itself.
  // CHECK-LABEL: .entry only_loads_by_256(
  // CHECK: ld.global.b32
  // CHECK-NOT: ld.global
  // CHECK: ret;
  gpu.func @only_loads_by_256(%x: memref<?xf32>, %out: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c256 = arith.constant 256 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : memref<?xf32>
    %thread = gpu.thread_id x
    %sum = scf.for %i = %thread to %n step %c256 iter_args(%s = %zero) -> (f32) {
      %v = memref.load %x[%i] : memref<?xf32>
      %t = arith.addf %s, %v : f32
      scf.yield %t : f32
    }
    memref.store %sum, %out[%thread] : memref<?xf32>
    gpu.return
  }

  // What is stored may be what a later iteration loads: the addresses are compared before the loop.
  // CHECK-LABEL: .entry may_overlap(
  // CHECK: sub.s64
  // FOUR-COUNT-4: ld.global.b32
  // FOUR: st.global
  // An index of 32 bits may begin anew at 0, so that two addresses do not stay as far apart as they are before the loop.
  // NARROW-LABEL: .entry may_overlap(
  // NARROW: ld.global.b32
  // NARROW-NOT: ld.global
  // NARROW: ret;
  gpu.func @may_overlap(%x: memref<?x?xf32>, %y: memref<?x?xf32>) kernel {
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    %n = memref.dim %x, %c1 : memref<?x?xf32>
    %row = gpu.block_id x
    %thread = gpu.thread_id x
    scf.for %i = %thread to %n step %c256 {
      %v = memref.load %x[%row, %i] : memref<?x?xf32>
      %w = arith.mulf %v, %v : f32
      memref.store %w, %y[%row, %i] : memref<?x?xf32>
    }
    gpu.return
  }

  // Operations that have been lowered before are understood, too.
  // CHECK-LABEL: .entry fused(
  // FOUR-COUNT-8: ld.global.b32
  // FOUR: st.global
  gpu.func @fused(%x: memref<?xf32>, %y: memref<?xf32>, %a: f32) kernel {
    %c0 = arith.constant 0 : index
    %c256 = arith.constant 256 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    %thread = gpu.thread_id x
    scf.for %i = %thread to %n step %c256 {
      %u = memref.load %x[%i] : memref<?xf32>
      %v = memref.load %y[%i] : memref<?xf32>
      %w = math.fma %a, %u, %v : f32
      memref.store %w, %y[%i] : memref<?xf32>
    }
    gpu.return
  }

  // The same element is read before it is written, and no iteration touches the element of another one.
  // CHECK-LABEL: .entry in_place(
  // FOUR-COUNT-4: ld.global.b32
  // FOUR: st.global
  // NARROW-LABEL: .entry in_place(
  // NARROW-COUNT-4: ld.global.b32
  // NARROW: st.global
  gpu.func @in_place(%x: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c256 = arith.constant 256 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    %thread = gpu.thread_id x
    scf.for %i = %thread to %n step %c256 {
      %v = memref.load %x[%i] : memref<?xf32>
      %w = arith.mulf %v, %v : f32
      memref.store %w, %x[%i] : memref<?xf32>
    }
    gpu.return
  }

  // Two at most of what takes many registers, and one in the loop for what is left.
  // CHECK-LABEL: .entry large_function(
  // CHECK-COUNT-3: ld.global.b64
  // CHECK-NOT: ld.global
  gpu.func @large_function(%x: memref<?xf64>) kernel {
    %c0 = arith.constant 0 : index
    %c256 = arith.constant 256 : index
    %n = memref.dim %x, %c0 : memref<?xf64>
    %thread = gpu.thread_id x
    scf.for %i = %thread to %n step %c256 {
      %v = memref.load %x[%i] : memref<?xf64>
      %narrow = arith.truncf %v : f64 to f32
      %erf = math.erf %narrow : f32
      %w = arith.extf %erf : f32 to f64
      memref.store %w, %x[%i] : memref<?xf64>
    }
    gpu.return
  }

  // But as many as asked for, where two iterations load eight bytes at most.
  // CHECK-LABEL: .entry large_function_of_few_bytes(
  // FOUR-COUNT-5: ld.global.b32
  // EIGHT-COUNT-9: ld.global.b32
  // CHECK-NOT: ld.global
  gpu.func @large_function_of_few_bytes(%x: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c256 = arith.constant 256 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    %thread = gpu.thread_id x
    scf.for %i = %thread to %n step %c256 {
      %v = memref.load %x[%i] : memref<?xf32>
      %w = math.erf %v : f32
      memref.store %w, %x[%i] : memref<?xf32>
    }
    gpu.return
  }

  // A division is a fast path and a slow one.
  // CHECK-LABEL: .entry division(
  // CHECK-COUNT-2: ld.global.b32
  // CHECK-NOT: ld.global
  // CHECK: st.global
  gpu.func @division(%x: memref<?xf32>, %by: f32) kernel {
    %c0 = arith.constant 0 : index
    %c256 = arith.constant 256 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    %thread = gpu.thread_id x
    scf.for %i = %thread to %n step %c256 {
      %v = memref.load %x[%i] : memref<?xf32>
      %w = arith.divf %by, %v : f32
      memref.store %w, %x[%i] : memref<?xf32>
    }
    gpu.return
  }

  // The front end has promised that nobody else reaches what %x points to: even a scattered store is no obstacle.
  // CHECK-LABEL: .entry alone(
  // FOUR-COUNT-4: ld.global.nc.b32
  // FOUR: st.global
  gpu.func @alone(%x: memref<?xi32> {llvm.noalias}, %y: memref<?xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c256 = arith.constant 256 : index
    %n = memref.dim %x, %c0 : memref<?xi32>
    %thread = gpu.thread_id x
    scf.for %i = %thread to %n step %c256 {
      %v = memref.load %x[%i] : memref<?xi32>
      %at = arith.index_castui %v : i32 to index
      memref.store %v, %y[%at] : memref<?xi32>
    }
    gpu.return
  }

  // A scattered store without that promise, a neighbour's element, an atomic operation: one at a time. A barrier: in order.
  // CHECK-LABEL: .entry scattered(
  // CHECK: ld.global.b32
  // CHECK-NOT: ld.global
  // CHECK: ret;
  gpu.func @scattered(%x: memref<?xi32>, %y: memref<?xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c256 = arith.constant 256 : index
    %n = memref.dim %x, %c0 : memref<?xi32>
    %thread = gpu.thread_id x
    scf.for %i = %thread to %n step %c256 {
      %v = memref.load %x[%i] : memref<?xi32>
      %at = arith.index_castui %v : i32 to index
      memref.store %v, %y[%at] : memref<?xi32>
    }
    gpu.return
  }

  // CHECK-LABEL: .entry atomics(
  // CHECK: ld.global.b32
  // CHECK-NOT: ld.global
  // CHECK: ret;
  gpu.func @atomics(%x: memref<?xi32>, %y: memref<?xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c256 = arith.constant 256 : index
    %n = memref.dim %x, %c0 : memref<?xi32>
    %thread = gpu.thread_id x
    scf.for %i = %thread to %n step %c256 {
      %v = memref.load %x[%i] : memref<?xi32>
      %old = memref.atomic_rmw addi %v, %y[%c0] : (i32, memref<?xi32>) -> i32
    }
    gpu.return
  }

  // CHECK-LABEL: .entry barriers(
  // CHECK: ld.global.b32
  // CHECK-NOT: ld.global
  // CHECK: bar.sync
  // CHECK-NOT: ld.global
  // CHECK: st.global.b32
  // CHECK: ld.global.b32
  // CHECK: ret;
  gpu.func @barriers(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %thread = gpu.thread_id x
    scf.for %i = %c0 to %n step %c1 {
      %v = memref.load %x[%i] : memref<?xf32>
      gpu.barrier
      memref.store %v, %y[%thread] : memref<?xf32>
    }
    gpu.return
  }

  // Who annotates a loop knows better.
  // CHECK-LABEL: .entry annotated(
  // CHECK: ld.global.b32
  // CHECK-NOT: ld.global
  // CHECK: ret;
  gpu.func @annotated(%x: memref<?xf32>, %y: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c256 = arith.constant 256 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    %thread = gpu.thread_id x
    scf.for %i = %thread to %n step %c256 {
      %v = memref.load %x[%i] : memref<?xf32>
      memref.store %v, %y[%i] : memref<?xf32>
    } {loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
    gpu.return
  }
}
