// Functions that are not kernels do not stay visible; variables that a host may look up do.

// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa" | %text | FileCheck %s --check-prefix=PTX
// RUN: rm -rf %t
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 format=bin" | %objects %t
// RUN: llvm-readelf --dyn-syms %t/0 | FileCheck %s --check-prefix=ELF

// PTX-DAG: .visible .global {{.*}}counter
// PTX-DAG: .visible .entry k(
// PTX-NOT: helper
// ELF-NOT: helper
// ELF: {{(k|k.kd|counter)$}}
// ELF-NEXT: {{(k|k.kd|counter)$}}
// ELF-NEXT: {{(k|k.kd|counter)$}}
gpu.module @m {
  memref.global @counter : memref<1xi32, 1> = dense<0>
  func.func @helper(%x: i32) -> i32 {
    %0 = arith.muli %x, %x : i32
    return %0 : i32
  }
  gpu.func @k(%x: i32) kernel {
    %c0 = arith.constant 0 : index
    %0 = func.call @helper(%x) : (i32) -> i32
    %counter = memref.get_global @counter : memref<1xi32, 1>
    memref.store %0, %counter[%c0] : memref<1xi32, 1>
    gpu.return
  }
}
