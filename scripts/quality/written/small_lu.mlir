// block 64
// sizes n = a 0
gpu.module @small_lu {
  gpu.func @small_lu(%a: memref<?x6x6xf32>, %b: memref<?x6xf32>, %x: memref<?x6xf32>) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    %c6 = arith.constant 6 : index
    %one = arith.constant 1.0 : f32
    %n = memref.dim %a, %c0 : memref<?x6x6xf32>
    %bx = gpu.block_id x
    %wx = gpu.block_dim x
    %tx = gpu.thread_id x
    %base = arith.muli %bx, %wx : index
    %t = arith.addi %base, %tx : index
    %in = arith.cmpi slt, %t, %n : index
    scf.if %in {
      %m = memref.alloca() : memref<6x6xf32>
      %v = memref.alloca() : memref<6xf32>
      scf.for %i = %c0 to %c6 step %c1 {
        scf.for %j = %c0 to %c6 step %c1 {
          %l = memref.load %a[%t, %i, %j] : memref<?x6x6xf32>
          memref.store %l, %m[%i, %j] : memref<6x6xf32>
        }
        %l = memref.load %b[%t, %i] : memref<?x6xf32>
        memref.store %l, %v[%i] : memref<6xf32>
      }
      scf.for %k = %c0 to %c6 step %c1 {
        %pivot = memref.load %m[%k, %k] : memref<6x6xf32>
        %inverse = arith.divf %one, %pivot : f32
        %k1 = arith.addi %k, %c1 : index
        scf.for %i = %k1 to %c6 step %c1 {
          %e = memref.load %m[%i, %k] : memref<6x6xf32>
          %f = arith.mulf %e, %inverse : f32
          scf.for %j = %k1 to %c6 step %c1 {
            %u = memref.load %m[%k, %j] : memref<6x6xf32>
            %w = memref.load %m[%i, %j] : memref<6x6xf32>
            %p = arith.mulf %f, %u : f32
            %d = arith.subf %w, %p : f32
            memref.store %d, %m[%i, %j] : memref<6x6xf32>
          }
          %vk = memref.load %v[%k] : memref<6xf32>
          %vi = memref.load %v[%i] : memref<6xf32>
          %p = arith.mulf %f, %vk : f32
          %d = arith.subf %vi, %p : f32
          memref.store %d, %v[%i] : memref<6xf32>
        }
      }
      scf.for %r = %c0 to %c6 step %c1 {
        %i = arith.subi %c5, %r : index
        %i1 = arith.addi %i, %c1 : index
        %vi = memref.load %v[%i] : memref<6xf32>
        %s = scf.for %j = %i1 to %c6 step %c1 iter_args(%acc = %vi) -> (f32) {
          %u = memref.load %m[%i, %j] : memref<6x6xf32>
          %vj = memref.load %v[%j] : memref<6xf32>
          %p = arith.mulf %u, %vj : f32
          %d = arith.subf %acc, %p : f32
          scf.yield %d : f32
        }
        %pivot = memref.load %m[%i, %i] : memref<6x6xf32>
        %q = arith.divf %s, %pivot : f32
        memref.store %q, %v[%i] : memref<6xf32>
        memref.store %q, %x[%t, %i] : memref<?x6xf32>
      }
    }
    gpu.return
  }
}
