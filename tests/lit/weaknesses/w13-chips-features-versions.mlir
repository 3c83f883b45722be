// W13: chips, features and PTX versions are checked before LLVM sees them. Upstream warns and goes on, or the process
// ends in LLVM's fatal error.

// RUN: not gpulower-opt %s --gpulower-to-binary=targets=sm_999 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not gpulower-opt %s --gpulower-to-binary=targets=gfx943 2>&1 | FileCheck %s --check-prefix=AMD-CHIP
// RUN: not gpulower-opt %s --gpulower-to-binary=targets=h100 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not gpulower-opt %s --gpulower-to-binary=targets=sm_80a 2>&1 | FileCheck %s --check-prefix=SUFFIX
// RUN: not gpulower-opt %s --gpulower-to-binary=targets=gfx90a:foo+ 2>&1 | FileCheck %s --check-prefix=FEATURE
// RUN: not gpulower-opt %s --gpulower-to-binary="targets=sm_80 ptx=6.0" 2>&1 | FileCheck %s --check-prefix=LOW
// RUN: not gpulower-opt %s --gpulower-to-binary="targets=sm_80 ptx=9.9" 2>&1 | FileCheck %s --check-prefix=HIGH
// RUN: not gpulower-opt %s --gpulower-to-binary="targets=sm_80 ptx=x" 2>&1 | FileCheck %s --check-prefix=VERSION
// The same in the attributes of others:
// RUN: sed 's/@m {/@m [#nvvm.target<chip = "sm_999">] {/' %s | not gpulower-opt --gpulower-serialize 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: sed 's/@m {/@m [#nvvm.target<chip = "sm_80", features = "+ptx60">] {/' %s | not gpulower-opt --gpulower-serialize 2>&1 | FileCheck %s --check-prefix=LOW
// RUN: sed 's/@m {/@m [#nvvm.target<chip = "sm_80", features = "+ptx999">] {/' %s | not gpulower-opt --gpulower-serialize 2>&1 | FileCheck %s --check-prefix=PTX999
// RUN: sed 's/@m {/@m [#nvvm.target<chip = "sm_80", features = "+fast">] {/' %s | not gpulower-opt --gpulower-serialize 2>&1 | FileCheck %s --check-prefix=NV-FEATURE
// RUN: sed 's/@m {/@m [#rocdl.target<chip = "gfx942", features = "+dpp">] {/' %s | not gpulower-opt --gpulower-serialize 2>&1 | FileCheck %s --check-prefix=AMD-FEATURE
// RUN: sed 's/@m {/@m [#rocdl.target<chip = "gfx942", abi = "700">] {/' %s | not gpulower-opt --gpulower-serialize 2>&1 | FileCheck %s --check-prefix=ABI
// RUN: sed 's/@m {/@m [#nvvm.target<chip = "sm_80", triple = "nvptx-nvidia-cuda">] {/' %s | not gpulower-opt --gpulower-serialize 2>&1 | FileCheck %s --check-prefix=TRIPLE
// RUN: sed 's/@m {/@m [#nvvm.target<chip = "sm_80", flags = {sparkle}>] {/' %s | not gpulower-opt --gpulower-serialize 2>&1 | FileCheck %s --check-prefix=FLAG
// The version follows the chip, so that upstream's fatal error does not exist:
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_75,sm_80,sm_90a,sm_100a,sm_120 format=isa" | %text | FileCheck %s --check-prefix=FOLLOWS

// CHIP: error: {{.*}}unknown chip 'sm_999': did you mean sm_90 or sm_90a?
// AMD-CHIP: error: unknown chip 'gfx943': did you mean gfx942?
// NAME: error: unknown chip 'h100': NVIDIA chips are written sm_90 (or compute_90 for PTX alone), AMD chips gfx942; `gpulower targets` lists all
// SUFFIX: error: unknown chip 'sm_80a': did you mean sm_80?
// FEATURE: error: gfx90a has no target ID feature 'foo': it has sramecc and xnack
// LOW: error: {{.*}}PTX 6.0 does not support sm_80: it needs 7.0 or newer; ask for 7.0 or leave the version out
// HIGH: error: LLVM 22 does not know PTX 9.9: the newest it writes is 9.0; ask for 9.0 or older
// VERSION: error: 'x' is not a PTX ISA version: write it as 8.3, 83 or ptx83
// PTX999: error: plan, module m: {{.*}}'ptx999' is not a PTX ISA version
// NV-FEATURE: error: plan, module m: {{.*}}'+fast'{{.*}}the only feature of an NVIDIA target is its PTX ISA, written +ptx83
// AMD-FEATURE: error: plan, module m: option 'features' cannot be honoured for gfx942: the feature '+dpp' is none of a target ID (xnack, sramecc) or the wave size
// ABI: error: plan, module m: option 'code-object-version' cannot be '700': expected 4|5|6
// TRIPLE: error: plan, module m: option 'triple' cannot be honoured for sm_80: it would be 'nvptx-nvidia-cuda'; gpulower compiles for nvptx64-nvidia-cuda
// FLAG: error: plan, module m: unknown option 'sparkle'

// FOLLOWS: .version 6.3
// FOLLOWS-NEXT: .target sm_75
// FOLLOWS: .version 7.0
// FOLLOWS-NEXT: .target sm_80
// FOLLOWS: .version 8.0
// FOLLOWS-NEXT: .target sm_90a
// FOLLOWS: .version 8.6
// FOLLOWS-NEXT: .target sm_100a
// FOLLOWS: .version 8.7
// FOLLOWS-NEXT: .target sm_120
gpu.module @m {
  gpu.func @k() kernel {
    gpu.return
  }
}
