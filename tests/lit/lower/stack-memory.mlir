// RUN: gpulower compile %s --target gfx942 --emit asm -o - | FileCheck %s
// RUN: gpulower compile %s --target gfx942 --emit asm -O0 -o - | FileCheck %s --check-prefix=O0
// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=PTX

// Memory that a thread takes under a condition or in a loop is part of the kernel's frame, and in registers where it can be.

gpu.module @stack {
  // CHECK: .amdhsa_kernel condition
  // CHECK: .amdhsa_private_segment_fixed_size 0
  // CHECK: .amdhsa_uses_dynamic_stack 0
  // O0: .amdhsa_kernel condition
  // O0: .amdhsa_uses_dynamic_stack 0
  gpu.func @condition(%x: memref<?xf32>, %n: index, %at: index) kernel {
    %t = gpu.thread_id x
    %in = arith.cmpi slt, %t, %n : index
    %one = arith.constant 1.0 : f32
    %c4 = arith.constant 4 : index
    scf.if %in {
      %v = memref.alloca() : memref<4xf32>
      %k = arith.remui %t, %c4 : index
      memref.store %one, %v[%k] : memref<4xf32>
      %l = memref.load %v[%at] : memref<4xf32>
      memref.store %l, %x[%t] : memref<?xf32>
    }
    gpu.return
  }

  // CHECK: .amdhsa_kernel iterations
  // CHECK: .amdhsa_private_segment_fixed_size 0
  // CHECK: .amdhsa_uses_dynamic_stack 0
  // O0: .amdhsa_kernel iterations
  // O0: .amdhsa_uses_dynamic_stack 0
  // PTX: .entry iterations(
  // PTX-NOT: .local
  // PTX: ret;
  gpu.func @iterations(%x: memref<?xf32>, %n: index) kernel {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      %v = memref.alloca() : memref<2xf32>
      %a = memref.load %x[%i] : memref<?xf32>
      memref.store %a, %v[%c1] : memref<2xf32>
      gpu.barrier
      %b = memref.load %v[%c1] : memref<2xf32>
      memref.store %b, %x[%t] : memref<?xf32>
    }
    gpu.return
  }

  // Each iteration has the memory of the one before as well.
  // CHECK: .amdhsa_kernel carried
  // CHECK: .amdhsa_uses_dynamic_stack 1
  gpu.func @carried(%x: memref<?xf32>, %n: index, %at: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %first = memref.alloca() : memref<4xf32>
    memref.store %zero, %first[%c0] : memref<4xf32>
    %i, %last = scf.while (%i = %c0, %before = %first) : (index, memref<4xf32>) -> (index, memref<4xf32>) {
      %more = arith.cmpi slt, %i, %n : index
      scf.condition(%more) %i, %before : index, memref<4xf32>
    } do {
    ^bb0(%i: index, %before: memref<4xf32>):
      %own = memref.alloca() : memref<4xf32>
      %a = memref.load %before[%at] : memref<4xf32>
      %b = memref.load %x[%i] : memref<?xf32>
      %c = arith.addf %a, %b : f32
      memref.store %c, %own[%at] : memref<4xf32>
      %next = arith.addi %i, %c1 : index
      scf.yield %next, %own : index, memref<4xf32>
    }
    %r = memref.load %last[%at] : memref<4xf32>
    memref.store %r, %x[%c0] : memref<?xf32>
    gpu.return
  }
}
