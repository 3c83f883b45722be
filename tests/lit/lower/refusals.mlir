// RUN: rm -rf %t
// RUN: split-file %s %t
// RUN: not gpulower compile %t/heap.mlir --target gfx942 --emit hsaco -o %t/out 2>&1 | FileCheck %t/heap.mlir
// RUN: not gpulower compile %t/stack.mlir --target gfx942 --emit hsaco -o %t/out 2>&1 | FileCheck %t/stack.mlir
// RUN: not gpulower compile %t/shared.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/shared.mlir
// RUN: not gpulower compile %t/shared.mlir --target gfx942 --emit hsaco -o %t/out 2>&1 | FileCheck %t/shared.mlir
// RUN: not gpulower compile %t/uniform.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/uniform.mlir
// RUN: not gpulower compile %t/print.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/print.mlir
// RUN: not gpulower compile %t/layout.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/layout.mlir
// RUN: not gpulower compile %t/clusters.mlir --target sm_80 --emit ptx -o %t/out 2>&1 | FileCheck %t/clusters.mlir --check-prefix=SM80
// RUN: not gpulower compile %t/clusters.mlir --target gfx942 --emit hsaco -o %t/out 2>&1 | FileCheck %t/clusters.mlir --check-prefix=GFX942
// RUN: not gpulower compile %t/mma.mlir --target gfx942 --emit hsaco -o %t/out 2>&1 | FileCheck %t/mma.mlir
// RUN: not gpulower compile %t/rotate.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/rotate.mlir
// RUN: not gpulower compile %t/foreign.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/foreign.mlir
// RUN: not gpulower compile %t/unknown.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/unknown.mlir
// RUN: not gpulower compile %t/shuffle.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/shuffle.mlir
// RUN: not gpulower compile %t/rounding.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/rounding.mlir
// RUN: not gpulower compile %t/rounding.mlir --target gfx942 --emit hsaco -o %t/out 2>&1 | FileCheck %t/rounding.mlir
// RUN: not gpulower compile %t/rounding-integers.mlir --target gfx942 --emit hsaco -o %t/out 2>&1 | FileCheck %t/rounding-integers.mlir
// RUN: not gpulower compile %t/scope.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/scope.mlir
// RUN: test ! -e %t/out

// What cannot be lowered is refused with its place, and with what to write instead.

//--- heap.mlir
gpu.module @kernels {
  gpu.func @heap(%v: f32, %i: index) kernel {
    // CHECK: heap.mlir:[[#@LINE+1]]:{{[0-9]+}}: {{.*}}cannot lower memref.alloc: the heap has generic addresses; leave out the memory space, or allocate private memory by memref.alloca
    %a = memref.alloc() : memref<4xf32, #gpu.address_space<private>>
    memref.store %v, %a[%i] : memref<4xf32, #gpu.address_space<private>>
    gpu.return
  }
}

//--- stack.mlir
gpu.module @kernels {
  gpu.func @stack(%v: f32, %n: index) kernel {
    // CHECK: stack.mlir:[[#@LINE+1]]:{{[0-9]+}}: {{.*}}cannot lower memref.alloca: private memory of dynamic size cannot be allocated on AMD's chips
    %a = memref.alloca(%n) : memref<?xf32>
    memref.store %v, %a[%n] : memref<?xf32>
    gpu.return
  }
}

//--- shared.mlir
gpu.module @kernels {
  gpu.func @shared(%v: f32, %n: index) kernel {
    // CHECK: shared.mlir:[[#@LINE+1]]:{{[0-9]+}}: {{.*}}cannot lower memref.alloca: a workgroup buffer has to have a static shape; take memory whose size the launch decides from gpu.dynamic_shared_memory
    %a = memref.alloca(%n) : memref<?xf32, #gpu.address_space<workgroup>>
    memref.store %v, %a[%n] : memref<?xf32, #gpu.address_space<workgroup>>
    gpu.return
  }
}

//--- uniform.mlir
gpu.module @kernels {
  gpu.func @uniform(%v: f32, %m: memref<?xf32>, %i: index) kernel {
    // CHECK: uniform.mlir:[[#@LINE+1]]:{{[0-9]+}}: {{.*}}cannot lower gpu.all_reduce: {{.*}}say `uniform` if this one is
    %a = gpu.all_reduce add %v {} : (f32) -> f32
    memref.store %a, %m[%i] : memref<?xf32>
    gpu.return
  }
}

//--- print.mlir
gpu.module @kernels {
  gpu.func @print(%v: f32) kernel {
    // CHECK: print.mlir:[[#@LINE+1]]:{{[0-9]+}}: {{.*}}cannot lower vector.print: {{.*}}print with gpu.printf
    vector.print %v : f32
    gpu.return
  }
}

//--- layout.mlir
gpu.module @kernels {
  // CHECK: layout.mlir:[[#@LINE+1]]:{{[0-9]+}}: {{.*}}cannot lower gpu.func: the layout of memref<8x8xf32, affine_map<(d0, d1) -> (d1, d0)>> is not strided
  gpu.func @layout(%m: memref<8x8xf32, affine_map<(d0, d1) -> (d1, d0)>>) kernel {
    gpu.return
  }
}

//--- clusters.mlir
gpu.module @kernels {
  gpu.func @clusters(%m: memref<?xindex>) kernel {
    // SM80: clusters.mlir:[[#@LINE+2]]:{{[0-9]+}}: {{.*}}cannot lower gpu.cluster_id: clusters of workgroups need sm_90 or later
    // GFX942: clusters.mlir:[[#@LINE+1]]:{{[0-9]+}}: {{.*}}cannot lower gpu.cluster_id: AMD's chips have no clusters of workgroups
    %a = gpu.cluster_id x
    memref.store %a, %m[%a] : memref<?xindex>
    gpu.return
  }
}

//--- mma.mlir
gpu.module @kernels {
  gpu.func @mma(%m: memref<16x16xf32>, %v: f32, %i: index) kernel {
    // CHECK: mma.mlir:[[#@LINE+1]]:{{[0-9]+}}: {{.*}}cannot lower gpu.subgroup_mma_constant_matrix: no matrices of type !gpu.mma_matrix<32x8xf32, "COp">: gfx942 multiplies 16x16x16 of f16 into f16 or f32, 16x16x16 of si8 into i32, 16x16x8 and 16x16x4 of f32, and 16x16x4 of f64
    %a = gpu.subgroup_mma_constant_matrix %v : !gpu.mma_matrix<32x8xf32, "COp">
    gpu.subgroup_mma_store_matrix %a, %m[%i, %i] {leadDimension = 16 : index} : !gpu.mma_matrix<32x8xf32, "COp">, memref<16x16xf32>
    gpu.return
  }
}

//--- rotate.mlir
gpu.module @kernels {
  gpu.func @rotate(%v: f32, %m: memref<?xf32>, %i: index) kernel {
    // CHECK: rotate.mlir:[[#@LINE+1]]:{{[0-9]+}}: {{.*}}cannot lower gpu.rotate: its width of 64 is more than the 32 lanes of a subgroup
    %a, %valid = gpu.rotate %v, 1, 64 : f32
    memref.store %a, %m[%i] : memref<?xf32>
    gpu.return
  }
}

//--- foreign.mlir
gpu.module @kernels {
  gpu.func @foreign() kernel {
    // CHECK: foreign.mlir:[[#@LINE+1]]:{{[0-9]+}}: {{.*}}amdgpu.lds_barrier cannot be compiled for sm_90: compile it for a chip of that vendor
    amdgpu.lds_barrier
    gpu.return
  }
}

//--- unknown.mlir
gpu.module @kernels {
  gpu.func @unknown(%v: f32, %m: memref<?xf32>, %i: index) kernel {
    // CHECK: unknown.mlir:[[#@LINE+1]]:{{[0-9]+}}: {{.*}}cannot lower {{.*}}tensor.from_elements{{.*}} for sm_90
    %t = tensor.from_elements %v : tensor<1xf32>
    %a = tensor.extract %t[%i] : tensor<1xf32>
    memref.store %a, %m[%i] : memref<?xf32>
    gpu.return
  }
}

//--- shuffle.mlir
gpu.module @kernels {
  gpu.func @shuffle(%v: f32, %m: memref<?xf32>, %i: index) kernel {
    %one = arith.constant 1 : i32
    %width = arith.constant 64 : i32
    // CHECK: shuffle.mlir:[[#@LINE+1]]:{{[0-9]+}}: {{.*}}cannot lower gpu.shuffle: its width of 64 is not between 1 and the 32 lanes of a subgroup
    %a, %valid = gpu.shuffle up %v, %one, %width : f32
    memref.store %a, %m[%i] : memref<?xf32>
    gpu.return
  }
}

//--- rounding.mlir
gpu.module @kernels {
  gpu.func @rounding(%v: f32, %m: memref<?xf8E5M2>, %i: index) kernel {
    // CHECK: rounding.mlir:[[#@LINE+1]]:{{[0-9]+}}: {{.*}}arith.truncf to f8E5M2 cannot round upward for {{sm_90|gfx942}}: round to nearest even
    %a = arith.truncf %v upward : f32 to f8E5M2
    memref.store %a, %m[%i] : memref<?xf8E5M2>
    gpu.return
  }
}

//--- rounding-integers.mlir
gpu.module @kernels {
  llvm.func @rounding(%v: i32, %p: !llvm.ptr) attributes {gpu.kernel, rocdl.kernel} {
    // CHECK: rounding-integers.mlir:[[#@LINE+1]]:{{[0-9]+}}: {{.*}}llvm.intr.experimental.constrained.sitofp to f32 cannot round {{.*}} for gfx942
    %a = llvm.intr.experimental.constrained.sitofp %v upward ignore : i32 to f32
    llvm.store %a, %p : f32, !llvm.ptr
    llvm.return
  }
}

//--- scope.mlir
gpu.module @kernels {
  llvm.func @scope(%v: i32, %p: !llvm.ptr) attributes {gpu.kernel} {
    // CHECK: scope.mlir:[[#@LINE+1]]:{{[0-9]+}}: {{.*}}llvm.atomicrmw has the scope "agent", which is none of NVIDIA's: singlethread, block, cluster, device
    %a = llvm.atomicrmw add %p, %v syncscope("agent") acq_rel : !llvm.ptr, i32
    llvm.return
  }
}
