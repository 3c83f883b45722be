// What is stored does not depend on what was there, once it is folded: an exchange.

// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
// RUN: gpulower compile %s --target sm_90 -O0 --emit ptx -o - | FileCheck %s
// RUN: gpulower compile %s --target gfx942 --emit asm -o - | FileCheck %s --check-prefix=AMD

// CHECK-LABEL: .entry folded(
// CHECK: atom.acq_rel.gpu.{{(global.)?}}exch.b32
// AMD-LABEL: folded:
// AMD: global_atomic_swap
gpu.module @m {
  gpu.func @folded(%a: memref<?xi32>) kernel {
    %i = gpu.thread_id x
    %zero = arith.constant 0 : i32
    %old = memref.generic_atomic_rmw %a[%i] : memref<?xi32> {
    ^bb0(%current: i32):
      %new = arith.andi %current, %zero : i32
      memref.atomic_yield %new : i32
    }
    memref.store %old, %a[%i] : memref<?xi32>
    gpu.return
  }

  // Folded when the loop has become branches.
  // CHECK-LABEL: .entry folded_late(
  // CHECK: atom.acq_rel.gpu.{{(global.)?}}exch.b32
  // AMD-LABEL: folded_late:
  // AMD: global_atomic_swap
  gpu.func @folded_late(%a: memref<?xi32>) kernel {
    %i = gpu.thread_id x
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %never = arith.constant false
    %end = scf.while (%count = %zero) : (i32) -> (i32) {
      %old = memref.generic_atomic_rmw %a[%i] : memref<?xi32> {
      ^bb0(%current: i32):
        %new = arith.minui %current, %count : i32
        memref.atomic_yield %new : i32
      }
      memref.store %old, %a[%i] : memref<?xi32>
      scf.condition(%never) %count : i32
    } do {
    ^bb0(%count: i32):
      %next = arith.addi %count, %one : i32
      scf.yield %next : i32
    }
    gpu.return
  }

  // Folded once it is seen that every way to a block brings the same value.
  // CHECK-LABEL: .entry same_value(
  // CHECK: atom{{.*}}.exch.b32
  // AMD-LABEL: same_value:
  // AMD: global_atomic_swap
  gpu.func @same_value(%a: memref<?xi32>, %bound: i32) kernel {
    %i = gpu.thread_id x
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %no = arith.constant false
    %value = scf.if %no -> (i32) {
      scf.yield %one : i32
    } else {
      %sum = scf.for %at = %zero to %bound step %one iter_args(%n = %zero) -> (i32) : i32 {
        %old = memref.atomic_rmw xori %zero, %a[%i] : (i32, memref<?xi32>) -> i32
        scf.yield %zero : i32
      }
      scf.yield %zero : i32
    }
    %magnitude = math.absi %value : i32
    %old = memref.generic_atomic_rmw %a[%i] : memref<?xi32> {
    ^bb0(%current: i32):
      %new = arith.minui %current, %magnitude : i32
      memref.atomic_yield %new : i32
    }
    gpu.return
  }

  // What was read twice is known to be the same once it is read once.
  // CHECK-LABEL: .entry read_twice(
  // CHECK: atom{{.*}}.exch.b32 {{.*}}, 0;
  // AMD-LABEL: read_twice:
  // AMD: global_atomic_swap
  gpu.func @read_twice(%a: memref<?xi32>, %b: memref<?xi32>, %i: index) kernel {
    %c7 = arith.constant 7 : index
    %first = arith.andi %i, %c7 : index
    %v = memref.load %b[%first] : memref<?xi32>
    %second = arith.andi %i, %c7 : index
    %w = memref.load %b[%second] : memref<?xi32>
    %none = arith.xori %v, %w : i32
    %old = memref.generic_atomic_rmw %a[%i] : memref<?xi32> {
    ^bb0(%held: i32):
      %kept = arith.andi %held, %none : i32
      memref.atomic_yield %kept : i32
    }
    gpu.return
  }
}
