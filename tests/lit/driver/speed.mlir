// RUN: gpulower compile %s --target sm_90 --emit ptx -o %t.default.ptx
// RUN: gpulower compile %s --target sm_90 --emit ptx -o %t.balanced.ptx --speed balanced
// RUN: cmp %t.default.ptx %t.balanced.ptx
// RUN: gpulower compile %s --target sm_90 --emit ptx -o - --speed fast | FileCheck %s --check-prefix=FAST
// RUN: gpulower compile %s --target sm_90 --emit cubin -o %t.cubin --speed fast --no-cache --report=json \
// RUN:   | FileCheck %s --check-prefix=REPORT
// RUN: gpulower compile %s --target sm_90 --emit cubin -o %t.cubin --speed fast -O2 --interleave 2 --report=json \
// RUN:   | FileCheck %s --check-prefix=ASKED
// RUN: gpulower compile %s --target gfx942 -o %t.hsaco --speed fast --report=json | FileCheck %s --check-prefix=AMD
// RUN: not gpulower compile %s --target sm_90 -o %t.cubin --speed slow 2>&1 | FileCheck %s --check-prefix=REFUSED
//
// As options of passes, and through the attribute of the target, which always has a level.
// RUN: gpulower-opt %s --gpulower-attach-targets="targets=sm_90 speed=fast" | FileCheck %s --check-prefix=ATTACHED
// RUN: gpulower-opt %s --gpulower-attach-targets="targets=sm_90 speed=fast" \
// RUN:   | gpulower compile - --emit ptx -o - | FileCheck %s --check-prefix=FAST
// RUN: gpulower-opt %s --gpulower-attach-targets="targets=sm_90 speed=fast O=2" | FileCheck %s --check-prefix=ATTACHED-LEVEL
// RUN: gpulower-opt %s --gpulower-attach-targets="targets=sm_90" | gpulower compile - --speed fast --emit ptx -o - \
// RUN:   | FileCheck %s --check-prefix=FAST

// One iteration at once, what is the same in all of them outside of the loop, and loads of a known kind of memory.
// FAST-LABEL: .entry sum(
// FAST: $L__BB0_[[LOOP:[0-9]+]]:
// FAST-NOT: ld.b32
// FAST: ld.global.b32
// FAST-NOT: ld.
// FAST: bra
// FAST: st.global.b32

// REPORT: "speed=fast"
// REPORT-NEXT: "O=1, interleave=1, the fewest passes"
// ASKED: "O=2 (as asked for), interleave=2 (as asked for)"
// AMD: "O=1, interleave=1"
// REFUSED: fast|balanced
// ATTACHED: #nvvm.target<O = 1, {{.*}}speed = "fast"
// ATTACHED-LEVEL: interleave = "1"
// ATTACHED-LEVEL-NOT: speed

gpu.module @sums {
  gpu.func @sum(%x: memref<?xf32>, %out: memref<?xf32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = gpu.thread_id x
    %d = gpu.block_dim x
    %sum = scf.for %i = %t to %n step %d iter_args(%before = %zero) -> (f32) {
      %v = memref.load %x[%i] : memref<?xf32>
      %s = arith.addf %before, %v : f32
      scf.yield %s : f32
    }
    memref.store %sum, %out[%t] : memref<?xf32>
    gpu.return
  }
}
