// RUN: gpulower compile %s --target sm_90 --emit asm -o - | FileCheck %s
// RUN: gpulower-opt %s --gpulower-attach-targets=targets=sm_90 --gpulower-serialize=format=isa | FileCheck %s --check-prefix=PASS

// Operations of nvvm that MLIR does not translate, and writes as PTX before: in a module that is lowered already, too, which no other pass
// sees.

// CHECK-DAG: @%p{{[0-9]+}} st.global.volatile.u32
// CHECK-DAG: mbarrier.try_wait.parity.shared
// PASS: st.global.volatile.u32
gpu.module @kernels {
  llvm.func @volatile_store(%place: !llvm.ptr<1>, %value: i32, %wanted: i1) attributes {gpu.kernel, nvvm.kernel} {
    nvvm.inline_ptx "st.global.volatile.u32 [{$r0}], {$r1};" ro (%place, %value : !llvm.ptr<1>, i32), predicate = %wanted
    llvm.return
  }
  llvm.func @wait(%barrier: !llvm.ptr<3>, %phase: i32, %ticks: i32) attributes {gpu.kernel, nvvm.kernel} {
    nvvm.mbarrier.try_wait.parity %barrier, %phase, %ticks : !llvm.ptr<3>, i32, i32
    llvm.return
  }
}
