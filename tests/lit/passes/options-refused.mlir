// Options that cannot be read, or that a target cannot honour, are refused before anything is compiled, with exit status
// 1.

// RUN: sh -c 'gpulower-opt "%s" --gpulower-attach-targets="targets=sm_80 O=4"; test $? = 1' 2>&1 | FileCheck %s --check-prefix=O
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=sm_80 fast=yes" 2>&1 | FileCheck %s --check-prefix=FAST
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=sm_80 ftz=yes" 2>&1 | FileCheck %s --check-prefix=FTZ
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=sm_80 prec-sqrt=2" 2>&1 | FileCheck %s --check-prefix=SQRT
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=sm_80 prec-div=x" 2>&1 | FileCheck %s --check-prefix=DIV
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=sm_80 fp-contract=true" 2>&1 | FileCheck %s --check-prefix=CONTRACT
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=sm_80 max-registers=0" 2>&1 | FileCheck %s --check-prefix=REGISTERS
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=sm_80 max-registers=4294967295" 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=gfx942 wave-size=48" 2>&1 | FileCheck %s --check-prefix=WAVE
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=gfx942 code-object-version=3" 2>&1 | FileCheck %s --check-prefix=COV
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=sm_80 debug=yes" 2>&1 | FileCheck %s --check-prefix=DEBUG
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=sm_80 index-bitwidth=16" 2>&1 | FileCheck %s --check-prefix=INDEX
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=sm_80 bare-pointers=no" 2>&1 | FileCheck %s --check-prefix=BARE
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=sm_80 spill-warning=-1" 2>&1 | FileCheck %s --check-prefix=SPILL
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=sm_80 time-limit=0" 2>&1 | FileCheck %s --check-prefix=TIME
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=sm_80 module=(" 2>&1 | FileCheck %s --check-prefix=REGEX
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=sm_80,,sm_90" 2>&1 | FileCheck %s --check-prefix=COMMA
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=sm_80 sparkle=1" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not gpulower-opt %s --gpulower-to-binary="targets=sm_80 threads=0" 2>&1 | FileCheck %s --check-prefix=THREADS
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=sm_80,gfx942 wave-size=64" 2>&1 | FileCheck %s --check-prefix=NV-WAVE
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=sm_80 code-object-version=5" 2>&1 | FileCheck %s --check-prefix=NV-COV
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=gfx942 ptx=8.0" 2>&1 | FileCheck %s --check-prefix=AMD-PTX
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=gfx942 ptx-compiler=ptxas" 2>&1 | FileCheck %s --check-prefix=AMD-COMPILER
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=gfx942 ptxas-options=-v" 2>&1 | FileCheck %s --check-prefix=AMD-OPTIONS
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=sm_80 ptxas-options=input.ptx" 2>&1 | FileCheck %s --check-prefix=INPUT
// RUN: not gpulower-opt %s --gpulower-attach-targets="targets=gfx9-4-generic code-object-version=5" 2>&1 | FileCheck %s --check-prefix=GENERIC
// RUN: not gpulower-opt %s --gpulower-serialize="interleave=4294967295" 2>&1 | FileCheck %s --check-prefix=INTERLEAVE
// RUN: not gpulower-opt %s --gpulower-serialize="compress=zstd:23" 2>&1 | FileCheck %s --check-prefix=COMPRESS

// The passes that a pipeline is made of have the same ranges. MLIR's type converter ends the process over 0 bits and takes 7.
// RUN: not gpulower-opt %s --pass-pipeline="builtin.module(gpu.module(gpulower-func-to-llvm{index-bitwidth=0}))" 2>&1 | FileCheck %s --check-prefix=BITS
// RUN: not gpulower-opt %s --pass-pipeline="builtin.module(gpulower-host-to-llvm{kernel-index-bitwidth=0})" 2>&1 | FileCheck %s --check-prefix=HOST

// What is no number is refused in one message of ours. LLVM's parser of numbers prints one of its own.
// RUN: not gpulower-opt %s --pass-pipeline="builtin.module(gpu.module(gpulower-func-to-llvm{index-bitwidth=x}))" 2>&1 | FileCheck %s --check-prefix=WORD --implicit-check-not="value invalid"
// RUN: not gpulower-opt %s --pass-pipeline="builtin.module(gpulower-host-to-llvm{bare-pointers=maybe})" 2>&1 | FileCheck %s --check-prefix=TRUTH --implicit-check-not="invalid value"
// Of several options the one is named that is wrong.
// RUN: not gpulower-opt %s --pass-pipeline="builtin.module(gpu.module(gpulower-expand-gpu{amd=true chipset=gfx942 redux=x clusters=false}))" 2>&1 | FileCheck %s --check-prefix=ONE

// What a speed stands for is done behind it.
// RUN: not gpulower-opt %s --gpulower-lower="speed=fast" 2>&1 | FileCheck %s --check-prefix=NO-SPEED

// O: error: option 'O' cannot be '4': expected 0|1|2|3
// FAST: error: option 'fast' cannot be 'yes': expected true|false
// FTZ: error: option 'ftz' cannot be 'yes': expected true|false
// SQRT: error: option 'prec-sqrt' cannot be '2': expected true|false
// DIV: error: option 'prec-div' cannot be 'x': expected true|false
// CONTRACT: error: option 'fp-contract' cannot be 'true': expected off|on|fast
// REGISTERS: error: option 'max-registers' cannot be '0': expected a number from 1 to 2147483647
// MANY: error: option 'max-registers' cannot be '4294967295': expected a number from 1 to 2147483647
// WAVE: error: option 'wave-size' cannot be '48': expected 32|64
// COV: error: option 'code-object-version' cannot be '3': expected 4|5|6
// DEBUG: error: option 'debug' cannot be 'yes': expected none|line-tables|full
// INDEX: error: option 'index-bitwidth' cannot be '16': expected 32|64
// BARE: error: option 'bare-pointers' cannot be 'no': expected true|false
// SPILL: error: option 'spill-warning' cannot be '-1': expected a number from 0 to 4294967295
// TIME: error: option 'time-limit' cannot be '0': expected seconds above 0, such as 30 or 0.5
// REGEX: error: option 'module' is not a regular expression:
// COMMA: error: target 2 of the list 'sm_80,,sm_90' is empty: remove the extra comma
// NAME: no such option sparkle
// THREADS: error: option 'threads' cannot be '0': expected a number above 0
// NV-WAVE: error: option 'wave-size' cannot be honoured for sm_80: NVIDIA's warps have 32 threads; leave the option out
// NV-COV: error: option 'code-object-version' cannot be honoured for sm_80: only AMD's code objects have one; leave the option out
// AMD-PTX: error: option 'ptx' cannot be honoured for gfx942: only NVIDIA's targets have it; leave the option out
// AMD-COMPILER: error: option 'ptx-compiler' cannot be honoured for gfx942: only NVIDIA's targets have it; leave the option out
// AMD-OPTIONS: error: option 'ptxas-options' cannot be honoured for gfx942: only NVIDIA's targets have it; leave the option out
// INPUT: error: option 'ptxas-options' cannot be honoured for sm_80: `input.ptx`: it does not start with a dash, and would be taken for an input file
// INTERLEAVE: error: option 'interleave' cannot be '4294967295': expected 1|2|4|8
// COMPRESS: error: option 'compress' cannot be 'zstd:23': expected `none`, `lz4`, `zstd`, or `zstd:LEVEL` with a level of 1 to 22
// BITS: option 'index-bitwidth' cannot be '0': expected 32|64
// HOST: option 'kernel-index-bitwidth' cannot be '0': expected 32|64
// WORD: error: option 'index-bitwidth' cannot be 'x': expected a number
// TRUTH: error: option 'bare-pointers' cannot be 'maybe': expected true|false
// ONE: error: option 'redux' cannot be 'x': expected true|false
// NO-SPEED: no such option speed
// GENERIC: error: {{.*}}gfx9-4-generic{{.*}}6
gpu.module @m {
  gpu.func @k() kernel {
    gpu.return
  }
}
