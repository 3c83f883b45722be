// dump-dir writes what each stage makes, and override-dir takes what was edited, as they do for `gpulower compile`.
// (Projects copied upstream's gpu-module-to-binary to get that: iree-org/wave#525.)
// RUN: rm -rf %t && mkdir -p %t/edit
// RUN: gpulower-opt %s --gpulower-to-binary='targets=sm_90 format=isa dump-dir=%t/dump' -o %t/plain.mlir
// RUN: ls %t/dump | FileCheck --check-prefix=FILES %s
// FILES: m.sm_90.0-lowered.mlir
// FILES-NEXT: m.sm_90.1-initial.ll
// FILES-NEXT: m.sm_90.2-linked.ll
// FILES-NEXT: m.sm_90.3-optimized.ll
// FILES-NEXT: m.sm_90.4-isa.ptx
// FILES-NEXT: m.sm_90.5-result.ptx
// RUN: sed 's/store i32 42/store i32 43/' %t/dump/m.sm_90.3-optimized.ll > %t/edit/m.sm_90.3-optimized.ll
// RUN: echo > %t/edit/other
// RUN: gpulower-opt %s --gpulower-to-binary='targets=sm_90 format=isa override-dir=%t/edit' 2> %t/messages | %text \
// RUN:   | FileCheck --check-prefix=EDITED %s
// EDITED: gpu.binary @m
// EDITED: st{{.*}}, 43;
// RUN: FileCheck --check-prefix=UNUSED %s < %t/messages
// UNUSED: warning: {{.*}}edit/other replaced nothing: no stage of this compilation has its name
// RUN: not gpulower-opt %s --gpulower-to-binary='targets=sm_90 override-dir=%t/nowhere' 2>&1 \
// RUN:   | FileCheck --check-prefix=NOWHERE %s
// NOWHERE: error: cannot read the directory {{.*}}nowhere of --override-dir: No such file or directory
gpu.module @m {
  gpu.func @k(%p: memref<?xi32>) kernel {
    %c = arith.constant 42 : i32
    %i = arith.constant 0 : index
    memref.store %c, %p[%i] : memref<?xi32>
    gpu.return
  }
}
