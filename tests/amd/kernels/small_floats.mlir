// Conversions of 8-bit floats, in the order of FORMATS in checks/small_floats.py: instructions of some chips, integers on others.

gpu.module @small_floats {
  gpu.func @widen_f32(%x: memref<?xi8>, %y: memref<?x7xf32>) kernel {
    %c64 = arith.constant 64 : index
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %first = arith.muli %block, %c64 : index
    %i = arith.addi %first, %thread : index
    %v = memref.load %x[%i] : memref<?xi8>
    %c0 = arith.constant 0 : index
    %s0 = arith.bitcast %v : i8 to f8E4M3FN
    %r0 = arith.extf %s0 : f8E4M3FN to f32
    memref.store %r0, %y[%i, %c0] : memref<?x7xf32>
    %c1 = arith.constant 1 : index
    %s1 = arith.bitcast %v : i8 to f8E5M2
    %r1 = arith.extf %s1 : f8E5M2 to f32
    memref.store %r1, %y[%i, %c1] : memref<?x7xf32>
    %c2 = arith.constant 2 : index
    %s2 = arith.bitcast %v : i8 to f8E4M3FNUZ
    %r2 = arith.extf %s2 : f8E4M3FNUZ to f32
    memref.store %r2, %y[%i, %c2] : memref<?x7xf32>
    %c3 = arith.constant 3 : index
    %s3 = arith.bitcast %v : i8 to f8E5M2FNUZ
    %r3 = arith.extf %s3 : f8E5M2FNUZ to f32
    memref.store %r3, %y[%i, %c3] : memref<?x7xf32>
    %c4 = arith.constant 4 : index
    %s4 = arith.bitcast %v : i8 to f8E4M3
    %r4 = arith.extf %s4 : f8E4M3 to f32
    memref.store %r4, %y[%i, %c4] : memref<?x7xf32>
    %c5 = arith.constant 5 : index
    %s5 = arith.bitcast %v : i8 to f8E3M4
    %r5 = arith.extf %s5 : f8E3M4 to f32
    memref.store %r5, %y[%i, %c5] : memref<?x7xf32>
    %c6 = arith.constant 6 : index
    %s6 = arith.bitcast %v : i8 to f8E4M3B11FNUZ
    %r6 = arith.extf %s6 : f8E4M3B11FNUZ to f32
    memref.store %r6, %y[%i, %c6] : memref<?x7xf32>
    gpu.return
  }

  gpu.func @widen_f16(%x: memref<?xi8>, %y: memref<?x7xf16>) kernel {
    %c64 = arith.constant 64 : index
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %first = arith.muli %block, %c64 : index
    %i = arith.addi %first, %thread : index
    %v = memref.load %x[%i] : memref<?xi8>
    %c0 = arith.constant 0 : index
    %s0 = arith.bitcast %v : i8 to f8E4M3FN
    %r0 = arith.extf %s0 : f8E4M3FN to f16
    memref.store %r0, %y[%i, %c0] : memref<?x7xf16>
    %c1 = arith.constant 1 : index
    %s1 = arith.bitcast %v : i8 to f8E5M2
    %r1 = arith.extf %s1 : f8E5M2 to f16
    memref.store %r1, %y[%i, %c1] : memref<?x7xf16>
    %c2 = arith.constant 2 : index
    %s2 = arith.bitcast %v : i8 to f8E4M3FNUZ
    %r2 = arith.extf %s2 : f8E4M3FNUZ to f16
    memref.store %r2, %y[%i, %c2] : memref<?x7xf16>
    %c3 = arith.constant 3 : index
    %s3 = arith.bitcast %v : i8 to f8E5M2FNUZ
    %r3 = arith.extf %s3 : f8E5M2FNUZ to f16
    memref.store %r3, %y[%i, %c3] : memref<?x7xf16>
    %c4 = arith.constant 4 : index
    %s4 = arith.bitcast %v : i8 to f8E4M3
    %r4 = arith.extf %s4 : f8E4M3 to f16
    memref.store %r4, %y[%i, %c4] : memref<?x7xf16>
    %c5 = arith.constant 5 : index
    %s5 = arith.bitcast %v : i8 to f8E3M4
    %r5 = arith.extf %s5 : f8E3M4 to f16
    memref.store %r5, %y[%i, %c5] : memref<?x7xf16>
    %c6 = arith.constant 6 : index
    %s6 = arith.bitcast %v : i8 to f8E4M3B11FNUZ
    %r6 = arith.extf %s6 : f8E4M3B11FNUZ to f16
    memref.store %r6, %y[%i, %c6] : memref<?x7xf16>
    gpu.return
  }

  gpu.func @widen_f64(%x: memref<?xi8>, %y: memref<?x7xf64>) kernel {
    %c64 = arith.constant 64 : index
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %first = arith.muli %block, %c64 : index
    %i = arith.addi %first, %thread : index
    %v = memref.load %x[%i] : memref<?xi8>
    %c0 = arith.constant 0 : index
    %s0 = arith.bitcast %v : i8 to f8E4M3FN
    %r0 = arith.extf %s0 : f8E4M3FN to f64
    memref.store %r0, %y[%i, %c0] : memref<?x7xf64>
    %c1 = arith.constant 1 : index
    %s1 = arith.bitcast %v : i8 to f8E5M2
    %r1 = arith.extf %s1 : f8E5M2 to f64
    memref.store %r1, %y[%i, %c1] : memref<?x7xf64>
    %c2 = arith.constant 2 : index
    %s2 = arith.bitcast %v : i8 to f8E4M3FNUZ
    %r2 = arith.extf %s2 : f8E4M3FNUZ to f64
    memref.store %r2, %y[%i, %c2] : memref<?x7xf64>
    %c3 = arith.constant 3 : index
    %s3 = arith.bitcast %v : i8 to f8E5M2FNUZ
    %r3 = arith.extf %s3 : f8E5M2FNUZ to f64
    memref.store %r3, %y[%i, %c3] : memref<?x7xf64>
    %c4 = arith.constant 4 : index
    %s4 = arith.bitcast %v : i8 to f8E4M3
    %r4 = arith.extf %s4 : f8E4M3 to f64
    memref.store %r4, %y[%i, %c4] : memref<?x7xf64>
    %c5 = arith.constant 5 : index
    %s5 = arith.bitcast %v : i8 to f8E3M4
    %r5 = arith.extf %s5 : f8E3M4 to f64
    memref.store %r5, %y[%i, %c5] : memref<?x7xf64>
    %c6 = arith.constant 6 : index
    %s6 = arith.bitcast %v : i8 to f8E4M3B11FNUZ
    %r6 = arith.extf %s6 : f8E4M3B11FNUZ to f64
    memref.store %r6, %y[%i, %c6] : memref<?x7xf64>
    gpu.return
  }

  gpu.func @narrow_f32(%x: memref<?xf32>, %y: memref<?x7xi8>) kernel {
    %c64 = arith.constant 64 : index
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %first = arith.muli %block, %c64 : index
    %i = arith.addi %first, %thread : index
    %v = memref.load %x[%i] : memref<?xf32>
    %c0 = arith.constant 0 : index
    %s0 = arith.truncf %v : f32 to f8E4M3FN
    %r0 = arith.bitcast %s0 : f8E4M3FN to i8
    memref.store %r0, %y[%i, %c0] : memref<?x7xi8>
    %c1 = arith.constant 1 : index
    %s1 = arith.truncf %v : f32 to f8E5M2
    %r1 = arith.bitcast %s1 : f8E5M2 to i8
    memref.store %r1, %y[%i, %c1] : memref<?x7xi8>
    %c2 = arith.constant 2 : index
    %s2 = arith.truncf %v : f32 to f8E4M3FNUZ
    %r2 = arith.bitcast %s2 : f8E4M3FNUZ to i8
    memref.store %r2, %y[%i, %c2] : memref<?x7xi8>
    %c3 = arith.constant 3 : index
    %s3 = arith.truncf %v : f32 to f8E5M2FNUZ
    %r3 = arith.bitcast %s3 : f8E5M2FNUZ to i8
    memref.store %r3, %y[%i, %c3] : memref<?x7xi8>
    %c4 = arith.constant 4 : index
    %s4 = arith.truncf %v : f32 to f8E4M3
    %r4 = arith.bitcast %s4 : f8E4M3 to i8
    memref.store %r4, %y[%i, %c4] : memref<?x7xi8>
    %c5 = arith.constant 5 : index
    %s5 = arith.truncf %v : f32 to f8E3M4
    %r5 = arith.bitcast %s5 : f8E3M4 to i8
    memref.store %r5, %y[%i, %c5] : memref<?x7xi8>
    %c6 = arith.constant 6 : index
    %s6 = arith.truncf %v : f32 to f8E4M3B11FNUZ
    %r6 = arith.bitcast %s6 : f8E4M3B11FNUZ to i8
    memref.store %r6, %y[%i, %c6] : memref<?x7xi8>
    gpu.return
  }

  gpu.func @narrow_f16(%x: memref<?xf16>, %y: memref<?x7xi8>) kernel {
    %c64 = arith.constant 64 : index
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %first = arith.muli %block, %c64 : index
    %i = arith.addi %first, %thread : index
    %v = memref.load %x[%i] : memref<?xf16>
    %c0 = arith.constant 0 : index
    %s0 = arith.truncf %v : f16 to f8E4M3FN
    %r0 = arith.bitcast %s0 : f8E4M3FN to i8
    memref.store %r0, %y[%i, %c0] : memref<?x7xi8>
    %c1 = arith.constant 1 : index
    %s1 = arith.truncf %v : f16 to f8E5M2
    %r1 = arith.bitcast %s1 : f8E5M2 to i8
    memref.store %r1, %y[%i, %c1] : memref<?x7xi8>
    %c2 = arith.constant 2 : index
    %s2 = arith.truncf %v : f16 to f8E4M3FNUZ
    %r2 = arith.bitcast %s2 : f8E4M3FNUZ to i8
    memref.store %r2, %y[%i, %c2] : memref<?x7xi8>
    %c3 = arith.constant 3 : index
    %s3 = arith.truncf %v : f16 to f8E5M2FNUZ
    %r3 = arith.bitcast %s3 : f8E5M2FNUZ to i8
    memref.store %r3, %y[%i, %c3] : memref<?x7xi8>
    %c4 = arith.constant 4 : index
    %s4 = arith.truncf %v : f16 to f8E4M3
    %r4 = arith.bitcast %s4 : f8E4M3 to i8
    memref.store %r4, %y[%i, %c4] : memref<?x7xi8>
    %c5 = arith.constant 5 : index
    %s5 = arith.truncf %v : f16 to f8E3M4
    %r5 = arith.bitcast %s5 : f8E3M4 to i8
    memref.store %r5, %y[%i, %c5] : memref<?x7xi8>
    %c6 = arith.constant 6 : index
    %s6 = arith.truncf %v : f16 to f8E4M3B11FNUZ
    %r6 = arith.bitcast %s6 : f8E4M3B11FNUZ to i8
    memref.store %r6, %y[%i, %c6] : memref<?x7xi8>
    gpu.return
  }

  gpu.func @narrow_f64(%x: memref<?xf64>, %y: memref<?x7xi8>) kernel {
    %c64 = arith.constant 64 : index
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %first = arith.muli %block, %c64 : index
    %i = arith.addi %first, %thread : index
    %v = memref.load %x[%i] : memref<?xf64>
    %c0 = arith.constant 0 : index
    %s0 = arith.truncf %v : f64 to f8E4M3FN
    %r0 = arith.bitcast %s0 : f8E4M3FN to i8
    memref.store %r0, %y[%i, %c0] : memref<?x7xi8>
    %c1 = arith.constant 1 : index
    %s1 = arith.truncf %v : f64 to f8E5M2
    %r1 = arith.bitcast %s1 : f8E5M2 to i8
    memref.store %r1, %y[%i, %c1] : memref<?x7xi8>
    %c2 = arith.constant 2 : index
    %s2 = arith.truncf %v : f64 to f8E4M3FNUZ
    %r2 = arith.bitcast %s2 : f8E4M3FNUZ to i8
    memref.store %r2, %y[%i, %c2] : memref<?x7xi8>
    %c3 = arith.constant 3 : index
    %s3 = arith.truncf %v : f64 to f8E5M2FNUZ
    %r3 = arith.bitcast %s3 : f8E5M2FNUZ to i8
    memref.store %r3, %y[%i, %c3] : memref<?x7xi8>
    %c4 = arith.constant 4 : index
    %s4 = arith.truncf %v : f64 to f8E4M3
    %r4 = arith.bitcast %s4 : f8E4M3 to i8
    memref.store %r4, %y[%i, %c4] : memref<?x7xi8>
    %c5 = arith.constant 5 : index
    %s5 = arith.truncf %v : f64 to f8E3M4
    %r5 = arith.bitcast %s5 : f8E3M4 to i8
    memref.store %r5, %y[%i, %c5] : memref<?x7xi8>
    %c6 = arith.constant 6 : index
    %s6 = arith.truncf %v : f64 to f8E4M3B11FNUZ
    %r6 = arith.bitcast %s6 : f8E4M3B11FNUZ to i8
    memref.store %r6, %y[%i, %c6] : memref<?x7xi8>
    gpu.return
  }
}
