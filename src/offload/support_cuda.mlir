// What the CUDA runtime needs beyond `support.mlir`. Enumerators and structures are from driver_types.h of CUDA 13.0; they
// have not changed since 11.8, which has the first of these functions with clusters.

llvm.func @cudaFuncSetAttribute(!llvm.ptr, i32, i32) -> i32
llvm.func @cudaLaunchKernelExC(!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32

// More than 48 KiB of dynamic shared memory have to be asked for (CUDA C++ Programming Guide, "Shared Memory"):
// cudaFuncAttributeMaxDynamicSharedMemorySize is 8.
llvm.func internal @__gpulower_permit_shared(%handle: !llvm.ptr, %shared: i64) -> i32 {
  %usual = llvm.mlir.constant(49152 : i64) : i64
  %zero = llvm.mlir.constant(0 : i32) : i32
  %more = llvm.icmp "ugt" %shared, %usual : i64
  llvm.cond_br %more, ^ask, ^done(%zero : i32)
^ask:
  %attribute = llvm.mlir.constant(8 : i32) : i32
  %bytes = llvm.trunc %shared : i64 to i32
  %asked = llvm.call @cudaFuncSetAttribute(%handle, %attribute, %bytes) : (!llvm.ptr, i32, i32) -> i32
  llvm.br ^done(%asked : i32)
^done(%status: i32):
  llvm.return %status : i32
}

// A launch with clusters of `cx` * `cy` * `cz` blocks.
llvm.func internal @__gpulower_launch_clusters(%handle: !llvm.ptr, %kernel: !llvm.ptr, %gx: i64, %gy: i64, %gz: i64, %cx: i64, %cy: i64, %cz: i64, %bx: i64, %by: i64, %bz: i64, %shared: i64, %stream: !llvm.ptr, %wait: i1, %arguments: !llvm.ptr) {
  llvm.call @__gpulower_check_sizes(%kernel, %gx, %gy, %gz, %bx, %by, %bz, %shared) : (!llvm.ptr, i64, i64, i64, i64, i64, i64, i64) -> ()
  llvm.call @__gpulower_check_sizes(%kernel, %cx, %cy, %cz, %bx, %by, %bz, %shared) : (!llvm.ptr, i64, i64, i64, i64, i64, i64, i64) -> ()
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %permitted = llvm.call @__gpulower_permit_shared(%handle, %shared) : (!llvm.ptr, i64) -> i32
  %good = llvm.icmp "eq" %permitted, %zero : i32
  llvm.cond_br %good, ^size, ^finish(%permitted : i32)
^size:
  // More than 8 blocks are not portable, and have to be permitted: cudaFuncAttributeNonPortableClusterSizeAllowed is 14.
  %portable = llvm.mlir.constant(8 : i64) : i64
  %cxy = llvm.mul %cx, %cy : i64
  %blocks = llvm.mul %cxy, %cz : i64
  %large = llvm.icmp "ugt" %blocks, %portable : i64
  llvm.cond_br %large, ^permit, ^launch
^permit:
  %attribute = llvm.mlir.constant(14 : i32) : i32
  %allowed = llvm.call @cudaFuncSetAttribute(%handle, %attribute, %one) : (!llvm.ptr, i32, i32) -> i32
  %is_allowed = llvm.icmp "eq" %allowed, %zero : i32
  llvm.cond_br %is_allowed, ^launch, ^finish(%allowed : i32)
^launch:
  // cudaLaunchConfig_t: grid, block, dynamicSmemBytes, stream, attrs, numAttrs. cudaLaunchAttribute: id, padding, 64 bytes
  // of value; cudaLaunchAttributeClusterDimension is 4, and its value three u32.
  %config = llvm.alloca %one x !llvm.struct<(i32, i32, i32, i32, i32, i32, i64, ptr, ptr, i32)> {alignment = 8 : i64} : (i32) -> !llvm.ptr
  %cluster = llvm.alloca %one x !llvm.struct<(i32, i32, i32, i32, i32, array<13 x i32>)> {alignment = 8 : i64} : (i32) -> !llvm.ptr
  %empty = llvm.mlir.zero : !llvm.struct<(i32, i32, i32, i32, i32, array<13 x i32>)>
  llvm.store %empty, %cluster : !llvm.struct<(i32, i32, i32, i32, i32, array<13 x i32>)>, !llvm.ptr
  %id = llvm.mlir.constant(4 : i32) : i32
  llvm.store %id, %cluster : i32, !llvm.ptr
  %cx32 = llvm.trunc %cx : i64 to i32
  %cy32 = llvm.trunc %cy : i64 to i32
  %cz32 = llvm.trunc %cz : i64 to i32
  %c2 = llvm.getelementptr %cluster[2] : (!llvm.ptr) -> !llvm.ptr, i32
  %c3 = llvm.getelementptr %cluster[3] : (!llvm.ptr) -> !llvm.ptr, i32
  %c4 = llvm.getelementptr %cluster[4] : (!llvm.ptr) -> !llvm.ptr, i32
  llvm.store %cx32, %c2 : i32, !llvm.ptr
  llvm.store %cy32, %c3 : i32, !llvm.ptr
  llvm.store %cz32, %c4 : i32, !llvm.ptr
  %gx32 = llvm.trunc %gx : i64 to i32
  %gy32 = llvm.trunc %gy : i64 to i32
  %gz32 = llvm.trunc %gz : i64 to i32
  %bx32 = llvm.trunc %bx : i64 to i32
  %by32 = llvm.trunc %by : i64 to i32
  %bz32 = llvm.trunc %bz : i64 to i32
  %f1 = llvm.getelementptr %config[1] : (!llvm.ptr) -> !llvm.ptr, i32
  %f2 = llvm.getelementptr %config[2] : (!llvm.ptr) -> !llvm.ptr, i32
  %f3 = llvm.getelementptr %config[3] : (!llvm.ptr) -> !llvm.ptr, i32
  %f4 = llvm.getelementptr %config[4] : (!llvm.ptr) -> !llvm.ptr, i32
  %f5 = llvm.getelementptr %config[5] : (!llvm.ptr) -> !llvm.ptr, i32
  %f6 = llvm.getelementptr %config[6] : (!llvm.ptr) -> !llvm.ptr, i32
  %f8 = llvm.getelementptr %config[8] : (!llvm.ptr) -> !llvm.ptr, i32
  %f10 = llvm.getelementptr %config[10] : (!llvm.ptr) -> !llvm.ptr, i32
  %f12 = llvm.getelementptr %config[12] : (!llvm.ptr) -> !llvm.ptr, i32
  llvm.store %gx32, %config : i32, !llvm.ptr
  llvm.store %gy32, %f1 : i32, !llvm.ptr
  llvm.store %gz32, %f2 : i32, !llvm.ptr
  llvm.store %bx32, %f3 : i32, !llvm.ptr
  llvm.store %by32, %f4 : i32, !llvm.ptr
  llvm.store %bz32, %f5 : i32, !llvm.ptr
  llvm.store %shared, %f6 : i64, !llvm.ptr
  llvm.store %stream, %f8 : !llvm.ptr, !llvm.ptr
  llvm.store %cluster, %f10 : !llvm.ptr, !llvm.ptr
  llvm.store %one, %f12 : i32, !llvm.ptr
  %launched = llvm.call @cudaLaunchKernelExC(%config, %handle, %arguments) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
  llvm.br ^finish(%launched : i32)
^finish(%status: i32):
  llvm.call @__gpulower_finish_launch(%status, %kernel, %gx, %gy, %gz, %bx, %by, %bz, %shared, %stream, %wait) : (i32, !llvm.ptr, i64, i64, i64, i64, i64, i64, i64, !llvm.ptr, i1) -> ()
  llvm.return
}
