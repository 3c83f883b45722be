// W18: a fat binary needs no `fatbinary` tool: a toolkit with ptxas and libdevice alone will do. NVIDIA's own tools read
// the result.

// RUN: rm -rf %t && mkdir -p %t/cuda/bin %t/cuda/nvvm/libdevice
// RUN: ln -s %cuda/bin/ptxas %t/cuda/bin/ptxas
// RUN: ln -s %cuda/nvvm/libdevice/libdevice.10.bc %t/cuda/nvvm/libdevice/libdevice.10.bc
// RUN: env -u CUDA_HOME PATH=%binaries:/usr/bin:/bin gpulower-opt %s --gpulower-to-binary="targets=sm_80,sm_90 format=fatbin cuda=%t/cuda" -o %t/out.mlir
// RUN: %objects %t/objects < %t/out.mlir
// RUN: cuobjdump --list-elf --list-ptx %t/objects/0 | FileCheck %s --check-prefix=IMAGES
// RUN: not ls %t/objects/1
// RUN: cuobjdump -sass %t/objects/0 | FileCheck %s --check-prefix=CODE
// RUN: env -u CUDA_HOME PATH=/usr/bin:/bin %llvm/not %llvm/mlir-opt %s --pass-pipeline='builtin.module(nvvm-attach-target{chip=sm_80},gpu.module(convert-gpu-to-nvvm),gpu-module-to-binary{format=fatbin toolkit=%t/cuda})' 2>&1 | FileCheck %s --check-prefix=UPSTREAM

// Both targets are in one object, with the PTX of the lower one.
// IMAGES-DAG: sm_80.cubin
// IMAGES-DAG: sm_80.ptx
// IMAGES-DAG: sm_90.cubin
// IMAGES-NOT: sm_90.ptx
// CODE: Function : k
// UPSTREAM: fatbinary
gpu.module @m {
  gpu.func @k(%x: f32, %out: memref<f32>) kernel {
    %0 = math.erf %x : f32
    memref.store %0, %out[] : memref<f32>
    gpu.return
  }
}
