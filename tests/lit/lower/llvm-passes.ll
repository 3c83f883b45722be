; Who knows what their IR needs says which of LLVM's passes are run.
; RUN: gpulower compile %s --target sm_90 --emit llvm --llvm-passes verify -o - | FileCheck %s --check-prefix=FEW
; RUN: gpulower compile %s --target gfx942 --emit llvm --llvm-passes 'default<O3>' -o - | FileCheck %s --check-prefix=LEVEL
; FEW: @place
; FEW: mul i64 {{.*}} 12
; FEW: add i64 {{.*}} 0
; LEVEL: @place
; LEVEL-NOT: add i64 {{.*}} 0
; LEVEL: ret void

; RUN: not gpulower compile %s --target sm_90 --llvm-passes nonsense -o %t.out 2>&1 | FileCheck %s --check-prefix=UNKNOWN
; UNKNOWN: option 'llvm-passes' cannot be 'nonsense': expected optimizations, as `opt -passes` takes them
; RUN: not gpulower compile %s --target sm_90 --llvm-passes sroa --input-optimized -o %t.out 2>&1 | FileCheck %s --check-prefix=BOTH
; BOTH: option 'llvm-passes' cannot be honoured for sm_90: with input-optimized none are run; leave one of the two out
; RUN: gpulower compile %s --target sm_90 --emit ptx -o %t.ptx
; RUN: not gpulower compile %t.ptx --target sm_90 --llvm-passes sroa -o %t.out 2>&1 | FileCheck %s --check-prefix=PTX
; PTX: cannot be honoured for sm_90: it is for what LLVM compiles, and this is PTX; leave the option out

define void @place(ptr addrspace(1) %p, i32 %i) {
  %wide = sext i32 %i to i64
  %bytes = mul i64 %wide, 12
  %same = add i64 %bytes, 0
  %address = getelementptr i8, ptr addrspace(1) %p, i64 %same
  store i32 1, ptr addrspace(1) %address
  ret void
}
