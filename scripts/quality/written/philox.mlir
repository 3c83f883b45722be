// block 256
// sizes n = out 0
gpu.module @philox {
  gpu.func @philox(%out: memref<?x4xf32>, %seed: i32, %stream: i32) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %i10 = arith.constant 10 : i32
    %m0 = arith.constant 0xD2511F53 : i32
    %m1 = arith.constant 0xCD9E8D57 : i32
    %w0 = arith.constant 0x9E3779B9 : i32
    %w1 = arith.constant 0xBB67AE85 : i32
    %unit = arith.constant 5.9604644775390625e-08 : f32
    %n = memref.dim %out, %c0 : memref<?x4xf32>
    %bx = gpu.block_id x
    %wx = gpu.block_dim x
    %tx = gpu.thread_id x
    %base = arith.muli %bx, %wx : index
    %i = arith.addi %base, %tx : index
    %in = arith.cmpi slt, %i, %n : index
    scf.if %in {
      %id = arith.index_cast %i : index to i32
      %r:6 = scf.for %round = %i0 to %i10 step %i1 iter_args(%x0 = %id, %x1 = %i0, %x2 = %i0, %x3 = %i0, %k0 = %seed, %k1 = %stream)
          -> (i32, i32, i32, i32, i32, i32) : i32 {
        %lo0, %hi0 = arith.mului_extended %x0, %m0 : i32
        %lo1, %hi1 = arith.mului_extended %x2, %m1 : i32
        %a = arith.xori %hi1, %x1 : i32
        %y0 = arith.xori %a, %k0 : i32
        %b = arith.xori %hi0, %x3 : i32
        %y2 = arith.xori %b, %k1 : i32
        %k0n = arith.addi %k0, %w0 : i32
        %k1n = arith.addi %k1, %w1 : i32
        scf.yield %y0, %lo1, %y2, %lo0, %k0n, %k1n : i32, i32, i32, i32, i32, i32
      }
      %s0 = arith.shrui %r#0, %i8 : i32
      %s1 = arith.shrui %r#1, %i8 : i32
      %s2 = arith.shrui %r#2, %i8 : i32
      %s3 = arith.shrui %r#3, %i8 : i32
      %f0 = arith.uitofp %s0 : i32 to f32
      %f1 = arith.uitofp %s1 : i32 to f32
      %f2 = arith.uitofp %s2 : i32 to f32
      %f3 = arith.uitofp %s3 : i32 to f32
      %u0 = arith.mulf %f0, %unit : f32
      %u1 = arith.mulf %f1, %unit : f32
      %u2 = arith.mulf %f2, %unit : f32
      %u3 = arith.mulf %f3, %unit : f32
      memref.store %u0, %out[%i, %c0] : memref<?x4xf32>
      memref.store %u1, %out[%i, %c1] : memref<?x4xf32>
      memref.store %u2, %out[%i, %c2] : memref<?x4xf32>
      memref.store %u3, %out[%i, %c3] : memref<?x4xf32>
    }
    gpu.return
  }
}
