// A kernel of the other vendor is refused before LLVM meets it, which would end the process.

// RUN: gpulower-opt %s --gpulower-serialize=format=isa --split-input-file --verify-diagnostics

gpu.module @nvvm_operation [#rocdl.target<chip = "gfx942">] {
  gpu.func @k() kernel {
    // expected-error @+1 {{lower, module nvvm_operation, target gfx942: nvvm.barrier cannot be compiled for gfx942: compile it for a chip of that vendor, or lower it from the gpu dialect for this one}}
    nvvm.barrier
    gpu.return
  }
}

// -----

gpu.module @amdgpu_operation [#nvvm.target<chip = "sm_80">] {
  gpu.func @k() kernel {
    // expected-error @+1 {{lower, module amdgpu_operation, target sm_80: amdgpu.lds_barrier cannot be compiled for sm_80: compile it for a chip of that vendor}}
    amdgpu.lds_barrier
    gpu.return
  }
}

// -----

gpu.module @rocdl_operation [#nvvm.target<chip = "sm_80">, #rocdl.target<chip = "gfx942">] {
  llvm.func @k() attributes {gpu.kernel, rocdl.kernel} {
    // expected-error @+1 {{target sm_80: rocdl.workitem.id.x cannot be compiled for sm_80}}
    %0 = rocdl.workitem.id.x : i32
    llvm.return
  }
}

// -----

// expected-error @+1 {{the kernel k of the other vendor in a module for gfx942: compile it for a chip of that vendor, or lower it from the gpu dialect for this one}}
gpu.module @nvvm_kernel [#rocdl.target<chip = "gfx942">] {
  llvm.func @k() attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}

// -----

// expected-error @+1 {{the kernel k of the other vendor in a module for sm_80: compile it for a chip of that vendor, or lower it from the gpu dialect for this one}}
gpu.module @rocdl_kernel [#nvvm.target<chip = "sm_80">] {
  llvm.func @k() attributes {gpu.kernel, rocdl.kernel} {
    llvm.return
  }
}

// -----

// expected-error @+1 {{the intrinsic llvm.nvvm.read.ptx.sreg.tid.x in a module for gfx942}}
gpu.module @intrinsic [#rocdl.target<chip = "gfx942">] {
  llvm.func @k() attributes {gpu.kernel, rocdl.kernel} {
    %0 = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.tid.x"() : () -> i32
    llvm.return
  }
}
