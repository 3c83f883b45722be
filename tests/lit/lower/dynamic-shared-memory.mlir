// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: gpulower compile %s --target sm_90 --emit cubin -o %t.cubin
// RUN: llvm-readelf -SW %t.cubin | FileCheck %s --check-prefix=CUBIN
// RUN: gpulower compile %s --target gfx942 --emit asm -o - | FileCheck %s --check-prefix=GCN

// Memory whose size the launch gives begins behind what the kernel declares. MLIR's conversion defines an empty array, which
// LLVM writes into PTX as a variable of one byte: ptxas places it in front of the kernel's buffers, and a kernel with both kinds
// overwrites one with the other. (mlir-opt-22 and llc-22 write `.shared .align 16 .b8 __dynamic_shmem__0;`.)

// PTX: .extern .shared .align 16 .b8 __dynamic_shmem__0[];
// PTX: .shared .align 16 .b8 {{.*}}[1024];

// 1024 bytes of the kernel's own, and 1024 that the system reserves for each block.
// CUBIN: .nv.shared.both NOBITS {{[0-9a-f]+}} {{[0-9a-f]+}} 000800

// GCN: .amdhsa_group_segment_fixed_size 1024
gpu.module @kernels {
  gpu.func @both(%x: memref<?xf32>)
      workgroup(%own: memref<256xf32, #gpu.address_space<workgroup>>) kernel {
    %zero = arith.constant 0 : index
    %last = arith.constant 255 : index
    %memory = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %tile = memref.view %memory[%zero][] : memref<?xi8, #gpu.address_space<workgroup>>
        to memref<256xf32, #gpu.address_space<workgroup>>
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xf32>
    memref.store %v, %tile[%t] : memref<256xf32, #gpu.address_space<workgroup>>
    %double = arith.addf %v, %v : f32
    memref.store %double, %own[%t] : memref<256xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %other = arith.subi %last, %t : index
    %a = memref.load %tile[%other] : memref<256xf32, #gpu.address_space<workgroup>>
    %b = memref.load %own[%other] : memref<256xf32, #gpu.address_space<workgroup>>
    %sum = arith.addf %a, %b : f32
    memref.store %sum, %x[%t] : memref<?xf32>
    gpu.return
  }
}
