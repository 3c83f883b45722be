// What LLVM would make calls of a library of, and memrefs that no pointer stands for, are refused where they are.

// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_90 format=isa bare-pointers=true" --split-input-file --verify-diagnostics

gpu.module @m {
  // expected-error @+1 {{lower, module m, target sm_90: cannot lower gpu.func @dynamic with bare pointers: its argument 0 has the type 'memref<?xf32>'; a pointer alone stands for a memref of static shape without strides and offset}}
  gpu.func @dynamic(%a: memref<?xf32>) kernel {
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @wide(%a: memref<4xf32>, %p: memref<4xi64>) kernel {
    %c0 = arith.constant 0 : index
    %y = memref.load %a[%c0] : memref<4xf32>
    // expected-error @+1 {{lower, module m, target sm_90: cannot lower arith.fptosi from 'f32' to 'i256': no NVIDIA GPU converts floats and integers of more than 64 bits; convert i64}}
    %w = arith.fptosi %y : f32 to i256
    %z = arith.trunci %w : i256 to i64
    memref.store %z, %p[%c0] : memref<4xi64>
    gpu.return
  }
}
