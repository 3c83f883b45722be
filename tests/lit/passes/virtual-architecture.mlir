// compute_90 is PTX alone, also after a stop in an attribute: a fat binary of it holds no cubin.

// RUN: rm -rf %t
// RUN: gpulower-opt %s --gpulower-to-binary="targets=compute_90 format=fatbin" | %objects %t
// RUN: cuobjdump --list-ptx %t/0 | FileCheck %s --check-prefix=PTX
// RUN: cuobjdump --list-elf %t/0 2>&1 | FileCheck %s --check-prefix=ELF
// RUN: gpulower-opt %s --gpulower-attach-targets=targets=compute_90 --gpulower-lower --gpulower-serialize=format=isa | %text | FileCheck %s --check-prefix=ISA
// RUN: not gpulower-opt %s --gpulower-attach-targets=targets=compute_90 --gpulower-serialize=format=bin 2>&1 | FileCheck %s --check-prefix=BIN

// PTX: sm_90.ptx
// ELF: No ELF file found
// ISA: .target sm_90{{$}}
// BIN: error: plan, module m, target compute_90: binary does not exist for compute_90: a compute_* target is PTX alone
gpu.module @m {
  gpu.func @k() kernel {
    gpu.return
  }
}
