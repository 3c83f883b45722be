// RUN: gpulower compile %s --target sm_90 --emit ptx -o %t.ptx --report=json | FileCheck %s --check-prefix=DECISION
// RUN: FileCheck %s < %t.ptx
// RUN: not gpulower compile %s --target sm_90 --ptx 7.8 --emit ptx -o - 2>&1 | FileCheck %s --check-prefix=FIXED

// sm_90 starts at PTX ISA 7.8, which has no elect.sync: the oldest version that has it is taken, not the newest, which
// fewer drivers read. A version that the user fixed stays.
// CHECK: .version 8.0
// CHECK: elect.sync
// DECISION: "choice": "PTX ISA 8.0 instead of 7.8"
// FIXED: error: code-gen, module kernels, target sm_90: LLVM fatal error: Cannot select
gpu.module @kernels {
  llvm.func @k(%out: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    %leader = nvvm.elect.sync -> i1
    llvm.store %leader, %out : i1, !llvm.ptr
    llvm.return
  }
}
