// RUN: rm -rf %t
// RUN: split-file %s %t
// RUN: not gpulower run %t/grid.mlir --target sm_90 2>&1 | FileCheck %t/grid.mlir
// RUN: not gpulower export %t/grid.mlir --target sm_90 --emit self -o %t/x.o 2>&1 | FileCheck %t/grid.mlir
// RUN: not gpulower export %t/block.mlir --target gfx942 --emit self -o %t/x.o 2>&1 | FileCheck %t/block.mlir
// RUN: not gpulower export %t/many.mlir --target sm_90 --emit self -o %t/x.o 2>&1 | FileCheck %t/many.mlir
// RUN: not gpulower export %t/none.mlir --target sm_90 --emit self -o %t/x.o 2>&1 | FileCheck %t/none.mlir
// RUN: not gpulower export %t/shared.mlir --target sm_90 --emit self -o %t/x.o 2>&1 | FileCheck %t/shared.mlir --check-prefix=NVIDIA
// RUN: not gpulower export %t/shared.mlir --target gfx942 --emit self -o %t/x.o 2>&1 | FileCheck %t/shared.mlir --check-prefix=AMD
// RUN: not gpulower export %t/negative.mlir --target sm_90 --emit self -o %t/x.o 2>&1 | FileCheck %t/negative.mlir
// RUN: not gpulower export %t/clusters.mlir --target sm_90 --emit self -o %t/x.o 2>&1 | FileCheck %t/clusters.mlir
// RUN: not gpulower export %t/parts.mlir --target sm_90 --emit self -o %t/x.o 2>&1 | FileCheck %t/parts.mlir
// RUN: gpulower export %t/right.mlir --target sm_90 --emit self -o %t/right.o

// What a kernel states of its sizes is constant in its code: a launch with other sizes would compute something else.

//--- grid.mlir
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k() kernel attributes {known_grid_size = array<i32: 4, 2, 1>} {
      gpu.return
    }
  }
  func.func private @size() -> index
  func.func @main() {
    %n = call @size() : () -> index
    %one = arith.constant 1 : index
    %four = arith.constant 4 : index
    // CHECK: grid.mlir:[[#@LINE+1]]:5: error: {{.*}}@m::@k cannot be launched so: its grid is 4 x 4 x ?, and the kernel states 4 x 2 x 1 (known_grid_size), which its code is made for
    gpu.launch_func @m::@k blocks in (%four, %four, %n) threads in (%one, %one, %one)
    return
  }
}

//--- block.mlir
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k() kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      gpu.return
    }
  }
  func.func private @size() -> index
  func.func @main() {
    %n = call @size() : () -> index
    %one = arith.constant 1 : index
    %four = arith.constant 4 : index
    // CHECK: block.mlir:[[#@LINE+1]]:5: error: {{.*}}its block is 4 x ? x 1, and the kernel states 64 x 1 x 1 (known_block_size)
    gpu.launch_func @m::@k blocks in (%four, %four, %n) threads in (%four, %n, %one)
    return
  }
}

//--- many.mlir
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k() kernel {
      gpu.return
    }
  }
  func.func @main() {
    %one = arith.constant 1 : i32
    %many = arith.constant 64 : i32
    // CHECK: many.mlir:[[#@LINE+1]]:5: error: {{.*}}its block of 64 x 64 x 1 has more than 1024 work items, the most that are possible
    gpu.launch_func @m::@k blocks in (%one, %one, %one) threads in (%many, %many, %one) : i32
    return
  }
}

//--- none.mlir
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k() kernel {
      gpu.return
    }
  }
  func.func @main() {
    %one = arith.constant 1 : index
    %none = arith.constant 0 : index
    // CHECK: none.mlir:[[#@LINE+1]]:5: error: {{.*}}a size of its grid is 0, and every size is at least 1
    gpu.launch_func @m::@k blocks in (%none, %one, %one) threads in (%one, %one, %one)
    return
  }
}

//--- right.mlir
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k() kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 4, 1, 1>} {
      gpu.return
    }
  }
  func.func private @size() -> index
  func.func @main() {
    %n = call @size() : () -> index
    %one = arith.constant 1 : index
    %four = arith.constant 4 : index
    %t = gpu.wait async
    %u = gpu.launch_func async [%t] @m::@k blocks in (%four, %one, %n) threads in (%n, %one, %one)
    gpu.wait [%u]
    return
  }
}

//--- shared.mlir
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k() kernel {
      gpu.return
    }
  }
  func.func @main() {
    %one = arith.constant 1 : index
    %three = arith.constant 3 : index
    %four = arith.constant 4 : index
    %thirty = arith.constant 30 : index
    %much = arith.constant 400000 : i32
    %negative = arith.constant -1 : i32
    // NVIDIA: shared.mlir:[[#@LINE+2]]:5: error: {{.*}}@m::@k cannot be launched so: its dynamic shared memory is 400000 bytes, and no chip has more than 232448 for a block
    // AMD: shared.mlir:[[#@LINE+1]]:5: error: {{.*}}@m::@k cannot be launched so: its dynamic shared memory is 400000 bytes, and no chip has more than 327680 for a block
    gpu.launch_func @m::@k blocks in (%one, %one, %one) threads in (%one, %one, %one) dynamic_shared_memory_size %much
    return
  }
}

//--- negative.mlir
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k() kernel {
      gpu.return
    }
  }
  func.func @main() {
    %one = arith.constant 1 : index
    %three = arith.constant 3 : index
    %four = arith.constant 4 : index
    %thirty = arith.constant 30 : index
    %much = arith.constant 400000 : i32
    %negative = arith.constant -1 : i32
    // CHECK: negative.mlir:[[#@LINE+1]]:5: error: {{.*}}@m::@k cannot be launched so: its dynamic shared memory is -1 bytes
    gpu.launch_func @m::@k blocks in (%one, %one, %one) threads in (%one, %one, %one) dynamic_shared_memory_size %negative
    return
  }
}

//--- clusters.mlir
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k() kernel {
      gpu.return
    }
  }
  func.func @main() {
    %one = arith.constant 1 : index
    %three = arith.constant 3 : index
    %four = arith.constant 4 : index
    %thirty = arith.constant 30 : index
    %much = arith.constant 400000 : i32
    %negative = arith.constant -1 : i32
    // CHECK: clusters.mlir:[[#@LINE+1]]:5: error: {{.*}}@m::@k cannot be launched so: its cluster of 30 x 1 x 1 has more than 16 blocks, the most that are possible
    gpu.launch_func @m::@k clusters in (%thirty, %one, %one) blocks in (%thirty, %one, %one) threads in (%one, %one, %one)
    return
  }
}

//--- parts.mlir
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k() kernel {
      gpu.return
    }
  }
  func.func @main() {
    %one = arith.constant 1 : index
    %three = arith.constant 3 : index
    %four = arith.constant 4 : index
    %thirty = arith.constant 30 : index
    %much = arith.constant 400000 : i32
    %negative = arith.constant -1 : i32
    // CHECK: parts.mlir:[[#@LINE+1]]:5: error: {{.*}}@m::@k cannot be launched so: a size of its grid is 4, which is no multiple of its clusters' 3
    gpu.launch_func @m::@k clusters in (%three, %one, %one) blocks in (%four, %one, %one) threads in (%one, %one, %one)
    return
  }
}
