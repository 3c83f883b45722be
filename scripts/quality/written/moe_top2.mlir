// block 128
// sizes tokens = logits 0; experts = logits 1
gpu.module @moe_top2 {
  gpu.func @moe_top2(%logits: memref<?x?xf32>, %expert: memref<?x2xi32>, %weight: memref<?x2xf32>) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1.0 : f32
    %low = arith.constant 0xFF800000 : f32
    %none = arith.constant -1 : i32
    %tokens = memref.dim %logits, %c0 : memref<?x?xf32>
    %experts = memref.dim %logits, %c1 : memref<?x?xf32>
    %bx = gpu.block_id x
    %wx = gpu.block_dim x
    %tx = gpu.thread_id x
    %base = arith.muli %bx, %wx : index
    %t = arith.addi %base, %tx : index
    %in = arith.cmpi slt, %t, %tokens : index
    scf.if %in {
      %best:4 = scf.for %e = %c0 to %experts step %c1 iter_args(%v1 = %low, %e1 = %none, %v2 = %low, %e2 = %none) -> (f32, i32, f32, i32) {
        %v = memref.load %logits[%t, %e] : memref<?x?xf32>
        %id = arith.index_cast %e : index to i32
        %above = arith.cmpf ogt, %v, %v1 : f32
        %next:4 = scf.if %above -> (f32, i32, f32, i32) {
          scf.yield %v, %id, %v1, %e1 : f32, i32, f32, i32
        } else {
          %second = arith.cmpf ogt, %v, %v2 : f32
          %n:2 = scf.if %second -> (f32, i32) {
            scf.yield %v, %id : f32, i32
          } else {
            scf.yield %v2, %e2 : f32, i32
          }
          scf.yield %v1, %e1, %n#0, %n#1 : f32, i32, f32, i32
        }
        scf.yield %next#0, %next#1, %next#2, %next#3 : f32, i32, f32, i32
      }
      %d = arith.subf %best#2, %best#0 : f32
      %x = math.exp %d : f32
      %s = arith.addf %x, %one : f32
      %w1 = arith.divf %one, %s : f32
      %w2 = arith.divf %x, %s : f32
      memref.store %best#1, %expert[%t, %c0] : memref<?x2xi32>
      memref.store %best#3, %expert[%t, %c1] : memref<?x2xi32>
      memref.store %w1, %weight[%t, %c0] : memref<?x2xf32>
      memref.store %w2, %weight[%t, %c1] : memref<?x2xf32>
    }
    gpu.return
  }
}
