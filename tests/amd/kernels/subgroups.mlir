// gpu.shuffle in its four modes and what is built of it. A lane whose source does not exist stores -1.

gpu.module @subgroups {
  gpu.func @shuffle_xor(%x: memref<?xf32>, %y: memref<?xf32>, %offset: i32, %width: i32) kernel {
    %t = gpu.thread_id x
    %none = arith.constant -1.0 : f32
    %v = memref.load %x[%t] : memref<?xf32>
    %r, %valid = gpu.shuffle xor %v, %offset, %width : f32
    %s = arith.select %valid, %r, %none : f32
    memref.store %s, %y[%t] : memref<?xf32>
    gpu.return
  }

  gpu.func @shuffle_up(%x: memref<?xf32>, %y: memref<?xf32>, %offset: i32, %width: i32) kernel {
    %t = gpu.thread_id x
    %none = arith.constant -1.0 : f32
    %v = memref.load %x[%t] : memref<?xf32>
    %r, %valid = gpu.shuffle up %v, %offset, %width : f32
    %s = arith.select %valid, %r, %none : f32
    memref.store %s, %y[%t] : memref<?xf32>
    gpu.return
  }

  gpu.func @shuffle_down(%x: memref<?xf32>, %y: memref<?xf32>, %offset: i32, %width: i32) kernel {
    %t = gpu.thread_id x
    %none = arith.constant -1.0 : f32
    %v = memref.load %x[%t] : memref<?xf32>
    %r, %valid = gpu.shuffle down %v, %offset, %width : f32
    %s = arith.select %valid, %r, %none : f32
    memref.store %s, %y[%t] : memref<?xf32>
    gpu.return
  }

  gpu.func @shuffle_idx(%x: memref<?xf32>, %y: memref<?xf32>, %offset: i32, %width: i32) kernel {
    %t = gpu.thread_id x
    %none = arith.constant -1.0 : f32
    %v = memref.load %x[%t] : memref<?xf32>
    %r, %valid = gpu.shuffle idx %v, %offset, %width : f32
    %s = arith.select %valid, %r, %none : f32
    memref.store %s, %y[%t] : memref<?xf32>
    gpu.return
  }

  // Inclusive sums of the first `width` lanes of a subgroup.
  gpu.func @scan(%x: memref<?xf32>, %y: memref<?xf32>, %width: i32) kernel {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xf32>
    %one = arith.constant 1 : i32
    %sum, %last = scf.while (%acc = %v, %offset = %one) : (f32, i32) -> (f32, i32) {
      %more = arith.cmpi ult, %offset, %width : i32
      scf.condition(%more) %acc, %offset : f32, i32
    } do {
    ^bb0(%acc: f32, %offset: i32):
      %r, %valid = gpu.shuffle up %acc, %offset, %width : f32
      %added = arith.addf %acc, %r : f32
      %next = arith.select %valid, %added, %acc : f32
      %twice = arith.addi %offset, %offset : i32
      scf.yield %next, %twice : f32, i32
    }
    memref.store %sum, %y[%t] : memref<?xf32>
    gpu.return
  }

  // Sums of the first 32 lanes of a subgroup by exchanges with ever nearer lanes.
  gpu.func @butterfly(%x: memref<?xi32>, %y: memref<?xi32>) kernel {
    %t = gpu.thread_id x
    %width = arith.constant 32 : i32
    %v = memref.load %x[%t] : memref<?xi32>
    %o16 = arith.constant 16 : i32
    %o8 = arith.constant 8 : i32
    %o4 = arith.constant 4 : i32
    %o2 = arith.constant 2 : i32
    %o1 = arith.constant 1 : i32
    %r16, %p16 = gpu.shuffle xor %v, %o16, %width : i32
    %v16 = arith.addi %v, %r16 : i32
    %r8, %p8 = gpu.shuffle xor %v16, %o8, %width : i32
    %v8 = arith.addi %v16, %r8 : i32
    %r4, %p4 = gpu.shuffle xor %v8, %o4, %width : i32
    %v4 = arith.addi %v8, %r4 : i32
    %r2, %p2 = gpu.shuffle xor %v4, %o2, %width : i32
    %v2 = arith.addi %v4, %r2 : i32
    %r1, %p1 = gpu.shuffle xor %v2, %o1, %width : i32
    %v1 = arith.addi %v2, %r1 : i32
    memref.store %v1, %y[%t] : memref<?xi32>
    gpu.return
  }

  // Four reductions of a block of eight subgroups of 32, one after the other.
  gpu.func @reduce_block(%x: memref<?xi32>, %y: memref<?x4xi32>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %v = memref.load %x[%t] : memref<?xi32>
    %sum = gpu.all_reduce add %v uniform {} : (i32) -> i32
    %low = gpu.all_reduce minsi %v uniform {} : (i32) -> i32
    %high = gpu.all_reduce maxui %v uniform {} : (i32) -> i32
    %xor = gpu.all_reduce xor %v uniform {} : (i32) -> i32
    memref.store %sum, %y[%t, %c0] : memref<?x4xi32>
    memref.store %low, %y[%t, %c1] : memref<?x4xi32>
    memref.store %high, %y[%t, %c2] : memref<?x4xi32>
    memref.store %xor, %y[%t, %c3] : memref<?x4xi32>
    gpu.return
  }

  // The same for three subgroups: no power of two.
  gpu.func @reduce_block_3(%x: memref<?xi32>, %y: memref<?x4xi32>) kernel
      attributes {known_block_size = array<i32: 96, 1, 1>} {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %v = memref.load %x[%t] : memref<?xi32>
    %sum = gpu.all_reduce add %v uniform {} : (i32) -> i32
    %low = gpu.all_reduce minsi %v uniform {} : (i32) -> i32
    %high = gpu.all_reduce maxui %v uniform {} : (i32) -> i32
    %xor = gpu.all_reduce xor %v uniform {} : (i32) -> i32
    memref.store %sum, %y[%t, %c0] : memref<?x4xi32>
    memref.store %low, %y[%t, %c1] : memref<?x4xi32>
    memref.store %high, %y[%t, %c2] : memref<?x4xi32>
    memref.store %xor, %y[%t, %c3] : memref<?x4xi32>
    gpu.return
  }

  // A block of any size and shape: words of 32 and of 64 bits, and a region with two ends.
  gpu.func @reduce_any(%x: memref<?xi32>, %y: memref<?x3xi64>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %tz = gpu.thread_id z
    %dx = gpu.block_dim x
    %dy = gpu.block_dim y
    %planes = arith.muli %tz, %dy : index
    %row = arith.addi %planes, %ty : index
    %rows = arith.muli %row, %dx : index
    %t = arith.addi %rows, %tx : index
    %v = memref.load %x[%t] : memref<?xi32>
    %f = arith.sitofp %v : i32 to f32
    %w = arith.extsi %v : i32 to i64
    %sum = gpu.all_reduce add %f uniform {} : (f32) -> f32
    %high = gpu.all_reduce maxsi %w uniform {} : (i64) -> i64
    %odds = gpu.all_reduce %v uniform {
    ^bb0(%a: i32, %b: i32):
      %less = arith.cmpi slt, %a, %b : i32
      cf.cond_br %less, ^forward, ^backward
    ^forward:
      %ab = arith.addi %a, %b : i32
      gpu.yield %ab : i32
    ^backward:
      %ba = arith.addi %b, %a : i32
      gpu.yield %ba : i32
    } : (i32) -> i32
    %whole = arith.fptosi %sum : f32 to i64
    %wide = arith.extsi %odds : i32 to i64
    memref.store %whole, %y[%t, %c0] : memref<?x3xi64>
    memref.store %high, %y[%t, %c1] : memref<?x3xi64>
    memref.store %wide, %y[%t, %c2] : memref<?x3xi64>
    gpu.return
  }

  gpu.func @reduce_subgroup(%x: memref<?xf32>, %y: memref<?xf32>) kernel {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xf32>
    %r = gpu.subgroup_reduce add %v cluster(size = 8) : (f32) -> f32
    memref.store %r, %y[%t] : memref<?xf32>
    gpu.return
  }
}
