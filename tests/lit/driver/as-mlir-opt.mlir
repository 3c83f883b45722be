// Compilers that run PREFIX/bin/mlir-opt with a pipeline of their own have gpulower-serialize in the place of
// gpu-module-to-binary. FlyDSL writes one gpu.module as text, runs `mlir-opt IN --pass-pipeline=... -o OUT`, with options
// of LLVM behind, and expects one gpu.binary of that name.
// RUN: rm -rf %t && mkdir -p %t/bin && ln -s %binaries/gpulower-opt %t/bin/mlir-opt
// RUN: %t/bin/mlir-opt %s --pass-pipeline='builtin.module(gpu-module-to-binary{format=fatbin opts=""})' \
// RUN:   -o %t/out.mlir --enable-post-misched=false
// RUN: FileCheck --check-prefix=FLY %s < %t/out.mlir
// FLY: gpu.binary @kernels
// FLY-SAME: #rocdl.target<chip = "gfx942">, kernels = <[#gpu.kernel_metadata<"k"
// FLY-SAME: "\7FELF

// LLVM's options act, and what they made is not in the cache for those who do not give them.
// RUN: env GPULOWER_CACHE=on XDG_CACHE_HOME=%t/cache %t/bin/mlir-opt %s --gpu-module-to-binary=format=isa -o %t/plain.mlir
// RUN: env GPULOWER_CACHE=on XDG_CACHE_HOME=%t/cache %t/bin/mlir-opt %s --gpu-module-to-binary=format=isa \
// RUN:   --amdgpu-dump-hsa-metadata 2>&1 -o %t/other.mlir | FileCheck --check-prefix=ACTS %s
// ACTS: AMDGPU HSA Metadata

// By the switch; in a nested pipeline; with the options of gpu-module-to-binary.
// RUN: gpulower-opt %s --as-mlir-opt --pass-pipeline='builtin.module(canonicalize,builtin.module(gpu-module-to-binary{ \
// RUN:   format=isa opts="-g --amdgpu-waves-per-eu=2 --amdgpu-num-vgpr=64" section=code dump-dir=%t/dump}))' \
// RUN:   | FileCheck --check-prefix=NESTED %s
// NESTED: gpu.binary @inner
// NESTED-SAME: properties = {O = 2 : i32, section = "code"}, assembly = "
// RUN: cat %t/dump/inner.gfx90a.3-optimized.ll | FileCheck --check-prefix=WORDS %s
// WORDS-DAG: "amdgpu-waves-per-eu"="2"
// WORDS-DAG: "amdgpu-num-vgpr"="64"

// The same bytes as gpulower-serialize's.
// RUN: gpulower-opt %s --gpulower-serialize=format=bin -o %t/ours.mlir
// RUN: %t/bin/mlir-opt %s --gpu-module-to-binary=format=bin -o %t/theirs.mlir
// RUN: cmp %t/ours.mlir %t/theirs.mlir

// RUN: not %t/bin/mlir-opt %s --gpu-module-to-binary=opts=-x 2>&1 | FileCheck --check-prefix=WORD %s
// WORD: error: option 'opts' has the word '-x', which means nothing for AMD: expected -g, --amdgpu-num-vgpr=N or --amdgpu-waves-per-eu=N

// Under its own name the program has upstream's pass, and upstream's options.
// RUN: not gpulower-opt %s --gpu-module-to-binary=dump-dir=x 2>&1 | FileCheck --check-prefix=UPSTREAM %s
// UPSTREAM: no such option dump-dir

// RUN: not gpulower-opt %s --load-pass-plugin=x.so 2>&1 | FileCheck --check-prefix=PLUGIN %s
// RUN: not gpulower-opt %s --load-dialect-plugin x.so 2>&1 | FileCheck --check-prefix=PLUGIN %s
// PLUGIN: gpulower-opt: --load-{{pass|dialect}}-plugin cannot work

module attributes {gpu.container_module} {
  gpu.module @kernels [#rocdl.target<chip = "gfx942">] {
    llvm.func @k(%p: !llvm.ptr<1>, %v: i32) attributes {gpu.kernel, rocdl.kernel} {
      llvm.store %v, %p : i32, !llvm.ptr<1>
      llvm.return
    }
  }
  builtin.module {
    gpu.module @inner [#rocdl.target<chip = "gfx90a">] {
      llvm.func @k(%p: !llvm.ptr<1>, %v: i32) attributes {gpu.kernel, rocdl.kernel} {
        llvm.store %v, %p : i32, !llvm.ptr<1>
        llvm.return
      }
    }
  }
}
