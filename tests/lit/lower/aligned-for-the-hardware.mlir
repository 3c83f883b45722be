// RUN: gpulower compile %s --target sm_90a --emit ptx -o %t.ptx --no-cache --report=json > %t.json
// RUN: FileCheck %s --check-prefix=PTX --input-file=%t.ptx
// RUN: FileCheck %s --check-prefix=REPORT --input-file=%t.json
// RUN: gpulower compile %s --target sm_90a --emit cubin -o %t.cubin
// RUN: llvm-readelf -SW %t.cubin | FileCheck %s --check-prefix=CUBIN

// Instructions that copy tiles and multiply matrices want their memory aligned, and nothing says so to the variable: of the
// element's type come 2 bytes. (mlir-opt-22 and llc-22 write `.shared .align 2 .b8 tiles[16384];`, which runs by luck if nothing
// stands in front of it.) The way from the instruction to the variable goes through views, loops and calls.

!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
!slice = memref<64x64xf16, strided<[64, 1], offset: ?>, 3>
!shared = memref<?xi8, #gpu.address_space<workgroup>>

// The most aligned first, and no holes: 16384 bytes of tiles, 8 of the barrier, 3 of the flags; the system reserves 1024. (ptxas
// rounds all kernels of the text up to where memory whose size the launch gives would begin.)
// CUBIN: .nv.shared.through_a_loop NOBITS {{[0-9a-f]+}} {{[0-9a-f]+}} 004800

// PTX: .extern .shared .align 1024 .b8 __dynamic_shmem__0[];
gpu.module @kernels {
  memref.global "private" @flags : memref<3xi8, 3>
  memref.global "private" @tiles : memref<2x64x64xf16, 3>
  // PTX-LABEL: .entry through_a_loop(
  // PTX: .shared .align 1024 .b8 tiles[16384];
  // PTX: .shared .align 8 .b8 __mbarrier[8];
  // PTX: .shared .align 4 .b8 flags[3];
  // REPORT: "choice": "alignment of tiles",
  // REPORT-NEXT: "outcome": "1024 bytes instead of 2, for nvvm.cp.async.bulk.tensor.g2s.tile.2d in through_a_loop"
  gpu.func @through_a_loop(%map: !map, %n: index, %out: memref<64x64xf16>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i8
    %bytes = arith.constant 8192 : index
    %ticks = arith.constant 1000000 : index
    %phase = arith.constant false
    %flag = memref.get_global @flags : memref<3xi8, 3>
    memref.store %one, %flag[%n] : memref<3xi8, 3>
    %tiles = memref.get_global @tiles : memref<2x64x64xf16, 3>
    %barrier = nvgpu.mbarrier.create -> !barrier
    nvgpu.mbarrier.init %barrier[%c0], %c1 : !barrier
    gpu.barrier
    %first = memref.subview %tiles[%c0, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf16, 3> to !slice
    %second = memref.subview %tiles[%c1, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf16, 3> to !slice
    %last:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %first, %b = %second) -> (!slice, !slice) {
      nvgpu.mbarrier.arrive.expect_tx %barrier[%c0], %bytes : !barrier
      nvgpu.tma.async.load %map[%c0, %c0], %barrier[%c0] to %a : !map, !barrier -> !slice
      nvgpu.mbarrier.try_wait.parity %barrier[%c0], %phase, %ticks : !barrier
      scf.yield %b, %a : !slice, !slice
    }
    %t = gpu.thread_id x
    %v = memref.load %last#0[%t, %c0] : !slice
    %w = memref.load %flag[%c0] : memref<3xi8, 3>
    %f = arith.sitofp %w : i8 to f16
    %s = arith.addf %v, %f : f16
    memref.store %s, %out[%t, %c0] : memref<64x64xf16>
    gpu.return
  }

  func.func private @store(%tile: memref<64x64xf16, 3>, %map: !llvm.ptr) attributes {no_inline} {
    %zero = arith.constant 0 : i32
    %index = memref.extract_aligned_pointer_as_index %tile : memref<64x64xf16, 3> -> index
    %bits = arith.index_cast %index : index to i64
    %address = llvm.inttoptr %bits : i64 to !llvm.ptr<3>
    nvvm.cp.async.bulk.tensor.global.shared.cta %map, %address, box[%zero, %zero] : !llvm.ptr, !llvm.ptr<3>
    return
  }

  // PTX-LABEL: .entry through_a_call(
  // PTX: .shared .align 1024 .b8 {{.*}}[8192];
  gpu.func @through_a_call(%map: !llvm.ptr) workgroup(%tile: memref<64x64xf16, 3>) kernel {
    func.call @store(%tile, %map) : (memref<64x64xf16, 3>, !llvm.ptr) -> ()
    gpu.return
  }

  // A quarter of a tile in front of the view leaves it where the hardware wants it.
  // PTX-LABEL: .entry four_matrices(
  // PTX: .shared .align 16 .b8 {{.*}}[2048];
  gpu.func @four_matrices(%out: memref<2xf16>) workgroup(%tile: memref<32x32xf16, 3>) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %m = nvgpu.ldmatrix %tile[%c8, %c0] {numTiles = 4 : i32, transpose = false} : memref<32x32xf16, 3> -> vector<4x2xf16>
    %v = vector.extract %m[0] : vector<2xf16> from vector<4x2xf16>
    vector.store %v, %out[%c0] : memref<2xf16>, vector<2xf16>
    gpu.return
  }

  // Memory whose size the launch gives; and the address in the descriptors of matrices.
  gpu.func @multiply(%map: !map) kernel {
    %zero = arith.constant 0 : index
    %half = arith.constant 8192 : index
    %memory = gpu.dynamic_shared_memory : !shared
    %a = memref.view %memory[%zero][] : !shared to memref<64x64xf16, #gpu.address_space<workgroup>>
    %b = memref.view %memory[%half][] : !shared to memref<64x64xf16, #gpu.address_space<workgroup>>
    %c = memref.view %memory[%zero][] : !shared to memref<64x64xf32, #gpu.address_space<workgroup>>
    %da = nvgpu.warpgroup.generate.descriptor %a, %map : memref<64x64xf16, #gpu.address_space<workgroup>>, !map -> !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, 3>>
    %db = nvgpu.warpgroup.generate.descriptor %b, %map : memref<64x64xf16, #gpu.address_space<workgroup>>, !map -> !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, 3>>
    %0 = nvgpu.warpgroup.mma.init.accumulator -> <fragmented = vector<64x64xf32>>
    %1 = nvgpu.warpgroup.mma %da, %db, %0 {transposeB} : <tensor = memref<64x64xf16, 3>>, <tensor = memref<64x64xf16, 3>>, <fragmented = vector<64x64xf32>> -> <fragmented = vector<64x64xf32>>
    nvgpu.warpgroup.mma.store %1, %c : <fragmented = vector<64x64xf32>> to memref<64x64xf32, #gpu.address_space<workgroup>>
    gpu.return
  }
}
