// What `support.mlir` calls, on top of libomptarget. Its functions are synchronous: there are no streams, and events have
// happened. Launches are described by `KernelArgsTy` (llvm/offload/include/Shared/APITypes.h), as libomptarget of the releases
// reads it for which the program is made: `gpulower_image::offload::openmp`.
//
// Memory of the device is entered in libomptarget's table of mappings as its own counterpart. That says of an address whether
// it is one of the device's: a copy has to name the device of each side.
//
// A status: 1 the call failed, 2 there is no memory, 3 no device, 4 too much dynamic shared memory, 5 too many dimensions.

!KernelArgs = !llvm.struct<(i32, i32, ptr, ptr, ptr, ptr, ptr, ptr, i64, i64, array<3 x i32>, array<3 x i32>, i32)>

llvm.func @__tgt_target_kernel(!llvm.ptr, i64, i32, i32, !llvm.ptr, !llvm.ptr) -> i32
llvm.func @omp_get_default_device() -> i32
llvm.func @omp_set_default_device(i32)
llvm.func @omp_get_initial_device() -> i32
llvm.func @omp_target_alloc(i64, i32) -> !llvm.ptr
llvm.func @llvm_omp_target_alloc_shared(i64, i32) -> !llvm.ptr
llvm.func @omp_target_free(!llvm.ptr, i32)
llvm.func @omp_target_memcpy(!llvm.ptr, !llvm.ptr, i64, i64, i64, i32, i32) -> i32
llvm.func @omp_target_associate_ptr(!llvm.ptr, !llvm.ptr, i64, i64, i32) -> i32
llvm.func @omp_target_disassociate_ptr(!llvm.ptr, i32) -> i32
llvm.func @omp_get_mapped_ptr(!llvm.ptr, i32) -> !llvm.ptr
llvm.func @malloc(i64) -> !llvm.ptr
llvm.func @free(!llvm.ptr)

llvm.mlir.global internal constant @__gpulower_omp_name("libomptarget\00")
llvm.mlir.global internal constant @__gpulower_omp_failed("the call failed; LIBOMPTARGET_INFO=-1 says more\00")
llvm.mlir.global internal constant @__gpulower_omp_no_memory("there is not that much memory\00")
llvm.mlir.global internal constant @__gpulower_omp_no_device("there is no device, or no image for the device that there is; LIBOMPTARGET_INFO=-1 says more\00")
llvm.mlir.global internal constant @__gpulower_omp_shared("libomptarget of clang up to 21 launches nothing with 48 KiB of dynamic shared memory or more\00")
llvm.mlir.global internal constant @__gpulower_omp_dimensions("libomptarget of clang up to 19 launches grids and blocks of one dimension alone\00")

llvm.func internal @ompGetErrorName(%status: i32) -> !llvm.ptr {
  %name = llvm.mlir.addressof @__gpulower_omp_name : !llvm.ptr
  llvm.return %name : !llvm.ptr
}

llvm.func internal @ompGetErrorString(%status: i32) -> !llvm.ptr {
  %two = llvm.mlir.constant(2 : i32) : i32
  %three = llvm.mlir.constant(3 : i32) : i32
  %four = llvm.mlir.constant(4 : i32) : i32
  %five = llvm.mlir.constant(5 : i32) : i32
  %failed = llvm.mlir.addressof @__gpulower_omp_failed : !llvm.ptr
  %no_memory = llvm.mlir.addressof @__gpulower_omp_no_memory : !llvm.ptr
  %no_device = llvm.mlir.addressof @__gpulower_omp_no_device : !llvm.ptr
  %shared = llvm.mlir.addressof @__gpulower_omp_shared : !llvm.ptr
  %dimensions = llvm.mlir.addressof @__gpulower_omp_dimensions : !llvm.ptr
  %is_two = llvm.icmp "eq" %status, %two : i32
  %is_three = llvm.icmp "eq" %status, %three : i32
  %is_four = llvm.icmp "eq" %status, %four : i32
  %is_five = llvm.icmp "eq" %status, %five : i32
  %0 = llvm.select %is_two, %no_memory, %failed : i1, !llvm.ptr
  %1 = llvm.select %is_three, %no_device, %0 : i1, !llvm.ptr
  %2 = llvm.select %is_four, %shared, %1 : i1, !llvm.ptr
  %3 = llvm.select %is_five, %dimensions, %2 : i1, !llvm.ptr
  llvm.return %3 : !llvm.ptr
}

// Enters what was allocated, and says whether something was.
llvm.func internal @__gpulower_omp_allocated(%place: !llvm.ptr, %memory: !llvm.ptr, %size: i64, %device: i32) -> i32 {
  %null = llvm.mlir.zero : !llvm.ptr
  %zero = llvm.mlir.constant(0 : i32) : i32
  %none = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i32) : i32
  %two = llvm.mlir.constant(2 : i32) : i32
  llvm.store %memory, %place : !llvm.ptr, !llvm.ptr
  %missing = llvm.icmp "eq" %memory, %null : !llvm.ptr
  llvm.cond_br %missing, ^missing, ^there
^missing:
  // Of no bytes there is nothing.
  %empty = llvm.icmp "eq" %size, %none : i64
  %status = llvm.select %empty, %zero, %two : i1, i32
  llvm.return %status : i32
^there:
  %associated = llvm.call @omp_target_associate_ptr(%memory, %memory, %size, %none, %device) : (!llvm.ptr, !llvm.ptr, i64, i64, i32) -> i32
  %good = llvm.icmp "eq" %associated, %zero : i32
  %result = llvm.select %good, %zero, %one : i1, i32
  llvm.return %result : i32
}

// The default device; the number of the host where there is none.
llvm.func internal @__gpulower_omp_has_device(%device: i32) -> i1 {
  %host = llvm.call @omp_get_initial_device() : () -> i32
  %has = llvm.icmp "ne" %device, %host : i32
  llvm.return %has : i1
}

llvm.func internal @ompMalloc(%place: !llvm.ptr, %size: i64) -> i32 {
  %three = llvm.mlir.constant(3 : i32) : i32
  %device = llvm.call @omp_get_default_device() : () -> i32
  %has = llvm.call @__gpulower_omp_has_device(%device) : (i32) -> i1
  llvm.cond_br %has, ^allocate, ^none
^none:
  llvm.return %three : i32
^allocate:
  %memory = llvm.call @omp_target_alloc(%size, %device) : (i64, i32) -> !llvm.ptr
  %status = llvm.call @__gpulower_omp_allocated(%place, %memory, %size, %device) : (!llvm.ptr, !llvm.ptr, i64, i32) -> i32
  llvm.return %status : i32
}

llvm.func internal @ompMallocManaged(%place: !llvm.ptr, %size: i64, %flags: i32) -> i32 {
  %three = llvm.mlir.constant(3 : i32) : i32
  %device = llvm.call @omp_get_default_device() : () -> i32
  %has = llvm.call @__gpulower_omp_has_device(%device) : (i32) -> i1
  llvm.cond_br %has, ^allocate, ^none
^none:
  llvm.return %three : i32
^allocate:
  %memory = llvm.call @llvm_omp_target_alloc_shared(%size, %device) : (i64, i32) -> !llvm.ptr
  %status = llvm.call @__gpulower_omp_allocated(%place, %memory, %size, %device) : (!llvm.ptr, !llvm.ptr, i64, i32) -> i32
  llvm.return %status : i32
}

llvm.func internal @ompFree(%memory: !llvm.ptr) -> i32 {
  %null = llvm.mlir.zero : !llvm.ptr
  %zero = llvm.mlir.constant(0 : i32) : i32
  %empty = llvm.icmp "eq" %memory, %null : !llvm.ptr
  llvm.cond_br %empty, ^done, ^free
^free:
  %device = llvm.call @omp_get_default_device() : () -> i32
  %0 = llvm.call @omp_target_disassociate_ptr(%memory, %device) : (!llvm.ptr, i32) -> i32
  llvm.call @omp_target_free(%memory, %device) : (!llvm.ptr, i32) -> ()
  llvm.br ^done
^done:
  llvm.return %zero : i32
}

// The device at whose memory an address is: its own counterpart there. Every other address is one of the host.
llvm.func internal @__gpulower_omp_place(%memory: !llvm.ptr, %device: i32) -> i32 {
  %host = llvm.call @omp_get_initial_device() : () -> i32
  %mapped = llvm.call @omp_get_mapped_ptr(%memory, %device) : (!llvm.ptr, i32) -> !llvm.ptr
  %is_device = llvm.icmp "eq" %mapped, %memory : !llvm.ptr
  %place = llvm.select %is_device, %device, %host : i1, i32
  llvm.return %place : i32
}

llvm.func internal @ompMemcpyAsync(%to: !llvm.ptr, %from: !llvm.ptr, %size: i64, %kind: i32, %stream: !llvm.ptr) -> i32 {
  %none = llvm.mlir.constant(0 : i64) : i64
  %zero = llvm.mlir.constant(0 : i32) : i32
  %three = llvm.mlir.constant(3 : i32) : i32
  %empty = llvm.icmp "eq" %size, %none : i64
  llvm.cond_br %empty, ^done(%zero : i32), ^ask
^ask:
  %device = llvm.call @omp_get_default_device() : () -> i32
  %has = llvm.call @__gpulower_omp_has_device(%device) : (i32) -> i1
  llvm.cond_br %has, ^copy, ^done(%three : i32)
^copy:
  %to_device = llvm.call @__gpulower_omp_place(%to, %device) : (!llvm.ptr, i32) -> i32
  %from_device = llvm.call @__gpulower_omp_place(%from, %device) : (!llvm.ptr, i32) -> i32
  %status = llvm.call @omp_target_memcpy(%to, %from, %size, %none, %none, %to_device, %from_device) : (!llvm.ptr, !llvm.ptr, i64, i64, i64, i32, i32) -> i32
  llvm.br ^done(%status : i32)
^done(%result: i32):
  llvm.return %result : i32
}

// By way of the host: omp_target_memset is there from clang 18 on alone.
llvm.func internal @ompMemsetAsync(%to: !llvm.ptr, %value: i32, %size: i64, %stream: !llvm.ptr) -> i32 {
  %null = llvm.mlir.zero : !llvm.ptr
  %kind = llvm.mlir.constant(4 : i32) : i32
  %two = llvm.mlir.constant(2 : i32) : i32
  %zero = llvm.mlir.constant(0 : i32) : i32
  %none = llvm.mlir.constant(0 : i64) : i64
  %empty = llvm.icmp "eq" %size, %none : i64
  llvm.cond_br %empty, ^done(%zero : i32), ^allocate
^allocate:
  %buffer = llvm.call @malloc(%size) : (i64) -> !llvm.ptr
  %missing = llvm.icmp "eq" %buffer, %null : !llvm.ptr
  llvm.cond_br %missing, ^done(%two : i32), ^set
^set:
  %byte = llvm.trunc %value : i32 to i8
  "llvm.intr.memset"(%buffer, %byte, %size) <{isVolatile = false}> : (!llvm.ptr, i8, i64) -> ()
  %status = llvm.call @ompMemcpyAsync(%to, %buffer, %size, %kind, %stream) : (!llvm.ptr, !llvm.ptr, i64, i32, !llvm.ptr) -> i32
  llvm.call @free(%buffer) : (!llvm.ptr) -> ()
  llvm.br ^done(%status : i32)
^done(%result: i32):
  llvm.return %result : i32
}

llvm.func internal @ompGetDevice(%place: !llvm.ptr) -> i32 {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %device = llvm.call @omp_get_default_device() : () -> i32
  llvm.store %device, %place : i32, !llvm.ptr
  llvm.return %zero : i32
}

llvm.func internal @ompSetDevice(%device: i32) -> i32 {
  %zero = llvm.mlir.constant(0 : i32) : i32
  llvm.call @omp_set_default_device(%device) : (i32) -> ()
  llvm.return %zero : i32
}

// A stream and an event are the address of something: nothing is ever outstanding.
llvm.func internal @ompStreamCreateWithFlags(%place: !llvm.ptr, %flags: i32) -> i32 {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %something = llvm.mlir.addressof @__gpulower_omp_name : !llvm.ptr
  llvm.store %something, %place : !llvm.ptr, !llvm.ptr
  llvm.return %zero : i32
}
llvm.func internal @ompStreamDestroy(%stream: !llvm.ptr) -> i32 {
  %zero = llvm.mlir.constant(0 : i32) : i32
  llvm.return %zero : i32
}
llvm.func internal @ompStreamSynchronize(%stream: !llvm.ptr) -> i32 {
  %zero = llvm.mlir.constant(0 : i32) : i32
  llvm.return %zero : i32
}
llvm.func internal @ompStreamWaitEvent(%stream: !llvm.ptr, %event: !llvm.ptr, %flags: i32) -> i32 {
  %zero = llvm.mlir.constant(0 : i32) : i32
  llvm.return %zero : i32
}
llvm.func internal @ompEventCreateWithFlags(%place: !llvm.ptr, %flags: i32) -> i32 {
  %status = llvm.call @ompStreamCreateWithFlags(%place, %flags) : (!llvm.ptr, i32) -> i32
  llvm.return %status : i32
}
llvm.func internal @ompEventDestroy(%event: !llvm.ptr) -> i32 {
  %zero = llvm.mlir.constant(0 : i32) : i32
  llvm.return %zero : i32
}
llvm.func internal @ompEventRecord(%event: !llvm.ptr, %stream: !llvm.ptr) -> i32 {
  %zero = llvm.mlir.constant(0 : i32) : i32
  llvm.return %zero : i32
}
llvm.func internal @ompEventSynchronize(%event: !llvm.ptr) -> i32 {
  %zero = llvm.mlir.constant(0 : i32) : i32
  llvm.return %zero : i32
}

// Refused at export: `support.rs`.
llvm.func internal @ompHostRegister(%memory: !llvm.ptr, %size: i64, %flags: i32) -> i32 {
  %one = llvm.mlir.constant(1 : i32) : i32
  llvm.return %one : i32
}
llvm.func internal @ompHostUnregister(%memory: !llvm.ptr) -> i32 {
  %one = llvm.mlir.constant(1 : i32) : i32
  llvm.return %one : i32
}

llvm.func internal @__gpulower_permit_shared(%handle: !llvm.ptr, %shared: i64) -> i32 {
  %most = llvm.mlir.constant($most_shared : i64) : i64
  %zero = llvm.mlir.constant(0 : i32) : i32
  %four = llvm.mlir.constant(4 : i32) : i32
  %fits = llvm.icmp "ule" %shared, %most : i64
  %status = llvm.select %fits, %zero, %four : i1, i32
  llvm.return %status : i32
}

// A launch on the default device (-1). `arguments` are {number, values of eight bytes each, their sizes, their kinds}.
llvm.func internal @ompLaunchKernel(%handle: !llvm.ptr, %gxy: i64, %gz: $z, %bxy: i64, %bz: $z, %arguments: !llvm.ptr, %shared: i64, %stream: !llvm.ptr) -> i32 {
  %null = llvm.mlir.zero : !llvm.ptr
  %one = llvm.mlir.constant(1 : i32) : i32
  %three = llvm.mlir.constant(3 : i32) : i32
  %five = llvm.mlir.constant(5 : i32) : i32
  %zero = llvm.mlir.constant(0 : i32) : i32
  %none = llvm.mlir.constant(0 : i64) : i64
  %bits = llvm.mlir.constant(32 : i64) : i64
  %default = llvm.mlir.constant(-1 : i64) : i64
  %version = llvm.mlir.constant($version : i32) : i32
  %strict = llvm.mlir.constant($strict : i64) : i64
  %single = llvm.mlir.constant($one : i32) : i32
  %any_dimensions = llvm.mlir.constant($dimensions) : i1
  %gx = llvm.trunc %gxy : i64 to i32
  %gy_low = llvm.lshr %gxy, %bits : i64
  %gy = llvm.trunc %gy_low : i64 to i32
  %bx = llvm.trunc %bxy : i64 to i32
  %by_low = llvm.lshr %bxy, %bits : i64
  %by = llvm.trunc %by_low : i64 to i32
  $narrow_gz
  $narrow_bz
  %0 = llvm.or %gy, %gz_32 : i32
  %1 = llvm.or %by, %bz_32 : i32
  %2 = llvm.or %0, %1 : i32
  %line = llvm.icmp "ule" %2, %one : i32
  %possible = llvm.or %line, %any_dimensions : i1
  llvm.cond_br %possible, ^device, ^failed(%five : i32)
^device:
  %device = llvm.call @omp_get_default_device() : () -> i32
  %has = llvm.call @__gpulower_omp_has_device(%device) : (i32) -> i1
  llvm.cond_br %has, ^launch, ^failed(%three : i32)
^launch:
  // What is 1 may have to be 0.
  %gy_one = llvm.icmp "eq" %gy, %one : i32
  %gz_one = llvm.icmp "eq" %gz_32, %one : i32
  %by_one = llvm.icmp "eq" %by, %one : i32
  %bz_one = llvm.icmp "eq" %bz_32, %one : i32
  %gy_given = llvm.select %gy_one, %single, %gy : i1, i32
  %gz_given = llvm.select %gz_one, %single, %gz_32 : i1, i32
  %by_given = llvm.select %by_one, %single, %by : i1, i32
  %bz_given = llvm.select %bz_one, %single, %bz_32 : i1, i32
  %shared32 = llvm.trunc %shared : i64 to i32
  %count = llvm.load %arguments : !llvm.ptr -> i32
  %values_place = llvm.getelementptr %arguments[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %sizes_place = llvm.getelementptr %arguments[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %kinds_place = llvm.getelementptr %arguments[3] : (!llvm.ptr) -> !llvm.ptr, i64
  %values = llvm.load %values_place : !llvm.ptr -> !llvm.ptr
  %sizes = llvm.load %sizes_place : !llvm.ptr -> !llvm.ptr
  %kinds = llvm.load %kinds_place : !llvm.ptr -> !llvm.ptr
  %args = llvm.alloca %one x !KernelArgs {alignment = 8 : i64} : (i32) -> !llvm.ptr
  %a0 = llvm.mlir.undef : !KernelArgs
  %a1 = llvm.insertvalue %version, %a0[0] : !KernelArgs
  %a2 = llvm.insertvalue %count, %a1[1] : !KernelArgs
  %a3 = llvm.insertvalue %values, %a2[2] : !KernelArgs
  %a4 = llvm.insertvalue %values, %a3[3] : !KernelArgs
  %a5 = llvm.insertvalue %sizes, %a4[4] : !KernelArgs
  %a6 = llvm.insertvalue %kinds, %a5[5] : !KernelArgs
  %a7 = llvm.insertvalue %null, %a6[6] : !KernelArgs
  %a8 = llvm.insertvalue %null, %a7[7] : !KernelArgs
  %a9 = llvm.insertvalue %none, %a8[8] : !KernelArgs
  %a10 = llvm.insertvalue %strict, %a9[9] : !KernelArgs
  %a11 = llvm.insertvalue %gx, %a10[10, 0] : !KernelArgs
  %a12 = llvm.insertvalue %gy_given, %a11[10, 1] : !KernelArgs
  %a13 = llvm.insertvalue %gz_given, %a12[10, 2] : !KernelArgs
  %a14 = llvm.insertvalue %bx, %a13[11, 0] : !KernelArgs
  %a15 = llvm.insertvalue %by_given, %a14[11, 1] : !KernelArgs
  %a16 = llvm.insertvalue %bz_given, %a15[11, 2] : !KernelArgs
  %a17 = llvm.insertvalue %shared32, %a16[12] : !KernelArgs
  llvm.store %a17, %args : !KernelArgs, !llvm.ptr
  %launched = llvm.call @__tgt_target_kernel(%null, %default, %gx, %bx, %handle, %args) : (!llvm.ptr, i64, i32, i32, !llvm.ptr, !llvm.ptr) -> i32
  %good = llvm.icmp "eq" %launched, %zero : i32
  %status = llvm.select %good, %zero, %three : i1, i32
  llvm.return %status : i32
^failed(%reason: i32):
  llvm.return %reason : i32
}
