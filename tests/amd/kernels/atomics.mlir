// Atomic sums of floats: in device memory, in workgroup memory and from there, and with the value before, which is looked at.
// Memory has whole words: LLVM's loops for f16 read and compare those.

gpu.module @atomics {
  gpu.func @sums_f32(%x: memref<?xf32>, %y: memref<4xf32>) workgroup(%w: memref<2xf32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %block = gpu.block_id x
    %size = gpu.block_dim x
    %thread = gpu.thread_id x
    %first = arith.muli %block, %size : index
    %i = arith.addi %first, %thread : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    %inside = arith.cmpi ult, %i, %n : index
    %leads = arith.cmpi eq, %thread, %c0 : index
    scf.if %leads {
      memref.store %zero, %w[%c0] : memref<2xf32, #gpu.address_space<workgroup>>
      memref.store %zero, %w[%c1] : memref<2xf32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    scf.if %inside {
      %v = memref.load %x[%i] : memref<?xf32>
      %0 = memref.atomic_rmw addf %v, %y[%c0] : (f32, memref<4xf32>) -> f32
      %1 = memref.atomic_rmw addf %v, %w[%c0] : (f32, memref<2xf32, #gpu.address_space<workgroup>>) -> f32
      // Nothing, unless a value before is none of those that there can be.
      %2 = memref.atomic_rmw addf %one, %y[%c2] : (f32, memref<4xf32>) -> f32
      %most = arith.constant 304.0 : f32
      %wrong = arith.cmpf uge, %2, %most : f32
      scf.if %wrong {
        memref.store %2, %y[%c0] : memref<4xf32>
      }
    }
    gpu.barrier
    scf.if %leads {
      %sum = memref.load %w[%c0] : memref<2xf32, #gpu.address_space<workgroup>>
      %3 = memref.atomic_rmw addf %sum, %y[%c1] : (f32, memref<4xf32>) -> f32
    }
    gpu.return
  }

  gpu.func @sums_f64(%x: memref<?xf64>, %y: memref<4xf64>) workgroup(%w: memref<2xf64, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant 0.0 : f64
    %one = arith.constant 1.0 : f64
    %block = gpu.block_id x
    %size = gpu.block_dim x
    %thread = gpu.thread_id x
    %first = arith.muli %block, %size : index
    %i = arith.addi %first, %thread : index
    %n = memref.dim %x, %c0 : memref<?xf64>
    %inside = arith.cmpi ult, %i, %n : index
    %leads = arith.cmpi eq, %thread, %c0 : index
    scf.if %leads {
      memref.store %zero, %w[%c0] : memref<2xf64, #gpu.address_space<workgroup>>
      memref.store %zero, %w[%c1] : memref<2xf64, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    scf.if %inside {
      %v = memref.load %x[%i] : memref<?xf64>
      %0 = memref.atomic_rmw addf %v, %y[%c0] : (f64, memref<4xf64>) -> f64
      %1 = memref.atomic_rmw addf %v, %w[%c0] : (f64, memref<2xf64, #gpu.address_space<workgroup>>) -> f64
      // Nothing, unless a value before is none of those that there can be.
      %2 = memref.atomic_rmw addf %one, %y[%c2] : (f64, memref<4xf64>) -> f64
      %most = arith.constant 304.0 : f64
      %wrong = arith.cmpf uge, %2, %most : f64
      scf.if %wrong {
        memref.store %2, %y[%c0] : memref<4xf64>
      }
    }
    gpu.barrier
    scf.if %leads {
      %sum = memref.load %w[%c0] : memref<2xf64, #gpu.address_space<workgroup>>
      %3 = memref.atomic_rmw addf %sum, %y[%c1] : (f64, memref<4xf64>) -> f64
    }
    gpu.return
  }

  gpu.func @sums_f16(%x: memref<?xf16>, %y: memref<4xf16>) workgroup(%w: memref<2xf16, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant 0.0 : f16
    %one = arith.constant 1.0 : f16
    %block = gpu.block_id x
    %size = gpu.block_dim x
    %thread = gpu.thread_id x
    %first = arith.muli %block, %size : index
    %i = arith.addi %first, %thread : index
    %n = memref.dim %x, %c0 : memref<?xf16>
    %inside = arith.cmpi ult, %i, %n : index
    %leads = arith.cmpi eq, %thread, %c0 : index
    scf.if %leads {
      memref.store %zero, %w[%c0] : memref<2xf16, #gpu.address_space<workgroup>>
      memref.store %zero, %w[%c1] : memref<2xf16, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    scf.if %inside {
      %v = memref.load %x[%i] : memref<?xf16>
      %0 = memref.atomic_rmw addf %v, %y[%c0] : (f16, memref<4xf16>) -> f16
      %1 = memref.atomic_rmw addf %v, %w[%c0] : (f16, memref<2xf16, #gpu.address_space<workgroup>>) -> f16
      // Nothing, unless a value before is none of those that there can be.
      %2 = memref.atomic_rmw addf %one, %y[%c2] : (f16, memref<4xf16>) -> f16
      %most = arith.constant 304.0 : f16
      %wrong = arith.cmpf uge, %2, %most : f16
      scf.if %wrong {
        memref.store %2, %y[%c0] : memref<4xf16>
      }
    }
    gpu.barrier
    scf.if %leads {
      %sum = memref.load %w[%c0] : memref<2xf16, #gpu.address_space<workgroup>>
      %3 = memref.atomic_rmw addf %sum, %y[%c1] : (f16, memref<4xf16>) -> f16
    }
    gpu.return
  }
}
