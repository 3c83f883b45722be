// What mlir-opt's options show of our passes: options that were given, the passes inside, and where a pipeline is wrong. Upstream's
// driver prints every option as `name=`, sees nothing of pass managers inside of passes, and gives no place of a wrong option.

// RUN: gpulower-opt %s --pass-pipeline='builtin.module(gpulower-attach-targets{targets=sm_90 ptxas-options="-v --warn-on-spills"},gpulower-lower,canonicalize{max-iterations=3})' --dump-pass-pipeline -o /dev/null 2>&1 | FileCheck %s --check-prefix=DUMP
// DUMP: Pass Manager with 3 passes:
// DUMP-NEXT: builtin.module(
// DUMP-NEXT: gpulower-attach-targets{ptxas-options={{.*}}-v --warn-on-spills{{.*}} targets=sm_90},
// DUMP-NEXT: gpulower-lower,
// DUMP-NEXT: canonicalize{{{.*}}max-iterations=3
// DUMP: Pass Manager with
// DUMP: gpulower-func-to-llvm{{[{,]}}

// RUN: gpulower-opt %s --gpulower-attach-targets=targets=sm_90 --gpulower-lower --mlir-print-ir-after-all -o /dev/null 2>&1 | FileCheck %s --check-prefix=AFTER
// AFTER: IR Dump After gpulower-attach-targets
// AFTER: IR Dump After {{.*}} (convert-scf-to-cf)
// AFTER: IR Dump After LowerDeviceFunctions (gpulower-func-to-llvm)
// AFTER: IR Dump After gpulower-lower

// RUN: not gpulower-opt %s --pass-pipeline='builtin.module(gpulower-to-binry{targets=sm_90})' 2>&1 | FileCheck %s --check-prefix=PASS --strict-whitespace --match-full-lines
// PASS:gpulower-opt: error: 'gpulower-to-binry' does not refer to a registered pass or pass pipeline (did you mean 'gpulower-to-binary'?)
// PASS-NEXT:--pass-pipeline=builtin.module(gpulower-to-binry{targets=sm_90})
// PASS-NEXT:                               ^

// RUN: not gpulower-opt %s --pass-pipeline='builtin.module(gpulower-attach-targets{targets=sm_90},gpulower-to-binary{targets=sm_90 O=7})' 2>&1 | FileCheck %s --check-prefix=VALUE --strict-whitespace --match-full-lines
// VALUE:gpulower-opt: error: option 'O' cannot be '7': expected 0|1|2|3
// VALUE-NEXT:--pass-pipeline=builtin.module(gpulower-attach-targets{targets=sm_90},gpulower-to-binary{targets=sm_90 O=7})
// VALUE-NEXT:                                                                                                       ^

// RUN: not gpulower-opt %s --gpulower-to-binary='target=sm_90' 2>&1 | FileCheck %s --check-prefix=NAME --strict-whitespace --match-full-lines
// NAME:gpulower-opt: error: no such option target (did you mean 'targets'?)
// NAME-NEXT:--gpulower-to-binary=target=sm_90
// NAME-NEXT:                     ^

// A value is shown where it stands, and not where another one begins like it.
// RUN: not gpulower-opt %s --pass-pipeline='builtin.module(gpulower-to-binary{targets=sm_90,sm_9})' 2>&1 | FileCheck %s --check-prefix=CHIP --strict-whitespace --match-full-lines
// CHIP:gpulower-opt: error: unknown chip 'sm_9': did you mean sm_90 or sm_90a?
// CHIP-NEXT:--pass-pipeline=builtin.module(gpulower-to-binary{targets=sm_90,sm_9})
// CHIP-NEXT:                                                                ^

// RUN: not gpulower-opt %s --gpulower-attach-targets='targets=sm_90,sm_9' 2>&1 | FileCheck %s --check-prefix=WORD --strict-whitespace --match-full-lines
// WORD:gpulower-opt: error: unknown chip 'sm_9': did you mean sm_90 or sm_90a?
// WORD-NEXT:--gpulower-attach-targets=targets=sm_90,sm_9
// WORD-NEXT:                                        ^

gpu.module @m {
  gpu.func @k(%p: memref<4xf32>, %n: index) kernel {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %value = arith.constant 0.0 : f32
    scf.for %i = %zero to %n step %one {
      memref.store %value, %p[%i] : memref<4xf32>
    }
    gpu.return
  }
}
