// What host code calls for the GPU: MLIR's `mgpu` functions, and launches, on top of the CUDA or HIP runtime, whose
// functions differ in their prefix (`$rt`) alone. Constants have the same value in both: cudaMemcpyDefault 4,
// cudaStreamNonBlocking 1, cudaEventDisableTiming 2, cudaMemAttachGlobal 1 (driver_types.h of CUDA 13.0,
// hip_runtime_api.h of ROCm 6).
//
// Everything is internal: each object file has its own copy of what it uses, so objects that different releases of
// gpulower made can be linked, and nothing here hides or is hidden by a runtime library of MLIR's.
//
// No status is ignored: what fails is reported on standard error, and the process ends with status 1.

llvm.func @$rtGetErrorName(i32) -> !llvm.ptr
llvm.func @$rtGetErrorString(i32) -> !llvm.ptr
llvm.func @$rtMalloc(!llvm.ptr, i64) -> i32
llvm.func @$rtMallocManaged(!llvm.ptr, i64, i32) -> i32
llvm.func @$rtFree(!llvm.ptr) -> i32
llvm.func @$rtMemcpyAsync(!llvm.ptr, !llvm.ptr, i64, i32, !llvm.ptr) -> i32
llvm.func @$rtMemsetAsync(!llvm.ptr, i32, i64, !llvm.ptr) -> i32
llvm.func @$rtGetDevice(!llvm.ptr) -> i32
llvm.func @$rtSetDevice(i32) -> i32
llvm.func @$rtStreamCreateWithFlags(!llvm.ptr, i32) -> i32
llvm.func @$rtStreamDestroy(!llvm.ptr) -> i32
llvm.func @$rtStreamSynchronize(!llvm.ptr) -> i32
llvm.func @$rtStreamWaitEvent(!llvm.ptr, !llvm.ptr, i32) -> i32
llvm.func @$rtEventCreateWithFlags(!llvm.ptr, i32) -> i32
llvm.func @$rtEventDestroy(!llvm.ptr) -> i32
llvm.func @$rtEventRecord(!llvm.ptr, !llvm.ptr) -> i32
llvm.func @$rtEventSynchronize(!llvm.ptr) -> i32
llvm.func @$rtHostRegister(!llvm.ptr, i64, i32) -> i32
llvm.func @$rtHostUnregister(!llvm.ptr) -> i32
llvm.func @$rtLaunchKernel(!llvm.ptr, i64, $z, i64, $z, !llvm.ptr, i64, !llvm.ptr) -> i32
llvm.func @dprintf(i32, !llvm.ptr, ...) -> i32
llvm.func @exit(i32)

llvm.mlir.global internal constant @__gpulower_failed("gpulower: %s failed: %s (%s)\0A\00")
llvm.mlir.global internal constant @__gpulower_not_launched("gpulower: cannot launch %s: %s (%s); grid %lld x %lld x %lld, block %lld x %lld x %lld, %lld bytes of dynamic shared memory\0A\00")
llvm.mlir.global internal constant @__gpulower_kernel_failed("gpulower: kernel %s failed: %s (%s)\0A\00")
llvm.mlir.global internal constant @__gpulower_not_dense("gpulower: cannot register host memory: the elements of the memref do not follow each other\0A\00")
llvm.mlir.global internal constant @__gpulower_out_of_range("out of range\00")
llvm.mlir.global internal constant @__gpulower_a_size("a size is negative or above 4294967295\00")
llvm.mlir.global internal constant @__gpulower_name_malloc("$rtMalloc\00")
llvm.mlir.global internal constant @__gpulower_name_malloc_managed("$rtMallocManaged\00")
llvm.mlir.global internal constant @__gpulower_name_free("$rtFree\00")
llvm.mlir.global internal constant @__gpulower_name_memcpy("$rtMemcpyAsync\00")
llvm.mlir.global internal constant @__gpulower_name_memset("$rtMemsetAsync\00")
llvm.mlir.global internal constant @__gpulower_name_get_device("$rtGetDevice\00")
llvm.mlir.global internal constant @__gpulower_name_set_device("$rtSetDevice\00")
llvm.mlir.global internal constant @__gpulower_name_stream_create("$rtStreamCreateWithFlags\00")
llvm.mlir.global internal constant @__gpulower_name_stream_destroy("$rtStreamDestroy\00")
llvm.mlir.global internal constant @__gpulower_name_stream_synchronize("$rtStreamSynchronize\00")
llvm.mlir.global internal constant @__gpulower_name_stream_wait_event("$rtStreamWaitEvent\00")
llvm.mlir.global internal constant @__gpulower_name_event_create("$rtEventCreateWithFlags\00")
llvm.mlir.global internal constant @__gpulower_name_event_destroy("$rtEventDestroy\00")
llvm.mlir.global internal constant @__gpulower_name_event_record("$rtEventRecord\00")
llvm.mlir.global internal constant @__gpulower_name_event_synchronize("$rtEventSynchronize\00")
llvm.mlir.global internal constant @__gpulower_name_host_register("$rtHostRegister\00")
llvm.mlir.global internal constant @__gpulower_name_host_unregister("$rtHostUnregister\00")

// Ends the process unless `status` is 0. `what` is the runtime's function.
llvm.func internal @__gpulower_check(%status: i32, %what: !llvm.ptr) {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %good = llvm.icmp "eq" %status, %zero : i32
  llvm.cond_br %good, ^good, ^bad
^good:
  llvm.return
^bad:
  %one = llvm.mlir.constant(1 : i32) : i32
  %two = llvm.mlir.constant(2 : i32) : i32
  %format = llvm.mlir.addressof @__gpulower_failed : !llvm.ptr
  %name = llvm.call @$rtGetErrorName(%status) : (i32) -> !llvm.ptr
  %text = llvm.call @$rtGetErrorString(%status) : (i32) -> !llvm.ptr
  %0 = llvm.call @dprintf(%two, %format, %what, %name, %text) vararg(!llvm.func<i32 (i32, ptr, ...)>) : (i32, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
  llvm.call @exit(%one) : (i32) -> ()
  llvm.unreachable
}

// A stream from a pool. Streams are shared once there are more than 32 at a time, and never destroyed: work that is
// enqueued waits only for work that was enqueued before, so sharing one cannot lock up.
llvm.mlir.global internal @__gpulower_streams() {alignment = 16 : i64} : !llvm.array<16 x array<32 x ptr>> {
  %0 = llvm.mlir.zero : !llvm.array<16 x array<32 x ptr>>
  llvm.return %0 : !llvm.array<16 x array<32 x ptr>>
}
llvm.mlir.global internal @__gpulower_next_stream(0 : i32) {alignment = 4 : i64} : i32

llvm.func internal @__gpulower_new_stream() -> !llvm.ptr {
  %one = llvm.mlir.constant(1 : i32) : i32
  %slot = llvm.alloca %one x !llvm.ptr : (i32) -> !llvm.ptr
  %status = llvm.call @$rtStreamCreateWithFlags(%slot, %one) : (!llvm.ptr, i32) -> i32
  %what = llvm.mlir.addressof @__gpulower_name_stream_create : !llvm.ptr
  llvm.call @__gpulower_check(%status, %what) : (i32, !llvm.ptr) -> ()
  %stream = llvm.load %slot : !llvm.ptr -> !llvm.ptr
  llvm.return %stream : !llvm.ptr
}

llvm.func internal @mgpuStreamCreate() -> !llvm.ptr {
  %one = llvm.mlir.constant(1 : i32) : i32
  %null = llvm.mlir.zero : !llvm.ptr
  %device_slot = llvm.alloca %one x i32 : (i32) -> !llvm.ptr
  %status = llvm.call @$rtGetDevice(%device_slot) : (!llvm.ptr) -> i32
  %what = llvm.mlir.addressof @__gpulower_name_get_device : !llvm.ptr
  llvm.call @__gpulower_check(%status, %what) : (i32, !llvm.ptr) -> ()
  %device = llvm.load %device_slot : !llvm.ptr -> i32
  %devices = llvm.mlir.constant(16 : i32) : i32
  %pooled = llvm.icmp "ult" %device, %devices : i32
  llvm.cond_br %pooled, ^pooled, ^alone
^alone:
  %fresh = llvm.call @__gpulower_new_stream() : () -> !llvm.ptr
  llvm.return %fresh : !llvm.ptr
^pooled:
  %counter = llvm.mlir.addressof @__gpulower_next_stream : !llvm.ptr
  %count = llvm.atomicrmw add %counter, %one monotonic : !llvm.ptr, i32
  %mask = llvm.mlir.constant(31 : i32) : i32
  %index = llvm.and %count, %mask : i32
  %pool = llvm.mlir.addressof @__gpulower_streams : !llvm.ptr
  %place = llvm.getelementptr %pool[0, %device, %index] : (!llvm.ptr, i32, i32) -> !llvm.ptr, !llvm.array<16 x array<32 x ptr>>
  %known = llvm.load %place atomic acquire {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
  %is_known = llvm.icmp "ne" %known, %null : !llvm.ptr
  llvm.cond_br %is_known, ^known, ^first
^known:
  llvm.return %known : !llvm.ptr
^first:
  %stream = llvm.call @__gpulower_new_stream() : () -> !llvm.ptr
  %exchange = llvm.cmpxchg %place, %null, %stream acq_rel acquire {alignment = 8 : i64} : !llvm.ptr, !llvm.ptr
  %mine = llvm.extractvalue %exchange[1] : !llvm.struct<(ptr, i1)>
  llvm.cond_br %mine, ^mine, ^other
^mine:
  llvm.return %stream : !llvm.ptr
^other:
  %destroyed = llvm.call @$rtStreamDestroy(%stream) : (!llvm.ptr) -> i32
  %destroy = llvm.mlir.addressof @__gpulower_name_stream_destroy : !llvm.ptr
  llvm.call @__gpulower_check(%destroyed, %destroy) : (i32, !llvm.ptr) -> ()
  %theirs = llvm.extractvalue %exchange[0] : !llvm.struct<(ptr, i1)>
  llvm.return %theirs : !llvm.ptr
}

// Code that MLIR's gpu-to-llvm lowered calls it; the stream stays in the pool.
llvm.func internal @mgpuStreamDestroy(%stream: !llvm.ptr) {
  llvm.return
}

llvm.func internal @mgpuStreamSynchronize(%stream: !llvm.ptr) {
  %status = llvm.call @$rtStreamSynchronize(%stream) : (!llvm.ptr) -> i32
  %what = llvm.mlir.addressof @__gpulower_name_stream_synchronize : !llvm.ptr
  llvm.call @__gpulower_check(%status, %what) : (i32, !llvm.ptr) -> ()
  llvm.return
}

llvm.func internal @mgpuStreamWaitEvent(%stream: !llvm.ptr, %event: !llvm.ptr) {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %status = llvm.call @$rtStreamWaitEvent(%stream, %event, %zero) : (!llvm.ptr, !llvm.ptr, i32) -> i32
  %what = llvm.mlir.addressof @__gpulower_name_stream_wait_event : !llvm.ptr
  llvm.call @__gpulower_check(%status, %what) : (i32, !llvm.ptr) -> ()
  llvm.return
}

llvm.func internal @mgpuEventCreate() -> !llvm.ptr {
  %one = llvm.mlir.constant(1 : i32) : i32
  %two = llvm.mlir.constant(2 : i32) : i32
  %slot = llvm.alloca %one x !llvm.ptr : (i32) -> !llvm.ptr
  %status = llvm.call @$rtEventCreateWithFlags(%slot, %two) : (!llvm.ptr, i32) -> i32
  %what = llvm.mlir.addressof @__gpulower_name_event_create : !llvm.ptr
  llvm.call @__gpulower_check(%status, %what) : (i32, !llvm.ptr) -> ()
  %event = llvm.load %slot : !llvm.ptr -> !llvm.ptr
  llvm.return %event : !llvm.ptr
}

llvm.func internal @mgpuEventDestroy(%event: !llvm.ptr) {
  %status = llvm.call @$rtEventDestroy(%event) : (!llvm.ptr) -> i32
  %what = llvm.mlir.addressof @__gpulower_name_event_destroy : !llvm.ptr
  llvm.call @__gpulower_check(%status, %what) : (i32, !llvm.ptr) -> ()
  llvm.return
}

llvm.func internal @mgpuEventSynchronize(%event: !llvm.ptr) {
  %status = llvm.call @$rtEventSynchronize(%event) : (!llvm.ptr) -> i32
  %what = llvm.mlir.addressof @__gpulower_name_event_synchronize : !llvm.ptr
  llvm.call @__gpulower_check(%status, %what) : (i32, !llvm.ptr) -> ()
  llvm.return
}

llvm.func internal @mgpuEventRecord(%event: !llvm.ptr, %stream: !llvm.ptr) {
  %status = llvm.call @$rtEventRecord(%event, %stream) : (!llvm.ptr, !llvm.ptr) -> i32
  %what = llvm.mlir.addressof @__gpulower_name_event_record : !llvm.ptr
  llvm.call @__gpulower_check(%status, %what) : (i32, !llvm.ptr) -> ()
  llvm.return
}

llvm.func internal @mgpuMemAlloc(%size: i64, %stream: !llvm.ptr, %shared: i8) -> !llvm.ptr {
  %zero = llvm.mlir.constant(0 : i8) : i8
  %one = llvm.mlir.constant(1 : i32) : i32
  %slot = llvm.alloca %one x !llvm.ptr : (i32) -> !llvm.ptr
  %plain = llvm.icmp "eq" %shared, %zero : i8
  llvm.cond_br %plain, ^plain, ^shared
^plain:
  %allocated = llvm.call @$rtMalloc(%slot, %size) : (!llvm.ptr, i64) -> i32
  %malloc = llvm.mlir.addressof @__gpulower_name_malloc : !llvm.ptr
  llvm.br ^done(%allocated, %malloc : i32, !llvm.ptr)
^shared:
  %managed = llvm.call @$rtMallocManaged(%slot, %size, %one) : (!llvm.ptr, i64, i32) -> i32
  %malloc_managed = llvm.mlir.addressof @__gpulower_name_malloc_managed : !llvm.ptr
  llvm.br ^done(%managed, %malloc_managed : i32, !llvm.ptr)
^done(%status: i32, %what: !llvm.ptr):
  llvm.call @__gpulower_check(%status, %what) : (i32, !llvm.ptr) -> ()
  %memory = llvm.load %slot : !llvm.ptr -> !llvm.ptr
  llvm.return %memory : !llvm.ptr
}

// The runtimes' `Free` knows nothing of streams: what is enqueued may still use the memory.
llvm.func internal @mgpuMemFree(%memory: !llvm.ptr, %stream: !llvm.ptr) {
  llvm.call @mgpuStreamSynchronize(%stream) : (!llvm.ptr) -> ()
  %status = llvm.call @$rtFree(%memory) : (!llvm.ptr) -> i32
  %what = llvm.mlir.addressof @__gpulower_name_free : !llvm.ptr
  llvm.call @__gpulower_check(%status, %what) : (i32, !llvm.ptr) -> ()
  llvm.return
}

llvm.func internal @mgpuMemcpy(%to: !llvm.ptr, %from: !llvm.ptr, %size: i64, %stream: !llvm.ptr) {
  %default = llvm.mlir.constant(4 : i32) : i32
  %status = llvm.call @$rtMemcpyAsync(%to, %from, %size, %default, %stream) : (!llvm.ptr, !llvm.ptr, i64, i32, !llvm.ptr) -> i32
  %what = llvm.mlir.addressof @__gpulower_name_memcpy : !llvm.ptr
  llvm.call @__gpulower_check(%status, %what) : (i32, !llvm.ptr) -> ()
  llvm.return
}

llvm.func internal @mgpuMemset8(%to: !llvm.ptr, %value: i8, %count: i64, %stream: !llvm.ptr) {
  %byte = llvm.zext %value : i8 to i32
  %status = llvm.call @$rtMemsetAsync(%to, %byte, %count, %stream) : (!llvm.ptr, i32, i64, !llvm.ptr) -> i32
  %what = llvm.mlir.addressof @__gpulower_name_memset : !llvm.ptr
  llvm.call @__gpulower_check(%status, %what) : (i32, !llvm.ptr) -> ()
  llvm.return
}

llvm.func internal @mgpuMemset16(%to: !llvm.ptr, %value: i16, %count: i64, %stream: !llvm.ptr) {
  %wide = llvm.zext %value : i16 to i64
  %bytes = llvm.mlir.constant(2 : i64) : i64
  llvm.call @__gpulower_fill(%to, %wide, %bytes, %count, %stream) : (!llvm.ptr, i64, i64, i64, !llvm.ptr) -> ()
  llvm.return
}

llvm.func internal @mgpuMemset32(%to: !llvm.ptr, %value: i32, %count: i64, %stream: !llvm.ptr) {
  %wide = llvm.zext %value : i32 to i64
  %bytes = llvm.mlir.constant(4 : i64) : i64
  llvm.call @__gpulower_fill(%to, %wide, %bytes, %count, %stream) : (!llvm.ptr, i64, i64, i64, !llvm.ptr) -> ()
  llvm.return
}

llvm.func internal @mgpuMemset64(%to: !llvm.ptr, %value: i64, %count: i64, %stream: !llvm.ptr) {
  %bytes = llvm.mlir.constant(8 : i64) : i64
  llvm.call @__gpulower_fill(%to, %value, %bytes, %count, %stream) : (!llvm.ptr, i64, i64, i64, !llvm.ptr) -> ()
  llvm.return
}

// `count` elements of `bytes` bytes each. The CUDA runtime sets bytes alone: an element whose bytes are equal is set so;
// of any other one the first is written byte by byte, and then what is there is copied behind itself, twice as much each
// time.
llvm.func internal @__gpulower_fill(%to: !llvm.ptr, %value: i64, %bytes: i64, %count: i64, %stream: !llvm.ptr) {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %eight = llvm.mlir.constant(8 : i64) : i64
  %size = llvm.mul %bytes, %count : i64
  %first = llvm.trunc %value : i64 to i8
  %none = llvm.icmp "eq" %size, %zero : i64
  llvm.cond_br %none, ^done, ^compare(%one, %value : i64, i64)
^compare(%index: i64, %rest: i64):
  %more = llvm.icmp "ult" %index, %bytes : i64
  llvm.cond_br %more, ^compare_one, ^equal
^compare_one:
  %shifted = llvm.lshr %rest, %eight : i64
  %next_byte = llvm.trunc %shifted : i64 to i8
  %same = llvm.icmp "eq" %next_byte, %first : i8
  %next_index = llvm.add %index, %one : i64
  llvm.cond_br %same, ^compare(%next_index, %shifted : i64, i64), ^write(%zero, %value : i64, i64)
^equal:
  llvm.call @mgpuMemset8(%to, %first, %size, %stream) : (!llvm.ptr, i8, i64, !llvm.ptr) -> ()
  llvm.br ^done
^write(%offset: i64, %left: i64):
  %unwritten = llvm.icmp "ult" %offset, %bytes : i64
  llvm.cond_br %unwritten, ^write_one, ^double(%bytes : i64)
^write_one:
  %place = llvm.getelementptr %to[%offset] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %byte = llvm.trunc %left : i64 to i8
  llvm.call @mgpuMemset8(%place, %byte, %one, %stream) : (!llvm.ptr, i8, i64, !llvm.ptr) -> ()
  %next_offset = llvm.add %offset, %one : i64
  %next_left = llvm.lshr %left, %eight : i64
  llvm.br ^write(%next_offset, %next_left : i64, i64)
^double(%done: i64):
  %unfilled = llvm.icmp "ult" %done, %size : i64
  llvm.cond_br %unfilled, ^copy, ^done
^copy:
  %missing = llvm.sub %size, %done : i64
  %all = llvm.icmp "ult" %missing, %done : i64
  %amount = llvm.select %all, %missing, %done : i1, i64
  %behind = llvm.getelementptr %to[%done] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  llvm.call @mgpuMemcpy(%behind, %to, %amount, %stream) : (!llvm.ptr, !llvm.ptr, i64, !llvm.ptr) -> ()
  %filled = llvm.add %done, %amount : i64
  llvm.br ^double(%filled : i64)
^done:
  llvm.return
}

llvm.func internal @mgpuMemHostRegister(%memory: !llvm.ptr, %size: i64) {
  %flags = llvm.mlir.constant(0 : i32) : i32
  %status = llvm.call @$rtHostRegister(%memory, %size, %flags) : (!llvm.ptr, i64, i32) -> i32
  %what = llvm.mlir.addressof @__gpulower_name_host_register : !llvm.ptr
  llvm.call @__gpulower_check(%status, %what) : (i32, !llvm.ptr) -> ()
  llvm.return
}

llvm.func internal @mgpuMemHostUnregister(%memory: !llvm.ptr) {
  %status = llvm.call @$rtHostUnregister(%memory) : (!llvm.ptr) -> i32
  %what = llvm.mlir.addressof @__gpulower_name_host_unregister : !llvm.ptr
  llvm.call @__gpulower_check(%status, %what) : (i32, !llvm.ptr) -> ()
  llvm.return
}

// A memref descriptor in memory: allocated and aligned pointer, offset, `rank` sizes, `rank` strides.
llvm.func internal @__gpulower_start(%descriptor: !llvm.ptr, %element: i64) -> !llvm.ptr {
  %aligned_place = llvm.getelementptr %descriptor[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %offset_place = llvm.getelementptr %descriptor[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %aligned = llvm.load %aligned_place : !llvm.ptr -> !llvm.ptr
  %offset = llvm.load %offset_place : !llvm.ptr -> i64
  %bytes = llvm.mul %offset, %element : i64
  %start = llvm.getelementptr %aligned[%bytes] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  llvm.return %start : !llvm.ptr
}

llvm.func internal @mgpuMemHostRegisterMemRef(%rank: i64, %descriptor: !llvm.ptr, %element: i64) {
  %one = llvm.mlir.constant(1 : i64) : i64
  %zero = llvm.mlir.constant(0 : i64) : i64
  %sizes = llvm.getelementptr %descriptor[3] : (!llvm.ptr) -> !llvm.ptr, i64
  %strides = llvm.getelementptr %sizes[%rank] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  llvm.br ^dimension(%rank, %one : i64, i64)
^dimension(%left: i64, %dense: i64):
  %more = llvm.icmp "ne" %left, %zero : i64
  llvm.cond_br %more, ^one, ^register
^one:
  %index = llvm.sub %left, %one : i64
  %size_place = llvm.getelementptr %sizes[%index] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %stride_place = llvm.getelementptr %strides[%index] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %size = llvm.load %size_place : !llvm.ptr -> i64
  %stride = llvm.load %stride_place : !llvm.ptr -> i64
  %fits = llvm.icmp "eq" %stride, %dense : i64
  %single = llvm.icmp "ule" %size, %one : i64
  %good = llvm.or %fits, %single : i1
  %next = llvm.mul %dense, %size : i64
  llvm.cond_br %good, ^dimension(%index, %next : i64, i64), ^gaps
^gaps:
  %failure = llvm.mlir.constant(1 : i32) : i32
  %two = llvm.mlir.constant(2 : i32) : i32
  %format = llvm.mlir.addressof @__gpulower_not_dense : !llvm.ptr
  %0 = llvm.call @dprintf(%two, %format) vararg(!llvm.func<i32 (i32, ptr, ...)>) : (i32, !llvm.ptr) -> i32
  llvm.call @exit(%failure) : (i32) -> ()
  llvm.unreachable
^register:
  %bytes = llvm.mul %dense, %element : i64
  %start = llvm.call @__gpulower_start(%descriptor, %element) : (!llvm.ptr, i64) -> !llvm.ptr
  llvm.call @mgpuMemHostRegister(%start, %bytes) : (!llvm.ptr, i64) -> ()
  llvm.return
}

llvm.func internal @mgpuMemHostUnregisterMemRef(%rank: i64, %descriptor: !llvm.ptr, %element: i64) {
  %start = llvm.call @__gpulower_start(%descriptor, %element) : (!llvm.ptr, i64) -> !llvm.ptr
  llvm.call @mgpuMemHostUnregister(%start) : (!llvm.ptr) -> ()
  llvm.return
}

llvm.func internal @mgpuSetDefaultDevice(%device: i32) {
  %status = llvm.call @$rtSetDevice(%device) : (i32) -> i32
  %what = llvm.mlir.addressof @__gpulower_name_set_device : !llvm.ptr
  llvm.call @__gpulower_check(%status, %what) : (i32, !llvm.ptr) -> ()
  llvm.return
}

llvm.func internal @__gpulower_refuse_launch(%kernel: !llvm.ptr, %name: !llvm.ptr, %text: !llvm.ptr, %gx: i64, %gy: i64, %gz: i64, %bx: i64, %by: i64, %bz: i64, %shared: i64) {
  %one = llvm.mlir.constant(1 : i32) : i32
  %two = llvm.mlir.constant(2 : i32) : i32
  %format = llvm.mlir.addressof @__gpulower_not_launched : !llvm.ptr
  %0 = llvm.call @dprintf(%two, %format, %kernel, %name, %text, %gx, %gy, %gz, %bx, %by, %bz, %shared) vararg(!llvm.func<i32 (i32, ptr, ...)>) : (i32, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64, i64, i64) -> i32
  llvm.call @exit(%one) : (i32) -> ()
  llvm.unreachable
}

// The runtimes take sizes of 32 bits: a larger one is refused here rather than cut off.
llvm.func internal @__gpulower_check_sizes(%kernel: !llvm.ptr, %gx: i64, %gy: i64, %gz: i64, %bx: i64, %by: i64, %bz: i64, %shared: i64) {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %bits = llvm.mlir.constant(32 : i64) : i64
  %0 = llvm.or %gx, %gy : i64
  %1 = llvm.or %0, %gz : i64
  %2 = llvm.or %1, %bx : i64
  %3 = llvm.or %2, %by : i64
  %4 = llvm.or %3, %bz : i64
  %high = llvm.lshr %4, %bits : i64
  %good = llvm.icmp "eq" %high, %zero : i64
  llvm.cond_br %good, ^good, ^bad
^good:
  llvm.return
^bad:
  %name = llvm.mlir.addressof @__gpulower_out_of_range : !llvm.ptr
  %text = llvm.mlir.addressof @__gpulower_a_size : !llvm.ptr
  llvm.call @__gpulower_refuse_launch(%kernel, %name, %text, %gx, %gy, %gz, %bx, %by, %bz, %shared) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64, i64, i64) -> ()
  llvm.unreachable
}

// What follows a launch: its status, and waiting for the kernel if `wait` is set.
llvm.func internal @__gpulower_finish_launch(%status: i32, %kernel: !llvm.ptr, %gx: i64, %gy: i64, %gz: i64, %bx: i64, %by: i64, %bz: i64, %shared: i64, %stream: !llvm.ptr, %wait: i1) {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %good = llvm.icmp "eq" %status, %zero : i32
  llvm.cond_br %good, ^launched, ^bad
^bad:
  %name = llvm.call @$rtGetErrorName(%status) : (i32) -> !llvm.ptr
  %text = llvm.call @$rtGetErrorString(%status) : (i32) -> !llvm.ptr
  llvm.call @__gpulower_refuse_launch(%kernel, %name, %text, %gx, %gy, %gz, %bx, %by, %bz, %shared) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64, i64, i64) -> ()
  llvm.unreachable
^launched:
  llvm.cond_br %wait, ^wait, ^done
^wait:
  %waited = llvm.call @$rtStreamSynchronize(%stream) : (!llvm.ptr) -> i32
  %ran = llvm.icmp "eq" %waited, %zero : i32
  llvm.cond_br %ran, ^done, ^failed
^failed:
  %one = llvm.mlir.constant(1 : i32) : i32
  %two = llvm.mlir.constant(2 : i32) : i32
  %format = llvm.mlir.addressof @__gpulower_kernel_failed : !llvm.ptr
  %failed_name = llvm.call @$rtGetErrorName(%waited) : (i32) -> !llvm.ptr
  %failed_text = llvm.call @$rtGetErrorString(%waited) : (i32) -> !llvm.ptr
  %0 = llvm.call @dprintf(%two, %format, %kernel, %failed_name, %failed_text) vararg(!llvm.func<i32 (i32, ptr, ...)>) : (i32, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
  llvm.call @exit(%one) : (i32) -> ()
  llvm.unreachable
^done:
  llvm.return
}

// Launches the kernel of `handle`; `kernel` is its name in messages, `arguments` an array of pointers to them.
//
// A `dim3` (three u32) takes two registers: x and y, and z. clang passes it as `i64, i32` on x86-64 and as `[2 x i64]` on
// AArch64, where two `i64` are the same.
llvm.func internal @__gpulower_launch(%handle: !llvm.ptr, %kernel: !llvm.ptr, %gx: i64, %gy: i64, %gz: i64, %bx: i64, %by: i64, %bz: i64, %shared: i64, %stream: !llvm.ptr, %wait: i1, %arguments: !llvm.ptr) {
  llvm.call @__gpulower_check_sizes(%kernel, %gx, %gy, %gz, %bx, %by, %bz, %shared) : (!llvm.ptr, i64, i64, i64, i64, i64, i64, i64) -> ()
  %permitted = llvm.call @__gpulower_permit_shared(%handle, %shared) : (!llvm.ptr, i64) -> i32
  %zero = llvm.mlir.constant(0 : i32) : i32
  %good = llvm.icmp "eq" %permitted, %zero : i32
  llvm.cond_br %good, ^launch, ^finish(%permitted : i32)
^launch:
  %bits = llvm.mlir.constant(32 : i64) : i64
  %gy_high = llvm.shl %gy, %bits : i64
  %by_high = llvm.shl %by, %bits : i64
  %gxy = llvm.or %gx, %gy_high : i64
  %bxy = llvm.or %bx, %by_high : i64
  %gz32 = llvm.trunc %gz : i64 to i32
  %bz32 = llvm.trunc %bz : i64 to i32
  %launched = llvm.call @$rtLaunchKernel(%handle, %gxy, $gz, %bxy, $bz, %arguments, %shared, %stream) : (!llvm.ptr, i64, $z, i64, $z, !llvm.ptr, i64, !llvm.ptr) -> i32
  llvm.br ^finish(%launched : i32)
^finish(%status: i32):
  llvm.call @__gpulower_finish_launch(%status, %kernel, %gx, %gy, %gz, %bx, %by, %bz, %shared, %stream, %wait) : (i32, !llvm.ptr, i64, i64, i64, i64, i64, i64, i64, !llvm.ptr, i1) -> ()
  llvm.return
}
