// RUN: rm -rf %t
// RUN: split-file %s %t
// RUN: not gpulower compile %t/nothing.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/nothing.mlir
// RUN: not gpulower compile %t/nothing.mlir --target gfx942 --emit asm -o %t/out 2>&1 | FileCheck %t/nothing.mlir
// RUN: not gpulower compile %t/negative.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/negative.mlir
// RUN: not gpulower compile %t/many.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/many.mlir
// RUN: not gpulower compile %t/many.mlir --target gfx1100 --emit asm -o %t/out 2>&1 | FileCheck %t/many.mlir
// RUN: not gpulower compile %t/deep.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/deep.mlir
// RUN: gpulower compile %t/deep.mlir --target gfx942 --emit asm -o %t/taken.s
// RUN: not gpulower compile %t/lowered.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/lowered.mlir
// RUN: not gpulower compile %t/cluster.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/cluster.mlir --check-prefix=SM90
// RUN: not gpulower compile %t/cluster.mlir --target sm_80 --emit ptx -o %t/out 2>&1 | FileCheck %t/cluster.mlir --check-prefix=NONE
// RUN: not gpulower compile %t/cluster.mlir --target gfx942 --emit asm -o %t/out 2>&1 | FileCheck %t/cluster.mlir --check-prefix=NONE
// RUN: not gpulower compile %t/parts.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/parts.mlir
// RUN: not gpulower compile %t/shared.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/shared.mlir --check-prefix=SM90
// RUN: not gpulower compile %t/shared.mlir --target gfx942 --emit asm -o %t/out 2>&1 | FileCheck %t/shared.mlir --check-prefix=GFX942
// RUN: gpulower compile %t/shared.mlir --target gfx950 --emit asm -o %t/taken2.s
// RUN: not gpulower compile %t/parameters.mlir --target sm_90 --ptx 8.0 --emit ptx -o %t/out 2>&1 | FileCheck %t/parameters.mlir
// RUN: gpulower compile %t/parameters.mlir --target sm_90 --ptx 8.1 --emit cubin -o %t/taken.cubin
// RUN: not gpulower compile %t/symbol.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/symbol.mlir
// RUN: not gpulower compile %t/at.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/at.mlir --check-prefix=PTX
// RUN: not gpulower compile %t/at.mlir --target gfx942 --emit object -o %t/out 2>&1 | FileCheck %t/at.mlir --check-prefix=ELF
// RUN: not gpulower compile %t/digit.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/digit.mlir
// RUN: not gpulower compile %t/nul.mlir --target gfx942 --emit object -o %t/out 2>&1 | FileCheck %t/nul.mlir
// RUN: not gpulower compile %t/bytes.mlir --target gfx942 --emit hsaco -o %t/out 2>&1 | FileCheck %t/bytes.mlir
// RUN: gpulower compile %t/internal.mlir --target sm_90 --emit cubin -o %t/internal.cubin
// RUN: gpulower compile %t/internal.mlir --target gfx942 --emit hsaco -o %t/internal.hsaco
// RUN: not gpulower compile %t/bounds.mlir --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/bounds.mlir
// RUN: not gpulower compile %t/bounds-amd.mlir --target gfx942 --emit asm -o %t/out 2>&1 | FileCheck %t/bounds-amd.mlir
// RUN: not gpulower compile %t/bounds.ll --target sm_90 --emit ptx -o %t/out 2>&1 | FileCheck %t/bounds.ll
// RUN: not gpulower compile %t/bounds-amd.ll --target gfx942 --emit asm -o %t/out 2>&1 | FileCheck %t/bounds-amd.ll
// RUN: test ! -e %t/out

// What no launch can fit is refused where it is written, and not by a compiler or a driver in its own words.

//--- nothing.mlir
gpu.module @kernels {
  // CHECK: nothing.mlir:[[#@LINE+1]]:3: error: lower, module kernels, target {{.*}}: the kernel k cannot be launched on {{.*}}: it states a block of 0 x 1 x 1: every size is at least 1
  gpu.func @k() kernel attributes {known_block_size = array<i32: 0, 1, 1>} {
    gpu.return
  }
}

//--- negative.mlir
gpu.module @kernels {
  // CHECK: negative.mlir:[[#@LINE+1]]:3: error: {{.*}}it states a block of 32 x -5 x 1: every size is at least 1
  gpu.func @k() kernel attributes {known_block_size = array<i32: 32, -5, 1>} {
    gpu.return
  }
}

//--- many.mlir
gpu.module @kernels {
  // CHECK: many.mlir:[[#@LINE+1]]:3: error: {{.*}}it states a block of 64 x 32 x 1, and at most 1024 work items are possible
  gpu.func @k() kernel attributes {known_block_size = array<i32: 64, 32, 1>} {
    gpu.return
  }
}

//--- deep.mlir
gpu.module @kernels {
  // CHECK: deep.mlir:[[#@LINE+1]]:3: error: {{.*}}it states a block of 1 x 1 x 65, and at most 64 are possible in z
  gpu.func @k() kernel attributes {known_block_size = array<i32: 1, 1, 65>} {
    gpu.return
  }
}

//--- lowered.mlir
gpu.module @kernels {
  // CHECK: lowered.mlir:[[#@LINE+1]]:3: error: {{.*}}it states a block of 2048 x 1 x 1, and at most 1024 are possible in x
  llvm.func @k() attributes {gpu.kernel, nvvm.kernel, nvvm.reqntid = array<i32: 2048, 1, 1>} {
    llvm.return
  }
}

//--- cluster.mlir
gpu.module @kernels {
  // SM90: cluster.mlir:[[#@LINE+2]]:3: error: {{.*}}it states a cluster of 4 x 8 x 1, and at most 16 blocks are possible
  // NONE: cluster.mlir:[[#@LINE+1]]:3: error: {{.*}}it states the size of its clusters, which the chip does not have
  gpu.func @k() kernel attributes {known_cluster_size = array<i32: 4, 8, 1>} {
    gpu.return
  }
}

//--- parts.mlir
gpu.module @kernels {
  // CHECK: parts.mlir:[[#@LINE+1]]:3: error: {{.*}}its grid of 6 x 1 x 1 is not made of whole clusters of 4 x 1 x 1
  gpu.func @k() kernel attributes {known_grid_size = array<i32: 6, 1, 1>, known_cluster_size = array<i32: 4, 1, 1>} {
    gpu.return
  }
}

//--- shared.mlir
gpu.module @kernels {
  // SM90: shared.mlir:[[#@LINE+2]]:3: error: optimize, module kernels, target sm_90: the kernel k has 80000 bytes of variables in workgroup memory, and sm_90 has room for 49152: take more from gpu.dynamic_shared_memory, whose size the launch gives
  // GFX942: shared.mlir:[[#@LINE+1]]:3: error: optimize, module kernels, target gfx942: the kernel k has 80000 bytes of variables in workgroup memory, and gfx942 has room for 65536: work on smaller tiles
  gpu.func @k(%m: memref<?xf32>, %i: index, %j: index) workgroup(%w: memref<20000xf32, 3>) kernel {
    %v = memref.load %m[%i] : memref<?xf32>
    memref.store %v, %w[%i] : memref<20000xf32, 3>
    gpu.barrier
    %u = memref.load %w[%j] : memref<20000xf32, 3>
    memref.store %u, %m[%i] : memref<?xf32>
    gpu.return
  }
}

//--- parameters.mlir
gpu.module @kernels {
  // CHECK: parameters.mlir:[[#@LINE+1]]:3: error: optimize, module kernels, target sm_90: the kernel k has 4808 bytes of parameters, and sm_90 has room for 4096: pass a pointer to them
  llvm.func @k(%to: !llvm.ptr, %many: !llvm.array<600 x i64>) attributes {gpu.kernel, nvvm.kernel} {
    %one = llvm.extractvalue %many[599] : !llvm.array<600 x i64>
    llvm.store %one, %to : i64, !llvm.ptr
    llvm.return
  }
}

//--- symbol.mlir
gpu.module @kernels {
  // CHECK: symbol.mlir:[[#@LINE+1]]:3: error: link, module kernels, target sm_90: the symbol "two words" is none that PTX has: use letters, digits, _ and $, with no digit in front, and not _ or $ alone
  gpu.func @"two words"() kernel {
    gpu.return
  }
}

//--- at.mlir
gpu.module @kernels {
  // PTX: at.mlir:[[#@LINE+2]]:3: error: link, module kernels, target sm_90: the symbol "a@b" is none that PTX has
  // ELF: at.mlir:[[#@LINE+1]]:3: error: link, module kernels, target gfx942: the symbol "a@b" cannot be one of a code object: it has an @, a NUL, or bytes that are not UTF-8
  gpu.func @"a@b"() kernel {
    gpu.return
  }
}

//--- digit.mlir
gpu.module @kernels {
  // CHECK: digit.mlir:[[#@LINE+1]]:3: error: {{.*}}the symbol "1st" is none that PTX has
  gpu.func @"1st"() kernel {
    gpu.return
  }
}

//--- nul.mlir
gpu.module @kernels {
  // CHECK: nul.mlir:[[#@LINE+1]]:3: error: {{.*}}the symbol "a\0b" cannot be one of a code object
  gpu.func @"a\00b"() kernel {
    gpu.return
  }
}

//--- bytes.mlir
gpu.module @kernels {
  // CHECK: error: {{.*}} cannot be one of a code object: it has an @, a NUL, or bytes that are not UTF-8
  gpu.func @"\FF\FE"() kernel {
    gpu.return
  }
}

//--- internal.mlir
gpu.module @kernels {
  memref.global "private" constant @"my table@1" : memref<4xf32> = dense<[1.0, 2.0, 3.0, 5.0]>
  gpu.func @k(%m: memref<?xf32>, %i: index) kernel {
    %table = memref.get_global @"my table@1" : memref<4xf32>
    %v = memref.load %table[%i] : memref<4xf32>
    memref.store %v, %m[%i] : memref<?xf32>
    gpu.return
  }
}

//--- bounds.mlir
gpu.module @kernels {
  // CHECK: bounds.mlir:[[#@LINE+1]]:3: error: link, module kernels, target sm_90: the kernel k cannot be launched on sm_90: its nvvm.maxnreg is 0, and has to be a number above 0
  llvm.func @k() attributes {gpu.kernel, nvvm.kernel, nvvm.maxnreg = 0 : i32} {
    llvm.return
  }
}

//--- bounds-amd.mlir
gpu.module @kernels {
  // CHECK: bounds-amd.mlir:[[#@LINE+1]]:3: error: {{.*}}its amdgpu-flat-work-group-size is 1,5000, and has to be two numbers from 1 to 1024, the first at most the second
  llvm.func @k() attributes {gpu.kernel, rocdl.kernel, rocdl.flat_work_group_size = "1,5000"} {
    llvm.return
  }
}

//--- bounds.ll
; CHECK: error: {{.*}}the kernel k cannot be launched on sm_90: its nvvm.reqntid is 2048,1,1, and has to be one to three sizes of at least 1, of at most 1024 threads, 64 in z
define ptx_kernel void @k() #0 {
  ret void
}
attributes #0 = { "nvvm.reqntid"="2048,1,1" }

//--- bounds-amd.ll
; CHECK: error: {{.*}}the kernel k cannot be launched on gfx942: its amdgpu-waves-per-eu is -3, and has to be one or two numbers
define amdgpu_kernel void @k() #0 {
  ret void
}
attributes #0 = { "amdgpu-waves-per-eu"="-3" }
