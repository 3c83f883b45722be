// RUN: split-file %s %t
// RUN: gpulower compile %t/fnuz.mlir --target gfx942 --emit asm -o - | FileCheck %t/fnuz.mlir
// RUN: gpulower compile %t/ocp.mlir --target gfx950 --emit asm -o - | FileCheck %t/ocp.mlir
// RUN: not gpulower compile %t/ocp.mlir --target gfx942 --emit asm -o %t/out 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: not gpulower compile %t/ocp.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: gpulower compile %t/scales.mlir --target sm_90 --emit ptx -o - | FileCheck %t/scales.mlir

// Conversions of 8-bit floats are instructions of some chips. Scales and 4-bit floats are computed.

// REFUSED: cannot lower arith.truncf: MLIR knows no conversion from f32 to f8E4M3FN for this chip

//--- fnuz.mlir
gpu.module @kernels {
  // CHECK: v_cvt_pk_fp8_f32
  gpu.func @fnuz(%v: f32, %m: memref<?xf8E4M3FNUZ>, %i: index) kernel {
    %a = arith.truncf %v : f32 to f8E4M3FNUZ
    memref.store %a, %m[%i] : memref<?xf8E4M3FNUZ>
    gpu.return
  }
}

//--- ocp.mlir
gpu.module @kernels {
  // CHECK: v_cvt_pk_fp8_f32
  gpu.func @ocp(%v: f32, %m: memref<?xf8E4M3FN>, %i: index) kernel {
    %a = arith.truncf %v : f32 to f8E4M3FN
    memref.store %a, %m[%i] : memref<?xf8E4M3FN>
    gpu.return
  }
}

//--- scales.mlir
gpu.module @kernels {
  // CHECK: .entry scales(
  gpu.func @scales(%v: f32, %m: memref<?xf32>, %i: index) kernel {
    %a = arith.truncf %v : f32 to f8E8M0FNU
    %b = arith.extf %a : f8E8M0FNU to f32
    %c = arith.truncf %v : f32 to f4E2M1FN
    %d = arith.extf %c : f4E2M1FN to f32
    %e = arith.mulf %b, %d : f32
    memref.store %e, %m[%i] : memref<?xf32>
    gpu.return
  }
}
