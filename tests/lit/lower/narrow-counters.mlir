// A counter of 32 bits stays below the upper bound: LLVM may compute addresses from it in 64 bits, once.

// RUN: gpulower compile %s --target sm_90 --emit llvm -O0 -o - | FileCheck %s
// RUN: gpulower compile %s --target sm_90 --emit sass -o - | FileCheck %s --check-prefix=SASS

// CHECK-LABEL: @list(
// CHECK: add nsw i32 %{{[0-9a-z.]+}}, 2
// CHECK-LABEL: @without_sign(
// CHECK: add nuw i32 %{{[0-9a-z.]+}}, 2
// CHECK-LABEL: @of_step(
// CHECK-NOT: add nuw
// CHECK: ret void
// CHECK-LABEL: @branches(
// CHECK-NOT: add nsw
// CHECK: ret void

// ptxas unrolls it: several loads of one array.
// SASS-LABEL: .text.list:
// SASS: LDG.E.64
// SASS: LDG.E.64
// SASS: LDG.E.64
// SASS: LDG.E.64
gpu.module @m {
  gpu.func @list(%start: memref<?xi32>, %column: memref<?xi32>, %value: memref<?xf64>, %x: memref<?xf64>, %y: memref<?xf64>) kernel {
    %one = arith.constant 1 : index
    %two = arith.constant 2 : i32
    %zero = arith.constant 0.0 : f64
    %row = gpu.global_id x
    %next = arith.addi %row, %one : index
    %first = memref.load %start[%row] : memref<?xi32>
    %last = memref.load %start[%next] : memref<?xi32>
    %sum = scf.for %k = %first to %last step %two iter_args(%acc = %zero) -> (f64) : i32 {
      %at = arith.index_cast %k : i32 to index
      %v = memref.load %value[%at] : memref<?xf64>
      %c = memref.load %column[%at] : memref<?xi32>
      %from = arith.index_cast %c : i32 to index
      %w = memref.load %x[%from] : memref<?xf64>
      %product = arith.mulf %v, %w : f64
      %more = arith.addf %acc, %product : f64
      scf.yield %more : f64
    }
    memref.store %sum, %y[%row] : memref<?xf64>
    gpu.return
  }

  gpu.func @without_sign(%a: memref<?xi32>, %n: i32) kernel {
    %two = arith.constant 2 : i32
    %first = arith.constant 0 : i32
    scf.for unsigned %k = %first to %n step %two : i32 {
      %at = arith.index_castui %k : i32 to index
      memref.store %k, %a[%at] : memref<?xi32>
    }
    gpu.return
  }

  gpu.func @of_step(%a: memref<?xi32>, %n: i32, %step: i32) kernel {
    %first = arith.constant 0 : i32
    scf.for unsigned %k = %first to %n step %step : i32 {
      %at = arith.index_castui %k : i32 to index
      memref.store %k, %a[%at] : memref<?xi32>
    }
    gpu.return
  }

  // Nobody promises anything of branches.
  gpu.func @branches(%a: memref<?xi32>, %n: i32) kernel {
    %two = arith.constant 2 : i32
    %first = arith.constant 0 : i32
    cf.br ^loop(%first : i32)
  ^loop(%k: i32):
    %at = arith.index_cast %k : i32 to index
    memref.store %k, %a[%at] : memref<?xi32>
    %next = arith.addi %k, %two : i32
    %more = arith.cmpi slt, %next, %n : i32
    cf.cond_br %more, ^loop(%next : i32), ^done
  ^done:
    gpu.return
  }
}
