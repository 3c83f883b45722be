// Five kernels of one module, as a front end would write them. SEED makes one module differ from another.
// five.cu is the same in CUDA C++ and HIP.

gpu.module @module_SEED {
  gpu.func @saxpy_SEED(%a: f32, %x: memref<?xf32>, %y: memref<?xf32>, %n: index) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %seed = arith.constant SEED.0 : f32
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %d = gpu.block_dim x
    %first = arith.muli %b, %d : index
    %i = arith.addi %first, %t : index
    %inside = arith.cmpi ult, %i, %n : index
    scf.if %inside {
      %xi = memref.load %x[%i] : memref<?xf32>
      %yi = memref.load %y[%i] : memref<?xf32>
      %ys = arith.addf %yi, %seed : f32
      %r = math.fma %a, %xi, %ys : f32
      memref.store %r, %y[%i] : memref<?xf32>
    }
    gpu.return
  }

  gpu.func @gelu_SEED(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %seed = arith.constant SEED.0 : f32
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %inv_sqrt2 = arith.constant 0.707106781 : f32
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %d = gpu.block_dim x
    %g = gpu.grid_dim x
    %base = arith.muli %b, %d : index
    %first = arith.addi %base, %t : index
    %stride = arith.muli %d, %g : index
    scf.for %i = %first to %n step %stride {
      %v = memref.load %x[%i] : memref<?xf32>
      %vs = arith.addf %v, %seed : f32
      %scaled = arith.mulf %vs, %inv_sqrt2 : f32
      %erf = math.erf %scaled : f32
      %sum = arith.addf %erf, %one : f32
      %half_v = arith.mulf %v, %half : f32
      %r = arith.mulf %half_v, %sum : f32
      memref.store %r, %y[%i] : memref<?xf32>
    }
    gpu.return
  }

  gpu.func @softmax_SEED(%x: memref<?x?xf32>, %y: memref<?x?xf32>, %cols: index)
      workgroup(%part: memref<256xf32, #gpu.address_space<workgroup>>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %seed = arith.constant SEED.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant 0.0 : f32
    %minus_inf = arith.constant 0xFF800000 : f32
    %row = gpu.block_id x
    %t = gpu.thread_id x
    %d = gpu.block_dim x
    %thread_max = scf.for %j = %t to %cols step %d iter_args(%acc = %minus_inf) -> (f32) {
      %v = memref.load %x[%row, %j] : memref<?x?xf32>
      %m = arith.maximumf %acc, %v : f32
      scf.yield %m : f32
    }
    memref.store %thread_max, %part[%t] : memref<256xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    scf.for %k = %c0 to %c8 step %c1 {
      %half = arith.shrui %c128, %k : index
      %active = arith.cmpi ult, %t, %half : index
      scf.if %active {
        %other = arith.addi %t, %half : index
        %p = memref.load %part[%t] : memref<256xf32, #gpu.address_space<workgroup>>
        %q = memref.load %part[%other] : memref<256xf32, #gpu.address_space<workgroup>>
        %m = arith.maximumf %p, %q : f32
        memref.store %m, %part[%t] : memref<256xf32, #gpu.address_space<workgroup>>
      }
      gpu.barrier
    }
    %max = memref.load %part[%c0] : memref<256xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %thread_sum = scf.for %j = %t to %cols step %d iter_args(%acc = %zero) -> (f32) {
      %v = memref.load %x[%row, %j] : memref<?x?xf32>
      %shifted = arith.subf %v, %max : f32
      %e = math.exp %shifted : f32
      memref.store %e, %y[%row, %j] : memref<?x?xf32>
      %s = arith.addf %acc, %e : f32
      scf.yield %s : f32
    }
    memref.store %thread_sum, %part[%t] : memref<256xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    scf.for %k = %c0 to %c8 step %c1 {
      %half = arith.shrui %c128, %k : index
      %active = arith.cmpi ult, %t, %half : index
      scf.if %active {
        %other = arith.addi %t, %half : index
        %p = memref.load %part[%t] : memref<256xf32, #gpu.address_space<workgroup>>
        %q = memref.load %part[%other] : memref<256xf32, #gpu.address_space<workgroup>>
        %s = arith.addf %p, %q : f32
        memref.store %s, %part[%t] : memref<256xf32, #gpu.address_space<workgroup>>
      }
      gpu.barrier
    }
    %sum = memref.load %part[%c0] : memref<256xf32, #gpu.address_space<workgroup>>
    %biased = arith.addf %sum, %seed : f32
    scf.for %j = %t to %cols step %d {
      %e = memref.load %y[%row, %j] : memref<?x?xf32>
      %r = arith.divf %e, %biased : f32
      memref.store %r, %y[%row, %j] : memref<?x?xf32>
    }
    gpu.return
  }

  gpu.func @transpose_SEED(%in: memref<?x?xf32>, %out: memref<?x?xf32>, %rows: index, %cols: index)
      workgroup(%tile: memref<32x33xf32, #gpu.address_space<workgroup>>) kernel
      attributes {known_block_size = array<i32: 32, 8, 1>} {
    %seed = arith.constant SEED.0 : f32
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %row0 = arith.muli %by, %c32 : index
    %col0 = arith.muli %bx, %c32 : index
    %in_col = arith.addi %col0, %tx : index
    %in_col_ok = arith.cmpi ult, %in_col, %cols : index
    scf.for %k = %ty to %c32 step %c8 {
      %in_row = arith.addi %row0, %k : index
      %in_row_ok = arith.cmpi ult, %in_row, %rows : index
      %ok = arith.andi %in_row_ok, %in_col_ok : i1
      scf.if %ok {
        %v = memref.load %in[%in_row, %in_col] : memref<?x?xf32>
        %s = arith.addf %v, %seed : f32
        memref.store %s, %tile[%k, %tx] : memref<32x33xf32, #gpu.address_space<workgroup>>
      }
    }
    gpu.barrier
    %out_col = arith.addi %row0, %tx : index
    %out_col_ok = arith.cmpi ult, %out_col, %rows : index
    scf.for %k = %ty to %c32 step %c8 {
      %out_row = arith.addi %col0, %k : index
      %out_row_ok = arith.cmpi ult, %out_row, %cols : index
      %ok = arith.andi %out_row_ok, %out_col_ok : i1
      scf.if %ok {
        %v = memref.load %tile[%tx, %k] : memref<32x33xf32, #gpu.address_space<workgroup>>
        memref.store %v, %out[%out_row, %out_col] : memref<?x?xf32>
      }
    }
    gpu.return
  }

  gpu.func @matmul_SEED(%A: memref<?x?xf32>, %B: memref<?x?xf32>, %C: memref<?x?xf32>, %M: index, %N: index, %K: index)
      workgroup(%As: memref<16x16xf32, #gpu.address_space<workgroup>>,
                %Bs: memref<16x16xf32, #gpu.address_space<workgroup>>) kernel
      attributes {known_block_size = array<i32: 16, 16, 1>} {
    %seed = arith.constant SEED.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %zero = arith.constant 0.0 : f32
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %row0 = arith.muli %by, %c16 : index
    %col0 = arith.muli %bx, %c16 : index
    %row = arith.addi %row0, %ty : index
    %col = arith.addi %col0, %tx : index
    %row_ok = arith.cmpi ult, %row, %M : index
    %col_ok = arith.cmpi ult, %col, %N : index
    %sum = scf.for %k0 = %c0 to %K step %c16 iter_args(%acc = %seed) -> (f32) {
      %a_col = arith.addi %k0, %tx : index
      %a_col_ok = arith.cmpi ult, %a_col, %K : index
      %a_ok = arith.andi %row_ok, %a_col_ok : i1
      %a = scf.if %a_ok -> (f32) {
        %v = memref.load %A[%row, %a_col] : memref<?x?xf32>
        scf.yield %v : f32
      } else {
        scf.yield %zero : f32
      }
      memref.store %a, %As[%ty, %tx] : memref<16x16xf32, #gpu.address_space<workgroup>>
      %b_row = arith.addi %k0, %ty : index
      %b_row_ok = arith.cmpi ult, %b_row, %K : index
      %b_ok = arith.andi %b_row_ok, %col_ok : i1
      %b = scf.if %b_ok -> (f32) {
        %v = memref.load %B[%b_row, %col] : memref<?x?xf32>
        scf.yield %v : f32
      } else {
        scf.yield %zero : f32
      }
      memref.store %b, %Bs[%ty, %tx] : memref<16x16xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %next = scf.for %k = %c0 to %c16 step %c1 iter_args(%s = %acc) -> (f32) {
        %p = memref.load %As[%ty, %k] : memref<16x16xf32, #gpu.address_space<workgroup>>
        %q = memref.load %Bs[%k, %tx] : memref<16x16xf32, #gpu.address_space<workgroup>>
        %f = math.fma %p, %q, %s : f32
        scf.yield %f : f32
      }
      gpu.barrier
      scf.yield %next : f32
    }
    %ok = arith.andi %row_ok, %col_ok : i1
    scf.if %ok {
      memref.store %sum, %C[%row, %col] : memref<?x?xf32>
    }
    gpu.return
  }
}
