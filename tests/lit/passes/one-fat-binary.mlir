// format=fatbin puts all targets of a module into one object for each vendor. Modules that are the same are serialized
// once, and each has its own gpu.binary.

// RUN: rm -rf %t && mkdir %t
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80,gfx942,sm_90,gfx90a" -o %t/out.mlir
// RUN: FileCheck %s --input-file %t/out.mlir
// RUN: %objects %t/objects < %t/out.mlir
// RUN: cuobjdump --list-elf --list-ptx %t/objects/0 | FileCheck %s --check-prefix=IMAGES
// RUN: clang-offload-bundler-22 --list --type=o --input=%t/objects/1 | FileCheck %s --check-prefix=BUNDLE
// RUN: cmp %t/objects/0 %t/objects/2
// RUN: cmp %t/objects/1 %t/objects/3

// The policy is an option of the pass, or an entry of the target attributes' flags; it travels with the object.
// RUN: gpulower-opt %s --gpulower-attach-targets="targets=sm_80,sm_90" --gpulower-serialize="include-ptx=all compress=zstd" -o %t/all.mlir
// RUN: FileCheck %s --input-file %t/all.mlir --check-prefix=ALL
// RUN: %objects %t/all < %t/all.mlir
// RUN: cuobjdump --list-elf --list-ptx %t/all/0 | FileCheck %s --check-prefix=ALL-IMAGES

// CHECK: gpu.binary @first
// CHECK-SAME: #gpu.object<#nvvm.target<{{.*}}chip = "sm_80"{{.*}}properties = {include_ptx = "lowest"}
// CHECK-SAME: #gpu.object<#rocdl.target<{{.*}}chip = "gfx942"{{.*}}"__CLANG_OFFLOAD_BUNDLE__
// CHECK: gpu.binary @second
// IMAGES-DAG: sm_80.cubin
// IMAGES-DAG: sm_90.cubin
// IMAGES-DAG: sm_80.ptx
// BUNDLE-DAG: hipv4-amdgcn-amd-amdhsa--gfx942
// BUNDLE-DAG: hipv4-amdgcn-amd-amdhsa--gfx90a
// ALL: include_ptx = "all"
// ALL-IMAGES-DAG: sm_80.ptx
// ALL-IMAGES-DAG: sm_90.ptx
gpu.module @first {
  gpu.func @k(%x: f32, %out: memref<f32>) kernel {
    memref.store %x, %out[] : memref<f32>
    gpu.return
  }
}
gpu.module @second {
  gpu.func @k(%x: f32, %out: memref<f32>) kernel {
    memref.store %x, %out[] : memref<f32>
    gpu.return
  }
}
