// block 32 4
// sizes heads = score 0; rows = score 1; keys = score 2
gpu.module @alibi_softmax {
  gpu.func @alibi_softmax(%score: memref<?x?x?xf32>, %y: memref<?x?x?xf32>, %scale: f32) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %i0 = arith.constant 0 : i32
    %i2 = arith.constant 2 : i32
    %i16 = arith.constant 16 : i32
    %i32 = arith.constant 32 : i32
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %eight = arith.constant -8.0 : f32
    %low = arith.constant -3.0e38 : f32
    %heads = memref.dim %score, %c0 : memref<?x?x?xf32>
    %rows = memref.dim %score, %c1 : memref<?x?x?xf32>
    %keys = memref.dim %score, %c2 : memref<?x?x?xf32>
    %lane = gpu.thread_id x
    %ty = gpu.thread_id y
    %wy = gpu.block_dim y
    %bx = gpu.block_id x
    %head = gpu.block_id y
    %base = arith.muli %bx, %wy : index
    %row = arith.addi %base, %ty : index
    %in = arith.cmpi slt, %row, %rows : index
    scf.if %in {
      %h1 = arith.addi %head, %c1 : index
      %h1i = arith.index_cast %h1 : index to i64
      %h1f = arith.sitofp %h1i : i64 to f32
      %hsi = arith.index_cast %heads : index to i64
      %hsf = arith.sitofp %hsi : i64 to f32
      %num = arith.mulf %h1f, %eight : f32
      %power = arith.divf %num, %hsf : f32
      %slope = math.exp2 %power : f32
      %end = arith.addi %row, %c1 : index
      %ms:2 = scf.for %j = %lane to %end step %c32 iter_args(%m = %low, %s = %zero) -> (f32, f32) {
        %raw = memref.load %score[%head, %row, %j] : memref<?x?x?xf32>
        %scaled = arith.mulf %raw, %scale : f32
        %away = arith.subi %row, %j : index
        %awayi = arith.index_cast %away : index to i32
        %awayf = arith.sitofp %awayi : i32 to f32
        %bias = arith.mulf %slope, %awayf : f32
        %v = arith.subf %scaled, %bias : f32
        %mn = arith.maxnumf %m, %v : f32
        %d1 = arith.subf %m, %mn : f32
        %d2 = arith.subf %v, %mn : f32
        %e1 = math.exp %d1 : f32
        %e2 = math.exp %d2 : f32
        %se = arith.mulf %s, %e1 : f32
        %sn = arith.addf %se, %e2 : f32
        scf.yield %mn, %sn : f32, f32
      }
      %all:3 = scf.while (%offset = %i16, %m = %ms#0, %s = %ms#1) : (i32, f32, f32) -> (i32, f32, f32) {
        %more = arith.cmpi sgt, %offset, %i0 : i32
        scf.condition(%more) %offset, %m, %s : i32, f32, f32
      } do {
      ^bb0(%offset: i32, %m: f32, %s: f32):
        %om, %v0 = gpu.shuffle xor %m, %offset, %i32 : f32
        %os, %v1 = gpu.shuffle xor %s, %offset, %i32 : f32
        %mn = arith.maxnumf %m, %om : f32
        %d1 = arith.subf %m, %mn : f32
        %d2 = arith.subf %om, %mn : f32
        %e1 = math.exp %d1 : f32
        %e2 = math.exp %d2 : f32
        %s1 = arith.mulf %s, %e1 : f32
        %s2 = arith.mulf %os, %e2 : f32
        %sn = arith.addf %s1, %s2 : f32
        %on = arith.divsi %offset, %i2 : i32
        scf.yield %on, %mn, %sn : i32, f32, f32
      }
      %inverse = arith.divf %one, %all#2 : f32
      scf.for %j = %lane to %keys step %c32 {
        %seen = arith.cmpi sle, %j, %row : index
        %r = scf.if %seen -> (f32) {
          %raw = memref.load %score[%head, %row, %j] : memref<?x?x?xf32>
          %scaled = arith.mulf %raw, %scale : f32
          %away = arith.subi %row, %j : index
          %awayi = arith.index_cast %away : index to i32
          %awayf = arith.sitofp %awayi : i32 to f32
          %bias = arith.mulf %slope, %awayf : f32
          %v = arith.subf %scaled, %bias : f32
          %d = arith.subf %v, %all#1 : f32
          %e = math.exp %d : f32
          %w = arith.mulf %e, %inverse : f32
          scf.yield %w : f32
        } else {
          scf.yield %zero : f32
        }
        memref.store %r, %y[%head, %row, %j] : memref<?x?x?xf32>
      }
    }
    gpu.return
  }
}
