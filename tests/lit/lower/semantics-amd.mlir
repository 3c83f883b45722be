// RUN: gpulower compile %s --target gfx942 --emit asm -o - | FileCheck %s
// RUN: not gpulower compile %s --target sm_90 --emit ptx -o %t.ptx 2>&1 | FileCheck %s --check-prefix=NVIDIA

// Cache policies of the rocdl dialect are those of the instructions. The table is docs/semantics.md.

// NVIDIA: semantics-amd.mlir:[[#]]:[[#]]: error: {{.*}}rocdl
gpu.module @m {
  // CHECK-LABEL: buffers:
  // CHECK: buffer_load_dword v{{[0-9]+}}, v{{[0-9]+}}, s[{{[0-9:]+}}], 0 offen{{$}}
  // CHECK: buffer_load_dword {{.*}} offen sc0{{$}}
  // CHECK: buffer_load_dword {{.*}} offen nt{{$}}
  // CHECK: buffer_store_dword {{.*}} offen nt{{$}}
  llvm.func @buffers(%p: !llvm.ptr<1>, %v: f32, %n: i64, %o: i32) attributes {gpu.kernel, rocdl.kernel} {
    %stride = llvm.mlir.constant(0 : i16) : i16
    %flags = llvm.mlir.constant(159744 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %glc = llvm.mlir.constant(1 : i32) : i32
    %slc = llvm.mlir.constant(2 : i32) : i32
    %r = rocdl.make.buffer.rsrc %p, %stride, %n, %flags : <1> to <8>
    %a = rocdl.raw.ptr.buffer.load %r, %o, %zero, %zero : f32
    %b = rocdl.raw.ptr.buffer.load %r, %o, %zero, %glc : f32
    %c = rocdl.raw.ptr.buffer.load %r, %o, %zero, %slc : f32
    %s = llvm.fadd %a, %b : f32
    %t = llvm.fadd %s, %c : f32
    rocdl.raw.ptr.buffer.store %t, %r, %o, %zero, %slc : f32
    llvm.return
  }

  // CHECK-LABEL: waits:
  // CHECK: ds_write_b32
  // CHECK: s_waitcnt {{.*}}lgkmcnt(0)
  // CHECK: s_barrier
  // CHECK: ds_read_b32
  gpu.func @waits(%m: memref<?xf32>) workgroup(%w: memref<256xf32, #gpu.address_space<workgroup>>) kernel {
    %i = gpu.thread_id x
    %v = memref.load %m[%i] : memref<?xf32>
    memref.store %v, %w[%i] : memref<256xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %c = arith.constant 255 : index
    %j = arith.subi %c, %i : index
    %x = memref.load %w[%j] : memref<256xf32, #gpu.address_space<workgroup>>
    memref.store %x, %m[%i] : memref<?xf32>
    gpu.return
  }
}
