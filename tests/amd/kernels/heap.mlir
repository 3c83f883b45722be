// Memory that kernels allocate: blocks of slabs, and blocks that the host gives, freed and allocated again.

gpu.module @heap {
  // Rows of several lengths, each allocated, filled, summed and freed twice, beside a block that is too large for a slab.
  gpu.func @rows(%x: memref<?xi32>, %y: memref<?xi32>) kernel {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %five = arith.constant 5 : index
    %none = arith.constant 0 : i32
    %block = gpu.block_id x
    %threads = gpu.block_dim x
    %thread = gpu.thread_id x
    %first = arith.muli %block, %threads : index
    %i = arith.addi %first, %thread : index
    %size = memref.dim %x, %zero : memref<?xi32>
    %inside = arith.cmpi ult, %i, %size : index
    scf.if %inside {
      %value = memref.load %x[%i] : memref<?xi32>
      %rest = arith.remui %i, %five : index
      %length = arith.addi %rest, %one : index
      %large = memref.alloc(%i) : memref<?x1024xi32>
      %total = scf.for %round = %zero to %two step %one iter_args(%before = %none) -> (i32) {
        %row = memref.alloc(%length) : memref<?xi32>
        scf.for %j = %zero to %length step %one {
          %more = arith.index_cast %j : index to i32
          %sum = arith.addi %value, %more : i32
          memref.store %sum, %row[%j] : memref<?xi32>
        }
        %after = scf.for %j = %zero to %length step %one iter_args(%part = %before) -> (i32) {
          %element = memref.load %row[%j] : memref<?xi32>
          %sum = arith.addi %part, %element : i32
          scf.yield %sum : i32
        }
        memref.dealloc %row : memref<?xi32>
        scf.yield %after : i32
      }
      %some = arith.cmpi ne, %i, %zero : index
      scf.if %some {
        memref.store %total, %large[%zero, %length] : memref<?x1024xi32>
        %kept = memref.load %large[%zero, %length] : memref<?x1024xi32>
        memref.store %kept, %y[%i] : memref<?xi32>
      } else {
        memref.store %total, %y[%i] : memref<?xi32>
      }
      memref.dealloc %large : memref<?x1024xi32>
    }
    gpu.return
  }

  // More blocks than a slab has, never two of a thread at a time.
  llvm.func @malloc(i64) -> !llvm.ptr
  llvm.func @free(!llvm.ptr)
  gpu.func @again(%x: memref<?xi32>, %y: memref<?xi32>) kernel {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %rounds = arith.constant 40 : index
    %none = arith.constant 0 : i32
    %bytes = arith.constant 3000 : i64
    %thread = gpu.thread_id x
    %value = memref.load %x[%thread] : memref<?xi32>
    %total = scf.for %round = %zero to %rounds step %one iter_args(%before = %none) -> (i32) {
      %memory = llvm.call @malloc(%bytes) : (i64) -> !llvm.ptr
      llvm.store volatile %value, %memory : i32, !llvm.ptr
      %element = llvm.load volatile %memory : !llvm.ptr -> i32
      llvm.call @free(%memory) : (!llvm.ptr) -> ()
      %sum = arith.addi %before, %element : i32
      scf.yield %sum : i32
    }
    memref.store %total, %y[%thread] : memref<?xi32>
    gpu.return
  }
}
