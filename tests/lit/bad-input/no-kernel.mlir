// Modules that hold nothing to compile.

// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa" --split-input-file --verify-diagnostics

// expected-error @+1 {{translate, module empty, target sm_80: the module is empty: it defines no kernel, no function and no variable}}
gpu.module @empty {
}

// -----

func.func @launch(%n: index) {
  // expected-error @+1 {{this gpu.launch is not compiled: run gpu-kernel-outlining first, which gives it a gpu.module}}
  gpu.launch blocks(%a, %b, %c) in (%d = %n, %e = %n, %f = %n) threads(%g, %h, %i) in (%j = %n, %k = %n, %l = %n) {
    gpu.terminator
  }
  return
}
