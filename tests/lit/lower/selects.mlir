// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
// RUN: gpulower compile %s --target gfx942 --emit asm -o - | FileCheck %s --check-prefix=AMD

// A condition that ends an iteration and chooses values alone is a select, whatever else LLVM finds. MLIR's canonicalization of `cf`
// lets both sides go back to the head of the loop, and LLVM left the branches (mlir-opt-22 and llc-22 do).
// CHECK-LABEL: .entry search(
// CHECK: ld.global.b32 [[KEY:%r[0-9]+]]
// CHECK: ld.global.b32
// CHECK-NOT: bra
// CHECK-DAG: selp.b64
// CHECK-DAG: selp.b64
// CHECK: setp.lt.s64
// CHECK-NEXT: bra
// CHECK: ret;
// AMD-LABEL: search:
// AMD: global_load_dword
// AMD: v_cndmask_b32
// AMD: s_endpgm

// A division stays under its condition; so does one that rounds up: LLVM's, which it becomes, may not be carried out with a zero.
// CHECK-LABEL: .entry divides(
// CHECK: @%p{{[0-9]+}} bra
// CHECK-NOT: selp
// CHECK: div.rn.f32
// CHECK: ret;
// RUN: gpulower compile %s --target sm_90 --emit mlir -o - | FileCheck %s --check-prefix=MLIR
// MLIR-LABEL: llvm.func @rounds_up(
// MLIR: llvm.icmp "ne"
// MLIR: llvm.cond_br
// MLIR: llvm.sdiv
gpu.module @selects {
  gpu.func @search(%keys: memref<?xf32>, %x: memref<?xf32>, %at: memref<?xindex>) kernel {
    %t = gpu.thread_id x
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %count = memref.dim %keys, %zero : memref<?xf32>
    %v = memref.load %x[%t] : memref<?xf32>
    %found:2 = scf.while (%low = %zero, %high = %count) : (index, index) -> (index, index) {
      %more = arith.cmpi slt, %low, %high : index
      scf.condition(%more) %low, %high : index, index
    } do {
    ^bb0(%low: index, %high: index):
      %sum = arith.addi %low, %high : index
      %middle = arith.shrui %sum, %one : index
      %key = memref.load %keys[%middle] : memref<?xf32>
      %less = arith.cmpf olt, %key, %v : f32
      %next:2 = scf.if %less -> (index, index) {
        %above = arith.addi %middle, %one : index
        scf.yield %above, %high : index, index
      } else {
        scf.yield %low, %middle : index, index
      }
      scf.yield %next#0, %next#1 : index, index
    }
    memref.store %found#0, %at[%t] : memref<?xindex>
    gpu.return
  }

  gpu.func @divides(%x: memref<?xf32>, %n: index) kernel {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %start = arith.constant 1.0 : f32
    %r = scf.for %i = %zero to %n step %one iter_args(%s = %start) -> (f32) {
      %v = memref.load %x[%i] : memref<?xf32>
      %less = arith.cmpf olt, %v, %s : f32
      %next = scf.if %less -> (f32) {
        %q = arith.divf %s, %v : f32
        scf.yield %q : f32
      } else {
        scf.yield %s : f32
      }
      scf.yield %next : f32
    }
    memref.store %r, %x[%zero] : memref<?xf32>
    gpu.return
  }

  gpu.func @rounds_up(%x: memref<?xi32>, %n: index) kernel {
    %zero = arith.constant 0 : index
    %none = arith.constant 0 : i32
    %one = arith.constant 1 : index
    %start = arith.constant 1000000 : i32
    %r = scf.for %i = %zero to %n step %one iter_args(%s = %start) -> (i32) {
      %v = memref.load %x[%i] : memref<?xi32>
      %fits = arith.cmpi ne, %v, %none : i32
      %next = scf.if %fits -> (i32) {
        %q = arith.ceildivsi %s, %v : i32
        scf.yield %q : i32
      } else {
        scf.yield %s : i32
      }
      scf.yield %next : i32
    }
    memref.store %r, %x[%zero] : memref<?xi32>
    gpu.return
  }
}
