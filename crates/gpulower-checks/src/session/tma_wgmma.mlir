// D = A * B for 128 x 128 matrices, with the tensor memory accelerator and wgmma of sm_90a: one warpgroup, two stages of 64
// columns of A and rows of B, 65 KiB of dynamic shared memory. The numbers are multiples of 1/64 between -1 and 1, so that
// every sum is exact in f32. `main` returns how many elements are wrong; SEED stands for a number that is not 0.
!map_a = !nvgpu.tensormap.descriptor<tensor = memref<128x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
!map_b = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
!barriers = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>
!tile_a = memref<128x64xf16, #gpu.address_space<workgroup>>
!tile_b = memref<64x128xf16, #gpu.address_space<workgroup>>
!half_b = memref<64x64xf16, #gpu.address_space<workgroup>>
!bytes = memref<?xi8, #gpu.address_space<workgroup>>
!sum = !nvgpu.warpgroup.accumulator<fragmented = vector<128x128xf32>>

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @multiply(%map_a: !map_a, %map_b: !map_b, %d: memref<128x128xf32>) kernel
        attributes {known_block_size = array<i32: 128, 1, 1>} {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %two = arith.constant 2 : index
      %columns = arith.constant 64 : index
      %stage_bytes = arith.constant 16384 : index
      %half_bytes = arith.constant 8192 : index
      %all_a_bytes = arith.constant 32768 : index
      %transaction = arith.constant 32768 : index
      %ticks = arith.constant 10000000 : index
      %first_phase = arith.constant false
      %thread = gpu.thread_id x
      %is_first = arith.cmpi eq, %thread, %zero : index

      // The pattern of 128 bytes repeats every 1024 bytes of the address.
      %memory = gpu.dynamic_shared_memory : !bytes
      %address = memref.extract_aligned_pointer_as_index %memory : !bytes -> index
      %most = arith.constant 1023 : index
      %mask = arith.constant -1024 : index
      %beyond = arith.addi %address, %most : index
      %aligned = arith.andi %beyond, %mask : index
      %start_a = arith.subi %aligned, %address : index
      %start_b = arith.addi %start_a, %all_a_bytes : index

      %barriers = nvgpu.mbarrier.create -> !barriers
      scf.if %is_first {
        nvgpu.mbarrier.init %barriers[%zero], %one : !barriers
        nvgpu.mbarrier.init %barriers[%one], %one : !barriers
        nvgpu.tma.fence.descriptor %map_a : !map_a
        nvgpu.tma.fence.descriptor %map_b : !map_b
      }
      gpu.barrier
      scf.if %is_first {
        scf.for %stage = %zero to %two step %one {
          %skipped = arith.muli %stage, %stage_bytes : index
          %at_a = arith.addi %start_a, %skipped : index
          %at_b = arith.addi %start_b, %skipped : index
          %at_half = arith.addi %at_b, %half_bytes : index
          %tile_a = memref.view %memory[%at_a][] : !bytes to !tile_a
          %left = memref.view %memory[%at_b][] : !bytes to !half_b
          %right = memref.view %memory[%at_half][] : !bytes to !half_b
          %k = arith.muli %stage, %columns : index
          nvgpu.mbarrier.arrive.expect_tx %barriers[%stage], %transaction : !barriers
          nvgpu.tma.async.load %map_a[%k, %zero], %barriers[%stage] to %tile_a : !map_a, !barriers -> !tile_a
          nvgpu.tma.async.load %map_b[%zero, %k], %barriers[%stage] to %left : !map_b, !barriers -> !half_b
          nvgpu.tma.async.load %map_b[%columns, %k], %barriers[%stage] to %right : !map_b, !barriers -> !half_b
        }
      }

      %none = nvgpu.warpgroup.mma.init.accumulator -> !sum
      %sum = scf.for %stage = %zero to %two step %one iter_args(%so_far = %none) -> (!sum) {
        nvgpu.mbarrier.try_wait.parity %barriers[%stage], %first_phase, %ticks : !barriers
        %skipped = arith.muli %stage, %stage_bytes : index
        %at_a = arith.addi %start_a, %skipped : index
        %at_b = arith.addi %start_b, %skipped : index
        %tile_a = memref.view %memory[%at_a][] : !bytes to !tile_a
        %tile_b = memref.view %memory[%at_b][] : !bytes to !tile_b
        %a = nvgpu.warpgroup.generate.descriptor %tile_a, %map_a : !tile_a, !map_a -> !nvgpu.warpgroup.descriptor<tensor = !tile_a>
        %b = nvgpu.warpgroup.generate.descriptor %tile_b, %map_b : !tile_b, !map_b -> !nvgpu.warpgroup.descriptor<tensor = !tile_b>
        %next = nvgpu.warpgroup.mma %a, %b, %so_far {transposeB} : !nvgpu.warpgroup.descriptor<tensor = !tile_a>, !nvgpu.warpgroup.descriptor<tensor = !tile_b>, !sum -> !sum
        scf.yield %next : !sum
      }
      nvvm.wgmma.wait.group.sync.aligned 0
      nvgpu.warpgroup.mma.store %sum, %d : !sum to memref<128x128xf32>
      gpu.return
    }
  }

  // Multiples of 1/64, from -63 to 63 of them: the upper bits of a linear congruential generator.
  func.func private @fill(%m: memref<128x128xf16>, %seed: i32) -> i32 {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = arith.constant 128 : index
    %factor = arith.constant 1664525 : i32
    %step = arith.constant 1013904223 : i32
    %shift = arith.constant 16 : i32
    %range = arith.constant 127 : i32
    %middle = arith.constant 63 : i32
    %unit = arith.constant 0.015625 : f16
    %last = scf.for %i = %zero to %n step %one iter_args(%row = %seed) -> (i32) {
      %end = scf.for %j = %zero to %n step %one iter_args(%state = %row) -> (i32) {
        %product = arith.muli %state, %factor : i32
        %next = arith.addi %product, %step : i32
        %high = arith.shrui %next, %shift : i32
        %low = arith.remui %high, %range : i32
        %centred = arith.subi %low, %middle : i32
        %whole = arith.sitofp %centred : i32 to f16
        %value = arith.mulf %whole, %unit : f16
        memref.store %value, %m[%i, %j] : memref<128x128xf16>
        scf.yield %next : i32
      }
      scf.yield %end : i32
    }
    return %last : i32
  }

  func.func @main() -> i64 {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = arith.constant 128 : index
    %box = arith.constant 64 : index
    %threads = arith.constant 128 : index
    %shared = arith.constant 66560 : i32
    %seed = arith.constant SEED : i32
    %poison = arith.constant -1.0e30 : f32
    %none = arith.constant 0.0 : f32
    %no = arith.constant 0 : i64
    %yes = arith.constant 1 : i64
    %a = memref.alloc() : memref<128x128xf16>
    %b = memref.alloc() : memref<128x128xf16>
    %d = memref.alloc() : memref<128x128xf32>
    %later = func.call @fill(%a, %seed) : (memref<128x128xf16>, i32) -> i32
    %unused = func.call @fill(%b, %later) : (memref<128x128xf16>, i32) -> i32
    scf.for %i = %zero to %n step %one {
      scf.for %j = %zero to %n step %one {
        memref.store %poison, %d[%i, %j] : memref<128x128xf32>
      }
    }
    %start = gpu.wait async
    %on_a, %t0 = gpu.alloc async [%start] () : memref<128x128xf16>
    %on_b, %t1 = gpu.alloc async [%t0] () : memref<128x128xf16>
    %on_d, %t2 = gpu.alloc async [%t1] () : memref<128x128xf32>
    %t3 = gpu.memcpy async [%t2] %on_a, %a : memref<128x128xf16>, memref<128x128xf16>
    %t4 = gpu.memcpy async [%t3] %on_b, %b : memref<128x128xf16>, memref<128x128xf16>
    %t5 = gpu.memcpy async [%t4] %on_d, %d : memref<128x128xf32>, memref<128x128xf32>
    gpu.wait [%t5]
    %any_a = memref.cast %on_a : memref<128x128xf16> to memref<*xf16>
    %any_b = memref.cast %on_b : memref<128x128xf16> to memref<*xf16>
    %map_a = nvgpu.tma.create.descriptor %any_a box[%n, %box] : memref<*xf16> -> !map_a
    %map_b = nvgpu.tma.create.descriptor %any_b box[%box, %box] : memref<*xf16> -> !map_b
    gpu.launch_func @kernels::@multiply blocks in (%one, %one, %one) threads in (%threads, %one, %one)
        dynamic_shared_memory_size %shared args(%map_a : !map_a, %map_b : !map_b, %on_d : memref<128x128xf32>)
    gpu.memcpy %d, %on_d : memref<128x128xf32>, memref<128x128xf32>
    %wrong = scf.for %i = %zero to %n step %one iter_args(%row = %no) -> (i64) {
      %of_row = scf.for %j = %zero to %n step %one iter_args(%count = %row) -> (i64) {
        %expected = scf.for %k = %zero to %n step %one iter_args(%so_far = %none) -> (f32) {
          %x = memref.load %a[%i, %k] : memref<128x128xf16>
          %y = memref.load %b[%k, %j] : memref<128x128xf16>
          %xf = arith.extf %x : f16 to f32
          %yf = arith.extf %y : f16 to f32
          %product = arith.mulf %xf, %yf : f32
          %next = arith.addf %so_far, %product : f32
          scf.yield %next : f32
        }
        %found = memref.load %d[%i, %j] : memref<128x128xf32>
        %same = arith.cmpf oeq, %found, %expected : f32
        %more = arith.select %same, %no, %yes : i64
        %next_count = arith.addi %count, %more : i64
        scf.yield %next_count : i64
      }
      scf.yield %of_row : i64
    }
    return %wrong : i64
  }
}
