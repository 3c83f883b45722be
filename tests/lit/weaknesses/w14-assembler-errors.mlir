// W14: what the assembler says is part of the diagnostic, with the right stage. Upstream lets it go to the standard error
// and blames lld.

// RUN: not gpulower-opt %s --gpulower-serialize=format=bin --split-input-file 2>&1 | FileCheck %s

// CHECK: w14-assembler-errors.mlir:[[#@LINE+5]]:1: error: code-gen, module amd, target gfx942: <inline asm>:1:2: invalid instruction
// CHECK-NEXT: bogus_instruction v0
// CHECK: error: ptx-to-cubin, module nvidia, target sm_80: {{.*}} could not compile the PTX for sm_80: {{.*}}line [[#]]; fatal
// CHECK-NOT: lld

gpu.module @amd [#rocdl.target<chip = "gfx942">] {
  llvm.func @k() attributes {gpu.kernel, rocdl.kernel} {
    llvm.inline_asm has_side_effects "bogus_instruction v0", "" : () -> ()
    llvm.return
  }
}

// -----

gpu.module @nvidia [#nvvm.target<chip = "sm_80">] {
  llvm.func @k() attributes {gpu.kernel, nvvm.kernel} {
    llvm.inline_asm has_side_effects "bogus_instruction v0", "" : () -> ()
    llvm.return
  }
}
