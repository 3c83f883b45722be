// Operations of the vector dialect with indices of 32 bits. MLIR 22's convert-vector-to-llvm has 64 bits always, and what was left
// between its types and those of the other conversions was refused: "cannot lower builtin.unrealized_conversion_cast".
//
// RUN: gpulower compile %s --target sm_90 --index-bitwidth 32 -e ptx -o - | FileCheck %s
// RUN: gpulower compile %s --target gfx942 --index-bitwidth 32 -e asm -o - | FileCheck %s --check-prefix=AMD

gpu.module @m {
  // CHECK-LABEL: .entry load(
  // CHECK: .param .u32 load_param_5
  // CHECK: ld.global.b32
  // CHECK: st.global.b32
  // AMD-LABEL: load:
  // AMD: global_store_dwordx2
  gpu.func @load(%buffer: memref<8xi32>, %i: index) kernel {
    %v = vector.load %buffer[%i] : memref<8xi32>, vector<2xi32>
    %sum = arith.addi %v, %v : vector<2xi32>
    vector.store %sum, %buffer[%i] : memref<8xi32>, vector<2xi32>
    gpu.return
  }

  // CHECK-LABEL: .entry extract(
  // AMD-LABEL: extract:
  gpu.func @extract(%buffer: memref<8xi32>, %v: vector<2xi32>, %i: index) kernel {
    %element = vector.extract %v[%i] : i32 from vector<2xi32>
    memref.store %element, %buffer[%i] : memref<8xi32>
    gpu.return
  }
}
