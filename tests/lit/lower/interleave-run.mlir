// RUN: gpulower compile %s --target sm_90 --emit llvm -o %t.ll
// RUN: gpulower compile %s --target sm_90 --emit llvm -o %t.one.ll --interleave 1
// RUN: not diff -q %t.ll %t.one.ll
// RUN: python3 %S/../Inputs/run_loops.py %llvm %t.ll
// RUN: gpulower compile %s --target sm_90 --emit llvm -o %t.ll --interleave 8
// RUN: python3 %S/../Inputs/run_loops.py %llvm %t.ll
// The same loops as LLVM IR, which are interleaved after LLVM's passes:
// RUN: gpulower compile %s --target sm_90 --emit llvm -O1 -o %t.in.ll
// RUN: gpulower compile %t.in.ll --target sm_90 --emit llvm -o %t.ll
// RUN: gpulower compile %t.in.ll --target sm_90 --emit llvm -o %t.one.ll --interleave 1
// RUN: not diff -q %t.ll %t.one.ll
// RUN: python3 %S/../Inputs/run_loops.py %llvm %t.ll
// RUN: gpulower compile %t.in.ll --target sm_90 --emit llvm -o %t.ll --interleave 8
// RUN: python3 %S/../Inputs/run_loops.py %llvm %t.ll

// Loops that read and write one buffer at every small distance, with every number of iterations, run on this machine: they
// have to compute what the loops say, one iteration after the other. They use nothing of a GPU, so that the script only
// has to change the target.

gpu.module @loops {
  // y[i] = 3 * x[i] + 1
  gpu.func @load_first(%x: memref<?xi32>, %y: memref<?xi32>, %lower: index, %upper: index, %step: index) kernel {
    %three = arith.constant 3 : i32
    %one = arith.constant 1 : i32
    scf.for %i = %lower to %upper step %step {
      %v = memref.load %x[%i] : memref<?xi32>
      %product = arith.muli %v, %three : i32
      %w = arith.addi %product, %one : i32
      memref.store %w, %y[%i] : memref<?xi32>
    }
    gpu.return
  }

  // y[i] = i; sum = 3 * sum + x[i]; at the end y[0] = sum
  gpu.func @store_first(%x: memref<?xi32>, %y: memref<?xi32>, %lower: index, %upper: index, %step: index) kernel {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i32
    %three = arith.constant 3 : i32
    %sum = scf.for %i = %lower to %upper step %step iter_args(%s = %zero) -> (i32) {
      %number = arith.index_cast %i : index to i32
      memref.store %number, %y[%i] : memref<?xi32>
      %v = memref.load %x[%i] : memref<?xi32>
      %product = arith.muli %s, %three : i32
      %t = arith.addi %product, %v : i32
      scf.yield %t : i32
    }
    memref.store %sum, %y[%c0] : memref<?xi32>
    gpu.return
  }

  // y[i] = 3 * x[i] + 1, of which a byte is kept
  gpu.func @narrow(%x: memref<?xi32>, %y: memref<?xi8>, %lower: index, %upper: index, %step: index) kernel {
    %three = arith.constant 3 : i32
    %one = arith.constant 1 : i32
    scf.for %i = %lower to %upper step %step {
      %v = memref.load %x[%i] : memref<?xi32>
      %product = arith.muli %v, %three : i32
      %w = arith.addi %product, %one : i32
      %byte = arith.trunci %w : i32 to i8
      memref.store %byte, %y[%i] : memref<?xi8>
    }
    gpu.return
  }

  // y[i] = i; sum = 3 * sum + x[i], of bytes; at the end y[0] = sum; with a constant step
  gpu.func @widen(%x: memref<?xi8>, %y: memref<?xi32>, %lower: index, %upper: index, %step: index) kernel {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant 0 : i32
    %three = arith.constant 3 : i32
    %sum = scf.for %i = %lower to %upper step %c2 iter_args(%s = %zero) -> (i32) {
      %number = arith.index_cast %i : index to i32
      memref.store %number, %y[%i] : memref<?xi32>
      %v = memref.load %x[%i] : memref<?xi8>
      %wide = arith.extui %v : i8 to i32
      %product = arith.muli %s, %three : i32
      %t = arith.addi %product, %wide : i32
      scf.yield %t : i32
    }
    memref.store %sum, %y[%c0] : memref<?xi32>
    gpu.return
  }

  // if x[i + 1] is odd then x[i] = y[i + 1] else y[i] = x[i + 1] + 1; with a constant step
  gpu.func @both_ways(%x: memref<?xi32>, %y: memref<?xi32>, %lower: index, %upper: index, %step: index) kernel {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %one = arith.constant 1 : i32
    %zero = arith.constant 0 : i32
    scf.for %i = %lower to %upper step %c2 {
      %next = arith.addi %i, %c1 : index
      %a = memref.load %x[%next] : memref<?xi32>
      %b = memref.load %y[%next] : memref<?xi32>
      %bit = arith.andi %a, %one : i32
      %odd = arith.cmpi ne, %bit, %zero : i32
      scf.if %odd {
        memref.store %b, %x[%i] : memref<?xi32>
      } else {
        %more = arith.addi %a, %one : i32
        memref.store %more, %y[%i] : memref<?xi32>
      }
    }
    gpu.return
  }
}
