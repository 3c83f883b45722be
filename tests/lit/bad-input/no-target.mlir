// RUN: gpulower-opt %s --gpulower-serialize=format=isa --split-input-file --verify-diagnostics
// RUN: gpulower-opt %s --gpulower-lower --split-input-file --verify-diagnostics

// expected-error @+1 {{plan, module m: no target: the module has no target attribute and none was given (--target sm_90, gpulower-attach-targets{targets=sm_90}, or a targets argument)}}
gpu.module @m {
  gpu.func @k() kernel {
    gpu.return
  }
}

// -----

// expected-error @+1 {{plan, module spirv: cannot compile for the target #spirv.target_env<#spirv.vce<v1.0, [Shader], []>, #spirv.resource_limits<>>: expected #nvvm.target<...> or #rocdl.target<...>}}
gpu.module @spirv [#spirv.target_env<#spirv.vce<v1.0, [Shader], []>, #spirv.resource_limits<>>] {
  gpu.func @k() kernel {
    gpu.return
  }
}
