// What the PTX compiler says is kept with the object where upstream's flag asks for it: MLIR 23 has it in
// nvvm-attach-target, and MLIR 22 reads it in an attribute.

// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80,gfx942 format=bin collect-compiler-diagnostics=true" | FileCheck %s
// RUN: gpulower-opt %s --pass-pipeline='builtin.module(gpulower-attach-targets{targets=sm_80,gfx942 collect-compiler-diagnostics=true},gpulower-lower,gpulower-serialize{format=fatbin})' | FileCheck %s
// RUN: gpulower-opt %s --gpulower-attach-targets="targets=sm_80,gfx942 collect-compiler-diagnostics=true" | FileCheck %s --check-prefix=ATTACHED
// RUN: sed 's/gpu.module @m/gpu.module @m [#nvvm.target<chip = "sm_80", flags = {"collect-compiler-diagnostics"}>]/' %s | gpulower-opt --gpulower-serialize=format=bin | FileCheck %s
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=bin" | FileCheck %s --check-prefix=WITHOUT
// RUN: not gpulower-opt %s --gpulower-to-binary="targets=sm_80 collect-compiler-diagnostics=maybe" 2>&1 | FileCheck %s --check-prefix=VALUE

// CHECK: #nvvm.target<
// CHECK-SAME: ISACompilerLog = "ptxas info {{.*}}Used [[#]] registers
// ATTACHED: #nvvm.target<O = 3, chip = "sm_80", flags = {"collect-compiler-diagnostics"}>
// ATTACHED-SAME: #rocdl.target<
// ATTACHED-NOT: collect
// WITHOUT-NOT: ISACompilerLog
// VALUE: option 'collect-compiler-diagnostics' cannot be 'maybe': expected false or true
gpu.module @m {
  gpu.func @k(%out: memref<?xf32>) kernel {
    %i = gpu.thread_id x
    %0 = memref.load %out[%i] : memref<?xf32>
    memref.store %0, %out[%i] : memref<?xf32>
    gpu.return
  }
}
