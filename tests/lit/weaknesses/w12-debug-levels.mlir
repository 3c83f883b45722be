// W12: `debug=line-tables` gives line info at any optimisation level, `debug=full` gives everything at -O0, and NVIDIA's
// compiler accepts both. Upstream's line tables and full debug info both mark the PTX so that ptxas refuses it at -O2.

// RUN: rm -rf %t
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 debug=line-tables O=3 format=isa" | %text | FileCheck %s --check-prefix=LINES-PTX
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 debug=line-tables O=3 format=bin ptx-compiler=ptxas" | %objects %t/lines
// RUN: llvm-readelf -S %t/lines/0 | FileCheck %s --check-prefix=LINES
// RUN: nvdisasm -g %t/lines/0 | FileCheck %s --check-prefix=PLACES
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 debug=full format=bin ptx-compiler=ptxas" | %objects %t/full
// RUN: llvm-readelf -S %t/full/0 | FileCheck %s --check-prefix=FULL
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=bin" | %objects %t/none
// RUN: llvm-readelf -S %t/none/0 | FileCheck %s --check-prefix=NONE
// RUN: not gpulower-opt %s --gpulower-to-binary="targets=sm_80 debug=full O=3" 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 debug=line-tables format=bin" | %objects %t/amd
// RUN: llvm-dwarfdump --debug-line %t/amd/0 | FileCheck %s --check-prefix=AMD-LINES
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 debug=full O=3 format=bin" | %objects %t/amd-full
// RUN: llvm-dwarfdump %t/amd-full/0 | FileCheck %s --check-prefix=AMD-FULL
// The level given to gpulower-lower holds for what follows:
// RUN: gpulower-opt %s --gpulower-attach-targets=targets=sm_80 --gpulower-lower=debug=line-tables --gpulower-serialize=format=isa | %text | FileCheck %s --check-prefix=LINES-PTX

// LINES-PTX: .target sm_80{{$}}
// LINES-PTX: .loc 1 [[#@LINE+19]] 10
// LINES-PTX: .file 1 "{{.*}}w12-debug-levels.mlir"
// LINES: .debug_line
// LINES-NOT: .debug_info
// PLACES: File "{{.*}}w12-debug-levels.mlir", line [[#@LINE+15]]
// FULL: .debug_info
// FULL: .debug_line
// NONE-NOT: .debug_{{line|info}}
// REFUSED: error: option 'debug' cannot be honoured for sm_80: NVIDIA's compiler takes full debug info at -O0 alone; use O=0, or debug=line-tables
// AMD-LINES: name: "w12-debug-levels.mlir"
// AMD-LINES: is_stmt
// AMD-FULL: DW_TAG_subprogram
// AMD-FULL: DW_AT_linkage_name ("k")

gpu.module @m {
  gpu.func @k(%x: f32, %y: f32, %out: memref<f32>) kernel {

    // Somewhere to be found:

    %0 = arith.divf %x, %y : f32
    memref.store %0, %out[] : memref<f32>
    gpu.return
  }
}
