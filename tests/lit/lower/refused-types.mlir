// RUN: rm -rf %t
// RUN: split-file %s %t
// RUN: not gpulower compile %t/tensor.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/tensor.mlir
// RUN: not gpulower compile %t/result.mlir --target gfx942 --emit hsaco -o %t/out 2>&1 | FileCheck %t/result.mlir
// RUN: gpulower compile %t/matrix.mlir --target sm_90 --emit ptx -o %t/taken.ptx
// RUN: not gpulower compile %t/cluster.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/cluster.mlir
// RUN: gpulower compile %t/cluster.mlir --target gfx942 --emit asm -o %t/taken.s
// RUN: not gpulower compile %t/all.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/all.mlir
// RUN: not gpulower compile %t/linalg.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/linalg.mlir
// RUN: test ! -e %t/out

// MLIR says "failed to legalize operation 'func.func' that was explicitly marked illegal", and of linalg "expected add/mul op in the
// body". Here it is said which type no conversion takes, and what to write instead.

//--- tensor.mlir
gpu.module @kernels {
  // CHECK: tensor.mlir:[[#@LINE+1]]:3: error: lower, module kernels, target sm_90: cannot lower func.func @first: its argument 1 has the type 'tensor<4xf32>', which no conversion to LLVM takes; bufferize tensors before
  func.func @first(%i: index, %t: tensor<4xf32>) -> f32 {
    %v = tensor.extract %t[%i] : tensor<4xf32>
    return %v : f32
  }
  gpu.func @kernel() kernel {
    gpu.return
  }
}

//--- result.mlir
gpu.module @kernels {
  // CHECK: result.mlir:[[#@LINE+1]]:3: error: {{.*}}cannot lower func.func @nothing: its result 0 has the type 'none', which no conversion to LLVM takes; pass scalars, vectors and memrefs
  func.func private @nothing() -> none
  gpu.func @kernel() kernel {
    gpu.return
  }
}

//--- matrix.mlir
gpu.module @kernels {
  func.func @store(%matrix: !gpu.mma_matrix<16x16xf16, "COp">, %to: memref<16x16xf16>) {
    %zero = arith.constant 0 : index
    gpu.subgroup_mma_store_matrix %matrix, %to[%zero, %zero] {leadDimension = 16 : index} : !gpu.mma_matrix<16x16xf16, "COp">, memref<16x16xf16>
    return
  }
  gpu.func @kernel(%from: memref<16x16xf16>, %to: memref<16x16xf16>) kernel {
    %zero = arith.constant 0 : index
    %matrix = gpu.subgroup_mma_load_matrix %from[%zero, %zero] {leadDimension = 16 : index} : memref<16x16xf16> -> !gpu.mma_matrix<16x16xf16, "COp">
    func.call @store(%matrix, %to) : (!gpu.mma_matrix<16x16xf16, "COp">, memref<16x16xf16>) -> ()
    gpu.return
  }
}

//--- cluster.mlir
gpu.module @kernels {
  gpu.func @kernel(%m: memref<?xf32>, %i: index) kernel {
    %v = memref.load %m[%i] : memref<?xf32>
    // CHECK: cluster.mlir:[[#@LINE+1]]:10: error: {{.*}}cannot lower gpu.subgroup_reduce of 'f32': its clusters reach over 64 lanes, and a subgroup has 32; reduce in each subgroup, then across them with gpu.all_reduce
    %s = gpu.subgroup_reduce add %v cluster(size = 64) : (f32) -> f32
    memref.store %s, %m[%i] : memref<?xf32>
    gpu.return
  }
}

//--- all.mlir
gpu.module @kernels {
  func.func @sum(%v: f32) -> f32 {
    // CHECK: all.mlir:[[#@LINE+1]]:10: error: {{.*}}cannot lower gpu.all_reduce of 'f32': outside of a gpu.func there is no workgroup memory to reduce in; make its function a gpu.func, or inline it
    %s = gpu.all_reduce add %v uniform {} : (f32) -> f32
    return %s : f32
  }
  gpu.func @kernel() kernel {
    gpu.return
  }
}

//--- linalg.mlir
gpu.module @kernels {
  gpu.func @kernel(%a: memref<4x4xf32>, %b: memref<4x4xf32>, %c: memref<4x4xf32>) kernel {
    // CHECK: linalg.mlir:[[#@LINE+1]]:5: error: {{.*}}cannot lower linalg.matmul for sm_90: the first has the types (memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>) -> (); bufferize tensors and turn linalg into loops before
    linalg.matmul ins(%a, %b : memref<4x4xf32>, memref<4x4xf32>) outs(%c : memref<4x4xf32>)
    gpu.return
  }
}
