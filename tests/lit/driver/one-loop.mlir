// RUN: gpulower compile %s --target sm_90 --emit llvm -o - | FileCheck %s
// RUN: gpulower compile %s --target gfx942 --emit llvm -o - | FileCheck %s

// A search with a stack: iterations that end early are no loop of their own, behind which threads would wait for each other.

// CHECK-LABEL: @search(
// CHECK-NOT: outer
// CHECK: ret void
gpu.module @searches {
  gpu.func @search(%keys: memref<?xi32>, %y: memref<?xi32>, %key: i32) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i2 = arith.constant 2 : i32
    %tx = gpu.thread_id x
    %stack = memref.alloca() : memref<32xi32>
    memref.store %i0, %stack[%c0] : memref<32xi32>
    %r:2 = scf.while (%sp = %i1, %found = %i0) : (i32, i32) -> (i32, i32) {
      %some = arith.cmpi sgt, %sp, %i0 : i32
      scf.condition(%some) %sp, %found : i32, i32
    } do {
    ^bb0(%sp: i32, %found: i32):
      %left = arith.subi %sp, %i1 : i32
      %at = arith.index_cast %left : i32 to index
      %node = memref.load %stack[%at] : memref<32xi32>
      %place = arith.index_cast %node : i32 to index
      %value = memref.load %keys[%place] : memref<?xi32>
      %inside = arith.cmpi sle, %value, %key : i32
      %next:2 = scf.if %inside -> (i32, i32) {
        %twice = arith.muli %node, %i2 : i32
        %one = arith.addi %twice, %i1 : i32
        %other = arith.addi %twice, %i2 : i32
        %above = arith.addi %at, %c1 : index
        memref.store %other, %stack[%at] : memref<32xi32>
        memref.store %one, %stack[%above] : memref<32xi32>
        %more = arith.addi %left, %i2 : i32
        %count = arith.addi %found, %i1 : i32
        scf.yield %more, %count : i32, i32
      } else {
        scf.yield %left, %found : i32, i32
      }
      scf.yield %next#0, %next#1 : i32, i32
    }
    memref.store %r#1, %y[%tx] : memref<?xi32>
    gpu.return
  }
}
