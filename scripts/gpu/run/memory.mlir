// Sets memory of every size of element, copies it back, and looks at it. main returns 0 if all is right.
module attributes {gpu.container_module} {
  func.func private @check(%found: i64, %wanted: i64, %so_far: i32) -> i32 {
    %same = arith.cmpi eq, %found, %wanted : i64
    %bad = arith.constant 1 : i32
    %next = arith.select %same, %so_far, %bad : i32
    return %next : i32
  }

  func.func @main() -> i32 {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = arith.constant 1237 : index
    %good = arith.constant 0 : i32
    %v8 = arith.constant 113 : i8
    %v16 = arith.constant 12345 : i16
    %v32 = arith.constant 1234567890 : i32
    %v64 = arith.constant 1234567890123456789 : i64

    %h8 = memref.alloc(%n) : memref<?xi8>
    %h16 = memref.alloc(%n) : memref<?xi16>
    %h32 = memref.alloc(%n) : memref<?xi32>
    %h64 = memref.alloc(%n) : memref<?xi64>
    %d8 = gpu.alloc (%n) : memref<?xi8>
    %d16 = gpu.alloc (%n) : memref<?xi16>
    %d32 = gpu.alloc (%n) : memref<?xi32>
    %d64 = gpu.alloc (%n) : memref<?xi64>
    gpu.memset %d8, %v8 : memref<?xi8>, i8
    gpu.memset %d16, %v16 : memref<?xi16>, i16
    gpu.memset %d32, %v32 : memref<?xi32>, i32
    gpu.memset %d64, %v64 : memref<?xi64>, i64
    gpu.memcpy %h8, %d8 : memref<?xi8>, memref<?xi8>
    gpu.memcpy %h16, %d16 : memref<?xi16>, memref<?xi16>
    gpu.memcpy %h32, %d32 : memref<?xi32>, memref<?xi32>
    gpu.memcpy %h64, %d64 : memref<?xi64>, memref<?xi64>
    gpu.dealloc %d8 : memref<?xi8>
    gpu.dealloc %d16 : memref<?xi16>
    gpu.dealloc %d32 : memref<?xi32>
    gpu.dealloc %d64 : memref<?xi64>

    %w8 = arith.extsi %v8 : i8 to i64
    %w16 = arith.extsi %v16 : i16 to i64
    %w32 = arith.extsi %v32 : i32 to i64
    %status = scf.for %i = %zero to %n step %one iter_args(%s0 = %good) -> (i32) {
      %a8 = memref.load %h8[%i] : memref<?xi8>
      %a16 = memref.load %h16[%i] : memref<?xi16>
      %a32 = memref.load %h32[%i] : memref<?xi32>
      %a64 = memref.load %h64[%i] : memref<?xi64>
      %b8 = arith.extsi %a8 : i8 to i64
      %b16 = arith.extsi %a16 : i16 to i64
      %b32 = arith.extsi %a32 : i32 to i64
      %s1 = func.call @check(%b8, %w8, %s0) : (i64, i64, i32) -> i32
      %s2 = func.call @check(%b16, %w16, %s1) : (i64, i64, i32) -> i32
      %s3 = func.call @check(%b32, %w32, %s2) : (i64, i64, i32) -> i32
      %s4 = func.call @check(%a64, %v64, %s3) : (i64, i64, i32) -> i32
      scf.yield %s4 : i32
    }
    return %status : i32
  }
}
