// Tensor maps, as MLIR's lowering of nvgpu.tma.create.descriptor asks for them: a tensor of 64 x 128 f16, boxes of 64 x 64.
// main returns 0 if the descriptor is memory that can be copied; `badly` asks for a box that is too large.
module {
  llvm.func @mgpuMemAlloc(i64, !llvm.ptr, i8) -> !llvm.ptr
  llvm.func @mgpuMemFree(!llvm.ptr, !llvm.ptr)
  llvm.func @mgpuMemcpy(!llvm.ptr, !llvm.ptr, i64, !llvm.ptr)
  llvm.func @mgpuStreamSynchronize(!llvm.ptr)
  llvm.func @mgpuTensorMapEncodeTiledMemref(i64, !llvm.ptr, i64, i64, i64, i64, i64, !llvm.ptr) -> !llvm.ptr

  llvm.func internal @encode(%box: i64) -> i32 {
    %null = llvm.mlir.zero : !llvm.ptr
    %private = llvm.mlir.constant(0 : i8) : i8
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %two = llvm.mlir.constant(2 : i64) : i64
    %rows = llvm.mlir.constant(64 : i64) : i64
    %columns = llvm.mlir.constant(128 : i64) : i64
    %bytes = llvm.mlir.constant(16384 : i64) : i64
    %f16 = llvm.mlir.constant(6 : i64) : i64
    %swizzle = llvm.mlir.constant(3 : i64) : i64
    %sixteen = llvm.mlir.constant(16 : i64) : i64
    %memory = llvm.call @mgpuMemAlloc(%bytes, %null, %private) : (i64, !llvm.ptr, i8) -> !llvm.ptr
    %descriptor = llvm.alloca %one x !llvm.array<7 x i64> : (i64) -> !llvm.ptr
    %address = llvm.ptrtoint %memory : !llvm.ptr to i64
    %d1 = llvm.getelementptr %descriptor[1] : (!llvm.ptr) -> !llvm.ptr, i64
    %d2 = llvm.getelementptr %descriptor[2] : (!llvm.ptr) -> !llvm.ptr, i64
    %d3 = llvm.getelementptr %descriptor[3] : (!llvm.ptr) -> !llvm.ptr, i64
    %d4 = llvm.getelementptr %descriptor[4] : (!llvm.ptr) -> !llvm.ptr, i64
    %d5 = llvm.getelementptr %descriptor[5] : (!llvm.ptr) -> !llvm.ptr, i64
    %d6 = llvm.getelementptr %descriptor[6] : (!llvm.ptr) -> !llvm.ptr, i64
    llvm.store %address, %descriptor : i64, !llvm.ptr
    llvm.store %address, %d1 : i64, !llvm.ptr
    llvm.store %zero, %d2 : i64, !llvm.ptr
    llvm.store %rows, %d3 : i64, !llvm.ptr
    llvm.store %columns, %d4 : i64, !llvm.ptr
    llvm.store %columns, %d5 : i64, !llvm.ptr
    llvm.store %one, %d6 : i64, !llvm.ptr
    %boxes = llvm.alloca %two x i64 : (i64) -> !llvm.ptr
    %b1 = llvm.getelementptr %boxes[1] : (!llvm.ptr) -> !llvm.ptr, i64
    llvm.store %rows, %boxes : i64, !llvm.ptr
    llvm.store %box, %b1 : i64, !llvm.ptr
    %map = llvm.call @mgpuTensorMapEncodeTiledMemref(%two, %descriptor, %f16, %zero, %swizzle, %zero, %zero, %boxes)
        : (i64, !llvm.ptr, i64, i64, i64, i64, i64, !llvm.ptr) -> !llvm.ptr
    %copy = llvm.alloca %sixteen x i64 : (i64) -> !llvm.ptr
    llvm.call @mgpuMemcpy(%copy, %map, %columns, %null) : (!llvm.ptr, !llvm.ptr, i64, !llvm.ptr) -> ()
    llvm.call @mgpuStreamSynchronize(%null) : (!llvm.ptr) -> ()
    // The driver writes the address of the tensor first.
    %found = llvm.load %copy : !llvm.ptr -> i64
    %same = llvm.icmp "eq" %found, %address : i64
    llvm.call @mgpuMemFree(%map, %null) : (!llvm.ptr, !llvm.ptr) -> ()
    llvm.call @mgpuMemFree(%memory, %null) : (!llvm.ptr, !llvm.ptr) -> ()
    %good = llvm.mlir.constant(0 : i32) : i32
    %bad = llvm.mlir.constant(1 : i32) : i32
    %status = llvm.select %same, %good, %bad : i1, i32
    llvm.return %status : i32
  }
  llvm.func @main() -> i32 {
    %box = llvm.mlir.constant(64 : i64) : i64
    %status = llvm.call @encode(%box) : (i64) -> i32
    llvm.return %status : i32
  }
  llvm.func @badly() -> i32 {
    %box = llvm.mlir.constant(4096 : i64) : i64
    %status = llvm.call @encode(%box) : (i64) -> i32
    llvm.return %status : i32
  }
}
