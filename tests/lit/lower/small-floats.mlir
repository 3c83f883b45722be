// RUN: split-file %s %t
// RUN: gpulower compile %t/fnuz.mlir --target gfx942 --emit asm -o - | FileCheck %t/fnuz.mlir
// RUN: gpulower compile %t/ocp.mlir --target gfx950 --emit asm -o - | FileCheck %t/ocp.mlir
// RUN: gpulower compile %t/ocp.mlir --target gfx942 --emit asm -o - | FileCheck %s --check-prefix=INTEGERS
// RUN: gpulower compile %t/ocp.mlir --target gfx1100 --emit asm -o - | FileCheck %s --check-prefix=INTEGERS
// RUN: gpulower compile %t/ocp.mlir --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: gpulower compile %t/all.mlir --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=ALL
// RUN: gpulower compile %t/all.mlir --target gfx950 --emit asm -o - | FileCheck %s --check-prefix=ALL
// RUN: gpulower compile %t/scales.mlir --target sm_90 --emit ptx -o - | FileCheck %t/scales.mlir

// Conversions of 8-bit floats are instructions of some chips, and computed with integers for others, which mlir-opt 22 has no
// conversion for. Scales and 4-bit floats are computed.

// INTEGERS: ocp:
// INTEGERS-NOT: v_cvt_pk_fp8
// INTEGERS: 0x46800000
// INTEGERS: _store_{{b8|byte}}
// PTX: .entry ocp(
// PTX: add.rn.f32 {{.*}}0f46800000
// PTX: st.{{.*}}b8
// ALL: all{{[:(]}}

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

//--- all.mlir
gpu.module @kernels {
  gpu.func @all(%v: vector<4xf16>, %m: memref<?xvector<4xf8E3M4>>, %n: memref<?xvector<4xf64>>, %i: index) kernel {
    %a = arith.truncf %v : vector<4xf16> to vector<4xf8E3M4>
    memref.store %a, %m[%i] : memref<?xvector<4xf8E3M4>>
    %b = arith.truncf %v : vector<4xf16> to vector<4xf8E4M3B11FNUZ>
    %c = arith.extf %b : vector<4xf8E4M3B11FNUZ> to vector<4xf64>
    memref.store %c, %n[%i] : memref<?xvector<4xf64>>
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
