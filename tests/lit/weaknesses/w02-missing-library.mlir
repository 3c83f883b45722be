// W2: a toolkit without the library that is needed is an error that lists every place looked at and says what to do.
// Upstream prints an error and writes a gpu.binary with the symbols unresolved. A library that is not needed is not
// looked for.

// RUN: rm -rf %t && mkdir -p %t/empty
// RUN: not gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa module=exponential toolkit=%t/nowhere" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NOWHERE
// RUN: not gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=llvm module=exponential cuda=%t/empty" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=EMPTY
// RUN: not gpulower-opt %s --gpulower-to-binary="targets=gfx942 format=isa module=exponential rocm=%t/empty" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=AMD
// RUN: not gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa l=%t/no.bc" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=USER
// RUN: sed '/\/\/ ERF$/d' %s | gpulower-opt --gpulower-to-binary="targets=sm_80,gfx942 format=isa toolkit=%t/empty" \
// RUN:   | FileCheck %s --check-prefix=UNNEEDED

// NOWHERE: error: link, module exponential, target sm_80: __nv_erff (kernel k) needs a library that was not found: the toolkit that was given, {{.*}}/nowhere, has no libdevice.10.bc; it is needed for math functions
// NOWHERE-NEXT: Tried:
// NOWHERE-NEXT: /nowhere (given): no such directory
// NOWHERE-NEXT: Give the root of a complete toolkit, or none to have the usual places searched. To get the part: install the wheel nvidia-nvvm
// NOWHERE-NOT: gpu.binary

// EMPTY: Tried:
// EMPTY-NEXT: /empty/nvvm/libdevice/libdevice.10.bc (given): no such file
// EMPTY-NOT: gpu.binary

// AMD: error: link, module exponential, target gfx942: __ocml_erf_f32 (kernel k) needs a library that was not found: the toolkit that was given, {{.*}}/empty, has no ocml.bc
// AMD-NEXT: Tried:
// AMD-NEXT: /empty/amdgcn/bitcode (given): no such directory
// AMD: rocm-device-libs
// AMD-NOT: gpu.binary

// USER: error: link, module exponential, target sm_80: cannot read {{.*}}no.bc: No such file or directory
// USER-NOT: gpu.binary

// UNNEEDED: gpu.binary @exponential
gpu.module @exponential {
  gpu.func @k(%x: f32, %out: memref<?xf32>, %again: memref<?xf32>) kernel {
    %i = gpu.thread_id x
    memref.store %x, %out[%i] : memref<?xf32>
    %y = math.erf %x : f32 // ERF
    memref.store %y, %again[%i] : memref<?xf32> // ERF
    gpu.return
  }
}
