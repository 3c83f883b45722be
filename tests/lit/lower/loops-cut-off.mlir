// A loop that nothing enters once a branch is folded. MLIR 22's canonicalization then puts the loop's blocks together, so that
// an addition uses its own result, and folds that for ever.

// RUN: timeout 60 gpulower compile %s --target sm_90 --emit llvm -o - | FileCheck %s
// RUN: timeout 60 gpulower compile %s --target sm_90 --emit llvm --interleave=1 -o - | FileCheck %s
// RUN: timeout 60 gpulower compile %s --target gfx942 --emit llvm -o - | FileCheck %s

// What a user's own pipeline can have, too. `MERGED`: where nothing is cut off, blocks are put together as ever.
// RUN: timeout 60 gpulower-opt %s --pass-pipeline='builtin.module(gpu.module(gpulower-canonicalize))' | FileCheck %s --check-prefix=MERGED

gpu.module @m {
  // CHECK: define {{.*}}@stated(
  // CHECK: store i32 7,
  // MERGED-LABEL: @stated
  // MERGED-NOT: ^bb
  // MERGED: gpu.return
  gpu.func @stated(%out: memref<?xi32>, %n: i32) kernel {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %seven = arith.constant 7 : i32
    %at = arith.constant 0 : index
    %false = arith.constant false
    cf.cond_br %false, ^head(%zero : i32), ^exit
  ^head(%i: i32):
    %more = arith.cmpi ult, %i, %n : i32
    cf.cond_br %more, ^body, ^exit
  ^body:
    memref.store %i, %out[%at] : memref<?xi32>
    %next = arith.addi %i, %one : i32
    cf.br ^head(%next : i32)
  ^exit:
    memref.store %seven, %out[%at] : memref<?xi32>
    gpu.return
  }

  // What a condition is, another branch says. Three blocks go round.
  // CHECK: define {{.*}}@by_another(
  // MERGED-LABEL: @by_another
  gpu.func @by_another(%out: memref<?xi32>, %c: i1, %n: i32) kernel {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %at = arith.constant 0 : index
    cf.cond_br %c, ^then, ^exit
  ^then:
    %case = arith.extui %c : i1 to i32
    cf.switch %case : i32, [ default: ^before, 1: ^exit, 7: ^before ]
  ^before:
    cf.br ^head(%zero : i32)
  ^head(%i: i32):
    memref.store %i, %out[%at] : memref<?xi32>
    %less = arith.cmpi ult, %i, %n : i32
    %more = arith.andi %less, %c : i1
    cf.cond_br %more, ^body, ^exit
  ^body:
    cf.br ^last(%i : i32)
  ^last(%j: i32):
    %next = arith.addi %j, %one : i32
    cf.br ^head(%next : i32)
  ^exit:
    gpu.return
  }

  // Written without an entry.
  // CHECK: define {{.*}}@never_entered(
  // MERGED-LABEL: @never_entered
  // MERGED-NOT: ^bb
  // MERGED: gpu.return
  gpu.func @never_entered(%out: memref<?xi32>) kernel {
    %one = arith.constant 1 : i32
    %at = arith.constant 0 : index
    gpu.return
  ^one:
    %a = arith.addi %b, %one : i32
    cf.br ^two
  ^two:
    %b = arith.addi %a, %one : i32
    memref.store %b, %out[%at] : memref<?xi32>
    cf.br ^one
  }

  // CHECK: define {{.*}}@entered(
  // MERGED-LABEL: @entered
  // MERGED-NOT: ^bb
  // MERGED: arith.addi %{{.*}}, %{{.*}} : i32
  // MERGED: gpu.return
  gpu.func @entered(%out: memref<?xi32>, %n: i32) kernel {
    %one = arith.constant 1 : i32
    %at = arith.constant 0 : index
    cf.br ^one(%n : i32)
  ^one(%i: i32):
    %next = arith.addi %i, %n : i32
    cf.br ^two(%next : i32)
  ^two(%j: i32):
    memref.store %j, %out[%at] : memref<?xi32>
    gpu.return
  }
}
