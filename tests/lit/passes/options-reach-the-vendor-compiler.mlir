// The optimisation level, the bound on registers and further options reach NVIDIA's compiler, whichever does the work.

// RUN: rm -rf %t
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=bin max-registers=16 ptx-compiler=ptxas" | FileCheck %s --check-prefix=BOUND
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=bin max-registers=16 ptx-compiler=nvptxcompiler" | FileCheck %s --check-prefix=BOUND
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=bin O=1 ptx-compiler=ptxas ptxas-options='--def-load-cache=cg'" | %objects %t
// RUN: nvdisasm %t/0 | FileCheck %s --check-prefix=LEVEL
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=bin opts='-v'" 2>&1 | FileCheck %s --check-prefix=VERBOSE
// RUN: not gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=bin opts=--sparkle" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=bin ptx-compiler=gcc" 2>&1 | FileCheck %s --check-prefix=COMPILER
// RUN: not gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=bin ptx-compiler=ptxas cuda=%t/nowhere" 2>&1 | FileCheck %s --check-prefix=MISSING

// BOUND: registers = {{[0-9]|1[0-6]}} : i64
// LEVEL: -O 1 {{.*}}-dlcm cg
// VERBOSE: remark: ptxas info
// VERBOSE: Compiling entry function 'k' for 'sm_80'
// VERBOSE: Used [[#]] registers
// VERBOSE: gpu.binary @m
// UNKNOWN: error: ptx-to-cubin, module m, target sm_80: {{.*}}Unknown option '{{-*}}sparkle'
// UNKNOWN-NOT: gpu.binary
// COMPILER: error: option 'ptx-compiler' cannot be 'gcc': expected nvptxcompiler|ptxas|nvjitlink
// MISSING: error: ptx-to-cubin, module m, target sm_80: {{.*}}ptxas
gpu.module @m {
  gpu.func @k(%x: f32, %out: memref<?xf32>) kernel {
    %i = gpu.thread_id x
    %0 = memref.load %out[%i] : memref<?xf32>
    %1 = arith.addf %0, %x : f32
    memref.store %1, %out[%i] : memref<?xf32>
    gpu.return
  }
}
