; What clang makes of a file without a kernel: functions and variables that are local to their code object (`dso_local`), and may be
; seen from outside. lld takes no such reference to a symbol that something else could stand for; protected, nothing can.

; RUN: gpulower compile %s --target gfx942,gfx1100 -o %t/
; RUN: llvm-readelf -sW --dyn-syms %t/*.gfx942.hsaco | FileCheck %s
; RUN: llvm-readelf -sW --dyn-syms %t/*.gfx1100.hsaco | FileCheck %s
; CHECK-DAG: FUNC GLOBAL PROTECTED {{.*}} callee
; CHECK-DAG: FUNC GLOBAL PROTECTED {{.*}} caller
; CHECK-DAG: OBJECT GLOBAL PROTECTED {{.*}} table

target triple = "amdgcn-amd-amdhsa"

@table = dso_local addrspace(1) global [4 x i32] zeroinitializer

define dso_local i32 @callee(i32 %x) noinline {
  %p = getelementptr i32, ptr addrspace(1) @table, i32 %x
  %y = load i32, ptr addrspace(1) %p
  ret i32 %y
}

define dso_local i32 @caller(i32 %x) {
  %y = call i32 @callee(i32 %x)
  %z = add i32 %y, 1
  ret i32 %z
}
