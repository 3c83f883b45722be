// What NVIDIA's compilers refuse has its place in the source where the PTX says it, else in the PTX, and the kernel; in the report too.

// RUN: not gpulower compile %s --target sm_90 --emit cubin --debug line-tables -o %t.cubin 2>&1 | FileCheck %s --check-prefix=SOURCE
// RUN: not gpulower compile %s --target sm_90 --emit cubin -o %t.cubin 2>&1 | FileCheck %s --check-prefix=PTX
// RUN: not gpulower compile %s --target sm_90 --emit cubin --debug line-tables -o %t.cubin --report json | FileCheck %s --check-prefix=JSON

// SOURCE: errors-of-ptxas.mlir:[[# @LINE + 19]]:5: error: ptx-to-cubin, module kernels, target sm_90:
// SOURCE: line {{[0-9]+}} of the PTX, in refused: {{.*}}foo
// PTX: kernels.ptx:{{[0-9]+}}:1: error: ptx-to-cubin, module kernels, target sm_90:
// PTX: kernels.ptx:{{[0-9]+}}:1: line {{[0-9]+}} of the PTX, in refused: {{.*}}foo

// JSON: "kernels": [
// JSON-NEXT: "refused"
// JSON: "file": "{{.*}}errors-of-ptxas.mlir"
// JSON-NEXT: "line": [[# @LINE + 11]]

gpu.module @kernels {
  gpu.func @taken(%a: memref<?xi32>, %v: i32) kernel {
    %i = gpu.thread_id x
    memref.store %v, %a[%i] : memref<?xi32>
    gpu.return
  }
  gpu.func @refused(%a: memref<?xi32>, %v: i32) kernel {
    %i = gpu.thread_id x
    memref.store %v, %a[%i] : memref<?xi32>
    llvm.inline_asm has_side_effects "foo.bar $0;", "r" %v : (i32) -> ()
    gpu.return
  }
}
