// A whole program: `main` allocates and fills two arrays, lets the GPU work on them in two kernels, copies the result
// back, checks every element, and returns 0 if all are right, 1 otherwise.
//
//   gpulower export examples/app.mlir --target sm_90 --finish-with clang-19 --emit obj -o app.o
//   clang-19 app.o --offload-link -lcudart -o app && ./app
//
// The first kernel is a saxpy, z = 2 x + y. The second turns each block of 256 elements round, through shared memory
// whose size the launch gives. The arrays have 1000003 elements, so the last block is shorter than the others.
// gpulower-targets: sm_80,sm_90,gfx90a,gfx942,gfx1100

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @saxpy(%n: index, %a: f32, %x: memref<?xf32>, %y: memref<?xf32>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>} {
      %i = gpu.global_id x
      %inside = arith.cmpi ult, %i, %n : index
      scf.if %inside {
        %xi = memref.load %x[%i] : memref<?xf32>
        %yi = memref.load %y[%i] : memref<?xf32>
        %ax = arith.mulf %a, %xi : f32
        %z = arith.addf %ax, %yi : f32
        memref.store %z, %y[%i] : memref<?xf32>
      }
      gpu.return
    }

    gpu.func @turn_blocks(%n: index, %from: memref<?xf32>, %to: memref<?xf32>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>} {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %memory = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      %tile = memref.view %memory[%zero][] : memref<?xi8, #gpu.address_space<workgroup>>
          to memref<256xf32, #gpu.address_space<workgroup>>
      %t = gpu.thread_id x
      %block = gpu.block_id x
      %size = gpu.block_dim x
      %start = arith.muli %block, %size : index
      %i = arith.addi %start, %t : index
      %inside = arith.cmpi ult, %i, %n : index
      scf.if %inside {
        %v = memref.load %from[%i] : memref<?xf32>
        memref.store %v, %tile[%t] : memref<256xf32, #gpu.address_space<workgroup>>
      }
      gpu.barrier
      scf.if %inside {
        %rest = arith.subi %n, %start : index
        %count = arith.minui %rest, %size : index
        %last = arith.subi %count, %one : index
        %other = arith.subi %last, %t : index
        %v = memref.load %tile[%other] : memref<256xf32, #gpu.address_space<workgroup>>
        memref.store %v, %to[%i] : memref<?xf32>
      }
      gpu.return
    }
  }

  // What element i of the result of `saxpy` is: all numbers are small integers, so f32 holds them exactly.
  func.func private @expected(%i: index) -> f32 {
    %x = func.call @element(%i) : (index) -> f32
    %two = arith.constant 2.0 : f32
    %ax = arith.mulf %two, %x : f32
    %y = func.call @other_element(%i) : (index) -> f32
    %z = arith.addf %ax, %y : f32
    return %z : f32
  }

  func.func private @element(%i: index) -> f32 {
    %period = arith.constant 1024 : index
    %rest = arith.remui %i, %period : index
    %integer = arith.index_cast %rest : index to i32
    %x = arith.sitofp %integer : i32 to f32
    return %x : f32
  }

  func.func private @other_element(%i: index) -> f32 {
    %period = arith.constant 7 : index
    %rest = arith.remui %i, %period : index
    %integer = arith.index_cast %rest : index to i32
    %y = arith.sitofp %integer : i32 to f32
    return %y : f32
  }

  func.func @main() -> i32 {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %threads = arith.constant 256 : index
    %n = arith.constant 1000003 : index
    %a = arith.constant 2.0 : f32
    %shared = arith.constant 1024 : i32

    %x = memref.alloc(%n) : memref<?xf32>
    %y = memref.alloc(%n) : memref<?xf32>
    scf.for %i = %zero to %n step %one {
      %xi = func.call @element(%i) : (index) -> f32
      memref.store %xi, %x[%i] : memref<?xf32>
      %yi = func.call @other_element(%i) : (index) -> f32
      memref.store %yi, %y[%i] : memref<?xf32>
    }

    // Two chains of work that know nothing of each other until the kernel needs both.
    %start_x = gpu.wait async
    %device_x, %allocated_x = gpu.alloc async [%start_x] (%n) : memref<?xf32>
    %copied_x = gpu.memcpy async [%allocated_x] %device_x, %x : memref<?xf32>, memref<?xf32>
    %start_y = gpu.wait async
    %device_y, %allocated_y = gpu.alloc async [%start_y] (%n) : memref<?xf32>
    %copied_y = gpu.memcpy async [%allocated_y] %device_y, %y : memref<?xf32>, memref<?xf32>

    %blocks = arith.ceildivui %n, %threads : index
    %summed = gpu.launch_func async [%copied_x, %copied_y] @kernels::@saxpy
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        args(%n : index, %a : f32, %device_x : memref<?xf32>, %device_y : memref<?xf32>)
    %turned = gpu.launch_func async [%summed] @kernels::@turn_blocks
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        dynamic_shared_memory_size %shared
        args(%n : index, %device_y : memref<?xf32>, %device_x : memref<?xf32>)
    %copied = gpu.memcpy async [%turned] %x, %device_x : memref<?xf32>, memref<?xf32>
    %freed_x = gpu.dealloc async [%copied] %device_x : memref<?xf32>
    %freed_y = gpu.dealloc async [%freed_x] %device_y : memref<?xf32>
    gpu.wait [%freed_y]

    %good = arith.constant 0 : i32
    %bad = arith.constant 1 : i32
    %status = scf.for %i = %zero to %n step %one iter_args(%so_far = %good) -> (i32) {
      %t = arith.remui %i, %threads : index
      %start = arith.subi %i, %t : index
      %rest = arith.subi %n, %start : index
      %count = arith.minui %rest, %threads : index
      %last = arith.subi %count, %one : index
      %place = arith.subi %last, %t : index
      %origin = arith.addi %start, %place : index
      %wanted = func.call @expected(%origin) : (index) -> f32
      %found = memref.load %x[%i] : memref<?xf32>
      %same = arith.cmpf oeq, %found, %wanted : f32
      %next = arith.select %same, %so_far, %bad : i32
      scf.yield %next : i32
    }
    memref.dealloc %x : memref<?xf32>
    memref.dealloc %y : memref<?xf32>
    return %status : i32
  }
}
