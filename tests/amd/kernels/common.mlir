// Kernels of the common kinds, not written for the executor: stencils, reductions, convolution, sparse products, sorting out.

gpu.module @common {
  memref.global "private" @tile : memref<128xf32, #gpu.address_space<workgroup>>

  // y = the mean of the four neighbours, at the edges x itself.
  gpu.func @stencil(%x: memref<?x?xf32>, %y: memref<?x?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %quarter = arith.constant 0.25 : f32
    %rows = memref.dim %x, %c0 : memref<?x?xf32>
    %cols = memref.dim %x, %c1 : memref<?x?xf32>
    %i = gpu.global_id y
    %j = gpu.global_id x
    %in_i = arith.cmpi ult, %i, %rows : index
    %in_j = arith.cmpi ult, %j, %cols : index
    %inside = arith.andi %in_i, %in_j : i1
    scf.if %inside {
      %last_i = arith.subi %rows, %c1 : index
      %last_j = arith.subi %cols, %c1 : index
      %e0 = arith.cmpi eq, %i, %c0 : index
      %e1 = arith.cmpi eq, %j, %c0 : index
      %e2 = arith.cmpi eq, %i, %last_i : index
      %e3 = arith.cmpi eq, %j, %last_j : index
      %e01 = arith.ori %e0, %e1 : i1
      %e23 = arith.ori %e2, %e3 : i1
      %edge = arith.ori %e01, %e23 : i1
      %r = scf.if %edge -> (f32) {
        %v = memref.load %x[%i, %j] : memref<?x?xf32>
        scf.yield %v : f32
      } else {
        %im = arith.subi %i, %c1 : index
        %ip = arith.addi %i, %c1 : index
        %jm = arith.subi %j, %c1 : index
        %jp = arith.addi %j, %c1 : index
        %a = memref.load %x[%im, %j] : memref<?x?xf32>
        %b = memref.load %x[%ip, %j] : memref<?x?xf32>
        %c = memref.load %x[%i, %jm] : memref<?x?xf32>
        %d = memref.load %x[%i, %jp] : memref<?x?xf32>
        %ab = arith.addf %a, %b : f32
        %cd = arith.addf %c, %d : f32
        %sum = arith.addf %ab, %cd : f32
        %m = arith.mulf %sum, %quarter : f32
        scf.yield %m : f32
      }
      memref.store %r, %y[%i, %j] : memref<?x?xf32>
    }
    gpu.return
  }

  // Sums of 128 elements in workgroup memory, halving the number of threads at work.
  gpu.func @block_sum(%x: memref<?xf32>, %y: memref<?xf32>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %tile = memref.get_global @tile : memref<128xf32, #gpu.address_space<workgroup>>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : memref<?xf32>
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %i = gpu.global_id x
    %inside = arith.cmpi ult, %i, %n : index
    %v = scf.if %inside -> (f32) {
      %l = memref.load %x[%i] : memref<?xf32>
      scf.yield %l : f32
    } else {
      scf.yield %zero : f32
    }
    memref.store %v, %tile[%t] : memref<128xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %end = scf.while (%s = %c64) : (index) -> (index) {
      %more = arith.cmpi ugt, %s, %c0 : index
      scf.condition(%more) %s : index
    } do {
    ^bb0(%s: index):
      %works = arith.cmpi ult, %t, %s : index
      scf.if %works {
        %o = arith.addi %t, %s : index
        %p = memref.load %tile[%t] : memref<128xf32, #gpu.address_space<workgroup>>
        %q = memref.load %tile[%o] : memref<128xf32, #gpu.address_space<workgroup>>
        %r = arith.addf %p, %q : f32
        memref.store %r, %tile[%t] : memref<128xf32, #gpu.address_space<workgroup>>
      }
      gpu.barrier
      %half = arith.divui %s, %c2 : index
      scf.yield %half : index
    }
    %first = arith.cmpi eq, %t, %c0 : index
    scf.if %first {
      %r = memref.load %tile[%c0] : memref<128xf32, #gpu.address_space<workgroup>>
      memref.store %r, %y[%b] : memref<?xf32>
    }
    gpu.return
  }

  // Inclusive sums of 128 elements in workgroup memory (Hillis and Steele), two barriers for each step.
  gpu.func @block_scan(%x: memref<?xf32>, %y: memref<?xf32>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %tile = memref.get_global @tile : memref<128xf32, #gpu.address_space<workgroup>>
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant 0.0 : f32
    %t = gpu.thread_id x
    %i = gpu.global_id x
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %tile[%t] : memref<128xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %r:2 = scf.while (%s = %c1, %acc = %v) : (index, f32) -> (index, f32) {
      %more = arith.cmpi ult, %s, %c128 : index
      scf.condition(%more) %s, %acc : index, f32
    } do {
    ^bb0(%s: index, %acc: f32):
      %has = arith.cmpi uge, %t, %s : index
      %other = scf.if %has -> (f32) {
        %o = arith.subi %t, %s : index
        %l = memref.load %tile[%o] : memref<128xf32, #gpu.address_space<workgroup>>
        scf.yield %l : f32
      } else {
        scf.yield %zero : f32
      }
      %sum = arith.addf %acc, %other : f32
      gpu.barrier
      memref.store %sum, %tile[%t] : memref<128xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %twice = arith.addi %s, %s : index
      scf.yield %twice, %sum : index, f32
    }
    memref.store %r#1, %y[%i] : memref<?xf32>
    gpu.return
  }

  // y[f, p, q] = sum over r, s of x[p + r, q + s] * w[f, r, s], in f16 with f32 sums.
  gpu.func @convolution(%x: memref<?x?xf16>, %w: memref<?x3x3xf16>, %y: memref<?x?x?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %zero = arith.constant 0.0 : f32
    %rows = memref.dim %y, %c1 : memref<?x?x?xf32>
    %cols = memref.dim %y, %c2 : memref<?x?x?xf32>
    %f = gpu.block_id z
    %p = gpu.global_id y
    %q = gpu.global_id x
    %in_p = arith.cmpi ult, %p, %rows : index
    %in_q = arith.cmpi ult, %q, %cols : index
    %inside = arith.andi %in_p, %in_q : i1
    scf.if %inside {
      %sum = scf.for %r = %c0 to %c3 step %c1 iter_args(%a = %zero) -> (f32) {
        %inner = scf.for %s = %c0 to %c3 step %c1 iter_args(%b = %a) -> (f32) {
          %i = arith.addi %p, %r : index
          %j = arith.addi %q, %s : index
          %u = memref.load %x[%i, %j] : memref<?x?xf16>
          %v = memref.load %w[%f, %r, %s] : memref<?x3x3xf16>
          %u32 = arith.extf %u : f16 to f32
          %v32 = arith.extf %v : f16 to f32
          %m = math.fma %u32, %v32, %b : f32
          scf.yield %m : f32
        }
        scf.yield %inner : f32
      }
      memref.store %sum, %y[%f, %p, %q] : memref<?x?x?xf32>
    }
    gpu.return
  }

  // A sparse matrix in compressed rows, by a vector.
  gpu.func @csr(%starts: memref<?xi32>, %columns: memref<?xi32>, %values: memref<?xf64>, %x: memref<?xf64>, %y: memref<?xf64>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f64
    %rows = memref.dim %y, %c0 : memref<?xf64>
    %i = gpu.global_id x
    %inside = arith.cmpi ult, %i, %rows : index
    scf.if %inside {
      %next = arith.addi %i, %c1 : index
      %a32 = memref.load %starts[%i] : memref<?xi32>
      %b32 = memref.load %starts[%next] : memref<?xi32>
      %a = arith.index_cast %a32 : i32 to index
      %b = arith.index_cast %b32 : i32 to index
      %sum = scf.for %k = %a to %b step %c1 iter_args(%s = %zero) -> (f64) {
        %j32 = memref.load %columns[%k] : memref<?xi32>
        %j = arith.index_cast %j32 : i32 to index
        %v = memref.load %values[%k] : memref<?xf64>
        %u = memref.load %x[%j] : memref<?xf64>
        %m = arith.mulf %v, %u : f64
        %t = arith.addf %s, %m : f64
        scf.yield %t : f64
      }
      memref.store %sum, %y[%i] : memref<?xf64>
    }
    gpu.return
  }

  // Accelerations of bodies that attract one another.
  gpu.func @bodies(%position: memref<?x4xf32>, %acceleration: memref<?x3xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %zero = arith.constant 0.0 : f32
    %soft = arith.constant 0.01 : f32
    %n = memref.dim %position, %c0 : memref<?x4xf32>
    %i = gpu.global_id x
    %inside = arith.cmpi ult, %i, %n : index
    scf.if %inside {
      %xi = memref.load %position[%i, %c0] : memref<?x4xf32>
      %yi = memref.load %position[%i, %c1] : memref<?x4xf32>
      %zi = memref.load %position[%i, %c2] : memref<?x4xf32>
      %a:3 = scf.for %j = %c0 to %n step %c1 iter_args(%ax = %zero, %ay = %zero, %az = %zero) -> (f32, f32, f32) {
        %xj = memref.load %position[%j, %c0] : memref<?x4xf32>
        %yj = memref.load %position[%j, %c1] : memref<?x4xf32>
        %zj = memref.load %position[%j, %c2] : memref<?x4xf32>
        %m = memref.load %position[%j, %c3] : memref<?x4xf32>
        %dx = arith.subf %xj, %xi : f32
        %dy = arith.subf %yj, %yi : f32
        %dz = arith.subf %zj, %zi : f32
        %d0 = math.fma %dx, %dx, %soft : f32
        %d1 = math.fma %dy, %dy, %d0 : f32
        %d2 = math.fma %dz, %dz, %d1 : f32
        %inverse = math.rsqrt %d2 : f32
        %square = arith.mulf %inverse, %inverse : f32
        %cube = arith.mulf %square, %inverse : f32
        %force = arith.mulf %m, %cube : f32
        %bx = math.fma %dx, %force, %ax : f32
        %by = math.fma %dy, %force, %ay : f32
        %bz = math.fma %dz, %force, %az : f32
        scf.yield %bx, %by, %bz : f32, f32, f32
      }
      memref.store %a#0, %acceleration[%i, %c0] : memref<?x3xf32>
      memref.store %a#1, %acceleration[%i, %c1] : memref<?x3xf32>
      memref.store %a#2, %acceleration[%i, %c2] : memref<?x3xf32>
    }
    gpu.return
  }

  // The place of the largest element of each row, the first of equals.
  gpu.func @argmax(%x: memref<?x?xf32>, %y: memref<?xi64>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %low = arith.constant 0xFF800000 : f32
    %rows = memref.dim %x, %c0 : memref<?x?xf32>
    %cols = memref.dim %x, %c1 : memref<?x?xf32>
    %i = gpu.global_id x
    %inside = arith.cmpi ult, %i, %rows : index
    scf.if %inside {
      %r:2 = scf.for %j = %c0 to %cols step %c1 iter_args(%best = %low, %at = %c0) -> (f32, index) {
        %v = memref.load %x[%i, %j] : memref<?x?xf32>
        %more = arith.cmpf ogt, %v, %best : f32
        %b = arith.select %more, %v, %best : f32
        %a = arith.select %more, %j, %at : index
        scf.yield %b, %a : f32, index
      }
      %place = arith.index_cast %r#1 : index to i64
      memref.store %place, %y[%i] : memref<?xi64>
    }
    gpu.return
  }

  // One row of attention for each block: softmax(q K') V, keys over the threads, private sums, a reduction for each column.
  gpu.func @attention(%q: memref<?x8xf32>, %k: memref<?x8xf32>, %v: memref<?x8xf32>, %o: memref<?x8xf32>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %low = arith.constant 0xFF800000 : f32
    %scale = arith.constant 0.35355338 : f32
    %keys = memref.dim %k, %c0 : memref<?x8xf32>
    %row = gpu.block_id x
    %t = gpu.thread_id x
    %inside = arith.cmpi ult, %t, %keys : index
    %score = scf.if %inside -> (f32) {
      %dot = scf.for %d = %c0 to %c8 step %c1 iter_args(%s = %zero) -> (f32) {
        %a = memref.load %q[%row, %d] : memref<?x8xf32>
        %b = memref.load %k[%t, %d] : memref<?x8xf32>
        %m = math.fma %a, %b, %s : f32
        scf.yield %m : f32
      }
      %scaled = arith.mulf %dot, %scale : f32
      scf.yield %scaled : f32
    } else {
      scf.yield %low : f32
    }
    %high = gpu.all_reduce maxnumf %score uniform {} : (f32) -> f32
    %shifted = arith.subf %score, %high : f32
    %e = math.exp %shifted : f32
    %total = gpu.all_reduce add %e uniform {} : (f32) -> f32
    %weight = arith.divf %e, %total : f32
    scf.for %d = %c0 to %c8 step %c1 {
      %u = scf.if %inside -> (f32) {
        %l = memref.load %v[%t, %d] : memref<?x8xf32>
        scf.yield %l : f32
      } else {
        scf.yield %zero : f32
      }
      %w = arith.mulf %weight, %u : f32
      %sum = gpu.all_reduce add %w uniform {} : (f32) -> f32
      %first = arith.cmpi eq, %t, %c0 : index
      scf.if %first {
        memref.store %sum, %o[%row, %d] : memref<?x8xf32>
      }
    }
    gpu.return
  }

  // Integers of all widths: divisions, shifts, counts, saturation by comparison.
  gpu.func @integers(%x: memref<?xi64>, %y: memref<?xi64>, %z: memref<?x16xi64>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c6 = arith.constant 6 : index
    %c7 = arith.constant 7 : index
    %c8 = arith.constant 8 : index
    %c9 = arith.constant 9 : index
    %c10 = arith.constant 10 : index
    %c11 = arith.constant 11 : index
    %c12 = arith.constant 12 : index
    %c13 = arith.constant 13 : index
    %c14 = arith.constant 14 : index
    %c15 = arith.constant 15 : index
    %seven = arith.constant 7 : i64
    %i = gpu.global_id x
    %a = memref.load %x[%i] : memref<?xi64>
    %b = memref.load %y[%i] : memref<?xi64>
    %sd = arith.divsi %a, %b : i64
    memref.store %sd, %z[%i, %c0] : memref<?x16xi64>
    %ud = arith.divui %a, %b : i64
    memref.store %ud, %z[%i, %c1] : memref<?x16xi64>
    %sr = arith.remsi %a, %b : i64
    memref.store %sr, %z[%i, %c2] : memref<?x16xi64>
    %mul = arith.muli %a, %b : i64
    memref.store %mul, %z[%i, %c3] : memref<?x16xi64>
    %low, %high = arith.mulsi_extended %a, %b : i64
    memref.store %high, %z[%i, %c4] : memref<?x16xi64>
    %places = arith.andi %b, %seven : i64
    %l = arith.shli %a, %places : i64
    memref.store %l, %z[%i, %c5] : memref<?x16xi64>
    %r = arith.shrsi %a, %places : i64
    memref.store %r, %z[%i, %c6] : memref<?x16xi64>
    %lz = math.ctlz %a : i64
    memref.store %lz, %z[%i, %c7] : memref<?x16xi64>
    %ones = math.ctpop %a : i64
    memref.store %ones, %z[%i, %c8] : memref<?x16xi64>
    %tz = math.cttz %b : i64
    memref.store %tz, %z[%i, %c9] : memref<?x16xi64>
    %a32 = arith.trunci %a : i64 to i32
    %b32 = arith.trunci %b : i64 to i32
    %d32 = arith.divsi %a32, %b32 : i32
    %d32x = arith.extsi %d32 : i32 to i64
    memref.store %d32x, %z[%i, %c10] : memref<?x16xi64>
    %r32 = arith.remui %a32, %b32 : i32
    %r32x = arith.extui %r32 : i32 to i64
    memref.store %r32x, %z[%i, %c11] : memref<?x16xi64>
    %a16 = arith.trunci %a : i64 to i16
    %b16 = arith.trunci %b : i64 to i16
    %m16 = arith.muli %a16, %b16 : i16
    %m16x = arith.extsi %m16 : i16 to i64
    memref.store %m16x, %z[%i, %c12] : memref<?x16xi64>
    %a8 = arith.trunci %a : i64 to i8
    %b8 = arith.trunci %b : i64 to i8
    %s8 = arith.maxsi %a8, %b8 : i8
    %s8x = arith.extsi %s8 : i8 to i64
    memref.store %s8x, %z[%i, %c13] : memref<?x16xi64>
    %f = arith.sitofp %a : i64 to f64
    %g = arith.fptosi %f : f64 to i64
    memref.store %g, %z[%i, %c14] : memref<?x16xi64>
    %h = arith.uitofp %a32 : i32 to f32
    %k = arith.fptoui %h : f32 to i64
    memref.store %k, %z[%i, %c15] : memref<?x16xi64>
    gpu.return
  }

  // Atomics that give back what was there.
  gpu.func @tickets(%counter: memref<1xi32>, %order: memref<?xi32>) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %i = gpu.global_id x
    %ticket = memref.atomic_rmw addi %one, %counter[%c0] : (i32, memref<1xi32>) -> i32
    memref.store %ticket, %order[%i] : memref<?xi32>
    gpu.return
  }

  // A private array with an index that only the data knows.
  gpu.func @private_array(%x: memref<?xi32>, %y: memref<?xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %fifteen = arith.constant 15 : i32
    %i = gpu.global_id x
    %n = memref.dim %x, %c0 : memref<?xi32>
    %a = memref.alloca() : memref<16xi32, #gpu.address_space<private>>
    scf.for %k = %c0 to %c16 step %c1 {
      %at = arith.addi %i, %k : index
      %wrapped = arith.remui %at, %n : index
      %v = memref.load %x[%wrapped] : memref<?xi32>
      memref.store %v, %a[%k] : memref<16xi32, #gpu.address_space<private>>
    }
    %v = memref.load %x[%i] : memref<?xi32>
    %p = arith.andi %v, %fifteen : i32
    %place = arith.index_cast %p : i32 to index
    %r = memref.load %a[%place] : memref<16xi32, #gpu.address_space<private>>
    memref.store %r, %y[%i] : memref<?xi32>
    gpu.return
  }

  // A private array that is too large for registers.
  gpu.func @private_memory(%x: memref<?xi32>, %y: memref<?xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c300 = arith.constant 300 : index
    %fifteen = arith.constant 255 : i32
    %i = gpu.global_id x
    %n = memref.dim %x, %c0 : memref<?xi32>
    %a = memref.alloca() : memref<300xi32, #gpu.address_space<private>>
    scf.for %k = %c0 to %c300 step %c1 {
      %at = arith.addi %i, %k : index
      %wrapped = arith.remui %at, %n : index
      %v = memref.load %x[%wrapped] : memref<?xi32>
      memref.store %v, %a[%k] : memref<300xi32, #gpu.address_space<private>>
    }
    %v = memref.load %x[%i] : memref<?xi32>
    %p = arith.andi %v, %fifteen : i32
    %place = arith.index_cast %p : i32 to index
    %r = memref.load %a[%place] : memref<300xi32, #gpu.address_space<private>>
    memref.store %r, %y[%i] : memref<?xi32>
    gpu.return
  }

  // Denormal numbers: kept, or flushed with --daz.
  gpu.func @denormals(%x: memref<?xf32>, %y: memref<?xf32>) kernel {
    %half = arith.constant 0.5 : f32
    %i = gpu.global_id x
    %v = memref.load %x[%i] : memref<?xf32>
    %m = arith.mulf %v, %half : f32
    memref.store %m, %y[%i] : memref<?xf32>
    gpu.return
  }

  // x[i, at] += x[i, first] + .. in memory, one after the other, which may be in the way itself.
  gpu.func @sums_in_place(%x: memref<?x?xf32>, %at: index, %first: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %rows = memref.dim %x, %c0 : memref<?x?xf32>
    %cols = memref.dim %x, %c1 : memref<?x?xf32>
    %i = gpu.global_id x
    %inside = arith.cmpi ult, %i, %rows : index
    scf.if %inside {
      scf.for %j = %first to %cols step %c1 {
        %v = memref.load %x[%i, %j] : memref<?x?xf32>
        %old = memref.load %x[%i, %at] : memref<?x?xf32>
        %new = arith.addf %old, %v : f32
        memref.store %new, %x[%i, %at] : memref<?x?xf32>
      }
    }
    gpu.return
  }
}
