// Tasks that wait for each other: two copies of what the first allocates, and their sum, by tokens of their own (`main`) and
// by tokens of the gpu dialect that tasks hand on (`tokens`). Both return how many elements are wrong. `stops` has a task
// whose allocation fails.
func.func private @exit(i32)

func.func private @host() -> memref<64xi32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 64 : index
  %h = memref.alloc() : memref<64xi32>
  scf.for %i = %zero to %n step %one {
    %v = arith.index_cast %i : index to i32
    memref.store %v, %h[%i] : memref<64xi32>
  }
  return %h : memref<64xi32>
}

func.func private @wrong(%h: memref<64xi32>) -> i32 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 64 : index
  %none = arith.constant 0 : i32
  %two = arith.constant 2 : i32
  %count = scf.for %i = %zero to %n step %one iter_args(%c = %none) -> i32 {
    %v = arith.index_cast %i : index to i32
    %wanted = arith.muli %v, %two : i32
    %found = memref.load %h[%i] : memref<64xi32>
    %differs = arith.cmpi ne, %wanted, %found : i32
    %more = arith.extui %differs : i1 to i32
    %next = arith.addi %c, %more : i32
    scf.yield %next : i32
  }
  return %count : i32
}

func.func @main() -> i32 {
  %one = arith.constant 1 : index
  %n = arith.constant 64 : index
  %h = func.call @host() : () -> memref<64xi32>
  %t0, %f0 = async.execute () -> !async.value<memref<64xi32>> {
    %b = gpu.alloc () : memref<64xi32>
    gpu.memcpy %b, %h : memref<64xi32>, memref<64xi32>
    async.yield %b : memref<64xi32>
  }
  %t1, %f1 = async.execute [%t0] (%f0 as %b: !async.value<memref<64xi32>>) -> !async.value<memref<64xi32>> {
    %c = gpu.alloc () : memref<64xi32>
    gpu.memcpy %c, %b : memref<64xi32>, memref<64xi32>
    async.yield %c : memref<64xi32>
  }
  %t2, %f2 = async.execute [%t0] (%f0 as %b: !async.value<memref<64xi32>>) -> !async.value<memref<64xi32>> {
    %c = gpu.alloc () : memref<64xi32>
    gpu.memcpy %c, %b : memref<64xi32>, memref<64xi32>
    async.yield %c : memref<64xi32>
  }
  %t3 = async.execute [%t1, %t2] (%f1 as %b: !async.value<memref<64xi32>>, %f2 as %c: !async.value<memref<64xi32>>) {
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
               threads(%tx, %ty, %tz) in (%sx = %n, %sy = %one, %sz = %one) {
      %x = memref.load %b[%tx] : memref<64xi32>
      %y = memref.load %c[%tx] : memref<64xi32>
      %sum = arith.addi %x, %y : i32
      memref.store %sum, %b[%tx] : memref<64xi32>
      gpu.terminator
    }
    gpu.memcpy %h, %b : memref<64xi32>, memref<64xi32>
    async.yield
  }
  async.await %t3 : !async.token
  %count = func.call @wrong(%h) : (memref<64xi32>) -> i32
  return %count : i32
}

func.func @tokens() -> i32 {
  %one = arith.constant 1 : index
  %n = arith.constant 64 : index
  %h = func.call @host() : () -> memref<64xi32>
  %t0, %f0:2 = async.execute -> (!async.value<memref<64xi32>>, !async.value<!gpu.async.token>) {
    %s = gpu.wait async
    %b, %u = gpu.alloc async [%s] () : memref<64xi32>
    %v = gpu.memcpy async [%u] %b, %h : memref<64xi32>, memref<64xi32>
    async.yield %b, %v : memref<64xi32>, !gpu.async.token
  }
  %t1, %f1 = async.execute [%t0] (%f0#0 as %b: !async.value<memref<64xi32>>, %f0#1 as %s: !async.value<!gpu.async.token>)
      -> !async.value<!gpu.async.token> {
    %u = gpu.launch async [%s] blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
               threads(%tx, %ty, %tz) in (%sx = %n, %sy = %one, %sz = %one) {
      %x = memref.load %b[%tx] : memref<64xi32>
      %sum = arith.addi %x, %x : i32
      memref.store %sum, %b[%tx] : memref<64xi32>
      gpu.terminator
    }
    %v = gpu.memcpy async [%u] %h, %b : memref<64xi32>, memref<64xi32>
    async.yield %v : !gpu.async.token
  }
  async.await %t1 : !async.token
  %last = async.await %f1 : !async.value<!gpu.async.token>
  gpu.wait [%last]
  %count = func.call @wrong(%h) : (memref<64xi32>) -> i32
  return %count : i32
}

func.func @stops() {
  %t, %f = async.execute () -> !async.value<memref<?xi8>> {
    %n = arith.constant 1152921504606846976 : index
    %b = gpu.alloc (%n) : memref<?xi8>
    async.yield %b : memref<?xi8>
  }
  %b = async.await %f : !async.value<memref<?xi8>>
  %status = arith.constant 77 : i32
  func.call @exit(%status) : (i32) -> ()
  return
}
